"""Generates the SDK's operations from docs/openapi.json: a class for each resource, a method for each operation.

The calls in scripts/reference/forms.yaml name the methods. Methods that send several requests, or take models as
arguments, are written by hand in subclasses.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import fill, indent
from typing import Any

from pydantic.alias_generators import to_pascal, to_snake

from scripts.reference.calls import CALLS
from scripts.reference.samples import Samples
from scripts.sdk.models import ASYNC, DOCUMENT, NAMES, PACKAGE, result_of

OPERATIONS = ASYNC / "_operations.py"
ERRORS = PACKAGE / "errors.py"

_BY_HAND = {"updateInboxItems"}
# The service recognizes a repetition of these without an idempotency key.
_REPEATABLE = {"updateInboxItem", "createGithubIssue", "cancelScan", "unlockScan"}
# The field of these bodies is an argument without a name, like an ID in a path.
_POSITIONAL = {"saveActiveOrganization"}
# Fields that a change can set to null, so omitted arguments are OMIT.
_CLEARED = {"assigneeId", "description", "productionBranch", "rootDirectory", "schedule"}
# Objects of which the SDK sends one field.
_INNER = {"consent": "branding"}
_NAMES = {"projectName": "name", "Prefer": "wait_seconds", "Idempotency-Key": "idempotency_key", **_INNER}
_TYPES = {"string": "str", "integer": "int", "boolean": "bool"}
_PARAMETERS = NAMES["parameters"]
_HEADER = '''"""The operations. Made from docs/openapi.json by `make sdk`."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from openassent import models, values
from openassent._async._pages import AsyncPages
from openassent._async._pages import AsyncResource
from openassent._calls import OMIT, Omit, change, create, get, given, nullable, path
'''


def text() -> str:
    """Returns the generated module."""
    document = json.loads(DOCUMENT.read_text())
    methods = defaultdict(list)
    for path, operations in document["paths"].items():
        for verb, node in operations.items():
            if node["operationId"] in CALLS.keys() - _BY_HAND:
                resource, _ = _method(node["operationId"])
                methods[resource].append(_Operation(document, verb, path).method())
    classes = (
        f'class Async{to_pascal(resource)}(AsyncResource):\n    """{summary}"""\n\n' + "\n".join(methods[resource])
        for resource, summary in NAMES["resources"].items()
    )
    return "\n\n".join([_HEADER, *classes])


def _method(operation_id: str) -> list[str]:
    """Returns the resource and the name of an operation's method."""
    return CALLS[operation_id].partition("(")[0].split(".")[1:]


@dataclass(frozen=True)
class _Argument:
    """An argument of a method: how it is declared, and how it is passed on as a part of the request."""

    place: str
    name: str
    declaration: str
    passed: str
    text: str


class _Operation:
    """The method of an operation."""

    def __init__(self, document: dict[str, Any], verb: str, path: str) -> None:
        self._document, self._verb, self._path = document, verb.upper(), path
        self._samples = Samples(document)
        self._node = {"security": document["security"], **document["paths"][path][verb]}
        self._id, self._public = self._node["operationId"], [] if self._node["security"] else ["public=True"]
        found = {it.name: it for it in self._parameters()}
        ids = [found.pop(to_snake(it)) for it in re.findall(r"{(\w+)}", path)]
        self._arguments = [*ids, *self._fields(), *found.values()]

    def _parameters(self) -> Iterator[_Argument]:
        for node in map(self._samples.resolve, self._node.get("parameters", [])):
            if node["name"] != "If-None-Match":
                yield self._argument(
                    node["in"], node["name"], node["schema"], node["description"], required=node.get("required", False)
                )

    def _fields(self) -> Iterator[_Argument]:
        for media in self._node.get("requestBody", {"content": {}})["content"].values():
            body = self._samples.merge(media["schema"])
            fields = {_NAMES.get(field, field): field for field in reversed(body.get("properties", {}))}
            for field in reversed(fields.values()):
                schema = body["properties"][field]
                if not schema.get("deprecated"):
                    inner = self._samples.resolve(schema)["properties"][_INNER[field]] if field in _INNER else schema
                    yield self._argument(
                        "body", field, inner, inner["description"], required=field in body.get("required", ())
                    )

    def _argument(self, place: str, field: str, schema: Any, text: str, *, required: bool) -> _Argument:
        name, kind = _NAMES.get(field, to_snake(field)), self._type(schema)
        value, default = name, "" if required else " | None = None"
        if self._verb == "PATCH" and field in _CLEARED:
            default = " | Omit | None = OMIT"
            text += "" if "null" in text.lower() else " None removes it."
        elif self._verb != "PATCH" and "default" in schema:
            text += f" Defaults to `{schema['default']}`."
        if place != "body" and name in _PARAMETERS and not required:
            kind, text = _PARAMETERS[name]["type"], _PARAMETERS[name]["text"]
            default = " = False" if kind == "bool" else default
            value = f"self._organization({name})" if name == "organization_id" else name
        elif field in _INNER:
            value = f'None if {name} is None else {{"{name}": {name}}}'
        return _Argument(place, name, f"{name}: {kind}{default}", f"{field}={value}", text)

    def _type(self, schema: dict[str, Any]) -> str:
        found = self._samples.resolve(schema)
        if "enum" in found:
            return f"values.{found['title']}"
        if "anyOf" in found:
            return " | ".join(self._type(it) for it in self._samples.variants(found))
        kind = found["type"] if isinstance(found["type"], str) else found["type"][0]
        if kind == "array":
            return f"Sequence[{self._type(found['items'])}]"
        return "datetime" if found.get("format") == "date-time" else _TYPES[kind]

    def method(self) -> str:
        """Returns the source of the method."""
        reader, result = result_of(self._document, self._node)
        model, shapes = f"models.{result}", self._document["components"]["schemas"][result].get("oneOf", ())
        prefix, returns, value = "async ", model, f"await self._core.{reader}({self._call()}, {model})"
        if reader == "page":
            prefix, returns, value = "", f"AsyncPages[{model}]", self._pages(model)
        elif reader == "document":
            returns, value = "dict[str, Any]", f"await self._core.document({self._call()})"
        elif shapes:
            returns = " | ".join(f"models.{it['$ref'].rpartition('/')[2]}" for it in shapes)
            value = f"({value}).root"
        places = {"path", "body"} if self._id in _POSITIONAL else {"path"}
        positional = [it.declaration for it in self._arguments if it.place in places]
        named = [it.declaration for it in self._arguments if it.place not in places]
        parameters = ["self", *positional, *(["*", *named] if named else [])]
        signature = _lines(f"{prefix}def {_method(self._id)[1]}", parameters)
        body = f'"""{self._docstring()}"""\nreturn {value}\n'
        return indent(f"{signature} -> {returns}:\n{indent(body, '    ')}", "    ")

    def _passed(self, place: str, *without: str) -> list[str]:
        return [it.passed for it in self._arguments if it.place == place and it.name not in without]

    def _has(self, name: str) -> bool:
        return any(it.name == name for it in self._arguments)

    def _url(self) -> str:
        ids = [it.name for it in self._arguments if it.place == "path"]
        return f'path("{re.sub(r"{\w+}", "{}", self._path)}", {", ".join(ids)})' if ids else f'"{self._path}"'

    def _pages(self, model: str) -> str:
        query = self._passed("query", "cursor")
        parts = ["self._core", self._url(), model, "cursor" if self._has("cursor") else "None"]
        return _lines("AsyncPages", [*parts, *([_lines("dict", query)] if query else []), *self._public])

    def _call(self) -> str:
        options = [f"{it}={it}" for it in ("wait_seconds", "dry_run") if self._has(it)]
        options += self._passed("query", "dry_run")
        if self._verb == "GET":
            return _lines("get", [self._url(), *options, *self._public])
        if self._has("idempotency_key"):
            return _lines("create", [self._url(), self._body(), "idempotency_key", *options])
        options += ["repeatable=True"] if self._id in _REPEATABLE else []
        return _lines("change", [f'"{self._verb}"', self._url(), self._body(), *options])

    def _body(self) -> str:
        fields = defaultdict(list)
        for it in self._arguments:
            if it.place == "body":
                fields["nullable" if it.declaration.endswith("OMIT") else "given"].append(it.passed)
        return " | ".join(_lines(function, passed) for function, passed in fields.items()) or "None"

    def _docstring(self) -> str:
        arguments = [fill(f"{it.name}: {it.text}", 112, subsequent_indent="    ") for it in self._arguments]
        errors = [
            fill(it, 112, initial_indent="    ", subsequent_indent="        ") for it in dict.fromkeys(self._errors())
        ]
        parts = [self._node["description"], "\n".join(arguments), "\n".join(["Raises:", *errors]) if errors else ""]
        text = "\n\n".join(filter(None, parts))
        text = re.sub(r"`?\b([A-Z]+) (/[\w/{}-]+)`?", self._replacement, text)
        for pattern, replacement in NAMES["words"].items():
            text = re.sub(pattern, replacement, text)
        # The keys of an error's details are those of the service.
        text = re.sub(r"`(?!details|current)[a-z]\w*[.A-Z]\w+`", lambda it: to_snake(it[0]), text)
        return f"{text}\n" if "\n" in text else text

    def _errors(self) -> Iterator[str]:
        """Yields the errors that not every operation has."""
        classes = dict(re.findall(r'"([A-Z_]+)": (\w+),', ERRORS.read_text()))
        responses = self._document["components"]["responses"].values()
        examples = {
            name: it for one in responses for name, it in one["content"]["application/json"]["examples"].items()
        }
        for error in (examples[name]["value"]["error"] for name in self._node.get("x-errors", ())):
            yield f"{classes[error['code']]}: {error['message']}"

    def _replacement(self, request: re.Match[str]) -> str:
        return f"`client.{'.'.join(_method(self._document['paths'][request[2]][request[1].lower()]['operationId']))}`"


def _lines(opening: str, parts: Sequence[str]) -> str:
    return f"{opening}(\n{indent(',\n'.join(parts), '    ')},\n)"
