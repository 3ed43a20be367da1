"""The response envelope, `{success: true, data}` or `{success: false, error}`, as types and as bytes."""

import json
from dataclasses import dataclass, field
from typing import Any, Self

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel
from pydantic_core import to_json

from controlplane.platform.core.errors import ApiError
from controlplane.platform.http.guidance import public_details


class Wire(BaseModel):
    """Base of request and response models: camelCase in JSON, snake_case in Python. Unknown fields are ignored."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, defer_build=True)

    @classmethod
    def showing(cls, source: object, **more: Any) -> Self:
        """Returns the model of an item: each field that isn't given is the attribute of that name.

        The same goes for the fields of models within it.
        """
        fields = {name: more[name] if name in more else getattr(source, name) for name in cls.__pydantic_fields__}
        # Without `model_validate` and the search for aliases, a list takes as long as with one constructor per model.
        made: Self = cls.__pydantic_validator__.validate_python(
            fields, from_attributes=True, by_alias=False, by_name=True
        )
        return made


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


def success(content: Any) -> bytes:
    """Returns the body of a successful response from a model, a list of models, a Page, or plain JSON values."""
    if isinstance(content, Page):
        pagination = _json({"nextCursor": content.next_cursor, "hasMore": content.next_cursor is not None})
        return b'{"success":true,"data":' + _array(content.items) + b',"pagination":' + pagination + b"}"
    if isinstance(content, list):
        return b'{"success":true,"data":' + _array(content) + b"}"
    return b'{"success":true,"data":' + _json(content) + b"}"


def _array(items: list[Any]) -> bytes:
    return to_json(items, by_alias=True)


def failure(error: ApiError) -> bytes:
    """Returns the body of an error response."""
    public = {"code": error.code, "message": error.public, "details": public_details(error)}
    return _json({"success": False, "error": public})
