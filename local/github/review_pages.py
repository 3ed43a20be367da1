"""Pages of the stand-in on which a person opens, pushes to, and closes pull requests, with their checks and comments.

Each change sends the webhook that GitHub would.
"""

import html
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from local.github import pages
from local.github.call import API, base_url
from local.github.pull_requests import PullRequest, Reviews
from local.github.repositories import GitRepository
from local.github.shapes import Address
from local.github.stand_in import Denied, StandIn
from local.github.webhooks import Webhooks

_EXAMPLE = '<script async src="https://www.googletagmanager.com/gtag/js?id=G-1"></script>'
_FILE = (
    '<p><label>File <input name=path required value="new.html"></label></p>'
    f"<p><label>Content <textarea name=content rows=6 cols=80>{html.escape(_EXAMPLE)}</textarea></label></p>"
)

_Change = Callable[[GitRepository, dict[str, str], Address], str]


def routes(stand_in: StandIn, webhooks: Webhooks | None) -> list[Route]:
    """Returns the routes; without webhooks, only those that change nothing. Git and the disk are used in a thread."""

    def overview(request: Request) -> Response:
        found = pages.find(stand_in, request)
        if found is None:
            return pages.missing()
        return pages.page(
            f"Pull requests of {found.full_name}",
            _overview(found, stand_in.reviews.read(found.owner, found.name), base_url(request)),
            pages.link(base_url(request), found),
        )

    def details(request: Request) -> Response:
        found = pages.find(stand_in, request)
        number = request.path_params["number"]
        reviews = stand_in.reviews.read(found.owner, found.name) if found else Reviews()
        opened = reviews.find_pull_request(number)
        if found is None or opened is None:
            return pages.missing()
        above = f'<a href="{_address(base_url(request), found)}">Pull requests</a>'
        return pages.page(f"#{number} {opened.title}", _details(found, opened, reviews, base_url(request)), above)

    shown = [Route("/{owner}/{repo}/pulls", overview), Route("/{owner}/{repo}/pull/{number:int}", details)]
    return [*shown, *_changing_routes(stand_in, webhooks)] if webhooks else shown


def _changing_routes(stand_in: StandIn, webhooks: Webhooks) -> list[Route]:
    changes = _Changes(stand_in, webhooks)
    forms: dict[str, _Change] = {
        "/{owner}/{repo}/pulls": changes.open,
        "/{owner}/{repo}/push": changes.push_to_default_branch,
        "/{owner}/{repo}/pull/{number:int}/push": changes.push,
        "/{owner}/{repo}/pull/{number:int}/state": changes.set_state,
        "/{owner}/{repo}/runs/{run:int}/rerequest": changes.request_again,
        "/{owner}/{repo}/issues/{number:int}/state": changes.set_issue_state,
    }
    return [Route(path, _taking_form(stand_in, change), methods=["POST"]) for path, change in forms.items()]


def _taking_form(stand_in: StandIn, change: _Change) -> Callable[[Request], Awaitable[Response]]:
    """Returns the endpoint that makes the change, and leads to the page that shows it."""

    async def answer(request: Request) -> Response:
        fields = dict(parse_qsl((await request.body()).decode()))
        fields |= {name: str(value) for name, value in request.path_params.items()}
        base = base_url(request)

        def apply() -> Response:
            found = pages.find(stand_in, request)
            if found is None:
                return pages.missing()
            try:
                return RedirectResponse(base + change(found, fields, Address(base, base + API)), 303)
            except Denied:
                return pages.missing()

        return await run_in_threadpool(apply)

    return answer


class _Changes:
    """The changes that the forms make. Each returns the path of the page that shows the result."""

    def __init__(self, stand_in: StandIn, webhooks: Webhooks) -> None:
        self._stand_in, self._webhooks = stand_in, webhooks

    def open(self, found: GitRepository, fields: dict[str, str], address: Address) -> str:
        files = {fields["path"]: fields["content"]}
        opened = self._stand_in.open_pull_request(found.owner, found.name, fields["title"], files).pull_request
        self._webhooks.pull_request(found, opened, "opened", address)
        return f"/{found.full_name}/pull/{opened.number}"

    def push(self, found: GitRepository, fields: dict[str, str], address: Address) -> str:
        files = {fields["path"]: fields["content"]}
        pushed = self._stand_in.push(found.owner, found.name, int(fields["number"]), files).pull_request
        self._webhooks.pull_request(found, pushed, "synchronize", address)
        return f"/{found.full_name}/pull/{pushed.number}"

    def set_state(self, found: GitRepository, fields: dict[str, str], address: Address) -> str:
        number, state = int(fields["number"]), "closed" if fields.get("state") == "closed" else "open"
        changed = self._stand_in.set_pull_request_state(found.owner, found.name, number, state)
        self._webhooks.pull_request(found, changed, "closed" if state == "closed" else "reopened", address)
        return f"/{found.full_name}/pull/{number}"

    def push_to_default_branch(self, found: GitRepository, fields: dict[str, str], address: Address) -> str:
        branch = found.default_branch()
        found.commit_files(f"refs/heads/{branch}", {fields["path"]: fields["content"]}, "Change the shop")
        self._webhooks.push(found, branch, address)
        return f"/{found.full_name}/pulls"

    def request_again(self, found: GitRepository, fields: dict[str, str], address: Address) -> str:
        self._webhooks.check_run(found, int(fields["run"]), address)
        return f"/{found.full_name}/pulls"

    def set_issue_state(self, found: GitRepository, fields: dict[str, str], address: Address) -> str:
        number, state = int(fields["number"]), "closed" if fields.get("state") == "closed" else "open"
        if self._stand_in.issues.set_state(found.owner, found.name, number, state) is None:
            raise Denied(404, "Not Found")
        self._webhooks.issue(found, number, "closed" if state == "closed" else "reopened", address)
        return f"/{found.full_name}/issues/{number}"


def _address(base: str, found: GitRepository) -> str:
    return html.escape(f"{base}/{found.full_name}/pulls")


def _overview(found: GitRepository, reviews: Reviews, base: str) -> str:
    root = f"{base}/{found.full_name}"
    links = [
        f'<a href="{html.escape(root)}/pull/{it.number}">#{it.number} {html.escape(it.title)}</a> ({it.state})'
        for it in sorted(reviews.pull_requests, key=lambda it: -it.number)
    ]
    title = '<p><label>Title <input name=title required value="A change"></label></p>'
    return (
        (pages.listed(links) or "<p class=quiet>None yet.</p>")
        + "<h2>Open one</h2>"
        + pages.form(f"{root}/pulls", title + _FILE, "Open")
        + "<h2>Push to the default branch</h2>"
        + pages.form(f"{root}/push", _FILE, "Push")
    )


def _details(found: GitRepository, opened: PullRequest, reviews: Reviews, base: str) -> str:
    root = f"{base}/{found.full_name}"
    address = f"{root}/pull/{opened.number}"
    other, button = ("closed", "Close") if opened.state == "open" else ("open", "Reopen")
    head = found.find_commit(f"refs/pull/{opened.number}/head")
    runs = [
        f"<h3>{html.escape(it.name)}: {it.status} {it.conclusion or ''}</h3>"
        f"{pages.markdown(str(it.output.get('summary') or ''))}<p class=quiet>{len(it.annotations)} annotations</p>"
        + pages.form(f"{root}/runs/{it.check_run_id}/rerequest", "", "Run again")
        for it in reviews.check_runs
        if head is not None and it.head_sha == head.sha
    ]
    comments = [pages.markdown(it.body) for it in reviews.comments if it.number == opened.number]
    return (
        f"<p class=quiet>{opened.state}, at {head.sha[:7] if head else ''}</p>"
        "<h2>Checks</h2>"
        + ("".join(runs) or "<p class=quiet>None yet.</p>")
        + "<h2>Comments</h2>"
        + ("<hr>".join(comments) or "<p class=quiet>None yet.</p>")
        + "<h2>Push to it</h2>"
        + pages.form(f"{address}/push", _FILE, "Push")
        + pages.form(f"{address}/state", f"<input type=hidden name=state value={other}>", button)
    )
