"""The stand-in's REST API: the App and its installations, repositories, issues, pull requests, and check runs."""

import re
from datetime import datetime
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse, StreamingResponse
from pydantic import BaseModel, Field

from controlplane.platform.core.errors import known
from local.github import shapes
from local.github.host import API, Base, Host, HostRoute, Installed, Page, check_app, check_person, repository
from local.github.records import Denied, PullRequest
from local.github.repositories import Change, GitRepository
from local.github.setup import installation_id
from local.github.stand_in import PERMISSIONS, StandIn
from local.pages import moment

router = APIRouter(prefix=API, route_class=HostRoute)
downloads = APIRouter(route_class=HostRoute)
_APP, _PERSON = [Depends(check_app)], [Depends(check_person)]
_REPOSITORY = "/repos/{owner}/{repo}"
_TEXT_LIMIT = 65_535

Readable = Annotated[GitRepository, repository("contents")]
WithIssues = Annotated[GitRepository, repository("issues")]
Reviewed = Annotated[GitRepository, repository("pull_requests")]
Reviews = Annotated[GitRepository, repository("pull_requests", "write")]
WithChecks = Annotated[GitRepository, repository("checks")]
Checked = Annotated[GitRepository, repository("checks", "write")]
WritesIssues = Annotated[GitRepository, repository("issues", "write")]


class TokenRequest(BaseModel):
    permissions: dict[str, str] | None = None
    repositories: list[str] | None = None
    repository_ids: list[int] | None = None


class NewIssue(BaseModel):
    title: str = Field(min_length=1, max_length=256)
    body: str | None = Field(None, max_length=65_536)
    labels: list[str] = []


class Output(BaseModel):
    title: str | None = None
    summary: str | None = Field(None, max_length=_TEXT_LIMIT)
    annotations: list[dict[str, Any]] = Field([], max_length=50)


class CheckRunUpdate(BaseModel):
    status: Literal["queued", "in_progress", "completed"] = "queued"
    conclusion: Literal["cancelled", "failure", "neutral", "success"] | None = None
    output: Output = Output()


class CheckRunCreate(CheckRunUpdate):
    name: str
    head_sha: str
    external_id: str = ""


class CommentText(BaseModel):
    body: str = Field(max_length=_TEXT_LIMIT + 1, pattern=r"\S")


class ReviewComment(BaseModel):
    path: str
    body: str = Field(max_length=_TEXT_LIMIT + 1, pattern=r"\S")
    line: int
    start_line: int | None = None
    side: Literal["RIGHT"]
    start_side: Literal["RIGHT"] | None = None


class NewReview(BaseModel):
    commit_id: str
    event: Literal["COMMENT"]
    body: str = Field(max_length=_TEXT_LIMIT + 1, pattern=r"\S")
    comments: list[ReviewComment] = []


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
    head = known(found.find_commit(f"refs/heads/{branch}"), Denied(404, "Branch not found"))
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
def create_issue(host: Host, found: WritesIssues, sent: NewIssue, base: Base) -> dict[str, Any]:
    stored = host.create_issue(found.owner, found.name, sent.title, sent.body, sent.labels)
    return shapes.issue(found, stored, base)


@router.get(_REPOSITORY + "/issues/{issue_number}")
def get_issue(host: Host, found: WithIssues, issue_number: int, base: Base) -> dict[str, Any]:
    records = host.reviews.read(found.owner, found.name)
    is_issue = any(it.number == issue_number for it in records.issues)
    shown = records.get_issue(issue_number) if is_issue else records.get_pull_request(issue_number)
    return shapes.issue(found, shown, base)


@router.get(_REPOSITORY + "/pulls/{pull_number}")
def get_pull_request(host: Host, found: Reviewed, pull_number: int, base: Base) -> dict[str, Any]:
    return describe(found, host.reviews.read(found.owner, found.name).get_pull_request(pull_number), base)


@router.get(_REPOSITORY + "/pulls")
def list_pull_requests(host: Host, found: Reviewed, page: Page, base: Base, state: str = "open") -> list[Any]:
    stored = reversed(host.reviews.read(found.owner, found.name).pull_requests)
    return [describe(found, it, base) for it in page.of([it for it in stored if state in ("all", it.state)])]


def describe(found: GitRepository, it: PullRequest, base: str) -> dict[str, Any]:
    """Returns the pull request as the API and events show it. Its head is also at `refs/pull/<number>/head`."""
    head, target = found.find_commit(f"refs/pull/{it.number}/head"), found.find_commit(f"refs/heads/{it.base}")
    if head is None or target is None:
        raise Denied
    return shapes.pull_request(found, it, head.sha, target.sha, base)


@router.get(_REPOSITORY + "/pulls/{pull_number}/files")
def list_files(host: Host, found: Reviewed, pull_number: int, page: Page) -> list[Any]:
    return [shapes.changed_file(it) for it in page.of(_changes(host, found, pull_number))]


def _changes(host: StandIn, found: GitRepository, number: int) -> list[Change]:
    it = host.reviews.read(found.owner, found.name).get_pull_request(number)
    return found.changes(f"refs/heads/{it.base}", f"refs/pull/{number}/head")


@router.get(_REPOSITORY + "/pulls/{pull_number}/reviews")
def list_reviews(host: Host, found: Reviewed, pull_number: int, page: Page, base: Base) -> list[Any]:
    stored = host.reviews.read(found.owner, found.name).reviews
    return [shapes.review(found, it, base) for it in page.of([it for it in stored if it.number == pull_number])]


@router.post(_REPOSITORY + "/pulls/{pull_number}/reviews")
def create_review(host: Host, found: Reviews, pull_number: int, sent: NewReview, base: Base) -> dict[str, Any]:
    patches = {it.path: it.patch for it in _changes(host, found, pull_number)}
    if not all(_is_in_a_hunk(it, patches.get(it.path, "")) for it in sent.comments):
        raise Denied(422, "Unprocessable Entity")
    comments = [it.model_dump(exclude_unset=True) for it in sent.comments]
    with host.reviews.change(found.owner, found.name) as records:
        return shapes.review(found, records.add_review(pull_number, sent.body, sent.commit_id, comments), base)


def _is_in_a_hunk(comment: ReviewComment, patch: str) -> bool:
    """Returns whether all lines of the comment are in one hunk of the new version, as GitHub demands."""
    first = comment.line if comment.start_line is None else comment.start_line
    for start, count in re.findall(r"^@@ -\S+ \+(\d+),?(\d*) @@", patch, re.MULTILINE):
        if int(start) <= first <= comment.line < int(start) + int(count or 1):
            return True
    return False


@router.post(_REPOSITORY + "/check-runs", status_code=201)
def create_check_run(host: Host, found: Checked, sent: CheckRunCreate, base: Base) -> dict[str, Any]:
    if found.find_commit(sent.head_sha) is None:
        raise Denied(422, "Validation Failed")
    return _put_check_run(host, found, None, sent, base)


@router.patch(_REPOSITORY + "/check-runs/{check_run_id}")
def update_check_run(host: Host, found: Checked, check_run_id: int, sent: CheckRunUpdate, base: Base) -> dict[str, Any]:
    return _put_check_run(host, found, check_run_id, sent, base)


def _put_check_run(
    host: Host, found: GitRepository, check_run_id: int | None, sent: CheckRunUpdate, base: Base
) -> dict[str, Any]:
    with host.reviews.change(found.owner, found.name) as records:
        run = records.put_check_run(check_run_id, sent.model_dump(exclude_unset=True))
    return shapes.check_run(found, run, base)


@router.get(_REPOSITORY + "/check-runs/{check_run_id}")
def get_check_run(host: Host, found: WithChecks, check_run_id: int, base: Base) -> dict[str, Any]:
    run = host.reviews.read(found.owner, found.name).get_check_run(check_run_id)
    return shapes.check_run(found, run, base)


@router.get(_REPOSITORY + "/commits/{ref}/check-runs")
def list_check_runs(
    host: Host, found: WithChecks, ref: str, base: Base, check_name: str | None = None
) -> dict[str, Any]:
    stored = host.reviews.read(found.owner, found.name).check_runs
    runs = [shapes.check_run(found, it, base) for it in stored if it.head_sha == ref and check_name in (None, it.name)]
    return {"total_count": len(runs), "check_runs": runs}


@router.get(_REPOSITORY + "/issues/{issue_number}/comments")
def list_comments(host: Host, found: WithIssues, issue_number: int, page: Page, base: Base) -> list[Any]:
    stored = host.reviews.read(found.owner, found.name).comments
    return [shapes.comment(found, it, base) for it in page.of([it for it in stored if it.number == issue_number])]


@router.post(_REPOSITORY + "/issues/{issue_number}/comments", status_code=201)
def create_comment(host: Host, found: WritesIssues, issue_number: int, sent: CommentText, base: Base) -> dict[str, Any]:
    with host.reviews.change(found.owner, found.name) as records:
        return shapes.comment(found, records.add_comment(issue_number, sent.body), base)


@router.patch(_REPOSITORY + "/issues/comments/{comment_id}")
def update_comment(host: Host, found: WritesIssues, comment_id: int, sent: CommentText, base: Base) -> dict[str, Any]:
    with host.reviews.change(found.owner, found.name) as records:
        return shapes.comment(found, records.edit_comment(comment_id, sent.body), base)
