"""Conditional requests (RFC 9110, section 13): the header If-None-Match."""

from typing import Annotated

from fastapi import Header

IfNoneMatch = Annotated[
    str | None,
    Header(
        alias="If-None-Match",
        description="The `ETag` of the client's copy. If it is current, the response is 304.",
        examples=['W/"5d41402abc4b2a76b9719d911017c592"'],
    ),
]


def is_current(if_none_match: str | None, etag: str) -> bool:
    """Returns whether the client has that version. The comparison is weak, because a proxy may have compressed it."""
    known = {tag.strip().removeprefix("W/") for tag in (if_none_match or "").split(",")}
    return bool(known & {etag.removeprefix("W/"), "*"})
