"""The stand-in's REST API: the App, its installations, repositories with their archives, and issues."""

from datetime import datetime
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse, StreamingResponse
from pydantic import BaseModel, Field

from local.github import shapes
from local.github.host import API, Base, Host, HostRoute, Installed, Page, check_app, check_person, repository
from local.github.records import Denied
from local.github.repositories import GitRepository
from local.github.setup import installation_id
from local.github.stand_in import PERMISSIONS, StandIn
from local.pages import moment

router = APIRouter(prefix=API, route_class=HostRoute)
downloads = APIRouter(route_class=HostRoute)
_APP, _PERSON = [Depends(check_app)], [Depends(check_person)]
_REPOSITORY = "/repos/{owner}/{repo}"

Readable = Annotated[GitRepository, repository("contents")]
WithIssues = Annotated[GitRepository, repository("issues")]


class TokenRequest(BaseModel):
    permissions: dict[str, str] | None = None
    repositories: list[str] | None = None
    repository_ids: list[int] | None = None


class NewIssue(BaseModel):
    title: str = Field(min_length=1, max_length=256)
    body: str | None = Field(None, max_length=65_536)
    labels: list[str] = []


@router.get("/app", dependencies=_APP)
def get_app(base: Base) -> dict[str, Any]:
    return shapes.app(PERMISSIONS, base)


@router.post("/app/installations/{installation_id}/access_tokens", status_code=201, dependencies=_APP)
def create_token(host: Host, installation_id: int, wanted: TokenRequest | None = None) -> dict[str, Any]:
    wanted = wanted or TokenRequest()
    token = host.issue_token(installation_id, wanted.permissions, wanted.repositories, wanted.repository_ids)
    expires_at = moment(token.expires_seconds)
    return {"token": token.value, "expires_at": expires_at, "permissions": token.permissions}


@router.get("/app/installations/{installation_id}", dependencies=_APP)
def get_installation(host: Host, installation_id: int, base: Base) -> dict[str, Any]:
    return _installation(host, host.find_owner(installation_id), base)


@router.get(_REPOSITORY + "/installation", dependencies=_APP)
def get_repository_installation(host: Host, owner: str, repo: str, base: Base) -> dict[str, Any]:
    return _installation(host, host.find_repository(owner, repo).owner, base)


def _installation(host: StandIn, owner: str, base: str) -> dict[str, Any]:
    number = installation_id(owner)
    return shapes.installation(owner, host.permissions(number), base, is_suspended=host.is_suspended(number))


@router.get("/user/installations", dependencies=_PERSON)
def list_installations(host: Host, page: Page, base: Base) -> dict[str, Any]:
    owners = sorted({it.owner for it in host.list_accessible()})
    return {
        "total_count": len(owners),
        "installations": [_installation(host, owner, base) for owner in page.of(owners)],
    }


@router.get("/user/installations/{installation_id}/repositories", dependencies=_PERSON)
def list_repositories(host: Host, installation_id: int, page: Page, base: Base) -> dict[str, Any]:
    owner = host.find_owner(installation_id)
    found = [it for it in host.list_accessible() if it.owner == owner]
    if not found:
        raise Denied
    shown = []
    for it in page.of(found):
        writes = it.full_name not in host.accounts.read_only
        shown.append({**shapes.repository(it, base), "permissions": {"push": writes, "pull": True}})
    return {"total_count": len(found), "repositories": shown}


@router.get("/installation/repositories")
def list_granted(host: Host, token: Installed, page: Page, base: Base) -> dict[str, Any]:
    found = host.list_granted(token)
    return {"total_count": len(found), "repositories": [shapes.repository(it, base) for it in page.of(found)]}


@router.get(_REPOSITORY)
def get_repository(found: Annotated[GitRepository, repository("metadata")], base: Base) -> dict[str, Any]:
    return shapes.repository(found, base)


@router.get(_REPOSITORY + "/branches/{branch:path}")  # it may contain slashes, which arrive decoded
def get_branch(found: Readable, branch: str, base: Base) -> dict[str, Any]:
    head = found.find_commit(f"refs/heads/{branch}")
    if head is None:
        raise Denied(404, "Branch not found")
    return {"name": branch, "commit": shapes.commit(found, head.sha, base)}


@router.get(_REPOSITORY + "/tarball/{ref}")
def get_tarball(host: Host, found: Readable, ref: str, base: Base) -> Response:
    # The host of archives, which can be another one, gets no token. GitHub's URLs have a temporary one in the query.
    return RedirectResponse(f"{host.download_url or base}/_codeload/{found.full_name}/legacy.tar.gz/{ref}", 302)


@downloads.get("/_codeload/{owner}/{repo}/legacy.tar.gz/{ref}")
def download(host: Host, owner: str, repo: str, ref: str) -> Response:
    found = host.find_repository(owner, repo)
    if found.find_commit(ref) is None:
        raise Denied
    return StreamingResponse(found.archive(ref), media_type="application/x-gzip")


@router.get(_REPOSITORY + "/issues")
def list_issues(
    *,
    request: Request,
    response: Response,
    host: Host,
    found: WithIssues,
    page: Page,
    base: Base,
    since: datetime | None = None,
    direction: str = "desc",
) -> list[Any]:
    issues = [
        issue
        for issue in host.list_issues(found.owner, found.name)
        if since is None or issue.updated_seconds >= since.timestamp()
    ]
    if direction == "desc":
        issues.reverse()
    if page.end < len(issues):
        query = urlencode({**request.query_params, "page": page.number + 1})
        url = f"{base}{API}/repositories/{found.repository_id}/issues?{query}"
        response.headers["Link"] = f'<{url}>; rel="next"'
    return [shapes.issue(found, issue, base) for issue in page.of(issues)]


@router.post(_REPOSITORY + "/issues", status_code=201)
def create_issue(
    host: Host, found: Annotated[GitRepository, repository("issues", "write")], sent: NewIssue, base: Base
) -> dict[str, Any]:
    stored = host.issues.create(found.owner, found.name, sent.title, sent.body, sent.labels)
    return shapes.issue(found, stored, base)


@router.get(_REPOSITORY + "/issues/{issue_number}")
def get_issue(host: Host, found: WithIssues, issue_number: int, base: Base) -> dict[str, Any]:
    records = host.reviews.read(found.owner, found.name)
    is_issue = any(it.number == issue_number for it in records.issues)
    shown = records.get_issue(issue_number) if is_issue else records.get_pull_request(issue_number)
    return shapes.issue(found, shown, base)
