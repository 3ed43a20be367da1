"""The components that operations share: collected while the operations are described."""

from typing import Any

from scripts.openapi.errors import ErrorResponse
from scripts.openapi.schemas import Schema, Schemas

type Object = dict[str, Any]

# Where the error responses in the envelope are, and those to form-encoded requests, which linters don't find in use.
FAILURES = "components/responses"
OAUTH = "x-oauth/responses"


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
        self.responses: dict[str, Object] = {FAILURES: {}, OAUTH: {}}
        self.parameters: Object = {}

    def failures(self, errors: list[ErrorResponse], place: str, schema: Schema) -> tuple[Object, list[str]]:
        """Returns references to the error responses by status, and the names of the operation's own errors."""
        found: Object = {}
        for error in errors:
            name = f"E{error.status}"  # Short: there are ten references in each operation.
            new = {"description": "", "content": {"application/json": {"schema": schema, "examples": {}}}}
            response = self.responses[place].setdefault(name, new)
            if f"`{error.code}`" not in response["description"]:
                response["description"] += f", `{error.code}`" if response["description"] else f"`{error.code}`"
            response |= headers(*response.get("headers", {}), *error.headers)
            example = {"value": error.body}
            if response["content"]["application/json"]["examples"].setdefault(error.name, example) != example:
                raise SystemExit(f"two different errors are both named {error.name}")
            found[str(error.status)] = {"$ref": f"#/{place}/{name}"}
        return found, [error.name for error in errors if "." in error.name]

    def parameter(self, parameter: Object) -> Object:
        """Returns a reference. If different components have its names, the parameter stays inline in its operation."""
        name = parameter["name"].replace("-", "")
        name = name[0].upper() + name[1:]
        for free in (name, f"{name}In{parameter['in'].title()}"):
            if self.parameters.setdefault(free, parameter) == parameter:
                return reference("parameters", free)
        return parameter
