"""Generates the SDK's models from docs/openapi.json with datamodel-code-generator, and its synchronous client.

The synchronous client is made from the asynchronous one, so that both are written once.

Responses are read leniently: a newer service may add fields and values, so the models have types and no limits. Names,
types, and texts come from the document; what the SDK doesn't return (envelopes, requests) is left out.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap
from typing import Any

import yaml

from scripts.reference.samples import Samples

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "openapi.json"
PACKAGE = Path(__file__).parents[2] / "cli" / "src" / "openassent"
ASYNC = PACKAGE / "_async"
SYNC = PACKAGE / "_sync"
MODELS = PACKAGE / "models.py"
VALUES = PACKAGE / "values.py"
# Names and texts that the document doesn't have.
NAMES = yaml.safe_load(Path(__file__).with_name("names.yaml").read_text(encoding="utf-8"))

# Models that aren't in a response's data: a part of errors, and an item of a request's list.
_OTHER = ("Problem", "InboxItemChange")
# Documents that clients store as they are.
_PLAIN = {"OpenApiDocument", "SarifLog"}
# The SDK doesn't use the older shape of a request, so it never gets the older shape of the response.
_REPLACED = {"AnyCreatedProject": "CreatedProject"}
_KEPT = {"type", "required", "additionalProperties", "discriminator", "const"}
_OPTIONS = (
    *("--input-file-type", "openapi", "--target-python-version", "3.11", "--formatters", "builtin"),
    *("--output-model-type", "pydantic_v2.BaseModel", "--base-class", "openassent._base.Model"),
    *("--snake-case-field", "--use-annotated", "--use-union-operator", "--use-standard-collections"),
    *("--use-schema-description", "--use-field-description"),
    *("--output-datetime-class", "datetime", "--enum-field-as-literal", "all", "--collapse-root-models"),
    *("--field-extra-keys", "repr", "--disable-timestamp", "--aliases", json.dumps(NAMES["attributes"])),
)
_SCHEMAS = "#/components/schemas/"
# The generator writes the quotes on lines of their own.
_DOCSTRING = re.compile(r'"""\n +(?P<text>\S.*?)(?P<end>\n +)"""', re.DOTALL)
_MODELS_HEADER = '"""The models of responses. Made from docs/openapi.json by `make sdk`."""'
_VALUES_HEADER = '''"""The values of arguments. Made from docs/openapi.json by `make sdk`.

A service that is newer than this package may accept others, so each is any string for a type checker.
"""

from typing import Literal
'''


class _Extract:
    """The schemas that the SDK needs, as the generator should read them."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._samples = Samples(document)
        self.extracted: dict[str, Any] = {}
        for name in [*_results(document), *_OTHER]:
            self._reference({"$ref": f"{_SCHEMAS}{name}"})

    def _reference(self, schema: dict[str, Any]) -> dict[str, Any]:
        name = schema["$ref"].rpartition("/")[2]
        name = _REPLACED.get(name, name)
        found = self._samples.merge({"$ref": f"{_SCHEMAS}{name}"})
        if values := found.get("enum") or found.get("x-extensible-enum"):
            open_enumeration = {"anyOf": [{"type": "string", "enum": values}, {"type": "string"}]}
            return open_enumeration | _text(schema if "description" in schema else found)
        if name not in self.extracted and name not in _PLAIN:
            self.extracted[name] = {}  # it may lead back to itself
            self.extracted[name] = self._object(name, found)
        return {"$ref": f"{_SCHEMAS}{name}"} | _text(schema)

    def _object(self, name: str, schema: dict[str, Any]) -> dict[str, Any]:
        converted: dict[str, Any] = self._schema(schema)
        converted["description"] = NAMES["texts"].get(name, converted["description"])
        for field in NAMES["duplicates"].get(name, ()):
            del converted["properties"][field]
            converted["required"] = [it for it in converted["required"] if it != field]
        for field in NAMES["secrets"].get(name, ()):
            converted["properties"][field]["repr"] = False
        return converted

    def _schema(self, schema: Any) -> Any:
        if not isinstance(schema, dict):
            return schema
        if "$ref" in schema:
            return self._reference(schema)
        converted = {key: value for key, value in schema.items() if key in _KEPT} | _text(schema)
        if schema.get("format") == "date-time":
            converted["format"] = "date-time"
        for key in ("anyOf", "oneOf"):
            if key in schema:
                converted[key] = [self._schema(it) for it in schema[key]]
        for key in ("items", "additionalProperties"):
            if key in schema:
                converted[key] = self._schema(schema[key])
        if "properties" in schema:
            converted["properties"] = {key: self._schema(it) for key, it in schema["properties"].items()}
        return converted


def texts() -> dict[Path, str]:
    """Returns both generated modules by path."""
    document = json.loads(DOCUMENT.read_text())
    return {VALUES: _values(document), MODELS: _models(document)}


def result_of(document: dict[str, Any], operation: dict[str, Any]) -> tuple[str, str]:
    """Returns the core's method that reads an operation's responses, and the name of the schema that it returns."""
    response = next(it for status, it in operation["responses"].items() if status.startswith("2"))
    name = response["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    if name in _PLAIN:
        return "document", name
    properties = document["components"]["schemas"][name]["properties"]
    if "success" not in properties:
        return "parsed", name
    data = properties["data"]
    name = data.get("items", data)["$ref"].rpartition("/")[2]
    return "page" if "items" in data else "result", _REPLACED.get(name, name)


def _models(document: dict[str, Any]) -> str:
    schemas = dict(sorted(_Extract(document).extracted.items()))
    info = {"title": document["info"]["title"], "version": document["info"]["version"]}
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "document.json"), Path(folder, "models.py")
        source.write_text(json.dumps({"openapi": "3.1.0", "info": info, "components": {"schemas": schemas}}))
        command = [sys.executable, "-m", "datamodel_code_generator", *_OPTIONS, "--custom-file-header", _MODELS_HEADER]
        subprocess.run([*command, "--input", str(source), "--output", str(target)], check=True)  # noqa: S603
        return _DOCSTRING.sub(_compact, target.read_text())


def _compact(docstring: re.Match[str]) -> str:
    text, end = docstring["text"], docstring["end"]
    return f'"""{text}{end}"""' if "\n" in text else f'"""{text}"""'


def _values(document: dict[str, Any]) -> str:
    """Returns a type for each enumeration of a request."""
    lines = [_VALUES_HEADER]
    for name, schema in sorted(document["components"]["schemas"].items()):
        if schema.get("enum"):
            literals = ", ".join(json.dumps(value) for value in schema["enum"])
            lines.append(f"{name} = Literal[{literals}] | str")
    return "\n".join(lines) + "\n"


def _results(document: dict[str, Any]) -> Iterator[str]:
    """Yields the names of the schemas that operations return, without their envelopes."""
    for operations in document["paths"].values():
        for operation in operations.values():
            yield result_of(document, operation)[1]


def _text(schema: dict[str, Any]) -> dict[str, str]:
    """Returns the description in lines that fit a docstring of an attribute."""
    if "description" not in schema:
        return {}
    return {"description": "\n".join(wrap(schema["description"], 110, break_long_words=False, break_on_hyphens=False))}


_REPLACEMENTS = (
    (re.compile(r"\basync (def|for|with)\b"), r"\1"),
    (re.compile(r"\bawait "), ""),
    (re.compile(r"\bopenassent\._async\b"), "openassent._sync"),
    # AsyncAssent, AsyncIterator, httpx.AsyncClient.
    (re.compile(r"\bAsync([A-Z]\w*)"), r"\1"),
    (re.compile(r"\b__a(iter|next|enter|exit)__"), r"__\1__"),
    (re.compile(r"\baclose\b"), "close"),
    (re.compile(r"\bsleep_async\b"), "sleep"),
)
_HEADER = "# Made from {} by `make sdk`.\n"


def synchronous_texts() -> dict[Path, str]:
    """Returns the modules of the synchronous client by path."""
    return {
        SYNC / path.name: _HEADER.format(path.relative_to(PACKAGE)) + synchronous(path.read_text())
        for path in sorted(ASYNC.glob("*.py"))
    }


def synchronous(text: str) -> str:
    """Returns asynchronous code as synchronous code."""
    for pattern, replacement in _REPLACEMENTS:
        text = pattern.sub(replacement, text)
    return text
