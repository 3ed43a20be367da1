"""Describes what is deprecated: the section of the document and the reference, and the headers of responses."""

from http import HTTPStatus

from pydantic import BaseModel

from controlplane.http import deprecations
from controlplane.http.route import ControlRoute

_HEADERS = ("Deprecation", "Sunset", "Link")
# Statuses with which a request is rejected before its body is read.
_BEFORE_THE_BODY = {
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
}


_ABOUT = """\
A response to a request that uses one of these has three headers: `Deprecation` (RFC 9745) with the date since when,
`Sunset` (RFC 8594) with the date until when it works at least, and `Link` to this section and to the operation that
replaces a deprecated one. A deprecated field of a response has no header, because the server can't know whether you
read it.
"""


def section() -> str:
    """Returns the section as Markdown, without its heading."""
    return "\n".join([_ABOUT, *(f"- {one.subject}. {one.notice}" for one in deprecations.ALL)])


def headers(route: ControlRoute, status: int) -> tuple[str, ...]:
    """Returns the headers of responses with the status, if requests can use something deprecated."""
    if route.deprecation is not None:
        return _HEADERS
    model = route.body_field.field_info.annotation if route.body_field is not None else None
    if status in _BEFORE_THE_BODY or not isinstance(model, type) or not issubclass(model, BaseModel):
        return ()
    return _HEADERS if any(deprecations.declared_in(model)) else ()
