"""Writes tests/data/github-openapi.json: GitHub's published description of what we call and receive, and no more.

The description comes as the npm package @octokit/openapi (MIT), in one version that is held by its hash. It is cut down
to what the tests compare requests, answers, and webhooks with: parameters, bodies and answers, as plain JSON Schema.
Left out are texts, examples, everything unreachable from the operations, and each property of answers and webhooks that
neither our client nor its stand-in names. A property is required if GitHub always sends it, and our client reads it.
"""

import ast
import base64
import hashlib
import json
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

PACKAGE = "@octokit/openapi"
VERSION = "23.0.2"
INTEGRITY = "sha512-pV8M7L9GY23AybNvTmo2nyjmpmnt6+2sRE/tqr0ZLQcPS4lnw7u5eZGNmwRNkBC3D7gZXbFx5AHzLUVRBXGDhg=="
DESCRIPTION = "package/generated/api.github.com.json"
LICENSE = "package/LICENSE"
ROOT = Path(__file__).parents[1]
TARGET = ROOT / "tests/data/github-openapi.json"
# Our client, and the modules that read webhooks. The stand-in sends some more.
CLIENT = ("layers/shared/controlplane/code_host/github", "functions/system")
STAND_IN = ("local/github",)

OPERATIONS = (
    "GET /app",
    "POST /app/installations/{installation_id}/access_tokens",
    "GET /repos/{owner}/{repo}/installation",
    "GET /repos/{owner}/{repo}",
    "GET /repos/{owner}/{repo}/branches/{branch}",
    "GET /repos/{owner}/{repo}/tarball/{ref}",
    "GET /repos/{owner}/{repo}/issues",
    "POST /repos/{owner}/{repo}/issues",
    "GET /app/installations/{installation_id}",
    "GET /user/installations",
    "GET /user/installations/{installation_id}/repositories",
    "GET /repos/{owner}/{repo}/issues/{issue_number}",
    "GET /installation/repositories",
    "GET /repos/{owner}/{repo}/pulls/{pull_number}",
    "GET /repos/{owner}/{repo}/pulls",
    "POST /repos/{owner}/{repo}/check-runs",
    "GET /repos/{owner}/{repo}/check-runs/{check_run_id}",
    "PATCH /repos/{owner}/{repo}/check-runs/{check_run_id}",
    "GET /repos/{owner}/{repo}/commits/{ref}/check-runs",
    "GET /repos/{owner}/{repo}/issues/{issue_number}/comments",
    "POST /repos/{owner}/{repo}/issues/{issue_number}/comments",
    "PATCH /repos/{owner}/{repo}/issues/comments/{comment_id}",
)

# The deliveries that the stand-in sends, as GitHub's description calls them: event and action.
WEBHOOKS = (
    "check-run-rerequested",
    "issues-closed",
    "issues-reopened",
    "pull-request-closed",
    "pull-request-opened",
    "pull-request-reopened",
    "pull-request-synchronize",
    "push",
)

# The keywords of JSON Schema that constrain values. The rest is for readers.
_ASSERTIONS = {"type", "format", "enum", "pattern", "required", "uniqueItems"}
_BOUNDS = {"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"}
_COMBINED = ("allOf", "anyOf", "oneOf")
_PREFIX = "#/components/"
_WIDTH = 120


class _Extract:
    """Operations of one OpenAPI 3.0 document as JSON Schema (2020-12), with the definitions that they reach."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document
        self._read = _read_names()
        self._known = self._read | _sent_names()
        self.definitions: dict[str, Any] = {}

    def operation(self, name: str) -> dict[str, Any]:
        method, path = name.split()
        found = self._document["paths"][path][method.lower()]
        parameters = [self._resolve(parameter) for parameter in found.get("parameters", [])]
        return {
            "parameters": [
                {
                    "name": it["name"],
                    "in": it["in"],
                    "required": it.get("required", False),
                    "schema": self._schema(it["schema"]),
                }
                for it in parameters
            ],
            "body": self._content(found.get("requestBody", {}), is_sent=True),
            "answers": {status: self._content(self._resolve(it)) for status, it in found["responses"].items()},
        }

    def webhook(self, name: str) -> Any:
        return self._content(self._document["x-webhooks"][name]["post"]["requestBody"])

    def _content(self, holder: dict[str, Any], *, is_sent: bool = False) -> Any:
        """Returns the schema of a body. is_sent: it is our client's, so that nothing is left out."""
        content = holder.get("content", {}).get("application/json")
        return content and self._schema(content["schema"], is_sent=is_sent)

    def _resolve(self, node: dict[str, Any]) -> dict[str, Any]:
        if "$ref" not in node:
            return node
        kind, name = node["$ref"].removeprefix(_PREFIX).split("/")
        found: dict[str, Any] = self._document["components"][kind][name]
        return found

    def _schema(self, schema: Any, *, is_sent: bool = False) -> Any:
        if not isinstance(schema, dict):
            return schema
        if "$ref" in schema:
            return self._schema(self._resolve(schema), is_sent=True) if is_sent else self._reference(schema)
        plain = {name: value for name, value in schema.items() if name in _ASSERTIONS | _BOUNDS}
        if "required" in plain and not is_sent:
            plain["required"] = [name for name in plain["required"] if name in self._read]
        if "properties" in schema:
            kept = schema["properties"].keys() if is_sent else schema["properties"].keys() & self._known
            plain["properties"] = {
                name: self._schema(it, is_sent=is_sent) for name, it in schema["properties"].items() if name in kept
            }
        for name in ("items", "additionalProperties", "not"):
            if name in schema:
                plain[name] = self._schema(schema[name], is_sent=is_sent)
        for name in _COMBINED:
            if name in schema:
                plain[name] = [self._schema(it, is_sent=is_sent) for it in schema[name]]
        return _with_null(plain) if schema.get("nullable") else plain

    def _reference(self, schema: dict[str, Any]) -> dict[str, str]:
        name = schema["$ref"].rpartition("/")[2]
        if name not in self.definitions:
            self.definitions[name] = None  # it may lead back to itself
            self.definitions[name] = self._schema(self._resolve(schema))
        return {"$ref": f"#/$defs/{name}"}


def _with_null(schema: dict[str, Any]) -> dict[str, Any]:
    """OpenAPI 3.0's `nullable` as JSON Schema has it."""
    if isinstance(schema.get("type"), str) and not any(name in schema for name in _COMBINED):
        enum = {"enum": [*schema["enum"], None]} if "enum" in schema and None not in schema["enum"] else {}
        return schema | {"type": [schema["type"], "null"]} | enum
    return {"anyOf": [schema, {"type": "null"}]}


def _nodes(folders: Iterable[str]) -> Iterator[ast.AST]:
    for path in (path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        yield from ast.walk(ast.parse(path.read_text()))


def _read_names() -> set[str]:
    """Returns the names of the properties that our client reads: `content["number"]`, and `content.get("body")`."""
    read: set[str] = set()
    for node in _nodes(CLIENT):
        match node:
            case ast.Subscript(value=ast.Name(id="names")):  # of a repository, which fill a path
                pass
            case ast.Subscript(slice=ast.Constant(value=str(name))):
                read.add(name)
            case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=str(name)), *_]):
                read.add(name)
    return read


def _sent_names() -> set[str]:
    """Returns the texts in the stand-in, some of which are names of properties."""
    return {it.value for it in _nodes(STAND_IN) if isinstance(it, ast.Constant) and isinstance(it.value, str)}


def _written(value: Any, indent: int = 0, before: int = 0) -> str:
    """Returns a value as JSON, on one line if it fits there after `before` characters."""
    line = json.dumps(value)
    if len(line) + before < _WIDTH or not isinstance(value, dict | list):
        return line
    start = " " * (indent + 1)
    if isinstance(value, list):
        parts = [start + _written(part, indent + 1, indent + 1) for part in value]
        return "\n".join(("[", ",\n".join(parts), " " * indent + "]"))
    names = {name: f"{start}{json.dumps(name)}: " for name in value}
    parts = [mark + _written(value[name], indent + 1, len(mark)) for name, mark in names.items()]
    return "\n".join(("{", ",\n".join(parts), " " * indent + "}"))


def _download(directory: Path) -> Path:
    """The package's archive. Raises SystemExit when it is not the one that was looked at."""
    command = ["npm", "pack", "--silent", "--pack-destination", str(directory), f"{PACKAGE}@{VERSION}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603
    (archive,) = directory.glob("*.tgz")
    with archive.open("rb") as file:
        digest = hashlib.file_digest(file, "sha512").digest()
    if f"sha512-{base64.b64encode(digest).decode()}" != INTEGRITY:
        raise SystemExit(f"{PACKAGE} {VERSION} doesn't have the hash that this script expects")
    return archive


def main() -> None:
    with tempfile.TemporaryDirectory() as directory, tarfile.open(_download(Path(directory))) as archive:
        texts = {name: file.read() for name in (DESCRIPTION, LICENSE) if (file := archive.extractfile(name))}
    extract = _Extract(json.loads(texts[DESCRIPTION]))
    operations = {name: extract.operation(name) for name in OPERATIONS}
    content = {
        "about": "Written by scripts/github_schemas.py. GitHub's REST API: operations that we call, and webhooks.",
        "source": f"{PACKAGE} {VERSION}",
        "license": texts[LICENSE].decode().strip(),
        "operations": operations,
        "webhooks": {name: extract.webhook(name) for name in WEBHOOKS},
        "$defs": dict(sorted(extract.definitions.items())),
    }
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(_written(content) + "\n")


if __name__ == "__main__":
    main()
