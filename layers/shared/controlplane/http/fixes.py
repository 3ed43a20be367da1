"""Adds to an error response where the error is documented, and a request that would work.

A fix is built from three things: the facts of the refusal (`core.errors`), the table of operations, which is generated
from the OpenAPI document, and the refused request. It never repeats text that the client sent: only identifiers,
numbers, and values of enumerations, so it can't contain a secret or a person's data. Where such a text belongs, it has
the documented example, and `replace` names the field.

Imported with the first error, because most cold starts need none of it.
"""

import json
import re
import uuid
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

from controlplane.core.errors import (
    ApiError,
    InsufficientScope,
    MethodNotAllowed,
    Problems,
    Remedy,
    RouteNotFound,
    Unauthorized,
)
from controlplane.core.settings import settings
from controlplane.core.urls import dashboard_base_url, error_page
from controlplane.http import nearest
from controlplane.http.access import Access
from controlplane.http.callers import Caller
from controlplane.http.reader import DRY_RUN

type Fix = dict[str, Any]
type Operation = dict[str, Any]

_SIGN_IN = "POST /v1/auth/device/code"
_DESCRIPTION = {"method": "GET", "path": "/openapi.json"}
_JSON = {"Content-Type": "application/json"}
_KEY_HEADER = "Idempotency-Key"
_ID = re.compile(r"[a-z]{3}_[0-9a-hjkmnp-tv-z]{16,34}")
# What is repeated of a path or query: an id, a small number, a time, or a word of an enumeration. No secret is one.
_PLAIN = re.compile(rf"{_ID.pattern}|\d{{1,4}}|[0-9T:.Z+-]{{10,30}}|(?=.{{1,40}}$)[a-z]+(?:[._-][a-z]+)*+")
_SMALL = 10_000
# Examples that stand for something that has to exist: an id, a version, or a secret.
_EXISTING = re.compile(r"(?<![a-z])[a-z]++_[0-9A-Za-z_]{16}|[0-9a-f]{32}")
_NAME = re.compile(r"\{(\w+)\}")


class RefusedRequest(NamedTuple):
    """A refused request, as far as it was read.

    operation: its method and path template, or `-`. query: as it was sent. content: the parsed body, if there is one.
    """

    method: str
    path: str
    operation: str = "-"
    query: bytes = b""
    content: Any = None
    has_body: bool = False
    caller: Caller = Caller()


@cache
def operations() -> dict[str, Operation]:
    """Returns every operation of the API by method and path."""
    table: dict[str, Operation] = json.loads(Path(__file__).with_name("operations.json").read_bytes())
    return table


def public_details(error: ApiError, request: RefusedRequest | None) -> Any:
    """Returns the details of the response: those of the error, with `docsUrl` and, if one helps, `fix`.

    If the details are a list of problems, the first one has them.
    """
    guidance: dict[str, Any] = {"docsUrl": error_page(error.code)}
    fix = find_fix(error, request) if request is not None else None
    if fix is not None:
        guidance["fix"] = fix
    if isinstance(error.details, list):
        first, *others = error.details
        return [{**first, **guidance}, *others]
    return {**(error.details or {}), **guidance}


def find_fix(error: ApiError, request: RefusedRequest) -> Fix | None:
    """Returns a request that would work in place of the refused one, or None if nothing can be proposed.

    Later checks, which the refused request didn't reach, may still refuse it.
    """
    if error.remedy is not None:
        return _of_remedy(error.remedy, request)
    if error.page is not None:
        return _of_page(error.page, request.caller)
    if isinstance(error, InsufficientScope | Unauthorized):
        return _sign_in(error, request.caller)
    if isinstance(error, RouteNotFound | MethodNotAllowed):
        return _of_nearest(request)
    if isinstance(error.details, list):
        return _corrected(error.details, request)
    if (seconds := error.headers.get("Retry-After")) is not None:
        fix = _same(request)
        return {**fix, "afterSeconds": int(seconds)} if fix else None
    return None


def _sign_in(error: ApiError, caller: Caller) -> Fix | None:
    """Returns the request of a sign-in that asks for the caller's scopes and the missing one."""
    if not settings.device_authorization_enabled:
        return None
    example = operations()[_SIGN_IN]["example"]
    body = {name: example[name] for name in ("clientId", "codeChallenge", "codeChallengeMethod")}
    body["clientId"] = settings.device_clients[0]
    if isinstance(error, InsufficientScope) and isinstance(caller, Access):
        body["scope"] = " ".join(sorted({*caller.principal.scopes, error.details["requiredScope"]}))
    return _written(_SIGN_IN, "/v1/auth/device/code", body, ["codeChallenge"])


def _of_page(page: str, caller: Caller) -> Fix | None:
    """Returns the address of a page of the caller's organization."""
    if not isinstance(caller, Access):
        return None
    organization = caller.organization or caller.principal.key
    slug = organization.slug if organization else None
    return {"method": "GET", "url": f"{dashboard_base_url()}/organizations/{slug}/{page}"} if slug else None


def _of_remedy(remedy: Remedy, request: RefusedRequest) -> Fix | None:
    """Returns the request that a refusal names, unless the caller isn't allowed to send it."""
    if remedy.operation is None:
        fix = _same(request, set_query=remedy.parameters)
        if fix is not None and remedy.body:
            fix |= {"headers": _JSON, "body": {**_repeatable(request), **remedy.body}}
        if fix is not None and remedy.first is not None and _may_send(request.caller, operations()[remedy.first]):
            path = _filled(remedy.first, nearest.parameters(request.operation, request.path))
            fix["first"] = {"method": remedy.first.partition(" ")[0], "path": path}
        return fix
    target = operations()[remedy.operation]
    path = _filled(remedy.operation, remedy.parameters)
    known = {**_repeatable(request), **remedy.parameters}
    needed = [name for name, example in target["query"].items() if example is not None]
    if path is None or not _may_send(request.caller, target) or not known.keys() >= {*needed}:
        return None
    return _written(remedy.operation, _with_query(path, {name: known[name] for name in needed}))


def _of_nearest(request: RefusedRequest) -> Fix:
    """Returns the operation whose path is most similar, with the same method if it has that."""
    found = nearest.find(request.method, request.path, operations())
    if found is None or found == request.operation:
        return _DESCRIPTION
    operation, parameters = operations()[found], nearest.parameters(found, request.path)
    path = _filled(found, parameters) if all(map(_PLAIN.fullmatch, parameters.values())) else None
    example = operation.get("example") or {}
    body = {name: example[name] for name in operation.get("required", ()) if name in example} or None
    needed = {name: example for name, example in operation["query"].items() if example is not None}
    if path is None or _stands_for_existing([body, needed]):
        return _DESCRIPTION
    return _written(found, _with_query(path, needed), body, [*(body or ())])


def _corrected(problems: Problems, request: RefusedRequest) -> Fix | None:
    """Returns the refused request without the problems: without their parameters, and with examples in their fields.

    A parameter that resembles a known one becomes that one. If there is another unknown one, a request that changes
    something has no fix: without the parameter, it could change more than was meant.
    """
    operation = operations().get(request.operation)
    names = {problem["path"][0] for problem in problems if problem["path"]}
    unknown = {problem["path"][0]: problem["known"] for problem in problems if problem["code"] == "unknown_parameter"}
    meant = _meant(unknown, request)
    if len(meant) < len(unknown) and request.method != "GET":
        return None
    fix = _same(request, without=names, set_query=meant)
    if operation is None or fix is None:
        return None
    required = {name: example for name in names if (example := operation["query"].get(name)) is not None}
    if _stands_for_existing(required):
        return None
    fix["path"] = _with_query(fix["path"], required)
    headers = {_KEY_HEADER: str(uuid.uuid4())} if _KEY_HEADER in names else {}
    outside_body = {*operation["query"], *unknown, _KEY_HEADER, "Content-Type"}
    if "example" in operation and not (names and names <= outside_body):
        body, replace = _skeleton(operation, names, request)
        if _stands_for_existing({name: body[name] for name in replace}):
            return None
        fix = {name: fix[name] for name in ("method", "path")} | {"body": body}
        fix |= {"replace": replace} if replace else {}
    if "body" in fix or "Content-Type" in names:
        headers |= _JSON
    return fix | ({"headers": headers} if headers else {})


def _meant(unknown: Mapping[str, Sequence[str]], request: RefusedRequest) -> dict[str, str]:
    """Returns the known parameters that unknown ones resemble, with the values that were sent.

    unknown: the known names by the unknown one. A value that can't be repeated is left out, but for a dry run's, which
    is on unless it was switched off.
    """
    sent = dict(parse_qsl(request.query.decode("latin-1"), keep_blank_values=True))
    found = {}
    for name, known in unknown.items():
        meant, value = nearest.find_word(name, known), sent.get(name, "")
        if meant == DRY_RUN:
            value = "false" if value == "false" else "true"
        if meant is not None and meant not in sent and _PLAIN.fullmatch(value):
            found[meant] = value
    return found


def _skeleton(operation: Operation, names: set[str], request: RefusedRequest) -> tuple[dict[str, Any], list[str]]:
    """Returns a body for the operation, and the fields that have examples. names: the fields with problems."""
    example, required = operation["example"], operation["required"]
    sent = {name: value for name, value in _repeatable(request).items() if name not in names}
    # The number of an issue is an example of nothing.
    wrong = [name for name in example if name in names and (name in required or type(example[name]) is not int)]
    missing = [name for name in [*required, *wrong] if name not in sent] or (() if names or sent else example)
    replace = [*dict.fromkeys(missing)]
    return {**{name: example[name] for name in replace}, **sent}, replace


def _same(
    request: RefusedRequest, without: Collection[str] = (), set_query: Mapping[str, str] = MappingProxyType({})
) -> Fix | None:
    """Returns the refused request, or None if its path has something that isn't repeated.

    `keepsBody` says that its body stays, which isn't repeated.
    """
    operation = operations().get(request.operation)
    if operation is None or not all(
        map(_PLAIN.fullmatch, nearest.parameters(request.operation, request.path).values())
    ):
        return None
    names = operation["query"].keys() - {*without}
    pairs = parse_qsl(request.query.decode("latin-1"))
    kept = {name: value for name, value in pairs if name in names and _PLAIN.fullmatch(value)}
    fix: Fix = {"method": request.method, "path": _with_query(request.path, {**kept, **set_query})}
    return {**fix, "keepsBody": True} if request.has_body else fix


def _repeatable(request: RefusedRequest) -> dict[str, Any]:
    """Returns those declared fields of the body that are ids, small numbers, flags, or values of enumerations."""
    operation = operations().get(request.operation, {})
    if not isinstance(request.content, dict) or "example" not in operation:
        return {}
    example, choices = operation["example"], operation["choices"]
    return {
        name: value
        for name, value in request.content.items()
        if (isinstance(value, str) and (value in choices.get(name, ()) or (name in example and _ID.fullmatch(value))))
        or (type(value) in {bool, int} and type(value) is type(example.get(name)) and abs(value) < _SMALL)
    }


def _written(operation: str, path: str, body: Mapping[str, Any] | None = None, replace: Sequence[str] = ()) -> Fix:
    fix: Fix = {"method": operation.partition(" ")[0], "path": path}
    if body is not None:
        fix |= {"headers": _JSON, "body": body}
    return {**fix, "replace": [*replace]} if replace else fix


def _may_send(caller: Caller, operation: Operation) -> bool:
    """Returns whether the operation accepts the caller, as far as that is known."""
    if not isinstance(caller, Access):
        return not operation["scopes"]
    role = caller.organization.role if caller.organization else None
    return (
        (not operation["scopes"] or not {*operation["scopes"]}.isdisjoint(caller.principal.scopes))
        and (not operation["roles"] or role in operation["roles"])
        and not (operation["personal"] and caller.principal.user_id is None)
    )


def _filled(operation: str, parameters: Mapping[str, str]) -> str | None:
    """Returns the operation's path with the parameters, or None if one is missing."""
    template = operation.partition(" ")[2]
    return template.format_map(parameters) if {*_NAME.findall(template)} <= parameters.keys() else None


def _with_query(path: str, query: Mapping[str, Any]) -> str:
    return f"{path}{'&' if '?' in path else '?'}{urlencode(query)}" if query else path


def _stands_for_existing(values: Any) -> bool:
    """Returns whether an example is an id, a version, or a secret, of which the example doesn't exist."""
    return _EXISTING.search(json.dumps(values)) is not None
