"""Pages of the stand-ins: templates whose values are escaped, in documents that run nothing."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from markdown_it import MarkdownIt
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.templating import Jinja2Templates

STATIC = "default-src 'none'; style-src 'unsafe-inline'"
_SECURITY = {"Content-Security-Policy": f"{STATIC}; img-src data:; frame-src 'self'"}
_MARKER = re.compile(r"\A<!--[^\n]*-->|<!--[^\n]*-->\s*\Z")
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")
_templates = Jinja2Templates(Path(__file__).with_name("templates"))


def markdown(text: str | None) -> Markup:
    """Returns the text as GitHub shows it, without the hidden marker at its beginning or end."""
    return Markup(_MARKDOWN.render(_MARKER.sub("", text or "")))  # noqa: S704  # nosec B704  # HTML is escaped


def moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


_templates.env.filters |= {"markdown": markdown, "moment": moment}


def page(request: Request, template: str, title: str, status: int = 200, **values: Any) -> HTMLResponse:
    return _templates.TemplateResponse(request, template, {"title": title, **values}, status, _SECURITY)


def missing(request: Request) -> HTMLResponse:
    return page(request, "page.html", "There is nothing here", 404)


def base_url(request: Request) -> str:
    """Returns the URL at which the caller reached the stand-in."""
    return f"{request.url.scheme}://{request.url.netloc}{request.scope.get('root_path', '')}"


async def form(request: Request) -> dict[str, str]:
    """Returns the fields of a form."""
    return dict(parse_qsl((await request.body()).decode(errors="replace")))
