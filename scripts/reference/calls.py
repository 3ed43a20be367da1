"""An operation's request in three forms: as a curl command, as a command of `assent`, and as a Python program."""

import ast
import json
import re
import shlex
import textwrap
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import yaml

from scripts.openapi.texts import BASE_URL
from scripts.reference.samples import Samples

_FORMS = yaml.safe_load(Path(__file__).with_name("forms.yaml").read_text(encoding="utf-8"))
# The others have `assent api`.
COMMANDS: dict[str, str] = {name: forms["command"] for name, forms in _FORMS.items() if "command" in forms}
CALLS: dict[str, str] = {name: forms["call"] for name, forms in _FORMS.items() if "call" in forms}
_WIDTH = 76
# The SDK has no method for a deprecated operation whose successor returns the same.
SUCCESSORS = {"listAuthKeys": "listApiKeys"}
_IMPORTS = {
    "from datetime import UTC, datetime\n": "datetime(",
    "from openassent import Assent": "",
    "from openassent.models import InboxItemChange": "InboxItemChange(",
}
# An option stays on one line with its value.
_PART = re.compile(r"--\S+ (?:'[^']*'|[^-\s]\S*)|'[^']*'|\S+")


def samples(method: str, path: str, node: dict[str, Any], values: Samples) -> list[dict[str, str]]:
    """Returns the forms of an operation's request as Redoc's `x-codeSamples`."""
    operation_id, needs_token = node["operationId"], bool(node.get("security"))
    forms = [
        ("shell", "curl", curl(method.upper(), path, node, values)),
        ("shell", "Command line", command(method.upper(), path, node, values)),
        ("python", "Python", program(operation_id, is_list=values.is_list(node), needs_token=needs_token)),
    ]
    return [{"lang": language, "label": label, "source": source} for language, label, source in forms if source]


def curl(method: str, path: str, node: dict[str, Any], values: Samples) -> str:
    """Returns the request as a curl command with example values. It has a body only if the operation requires one."""
    target, content = _request(path, node, values)
    address = shlex.quote(BASE_URL + target)
    verb = "" if method == "GET" or (method == "POST" and content) else f"-X {method} "
    lines = [f"curl {verb}{address}"]
    if node.get("security"):
        lines.append('-H "Authorization: Bearer $TOKEN"')
    if content:
        media_type, example = content
        text = json.dumps(example, indent=2, ensure_ascii=False)
        lines += [f"-H 'Content-Type: {media_type}'", f"-d {shlex.quote(text.replace('\n', '\n  '))}"]
    return " \\\n  ".join(lines)


def _request(path: str, node: dict[str, Any], values: Samples) -> tuple[str, tuple[str, Any] | None]:
    """Returns the path with its query, and the media type and the example of the body that the operation requires."""
    query = {}
    for parameter in map(values.resolve, node.get("parameters", [])):
        if parameter["in"] == "path":
            path = path.replace("{" + parameter["name"] + "}", quote(str(parameter["example"]), safe=""))
        elif parameter["in"] == "query" and parameter.get("required"):
            query[parameter["name"]] = parameter["example"]
    target = path + (f"?{urlencode(query)}" if query else "")
    body = values.resolve(node.get("requestBody", {}))
    if not body.get("required", False):
        return target, None
    media_type, media = next(iter(body["content"].items()))
    return target, (media_type, next(iter(values.examples(media).values())))


def command(method: str, path: str, node: dict[str, Any], values: Samples) -> str:
    """Returns the command of the operation: its own, or `assent api`. Empty for other documents."""
    operation_id = node["operationId"]
    text = COMMANDS.get(operation_id, "")
    if not text and operation_id in CALLS:
        target, content = _request(path, node, values)
        fields = content[1].items() if content else ()
        text = f"assent api {method} {shlex.quote(target)}"
        for name, value in fields:
            written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            text += f" --field {shlex.quote(f'{name}={written}')}"
    parts = " ".join(part.replace(" ", "\0") for part in _PART.findall(text))
    lines = textwrap.wrap(parts, _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return " \\\n".join(lines).replace("\0", " ")


def program(operation_id: str, *, is_list: bool, needs_token: bool) -> str:
    """Returns the Python program of the operation. Empty for other documents."""
    call = CALLS.get(SUCCESSORS.get(operation_id, operation_id), "")
    if not call:
        return ""
    imports = "\n".join(line for line, word in _IMPORTS.items() if word in call)
    key = ', api_key="assent_..."' if needs_token else ""
    wrapped = _wrapped(call)
    body = f"for item in {wrapped}:\n    print(item)" if is_list else f"result = {wrapped}\nprint(result)"
    return f'{imports}\n\nwith Assent(base_url="{BASE_URL}"{key}) as client:\n{textwrap.indent(body, "    ")}'


def _wrapped(source: str, width: int = _WIDTH) -> str:
    """Returns the expression. If it is too long, each argument has a line of its own."""
    node = ast.parse(source, mode="eval").body
    if len(source) <= width or not isinstance(node, ast.Call | ast.List):
        return source
    parts = [*node.args, *node.keywords] if isinstance(node, ast.Call) else node.elts
    texts = [ast.get_source_segment(source, part) or "" for part in parts]
    lines = [part if "=" in part.partition("(")[0] else _wrapped(part, width - 4) for part in texts]
    opening, closing = source[: source.index(texts[0])], source[-1]
    return f"{opening}\n{textwrap.indent(',\n'.join(lines), '    ')},\n{closing}"
