"""The static files: the style sheet and the script, whose names contain a hash of their content, and the icon."""

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from fastapi import Response

from controlplane.platform.core.errors import RouteNotFound, known

_STATIC = Path(__file__).parent / "static"
# The styles that those of single screens build on.
_FIRST = "style.css"
_MEDIA_TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}
# The name of a file is that of its content.
_KEPT_FOR_EVER = "public, max-age=31536000, immutable"


@dataclass(frozen=True, slots=True)
class Asset:
    """The style sheet or the script."""

    name: str
    media_type: str
    content: bytes


@cache
def asset(kind: Literal["css", "js"]) -> Asset:
    """Returns the pages' style sheet or script: all files of that kind in `static`, by name, after `style.css`."""
    paths = sorted(_STATIC.glob(f"*.{kind}"), key=lambda path: (path.name != _FIRST, path.name))
    content = b"\n".join(path.read_bytes() for path in paths)
    return Asset(f"pages.{hashlib.sha256(content).hexdigest()[:16]}.{kind}", _MEDIA_TYPES[kind], content)


def asset_response(name: str) -> Response:
    """Returns the static file with this name. Raises RouteNotFound, also if the name is that of an older version."""
    found = known(next((it for it in (asset("css"), asset("js")) if it.name == name), None), RouteNotFound)
    return _response(found.content, found.media_type, _KEPT_FOR_EVER)


def icon_response() -> Response:
    return _response((_STATIC / "icon.svg").read_bytes(), "image/svg+xml", "public, max-age=86400")


def _response(content: bytes, media_type: str, caching: str) -> Response:
    headers = {"content-type": media_type, "cache-control": caching, "x-content-type-options": "nosniff"}
    return Response(content, headers=headers)
