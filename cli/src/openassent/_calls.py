"""The parts of a request, for both clients. Nothing here performs I/O."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote

from openassent._settings import header_value
from openassent.errors import InvalidArgument

T = TypeVar("T")

_IDEMPOTENCY_KEY = "Idempotency-Key"


class Omit(Enum):
    """The type of `OMIT`."""

    OMIT = "OMIT"

    def __repr__(self) -> str:
        return self.name


# The value of an argument that leaves a field as it is, where None sets it to null.
OMIT: Final = Omit.OMIT


@dataclass(frozen=True)
class Page(Generic[T]):
    """A page of a list. `next_cursor` is None on the last page; a page before it can be empty."""

    items: list[T]
    next_cursor: str | None


@dataclass(frozen=True)
class Call:
    """One request.

    url: a path below the base URL, or an absolute URL.
    repeatable: whether the request may be sent again although the first one may have taken effect.
    repeat_within_seconds: after this time since the first attempt, a repetition would do harm.
    public: the operation needs no credential, and is sent without one.
    """

    method: str
    url: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    repeatable: bool = False
    repeat_within_seconds: float | None = None
    public: bool = False

    def __str__(self) -> str:
        """Returns the request's name in messages: method and path, without the query."""
        return f"{self.method} {self.url.partition('?')[0]}"

    @property
    def has_idempotency_key(self) -> bool:
        return _IDEMPOTENCY_KEY in self.headers


def path(template: str, *ids: str) -> str:
    """Returns the path with each `{}` replaced by an id. Raises InvalidArgument if it is another path."""
    for it in ids:
        if it in {"", ".", ".."}:
            raise InvalidArgument(f"{it!r} isn't an id")
    # An argument of a program can have a lone surrogate, which has no form in UTF-8. No id has one.
    return template.format(*(quote(it, safe="", errors="replace") for it in ids))


def get(url: str, *, wait_seconds: int | None = None, public: bool = False, **query: Any) -> Call:
    """Returns a call that reads. Parameters that are None are omitted."""
    headers = {} if wait_seconds is None else _prefer(wait_seconds)
    return Call("GET", url, _query(query), headers=headers, repeatable=True, public=public)


def change(
    method: str,
    url: str,
    body: Mapping[str, Any] | None = None,
    *,
    dry_run: bool = False,
    repeatable: bool = False,
    **query: Any,
) -> Call:
    """Returns a call that changes something. Only PUT and DELETE are repeatable by themselves."""
    return Call(
        method,
        url,
        _query(query | _dry_run(dry_run)),
        body,
        repeatable=repeatable or method in {"PUT", "DELETE"},
    )


def create(
    url: str,
    body: Mapping[str, Any] | None,
    idempotency_key: str | None,
    *,
    method: str = "POST",
    dry_run: bool = False,
    wait_seconds: int | None = None,
    **query: Any,
) -> Call:
    """Returns a call with an idempotency key, by default a new one. All attempts have the same."""
    key = str(uuid.uuid4()) if idempotency_key is None else header_value(idempotency_key, "The idempotency key")
    headers = {_IDEMPOTENCY_KEY: key}
    if wait_seconds is not None:
        headers |= _prefer(wait_seconds)
    return Call(method, url, _query(query | _dry_run(dry_run)), body, headers, repeatable=True)


def given(**fields: Any) -> dict[str, Any]:
    """Returns the fields that aren't None, as JSON."""
    return {name: _json(value) for name, value in fields.items() if value is not None}


def nullable(**fields: Any) -> dict[str, Any]:
    """Returns the fields that aren't OMIT, as JSON: None becomes null."""
    return {name: _json(value) for name, value in fields.items() if value is not OMIT}


def _json(value: Any) -> Any:
    if isinstance(value, datetime):
        return _timestamp(value)
    if isinstance(value, str | int | float | dict) or value is None:
        return value
    return [_json(it) for it in value]


def _query(parameters: Mapping[str, Any]) -> dict[str, str]:
    return {
        name: _timestamp(value) if isinstance(value, datetime) else str(value)
        for name, value in parameters.items()
        if value is not None
    }


def _timestamp(value: datetime) -> str:
    if value.tzinfo is None:
        raise ValueError("a time needs a time zone, such as datetime.now(UTC)")
    return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _dry_run(value: bool) -> dict[str, str]:
    return {"dryRun": "true"} if value else {}


def _prefer(seconds: int) -> dict[str, str]:
    return {"Prefer": f"wait={seconds}"}
