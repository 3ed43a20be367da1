"""Serves the documents bundled with this package: the OpenAPI document and the reference.

They are generated when a version is built. Placeholder addresses in them are replaced here by those of the deployment.
"""

import gzip
import hashlib
import json
from functools import lru_cache
from html import escape
from pathlib import Path

from fastapi import Response

from controlplane.platform.core.errors import ApiError, RouteNotFound
from controlplane.platform.core.settings import settings
from controlplane.platform.core.urls import dashboard_base_url, public_base_url
from controlplane.platform.http.callers import Caller
from controlplane.platform.http.negotiation import is_current, quality_of

_REFERENCE = Path(__file__).parent / "reference"
_INDEX = "index"
# Placeholders in the files for the API's address, the dashboard's address, and the contact email address.
_API_ADDRESS = "https://api.assent.example"
_PAGES_ADDRESS = "https://dashboard.assent.example"
_MAIL_ADDRESS = "api@assent.example"
# A build compresses the files with gzip, which shrinks them by 90 %.
_PACKED = ".gz"
_MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".md": "text/markdown; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
}
# Names of these files contain a content hash, so clients can cache them forever.
_HASHED = {".css", ".js"}
# The OpenAPI document with samples of each request, which the page shows.
_SHOWN = "redoc.json"
# Redoc adds two style elements: an empty one, filled by its script, and a fixed one. These hashes allow only those.
_REDOC_STYLES = (
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=' 'sha256-QMIg+bpjm3JdElJ388KYke01izlUW0UoNOeKjpMxdgc='"
)
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; connect-src 'self'; worker-src blob:; img-src 'self' data:; "
        f"style-src 'self' {_REDOC_STYLES}; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_ERROR_PAGE = (
    '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<meta name="viewport" content="width=device-width">\n'
    "<title>Not available</title>\n<main>\n<h1>Not available</h1>\n"
    '<p>{}</p>\n<p><a href="{}">Go to the reference</a></p>\n</main>\n'
)
# Relative to /docs, because the stage precedes the path unless there is a custom domain.
_LINKS = ", ".join(
    f'<{target}>; rel="{relation}"; type="{media_type}"'
    for target, relation, media_type in (
        ("docs/introduction.md", "alternate", "text/markdown"),
        ("llms.txt", "alternate", "text/plain"),
        ("openapi.json", "service-desc", "application/json"),
    )
)


def get_document(name: str, if_none_match: str | None) -> Response:
    """Returns a document at the root: `openapi.json` or `llms.txt`."""
    return _answer(_REFERENCE / name, if_none_match)


def show_reference(accept: str, if_none_match: str | None) -> Response:
    """Returns the reference as HTML or its introduction as Markdown, whichever the client prefers."""
    answer = _negotiate("introduction.md", f"{_INDEX}.html", accept, if_none_match)
    answer.headers["link"] = _LINKS
    return answer


def _negotiate(markdown: str, page: str, accept: str, if_none_match: str | None) -> Response:
    """Returns the page, or the Markdown if there is one and the client prefers it."""
    name = markdown if markdown in _names() and _prefers_markdown(accept) else page
    answer = _answer(_REFERENCE / name, if_none_match)
    answer.headers["vary"] = "Accept, Accept-Encoding"
    return answer


def get_file(name: str, accept: str, if_none_match: str | None) -> Response:
    """Returns a file of the reference by name. Raises RouteNotFound if there is no such file.

    A page such as `errors` or a guide, which is named without its suffix, is HTML, or Markdown if it has that form and
    the client prefers it.
    """
    page = f"{name}.html"
    if page in _names() and "." not in name and name != _INDEX:
        return _negotiate(f"{name}.md", page, accept, if_none_match)
    if name not in _names() or (name != _SHOWN and Path(name).suffix not in {".md", *_HASHED}):
        raise RouteNotFound
    return _answer(_REFERENCE / name, if_none_match)


def get_rule(rule_id: str, if_none_match: str | None) -> Response:
    """Returns the page of a rule. Raises RouteNotFound if there is no such rule."""
    name = f"rule.{rule_id}.html"
    if name not in _names():
        raise RouteNotFound
    return _answer(_REFERENCE / name, if_none_match)


@lru_cache
def _names() -> frozenset[str]:
    """Returns the names of all files of the reference."""
    return frozenset(path.name.removesuffix(_PACKED) for path in _REFERENCE.iterdir())


def show_error(error: ApiError, caller: Caller) -> Response:  # noqa: ARG001
    """Renders an error of the reference for browsers (`controlplane.platform.http.callers.ErrorPage`)."""
    headers = {**_HEADERS, **error.headers, "content-type": _MEDIA_TYPES[".html"]}
    return Response(_ERROR_PAGE.format(escape(error.public), f"{public_base_url()}/docs"), error.status, headers)


def _prefers_markdown(accept: str) -> bool:
    """Returns True if the client accepts Markdown and doesn't prefer HTML. Browsers don't list Markdown."""
    markdown = quality_of("text/markdown", accept)
    return markdown > 0 and markdown >= quality_of("text/html", accept)


def _text(path: Path) -> str:
    packed = path.with_name(path.name + _PACKED)
    return (gzip.decompress(packed.read_bytes()) if packed.exists() else path.read_bytes()).decode()


@lru_cache(maxsize=64)
def _read(path: Path, api: str, pages: str, mail: str) -> tuple[bytes, str]:
    """Returns the file with this deployment's addresses, and its ETag (RFC 9110)."""
    text = _text(path)
    for placeholder, address in ((_API_ADDRESS, api), (_PAGES_ADDRESS, pages), (_MAIL_ADDRESS, mail)):
        text = text.replace(placeholder, _written(address, path.suffix))
    content = text.encode()
    # A weak ETag, because API Gateway may compress the response.
    return content, f'W/"{hashlib.sha256(content).hexdigest()[:32]}"'


def _written(address: str, suffix: str) -> str:
    """Returns the address, escaped for that file type."""
    if suffix == ".html":
        return escape(address)
    return json.dumps(address)[1:-1] if suffix == ".json" else address


def _answer(path: Path, if_none_match: str | None) -> Response:
    """Returns the file, or 304 if the client's copy is current."""
    contact = settings.contact
    address = contact if contact and "://" not in contact else _MAIL_ADDRESS
    content, etag = _read(path, public_base_url(), dashboard_base_url(), address)
    kept = "public, max-age=31536000, immutable" if path.suffix in _HASHED else "public, max-age=300"
    headers = {**_HEADERS, "cache-control": kept, "etag": etag, "vary": "Accept-Encoding"}
    if is_current(if_none_match, etag):
        return Response(status_code=304, headers=headers)
    return Response(content, headers={**headers, "content-type": _MEDIA_TYPES[path.suffix]})
