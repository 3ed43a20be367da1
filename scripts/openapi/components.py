"""The components that operations share: collected while the operations are described."""

from typing import Any

from scripts.openapi.errors import ErrorResponse
from scripts.openapi.schemas import Schema, Schemas

type Object = dict[str, Any]


def reference(kind: str, name: str) -> dict[str, str]:
    return {"$ref": f"#/components/{kind}/{name}"}


def header_name(name: str) -> str:
    return name.removeprefix("X-").replace("-", "")


def headers(*names: str) -> Object:
    """Returns the `headers` of a response, or nothing if it has only those that many have."""
    found = {name: reference("headers", header_name(name)) for name in dict.fromkeys(names)}
    return {"headers": found} if found else {}


class Components:
    """Schemas, examples, responses and parameters. Raises SystemExit if two different ones share a name."""

    def __init__(self, documents: dict[str, tuple[str, Schema]]) -> None:
        self.schemas = Schemas()
        self.documents = documents
        self.examples: Object = {}
        self.responses: Object = {}
        self.parameters: Object = {}

    def example(self, error: ErrorResponse) -> dict[str, str]:
        return self._shared("examples", self.examples, error.name, {"value": error.body})

    def response(self, name: str, response: Object) -> dict[str, str]:
        return self._shared("responses", self.responses, name, response)

    def parameter(self, parameter: Object) -> Object:
        """Returns a reference. If a different component has the name, the new one stays inline in its operation."""
        name = parameter["name"].replace("-", "")
        name = name[0].upper() + name[1:]
        if self.parameters.get(name, parameter) != parameter:
            return parameter
        return self._shared("parameters", self.parameters, name, parameter)

    @staticmethod
    def _shared(kind: str, collected: Object, name: str, value: Object) -> dict[str, str]:
        if collected.setdefault(name, value) != value:
            raise SystemExit(f"components.{kind}.{name} has two different definitions")
        return reference(kind, name)
