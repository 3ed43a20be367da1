"""The response envelope, `{success: true, data}` or `{success: false, error}`, as types and as bytes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel
from pydantic_core import to_json

from controlplane.platform.core.errors import ApiError, Problems, limit_problems
from controlplane.platform.core.settings import settings
from controlplane.platform.core.urls import error_page

# The next step, by code. The gateway's own responses in template.yaml have the same texts.
HINTS: dict[str, str] = {
    "INVALID_PAYLOAD": "Correct each problem, then send the request again.",
    "INVALID_REGION": "Use the id of a region that GET /v1/regions lists.",
    "INVALID_ORIGIN": "Correct each address, then send the request again.",
    "UNAUTHORIZED": "Sign in again, or send a valid API key as a bearer token.",
    "PLAN_REQUIRED": "Ask {operator} to change the plan of the organization.",
    "PLAN_LIMIT_REACHED": "Remove something that counts toward the limit, or ask {operator} to change the plan.",
    "INSTANCE_LIMIT_REACHED": "Remove an instance, or ask {operator} to change the plan.",
    "INSUFFICIENT_CREDITS": "Ask {operator} for credits.",
    "UNLOCK_REQUIRED": "Ask an owner of the organization to unlock the report.",
    "INSUFFICIENT_SCOPE": "Use a credential that has the scope in details.requiredScope.",
    "FORBIDDEN": "Use a credential that is allowed to do this, or ask an admin or owner of the organization.",
    "NOT_FOUND": "Check the path against /openapi.json, and each ID against the list that it is from.",
    "CONFLICT": "Read the current state, then decide whether to send a changed request.",
    "KEY_LIMIT_REACHED": "Delete an API key or revoke an old secret that is no longer used.",
    "SCAN_IN_PROGRESS": "Wait until the scan has ended, then send the request again.",
    "REPOSITORY_NOT_LINKED": "Connect the repository, and link a project to it.",
    "PAYLOAD_TOO_LARGE": "Send a smaller body.",
    "RATE_LIMITED": "Wait for the number of seconds in Retry-After, then send the request again.",
    "INTERNAL_ERROR": "Try again later, and report the X-Request-Id if it fails again.",
    "SERVICE_UNAVAILABLE": "Try again shortly. Check first whether a creation has taken effect.",
}


def public_details(error: ApiError) -> Any:
    """Returns the details of the response: those of the error, with `docsUrl` and `hint`.

    If the details are a list of problems, the first one has them.
    """
    guidance = {"docsUrl": error_page(error.code), "hint": settings.name_operator(HINTS[error.code])}
    if isinstance(error.details, list):
        first, *others = error.details
        return [{**first, **guidance}, *others]
    return {**(error.details or {}), **guidance}


class Wire(BaseModel):
    """Base of request and response models: camelCase in JSON, snake_case in Python. Unknown fields are ignored."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, defer_build=True)

    @classmethod
    def contradictions(cls, given: Mapping[str, Any]) -> Problems:  # noqa: ARG003 (for models that override this)
        """Returns the problems of fields that don't go together.

        given: the fields of a request as they were sent, by their Python names. They aren't validated yet.
        """
        return []

    @classmethod
    def showing(cls, source: object, **more: Any) -> Self:
        """Returns the model of an item: each field that isn't given is the attribute of that name.

        The same goes for the fields of models within it.
        """
        fields = {name: getattr(source, name) for name in cls.model_fields if name not in more}
        return cls.model_validate({**fields, **more}, from_attributes=True, by_alias=False, by_name=True)


class Changes(Wire):
    """Base of requests that change some fields. One without any known field is rejected."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})


class StrictWire(Wire):
    """Base of request models that reject unknown fields.

    For requests in which an ignored field would give more than was asked for, such as a key with more permissions.
    """

    model_config = ConfigDict(extra="forbid")


# An item of a list as it will be in JSON: the fields of its model, in their order. Building and serializing a model
# takes three times as long, so a list of large items returns these. A test compares them with the model.
type Row = dict[str, Any]


@dataclass(slots=True)
class Page[T]:
    """One page of a list, and the cursor of the next page (None on the last page)."""

    items: list[T] | list[Row]
    next_cursor: str | None = None


@dataclass(slots=True)
class Answer[T]:
    """A response that sets its own status or headers."""

    content: T
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)


def _json(value: Any) -> bytes:
    if isinstance(value, BaseModel):
        return value.__pydantic_serializer__.to_json(value, by_alias=True)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def success(content: Any, warnings: Problems | None = None) -> bytes:
    """Returns the body of a successful response from a model, a list of models, a Page, or plain JSON values."""
    rest = b',"warnings":' + _json(limit_problems(warnings)) + b"}" if warnings else b"}"
    if isinstance(content, Page):
        pagination = _json({"nextCursor": content.next_cursor, "hasMore": content.next_cursor is not None})
        return b'{"success":true,"data":' + _array(content.items) + b',"pagination":' + pagination + rest
    return b'{"success":true,"data":' + (_array(content) if isinstance(content, list) else _json(content)) + rest


def _array(items: list[Any]) -> bytes:
    return to_json(items, by_alias=True)


def failure(error: ApiError) -> bytes:
    """Returns the body of an error response."""
    public = {"code": error.code, "message": error.public, "details": public_details(error)}
    return _json({"success": False, "error": public})
