"""The operations of an OpenAPI document, with their requests and their errors."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml

from scripts.reference import calls
from scripts.reference.samples import Samples

_COMPONENTS = "#/components/"


class Operation(NamedTuple):
    """`node` is the operation in the document, with the errors that it has, and its requests as `x-codeSamples`.

    response: the first example of a response's body, or nothing if it has none in JSON. errors: their codes and
    messages by status. definition: its part of the document as YAML, without errors.
    """

    method: str
    path: str
    node: dict[str, Any]
    response: str
    errors: list[tuple[str, str]]
    definition: str


def read(document: dict[str, Any]) -> dict[str, list[Operation]]:
    """Returns the operations by tag, in the order of the document's tags."""
    found: dict[str, list[Operation]] = {tag["name"]: [] for tag in document["tags"]}
    for path, item in document["paths"].items():
        for method, node in item.items():
            whole = {"security": document.get("security", []), **node}
            found[node["tags"][0]].append(_read(document, method, path, whole))
    return found


def _read(document: dict[str, Any], method: str, path: str, node: dict[str, Any]) -> Operation:
    samples = Samples(document)
    responses = samples.responses(node)
    shown = {**node, "responses": responses, "x-codeSamples": calls.samples(method, path, node, samples)}
    form = samples.responses(node["x-form-encoded"]) if "x-form-encoded" in node else {}
    errors = [
        (f"{status}{about}", response["description"])
        for about, those in (("", responses), (" to form-encoded requests", form))
        for status, response in sorted(those.items())
        if status >= "400"
    ]
    return Operation(
        method.upper(), path, shown, _response(samples, responses), errors, _definition(document, method, path, node)
    )


def _response(samples: Samples, responses: dict[str, Any]) -> str:
    for status, response in sorted(responses.items()):
        media = response.get("content", {}).get("application/json")
        if status < "400" and media:
            return json.dumps(next(iter(samples.examples(media).values())), indent=2, ensure_ascii=False)
    return ""


def _definition(document: dict[str, Any], method: str, path: str, node: dict[str, Any]) -> str:
    """Returns the operation with the components that it refers to, as a small document."""
    shown = {name: value for name, value in node.items() if name not in {"summary", "description", "x-errors"}}
    part = json.loads(json.dumps(shown))
    for place in (part, part.get("x-form-encoded", {})):
        if "responses" in place:
            successes = {status: response for status, response in place["responses"].items() if status < "400"}
            place["responses"] = successes
    components: dict[str, dict[str, Any]] = {}
    pending = [*_references(part)]
    while pending:
        kind, name, *_ = pending.pop().removeprefix(_COMPONENTS).split("/")
        if name not in components.setdefault(kind, {}):
            components[kind][name] = document["components"][kind][name]
            pending += _references(components[kind][name])
    ordered = {kind: dict(sorted(those.items())) for kind, those in sorted(components.items())}
    whole = {"paths": {path: {method: part}}, **({"components": ordered} if ordered else {})}
    # A copy without shared parts, for which YAML has aliases.
    copied = json.loads(json.dumps(whole))
    return yaml.safe_dump(copied, sort_keys=False, allow_unicode=True, width=110).strip()


def _references(node: Any) -> Iterator[str]:
    """Yields the components to which the node refers."""
    if isinstance(node, dict):
        if str(node.get("$ref")).startswith(_COMPONENTS):
            yield node["$ref"]
        for value in node.values():
            yield from _references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _references(value)
