"""Pages of the stand-in for people, and the endpoint that redeems the codes of those who install the App.

They show repositories and their files, issues, and pull requests with checks and comments. Each change that a person
makes on them sends the webhook that GitHub would.
"""

import re
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Body, Depends
from fastapi.requests import Request
from fastapi.responses import HTMLResponse, RedirectResponse

from local import pages
from local.github.host import Base, Host
from local.github.records import Denied
from local.github.setup import APP_SLUG, CLIENT_ID, installation_id
from local.github.stand_in import StandIn
from local.github.webhooks import Webhooks

router = APIRouter()
_INSTALLATIONS = f"/github-apps/{APP_SLUG}/installations"
_REPOSITORY = "/{owner}/{repo}"


@router.get(_INSTALLATIONS + "/new")
def choose(request: Request, host: Host, base: Base) -> HTMLResponse:
    """Lists the accounts that the App can be installed in."""
    owners = sorted({it.owner for it in host.list_accessible()})
    links = [
        (f"{base}{_INSTALLATIONS}/{installation_id(owner)}?{request.url.query}", f"Install in {owner}")
        for owner in owners
    ]
    return pages.page(request, "github/links.html", f"Install {APP_SLUG}", links=links)


@router.get(_INSTALLATIONS + "/{number}")
def install(request: Request, host: Host, number: int, state: str = "") -> RedirectResponse:
    """Installs the App, and redirects back with a code, as if it requests the person's authorization then."""
    return _go_back(request, host, state, installation_id=str(number), setup_action="install")


@router.get("/login/oauth/authorize")
def authorize(request: Request, host: Host, client_id: str = "", state: str = "") -> RedirectResponse:
    if client_id != CLIENT_ID:
        raise Denied
    return _go_back(request, host, state)


def _go_back(request: Request, host: StandIn, state: str, **query: str) -> RedirectResponse:
    url = host.accounts.callback_url or f"{request.url.scheme}://{request.url.netloc}/github/callback"
    query |= {"code": host.accounts.issue_code()} | ({"state": state} if state else {})
    return RedirectResponse(f"{url}?{urlencode(query)}", 302)


@router.post("/login/oauth/access_token")
def redeem(host: Host, sent: Annotated[dict[str, str], Body()]) -> dict[str, str]:
    """Returns a token for the code. GitHub reports what is wrong with status 200."""
    is_client = host.is_client(sent.get("client_id", ""), sent.get("client_secret", ""))
    token = host.accounts.redeem(sent.get("code", "")) if is_client else None
    if token is None:
        error = "bad_verification_code" if is_client else "incorrect_client_credentials"
        return {"error": error, "error_description": "It is incorrect or expired."}
    return {"access_token": token, "token_type": "bearer", "scope": ""}


class _View:
    """A repository as a person sees it. Raises Denied if it doesn't exist."""

    def __init__(self, request: Request, host: Host, base: Base, owner: str, repo: str) -> None:
        self._request = request
        self.host, self.base, self.names = host, base, (owner, repo)
        self.repository = host.find_repository(owner, repo)
        self.records = host.reviews.read(owner, repo)
        self.webhooks: Webhooks = request.app.state.webhooks

    def show(self, name: str, title: str, **values: Any) -> HTMLResponse:
        values |= {"name": self.repository.full_name, "root": f"{self.base}/{self.repository.full_name}"}
        return pages.page(self._request, f"github/{name}.html", title, **values)

    def go(self, page: str) -> RedirectResponse:
        return RedirectResponse(f"{self.base}/{self.repository.full_name}/{page}", 303)


View = Annotated[_View, Depends()]
Fields = Annotated[dict[str, str], Depends(pages.form)]


@router.get("/")
def overview(request: Request, host: Host, base: Base) -> HTMLResponse:
    links = [(f"{base}/{it.full_name}", it.full_name) for it in host.repositories.list()]
    return pages.page(request, "github/links.html", "Repositories", links=links)


@router.get(_REPOSITORY)
@router.get(_REPOSITORY + "/issues")
def show_repository(view: View) -> HTMLResponse:
    return view.show("repository", view.repository.full_name, issues=view.records.issues[::-1])


@router.get(_REPOSITORY + "/issues/{number}")
def show_issue(view: View, number: int) -> HTMLResponse:
    issue = view.records.get_issue(number)
    return view.show("issue", issue.title, issue=issue)


@router.post(_REPOSITORY + "/issues/{number}/state")
def set_issue_state(view: View, number: int, fields: Fields) -> RedirectResponse:
    issue = view.host.set_issue_state(*view.names, number, "closed" if fields.get("state") == "closed" else "open")
    view.webhooks.issue(view.repository, issue, view.base)
    return view.go(f"issues/{number}")


@router.get(_REPOSITORY + "/blob/{sha}/{path:path}")
def show_file(view: View, sha: str, path: str) -> HTMLResponse:
    content = view.repository.find_file(sha, path) if re.fullmatch(r"[0-9a-f]{40}", sha) else None
    if content is None:
        raise Denied
    return view.show("file", path, lines=content.decode(errors="replace").splitlines())


@router.post(_REPOSITORY + "/push")
def push_to_default_branch(view: View, fields: Fields) -> RedirectResponse:
    branch = view.repository.default_branch()
    view.repository.commit_files(f"refs/heads/{branch}", _files(fields), "Change the shop")
    view.webhooks.push(view.repository, branch, view.base)
    return view.go("pulls")


@router.get(_REPOSITORY + "/pulls")
def list_pull_requests(view: View) -> HTMLResponse:
    title = f"Pull requests of {view.repository.full_name}"
    return view.show("pulls", title, opened=view.records.pull_requests[::-1])


@router.post(_REPOSITORY + "/pulls")
def open_pull_request(view: View, fields: Fields) -> RedirectResponse:
    opened = view.host.open_pull_request(*view.names, fields["title"], _files(fields)).pull_request
    view.webhooks.pull_request(view.repository, opened, "opened", view.base)
    return view.go(f"pull/{opened.number}")


@router.get(_REPOSITORY + "/pull/{number}")
def show_pull_request(view: View, number: int) -> HTMLResponse:
    it = view.records.get_pull_request(number)
    head = view.repository.find_commit(f"refs/pull/{number}/head")
    sha = head.sha if head else ""
    runs = [run for run in view.records.check_runs if run.head_sha == sha]
    comments = [comment for comment in view.records.comments if comment.number == number]
    reviews = [review for review in view.records.reviews if review.number == number]
    return view.show("pull", f"#{number} {it.title}", it=it, sha=sha, runs=runs, comments=comments, reviews=reviews)


@router.post(_REPOSITORY + "/pull/{number}/push")
def push(view: View, number: int, fields: Fields) -> RedirectResponse:
    pushed = view.host.push(*view.names, number, _files(fields)).pull_request
    view.webhooks.pull_request(view.repository, pushed, "synchronize", view.base)
    return view.go(f"pull/{number}")


@router.post(_REPOSITORY + "/pull/{number}/state")
def set_state(view: View, number: int, fields: Fields) -> RedirectResponse:
    state, action = ("closed", "closed") if fields.get("state") == "closed" else ("open", "reopened")
    changed = view.host.set_pull_request_state(*view.names, number, state)
    view.webhooks.pull_request(view.repository, changed, action, view.base)
    return view.go(f"pull/{number}")


@router.post(_REPOSITORY + "/runs/{run_id}/rerequest")
def request_again(view: View, run_id: int) -> RedirectResponse:
    view.webhooks.check_run(view.repository, view.records.get_check_run(run_id), view.base)
    return view.go("pulls")


def _files(fields: dict[str, str]) -> dict[str, str]:
    return {fields["path"]: fields.get("content", "")}
