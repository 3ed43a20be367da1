"""Headers of a request that select the response: what a client accepts, and the copy that it has (RFC 9110)."""

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


def quality_of(media_type: str, accept: str) -> float:
    """Returns the quality that Accept gives the type: 0 if it doesn't name it. Ranges such as `*/*` don't count."""
    found = 0.0
    for part in accept.lower().split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        if name == media_type:
            found = _quality(parameters)
    return found


def _quality(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0
