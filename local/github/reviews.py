"""The stand-in's endpoints for pull requests, their comments, and check runs."""

import re
from typing import Any

from starlette.responses import JSONResponse, Response

from local.github import review_shapes as shapes
from local.github.call import Call, number
from local.github.pull_requests import PullRequest
from local.github.repositories import GitRepository
from local.github.stand_in import Denied

_MOST_ANNOTATIONS = 50
_TEXT_LIMIT = 65_535
_STATUSES = {"queued", "in_progress", "completed"}
_CONCLUSIONS = {"action_required", "cancelled", "failure", "neutral", "success", "skipped", "timed_out"}


def get_pull_request(call: Call) -> Response:
    repository = call.repository("pull_requests")
    found = call.stand_in.reviews.read(repository.owner, repository.name).find_pull_request(
        number(call.parameters["pull_number"])
    )
    if found is None:
        raise Denied(404, "Not Found")
    return JSONResponse(describe(call.address, repository, found))


def list_pull_requests(call: Call) -> Response:
    repository, state = call.repository("pull_requests"), call.query.get("state", "open")
    size, page = min(100, number(call.query.get("per_page", "30"))), number(call.query.get("page", "1"))
    stored = call.stand_in.reviews.read(repository.owner, repository.name).pull_requests
    found = [it for it in sorted(stored, key=lambda it: -it.number) if state in ("all", it.state)]
    return JSONResponse([describe(call.address, repository, it) for it in found[(page - 1) * size : page * size]])


def describe(address: Any, repository: GitRepository, found: PullRequest) -> dict[str, Any]:
    """Returns the pull request as the API and events show it. Its head is also at `refs/pull/<number>/head`."""
    head = repository.find_commit(f"refs/pull/{found.number}/head")
    base = repository.find_commit(f"refs/heads/{found.base}")
    if head is None or base is None:
        raise Denied(404, "Not Found")
    return shapes.pull_request(repository, found, head.sha, base.sha, address)


def create_check_run(call: Call) -> Response:
    repository, sent = call.repository("checks", "write"), _checked(call.body)
    if not isinstance(sent.get("name"), str) or repository.find_commit(str(sent.get("head_sha"))) is None:
        raise Denied(422, "Validation Failed")
    return _put_check_run(call, repository, None, sent, 201)


def update_check_run(call: Call) -> Response:
    repository, sent = call.repository("checks", "write"), _checked(call.body)
    return _put_check_run(call, repository, number(call.parameters["check_run_id"]), sent, 200)


def _put_check_run(
    call: Call, repository: GitRepository, check_run_id: int | None, sent: dict[str, Any], status: int
) -> Response:
    with call.stand_in.reviews.change(repository.owner, repository.name) as reviews:
        run = reviews.put_check_run(check_run_id, sent)
    if run is None:
        raise Denied(404, "Not Found")
    return JSONResponse(shapes.check_run(repository, run, call.address), status)


def _checked(body: Any) -> dict[str, Any]:
    """Returns the body. Raises Denied as GitHub does if it has too much text or too many annotations."""
    sent: dict[str, Any] = body if isinstance(body, dict) else {}
    output = sent.get("output", {})
    texts = [str(output.get(name) or "") for name in ("summary", "text")]
    is_valid = (
        sent.get("status", "queued") in _STATUSES
        and sent.get("conclusion", "neutral") in _CONCLUSIONS
        and len(output.get("annotations", [])) <= _MOST_ANNOTATIONS
        and all(len(text) <= _TEXT_LIMIT for text in texts)
    )
    if not is_valid:
        raise Denied(422, "Validation Failed")
    return sent


def get_check_run(call: Call) -> Response:
    repository = call.repository("checks")
    wanted = number(call.parameters["check_run_id"])
    for run in call.stand_in.reviews.read(repository.owner, repository.name).check_runs:
        if run.check_run_id == wanted:
            return JSONResponse(shapes.check_run(repository, run, call.address))
    raise Denied(404, "Not Found")


def list_check_runs(call: Call) -> Response:
    repository, name = call.repository("checks"), call.query.get("check_name")
    found = [
        run
        for run in call.stand_in.reviews.read(repository.owner, repository.name).check_runs
        if run.head_sha == call.parameters["ref"] and name in (None, run.name)
    ]
    runs = [shapes.check_run(repository, run, call.address) for run in found]
    return JSONResponse({"total_count": len(runs), "check_runs": runs})


def list_comments(call: Call) -> Response:
    repository = call.repository("issues")
    wanted = number(call.parameters["issue_number"])
    size, page = min(100, number(call.query.get("per_page", "30"))), number(call.query.get("page", "1"))
    all_comments = call.stand_in.reviews.read(repository.owner, repository.name).comments
    found = [it for it in all_comments if it.number == wanted][(page - 1) * size : page * size]
    return JSONResponse([shapes.comment(repository, it, call.address) for it in found])


def create_comment(call: Call) -> Response:
    repository, body = call.repository("issues", "write"), _text(call.body)
    wanted = number(call.parameters["issue_number"])
    with call.stand_in.reviews.change(repository.owner, repository.name) as reviews:
        if reviews.find_pull_request(wanted) is None:
            raise Denied(404, "Not Found")
        comment = reviews.add_comment(wanted, body)
    return JSONResponse(shapes.comment(repository, comment, call.address), 201)


def update_comment(call: Call) -> Response:
    repository, body = call.repository("issues", "write"), _text(call.body)
    with call.stand_in.reviews.change(repository.owner, repository.name) as reviews:
        comment = reviews.edit_comment(number(call.parameters["comment_id"]), body)
    if comment is None:
        raise Denied(404, "Not Found")
    return JSONResponse(shapes.comment(repository, comment, call.address))


def _text(body: Any) -> str:
    text = body.get("body") if isinstance(body, dict) else None
    if not isinstance(text, str) or not re.search(r"\S", text) or len(text) > _TEXT_LIMIT + 1:
        raise Denied(422, "Validation Failed")
    return text
