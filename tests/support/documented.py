"""Access to docs/openapi.json for tests: its operations, its resolved references, and validation by its schemas."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from scripts.reference.samples import Samples

PATH = Path(__file__).parents[2] / "docs" / "openapi.json"
DEPRECATION = {"Deprecation", "Sunset", "Link"}
# The details of every error, which examples leave out.
GUIDANCE = {"docsUrl", "hint"}
METHODS = ("get", "post", "put", "patch", "delete")
_BASE = "urn:openapi"
FORMATS = FormatChecker(("email",))


@FORMATS.checks("date-time")
def _is_date_time(value: Any) -> bool:
    return not isinstance(value, str) or bool(
        re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", value)
    )


@FORMATS.checks("uri")
def _is_uri(value: Any) -> bool:
    return not isinstance(value, str) or bool(urlsplit(value).scheme and urlsplit(value).netloc)


@cache
def document() -> dict[str, Any]:
    described: dict[str, Any] = json.loads(PATH.read_text())
    return described


@cache
def samples() -> Samples:
    return Samples(document())


@dataclass(frozen=True, eq=False)
class DocumentedOperation:
    """One operation of the document, with its path and method."""

    path: str
    method: str
    content: dict[str, Any]

    @property
    def name(self) -> str:
        return f"{self.method.upper()} {self.path}"

    def responses(self, *, to_form: bool = False) -> dict[int, dict[str, Any]]:
        """Returns the documented responses to requests in JSON or as OAuth's forms."""
        described = self.content["x-form-encoded"] if to_form else self.content
        return {int(status): response for status, response in samples().responses(described).items()}


@cache
def documented_operations() -> list[DocumentedOperation]:
    return [
        DocumentedOperation(path, method, {"security": document()["security"], **item[method]})
        for path, item in document()["paths"].items()
        for method in METHODS
        if method in item
    ]


def resolve(part: dict[str, Any]) -> dict[str, Any]:
    """Resolves a reference, or returns the part itself. Raises KeyError if the target doesn't exist."""
    return samples().resolve(part)


@cache
def _registry() -> Registry[Any]:
    contents = _closed(document())
    return Registry().with_resource(_BASE, Resource.from_contents(contents, default_specification=DRAFT202012))


def _closed(schema: dict[str, Any]) -> Any:
    """Returns the schema without the values that later versions may send: this one sends only those that it names."""
    return json.loads(json.dumps(schema).replace('"x-extensible-enum":', '"enum":'))


def problems(schema: dict[str, Any], value: Any) -> list[str]:
    """Returns the errors of a value by a schema of the document."""
    # Its references are relative to the document.
    rooted = json.loads(json.dumps(_closed(schema)).replace('"$ref": "#', f'"$ref": "{_BASE}#'))
    validator = Draft202012Validator(rooted, registry=_registry(), format_checker=FORMATS)
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]


@cache
def _patterns() -> list[tuple[re.Pattern[str], DocumentedOperation]]:
    """Returns patterns for the operations' paths. Those without parameters come first."""
    ordered = sorted(documented_operations(), key=lambda operation: operation.path.count("{"))
    return [
        (re.compile(f"{operation.method.upper()} {re.sub(r'\{\w+\}', '[^/]+', operation.path)}"), operation)
        for operation in ordered
    ]


def find_operation(method: str, path: str) -> DocumentedOperation | None:
    """Returns the operation that a request matches, or None."""
    request = f"{method} {path}"
    return next((operation for pattern, operation in _patterns() if pattern.fullmatch(request)), None)


def headers(operation: DocumentedOperation, status: int, *, to_form: bool = False) -> set[str]:
    """Returns the names of the headers that a response can have: its own, and those that many have."""
    responses = operation.responses(to_form=to_form)
    found = {*responses[status].get("headers", ()), *_common_headers(operation, status)}
    if status >= 400:
        # As the operation's success, with anything deprecated.
        found |= DEPRECATION & {name for response in responses.values() for name in response.get("headers", ())}
    return found


def _common_headers(operation: DocumentedOperation, status: int) -> set[str]:
    is_counted = operation.content["security"] != [] and status not in {401, 413}
    taken = {resolve(it)["name"] for it in operation.content.get("parameters", ()) if status < 300}
    answers = {"Dry-Run": "dryRun", "Idempotency-Replayed": "Idempotency-Key"}
    left_out = {name for name, parameter in answers.items() if parameter not in taken}
    left_out |= set() if is_counted else {name for name in document()["x-common-headers"] if "RateLimit" in name}
    return document()["x-common-headers"].keys() - left_out


@cache
def _sent_headers() -> dict[str, str]:
    """Returns the lowercase names of the headers in the document."""
    names = {
        name
        for operation in documented_operations()
        for to_form in {False, "x-form-encoded" in operation.content}
        for status in operation.responses(to_form=to_form)
        for name in headers(operation, status, to_form=to_form)
    }
    return {name.lower(): name for name in names}


@cache
def _refusals(operation: DocumentedOperation, status: int, *, to_form: bool) -> set[tuple[str, ...]]:
    """Returns the codes and details of the documented error examples for the status."""
    examples = operation.responses(to_form=to_form)[status]["content"]["application/json"]["examples"].values()
    return {_outline(resolve(example)["value"]) for example in examples}


def _outline(body: dict[str, Any]) -> tuple[str, ...]:
    """Returns an error's identity: OAuth's error name, or its code and the names of its details."""
    error = body["error"]
    if isinstance(error, str):
        return (error,)
    details = error["details"]
    if isinstance(details, list):
        return (error["code"], "list")
    return (error["code"], *sorted({*details} - GUIDANCE))


_seen: set[Any] = set()
_ALWAYS_SENT = {"x-request-id", "cache-control", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"}
# The rate limit count is unknown if it could not be written, or if the request failed before it.
_MAYBE_UNCOUNTED = {429, 500, 503}


def check_documented(
    method: str, path: str, status: int, sent: dict[str, str], body: Any, *, to_form: bool = False
) -> None:
    """Checks a response against its documented operation. Ignores paths and methods that aren't in the document."""
    operation = find_operation(method, unquote(path))
    if operation is None:
        return
    advice = f"{operation.name} answered {status}, and docs/openapi.json says otherwise (is it current? make openapi)"
    # A path that isn't an operation's refuses a form in the envelope.
    to_form = to_form and not (isinstance(body, dict) and "success" in body)
    responses = operation.responses(to_form=to_form)
    assert status in responses, advice
    declared = headers(operation, status, to_form=to_form)
    known = _sent_headers()
    undeclared = {known[name] for name in sent if name in known} - declared
    assert not undeclared, f"{advice}: {undeclared}"
    if status not in _MAYBE_UNCOUNTED:
        missing = {name for name in declared if name.lower() in _ALWAYS_SENT - sent.keys()}
        assert not missing, f"{advice}: without {missing}"
    if status >= 400:
        assert _outline(body) in _refusals(operation, status, to_form=to_form), f"{advice}: {body}"
    # Checks one body per shape, which is close enough: single words distinguish shapes, other texts don't.
    key = (operation.name, status, to_form, _shape(body))
    if "content" in responses[status] and key not in _seen:
        assert problems(responses[status]["content"]["application/json"]["schema"], body) == [], advice
        _seen.add(key)


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple((name, _shape(part)) for name, part in value.items())
    if isinstance(value, list):
        return frozenset(map(_shape, value))
    if isinstance(value, str) and re.fullmatch(r"[a-zA-Z_-]{1,20}", value):
        return value
    return type(value)


def parts(value: Any, at: str = "#") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields every object within a part of the document, with its location. Skips the contents of examples."""
    if isinstance(value, list):
        for position, part in enumerate(value):
            yield from parts(part, f"{at}/{position}")
    elif isinstance(value, dict):
        yield at, value
        for name, part in value.items():
            if name not in {"example", "examples", "value", "const", "enum", "default"}:
                yield from parts(part, f"{at}/{name}")
