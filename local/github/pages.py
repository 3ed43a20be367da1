"""Pages of the stand-in for people: its repositories, their issues, and files at a commit."""

import html
import re
from urllib.parse import quote

from markdown_it import MarkdownIt
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from local.github import shapes
from local.github.call import base_url
from local.github.repositories import GitRepository
from local.github.setup import APP_SLUG
from local.github.stand_in import StandIn

# A hidden marker is a comment, which GitHub does not show either.
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")
_SECURITY = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:"}
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1f2328 }
header { border-bottom: 1px solid #d1d9e0; margin-bottom: 1.5rem; padding-bottom: .5rem }
pre, code { font-family: ui-monospace, monospace; font-size: .875rem; background: #f6f8fa }
pre { padding: .75rem; overflow-x: auto } a { color: #0969da } .quiet { color: #59636e }
.label { background: #ededed; border-radius: 1rem; padding: .1rem .6rem; font-size: .8rem }
table.file { border-spacing: 0 } table.file td { padding: 0 .5rem; white-space: pre; font-family: ui-monospace }
table.file td:first-child { color: #59636e; text-align: right; user-select: none } tr:target { background: #fff8c5 }
"""


def routes(stand_in: StandIn) -> list[Route]:
    """Returns the routes. Plain `def`, because git and the disk are read in a thread."""

    def overview(request: Request) -> Response:
        links = [link(base_url(request), it) for it in stand_in.repositories.list()]
        return page("Repositories", listed(links))

    def repository(request: Request) -> Response:
        found = find(stand_in, request)
        if found is None:
            return missing()
        base = f"{base_url(request)}/{found.full_name}"
        issues = reversed(stand_in.issues.list(found.owner, found.name))
        links = [f'<a href="{base}/issues/{it.number}">#{it.number} {html.escape(it.title)}</a>' for it in issues]
        reviews = f'<p><a href="{base}/pulls">Pull requests</a></p>'
        return page(found.full_name, reviews + "<h2>Issues</h2>" + (listed(links) or "<p class=quiet>None yet.</p>"))

    def issue(request: Request) -> Response:
        found = find(stand_in, request)
        number = request.path_params["number"]
        stored = stand_in.issues.find(found.owner, found.name, number) if found else None
        if found is None or stored is None:
            return missing()
        labels = " ".join(f"<span class=label>{html.escape(label)}</span>" for label in stored.labels)
        about = f"<p class=quiet>#{number} · opened {shapes.moment(stored.created_seconds)} by {APP_SLUG}</p>"
        body = markdown(stored.body or "")
        other, button = ("closed", "Close") if stored.state == "open" else ("open", "Reopen")
        action = f"{base_url(request)}/{found.full_name}/issues/{number}/state"
        change = form(action, f"<input type=hidden name=state value={other}>", button)
        return page(stored.title, about + labels + body + change, link(base_url(request), found))

    def file(request: Request) -> Response:
        found = find(stand_in, request)
        sha, path = request.path_params["sha"], request.path_params["path"]
        content = found.find_file(sha, path) if found and re.fullmatch(r"[0-9a-f]{40}", sha) else None
        if found is None or content is None:
            return missing()
        lines = content.decode(errors="replace").splitlines()
        rows = [f'<tr id="L{n}"><td>{n}</td><td>{html.escape(line)}</td></tr>' for n, line in enumerate(lines, 1)]
        return page(path, f"<table class=file>{''.join(rows)}</table>", link(base_url(request), found))

    return [
        Route("/", overview),
        Route("/{owner}/{repo}", repository),
        Route("/{owner}/{repo}/issues", repository),
        Route("/{owner}/{repo}/issues/{number:int}", issue),
        Route("/{owner}/{repo}/blob/{sha}/{path:path}", file),
    ]


def markdown(text: str) -> str:
    """Returns the text as GitHub shows it, without its comments."""
    return str(_MARKDOWN.render(_COMMENT.sub("", text)))


def find(stand_in: StandIn, request: Request) -> GitRepository | None:
    return stand_in.repositories.find(request.path_params["owner"], request.path_params["repo"])


def form(action: str, content: str, button: str) -> str:
    return f'<form method=post action="{html.escape(action)}">{content}<button>{button}</button></form>'


def link(base: str, repository: GitRepository) -> str:
    name = repository.full_name
    return f'<a href="{html.escape(base)}/{quote(name)}">{html.escape(name)}</a>'


def listed(items: list[str]) -> str:
    return f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>" if items else ""


def missing() -> Response:
    return page("There is nothing here", "<p>No such repository, issue or file.</p>", status=404)


def page(title: str, content: str, above: str = "", status: int = 200) -> Response:
    text = html.escape(title)
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{text}</title>'
    shown = f"<header><p class=quiet>GitHub stand-in {above}</p><h1>{text}</h1></header><main>{content}</main>"
    document = f'<!doctype html><html lang="en"><head>{head}<style>{_STYLE}</style></head><body>{shown}</body></html>'
    return HTMLResponse(document, status, _SECURITY)


def document(title: str, content: str) -> Response:
    """Returns a page with this HTML."""
    return page(title, content)
