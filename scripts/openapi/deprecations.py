"""Describes deprecations: the section of the document and the reference, and the headers of responses."""

from pydantic import BaseModel

from controlplane.platform.http import deprecations
from controlplane.platform.http.route import ControlRoute

_HEADERS = ("Deprecation", "Sunset", "Link")

_ABOUT = """\
A response to a request that uses one of these has three headers: `Deprecation` (RFC 9745) with the date since when,
`Sunset` (RFC 8594) with the date until when it works at least, and `Link` to this section and to the operation that
replaces a deprecated one. A deprecated field of a response has no header, because the server can't know whether you
read it.
"""


def section() -> str:
    """Returns the section as Markdown, without its heading."""
    return "\n".join([_ABOUT, *(f"- {one.subject}. {one.notice}" for one in deprecations.ALL)])


def headers(route: ControlRoute) -> tuple[str, ...]:
    """Returns the headers of the operation's responses, if requests can use something deprecated."""
    model = route.body_field.field_info.annotation if route.body_field is not None else None
    declared = isinstance(model, type) and issubclass(model, BaseModel) and any(deprecations.declared_in(model))
    return _HEADERS if route.deprecation is not None or declared else ()
