"""Deprecated operations and fields: since when, until when, and what replaces them.

The only list of them. A response to a request that uses one has the headers Deprecation (RFC 9745), Sunset (RFC 8594),
and Link. The OpenAPI document and the reference describe the same entries.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel

from controlplane.platform.core.urls import public_base_url

# The reference's section on deprecations. Redoc derives the anchor from the heading.
SECTION = "/docs#section/Deprecations"


@dataclass(frozen=True, slots=True)
class Deprecation:
    """A deprecated operation, or the deprecated fields of one shape. To mark a field, add it to the field's type.

    subject, replacement, migration: what is deprecated, what replaces it, and how to migrate, as Markdown.
    since, sunset: when it was deprecated, and until when it works at least.
    successor: the path of the operation that replaces a deprecated operation.
    """

    subject: str
    replacement: str
    migration: str
    since: datetime
    sunset: datetime
    successor: str | None = None

    @property
    def notice(self) -> str:
        """The text for the description of the operation or field."""
        dates = f"Deprecated since {self.since:%Y-%m-%d}; works until at least {self.sunset:%Y-%m-%d}."
        return f"{dates} Use {self.replacement} instead. {self.migration}"

    def __get_pydantic_json_schema__(self, schema: Any, handler: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        return {**handler(schema), "deprecated": True}


_NOVEMBER_2026 = datetime(2026, 11, 1, tzinfo=UTC)
_JANUARY_2028 = datetime(2028, 1, 1, tzinfo=UTC)

AUTH_KEYS = Deprecation(
    "`GET /v1/auth/keys`",
    "`GET /v1/api-keys`",
    "Change the path. Parameters and responses are the same; a cursor belongs to the path that returned it.",
    _NOVEMBER_2026,
    _JANUARY_2028,
    successor="/v1/api-keys",
)
OLDER_PROJECT = Deprecation(
    "`organizationId` and `trustedOrigins` in the body of `POST /v1/projects`",
    "the query parameter `organizationId`, and `websites`",
    "Send the organization in the query and the same addresses in `websites`. The response then has the current shape: "
    "`id`, `slug`, `name`, `dashboardUrl`, `websites`, and `consent`.",
    _NOVEMBER_2026,
    _JANUARY_2028,
)
CONSENT_ORIGINS = Deprecation(
    "`consent.trustedOrigins`, in the bodies of `POST /v1/projects` and `PATCH /v1/projects/{projectId}`, and in "
    "projects that responses contain",
    "`websites`",
    "Send the same addresses in `websites`. In a `PATCH`, that is the complete list, so include websites that are only "
    "audited.",
    _NOVEMBER_2026,
    _JANUARY_2028,
)
ALL = (AUTH_KEYS, OLDER_PROJECT, CONSENT_ORIGINS)

# By operation ID.
OPERATIONS = {"listAuthKeys": AUTH_KEYS}


def declared_in(model: type[BaseModel]) -> Iterator[Deprecation]:
    """Yields the deprecations of the model's fields and of the models in them."""
    for field in model.model_fields.values():
        yield from _marks(field.metadata)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from declared_in(field.annotation)


def used_in(model: type[BaseModel], given: Mapping[str, Any]) -> Iterator[Deprecation]:
    """Yields the deprecations of the given fields, which have the names that they have in Python."""
    for name, value in given.items():
        field = model.model_fields[name]
        yield from _marks(field.metadata)
        if isinstance(value, dict) and isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from used_in(field.annotation, value)


def _marks(metadata: list[Any]) -> Iterator[Deprecation]:
    return (extra for extra in metadata if isinstance(extra, Deprecation))


def headers(used: Iterable[Deprecation]) -> dict[str, str]:
    """Returns the response headers for the deprecations that a request uses. The earliest dates count."""
    found = list(dict.fromkeys(used))
    if not found:
        return {}
    base = public_base_url()
    links = [f'<{base}{SECTION}>; rel="deprecation"; type="text/html"']
    links += [f'<{base}{one.successor}>; rel="successor-version"' for one in found if one.successor]
    return {
        "Deprecation": f"@{int(min(one.since for one in found).timestamp())}",
        "Sunset": f"{min(one.sunset for one in found):%a, %d %b %Y %H:%M:%S GMT}",
        "Link": ", ".join(links),
    }
