"""The stand-in's REST API: pull requests, their comments, and check runs."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field

from local.github import shapes
from local.github.host import API, Base, Host, HostRoute, Page, repository
from local.github.records import Denied, PullRequest
from local.github.repositories import GitRepository

router = APIRouter(prefix=API + "/repos/{owner}/{repo}", route_class=HostRoute)
_TEXT_LIMIT = 65_535

Reviewed = Annotated[GitRepository, repository("pull_requests")]
WithChecks = Annotated[GitRepository, repository("checks")]
Checked = Annotated[GitRepository, repository("checks", "write")]
Commented = Annotated[GitRepository, repository("issues", "write")]


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


@router.get("/pulls/{pull_number}")
def get_pull_request(host: Host, found: Reviewed, pull_number: int, base: Base) -> dict[str, Any]:
    return describe(found, host.reviews.read(found.owner, found.name).get_pull_request(pull_number), base)


@router.get("/pulls")
def list_pull_requests(host: Host, found: Reviewed, page: Page, base: Base, state: str = "open") -> list[Any]:
    stored = reversed(host.reviews.read(found.owner, found.name).pull_requests)
    return [describe(found, it, base) for it in page.of([it for it in stored if state in ("all", it.state)])]


def describe(found: GitRepository, it: PullRequest, base: str) -> dict[str, Any]:
    """Returns the pull request as the API and events show it. Its head is also at `refs/pull/<number>/head`."""
    head, target = found.find_commit(f"refs/pull/{it.number}/head"), found.find_commit(f"refs/heads/{it.base}")
    if head is None or target is None:
        raise Denied
    return shapes.pull_request(found, it, head.sha, target.sha, base)


@router.post("/check-runs", status_code=201)
def create_check_run(host: Host, found: Checked, sent: CheckRunCreate, base: Base) -> dict[str, Any]:
    if found.find_commit(sent.head_sha) is None:
        raise Denied(422, "Validation Failed")
    return _put_check_run(host, found, None, sent, base)


@router.patch("/check-runs/{check_run_id}")
def update_check_run(host: Host, found: Checked, check_run_id: int, sent: CheckRunUpdate, base: Base) -> dict[str, Any]:
    return _put_check_run(host, found, check_run_id, sent, base)


def _put_check_run(
    host: Host, found: GitRepository, check_run_id: int | None, sent: CheckRunUpdate, base: Base
) -> dict[str, Any]:
    with host.reviews.change(found.owner, found.name) as records:
        run = records.put_check_run(check_run_id, sent.model_dump(exclude_unset=True))
    return shapes.check_run(found, run, base)


@router.get("/check-runs/{check_run_id}")
def get_check_run(host: Host, found: WithChecks, check_run_id: int, base: Base) -> dict[str, Any]:
    run = host.reviews.read(found.owner, found.name).get_check_run(check_run_id)
    return shapes.check_run(found, run, base)


@router.get("/commits/{ref}/check-runs")
def list_check_runs(
    host: Host, found: WithChecks, ref: str, base: Base, check_name: str | None = None
) -> dict[str, Any]:
    stored = host.reviews.read(found.owner, found.name).check_runs
    runs = [shapes.check_run(found, it, base) for it in stored if it.head_sha == ref and check_name in (None, it.name)]
    return {"total_count": len(runs), "check_runs": runs}


@router.get("/issues/{issue_number}/comments")
def list_comments(
    host: Host, found: Annotated[GitRepository, repository("issues")], issue_number: int, page: Page, base: Base
) -> list[Any]:
    stored = host.reviews.read(found.owner, found.name).comments
    return [shapes.comment(found, it, base) for it in page.of([it for it in stored if it.number == issue_number])]


@router.post("/issues/{issue_number}/comments", status_code=201)
def create_comment(host: Host, found: Commented, issue_number: int, sent: CommentText, base: Base) -> dict[str, Any]:
    with host.reviews.change(found.owner, found.name) as records:
        return shapes.comment(found, records.add_comment(issue_number, sent.body), base)


@router.patch("/issues/comments/{comment_id}")
def update_comment(host: Host, found: Commented, comment_id: int, sent: CommentText, base: Base) -> dict[str, Any]:
    with host.reviews.change(found.owner, found.name) as records:
        return shapes.comment(found, records.edit_comment(comment_id, sent.body), base)
