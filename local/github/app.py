"""The stand-in over HTTP: GitHub's endpoints under /api/v3, and pages for people."""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from email.utils import formatdate
from typing import Any
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from controlplane.platform.core import clock
from local.github import installing, pages, review_pages, review_shapes, reviews, shapes
from local.github.call import API, Call, number
from local.github.faults import Fault, Quota
from local.github.repositories import stable_id
from local.github.secret_scanning import SecretScanning
from local.github.setup import APP_ID
from local.github.stand_in import PERMISSIONS, Denied, Recorded, StandIn
from local.github.webhooks import Webhooks

_TITLE_LIMIT = 256
_BODY_LIMIT = 65_536

_Endpoint = Callable[[Call], Response]


def create_app(
    stand_in: StandIn, webhooks: Webhooks | None = None, scanning: SecretScanning | None = None
) -> Starlette:
    """Returns the ASGI app. It can be mounted at any path: the URLs in its responses follow.

    webhooks: sends what changes on the pages. None: the pages change nothing.
    scanning: signs reports of leaked secrets, and has a page that sends them if it has a URL to send them to.
    """
    scanning = scanning or SecretScanning()
    operations: dict[str, _Endpoint] = {
        "GET /app": _get_app,
        "POST /app/installations/{installation_id}/access_tokens": _create_token,
        "GET /repos/{owner}/{repo}/installation": _get_installation,
        "GET /repos/{owner}/{repo}": _get_repository,
        "GET /repos/{owner}/{repo}/branches/{branch}": _get_branch,
        "GET /repos/{owner}/{repo}/tarball/{ref}": _get_tarball,
        "GET /repos/{owner}/{repo}/issues": _list_issues,
        "POST /repos/{owner}/{repo}/issues": _create_issue,
        "GET /meta/public_keys/secret_scanning": scanning.list_keys,
        **installing.OPERATIONS,
        "GET /installation/repositories": _list_granted,
        "GET /repos/{owner}/{repo}/issues/{issue_number}": _get_issue,
        "GET /repos/{owner}/{repo}/pulls/{pull_number}": reviews.get_pull_request,
        "GET /repos/{owner}/{repo}/pulls": reviews.list_pull_requests,
        "POST /repos/{owner}/{repo}/check-runs": reviews.create_check_run,
        "GET /repos/{owner}/{repo}/check-runs/{check_run_id}": reviews.get_check_run,
        "PATCH /repos/{owner}/{repo}/check-runs/{check_run_id}": reviews.update_check_run,
        "GET /repos/{owner}/{repo}/commits/{ref}/check-runs": reviews.list_check_runs,
        "GET /repos/{owner}/{repo}/issues/{issue_number}/comments": reviews.list_comments,
        "POST /repos/{owner}/{repo}/issues/{issue_number}/comments": reviews.create_comment,
        "PATCH /repos/{owner}/{repo}/issues/comments/{comment_id}": reviews.update_comment,
    }
    # A branch may hold slashes, which arrive decoded.
    routes = [_route(stand_in, API, name, endpoint) for name, endpoint in operations.items()]
    routes.append(_route(stand_in, "", "GET /_codeload/{owner}/{repo}/legacy.tar.gz/{ref}", _download))
    routes.append(Route(API + "/{path:path}", _not_found, methods=["GET", "POST", "PUT", "PATCH", "DELETE"]))
    shown = [
        *scanning.routes(),
        *installing.routes(stand_in),
        *review_pages.routes(stand_in, webhooks),
        *pages.routes(stand_in),
    ]
    return Starlette(routes=[*routes, *shown])


def _route(stand_in: StandIn, prefix: str, operation: str, endpoint: _Endpoint) -> Route:
    method, path = operation.split()

    async def answer(request: Request) -> Response:
        body = await request.body()
        call = Call(stand_in, request, body)
        headers = dict(request.headers)
        stand_in.requests.append(Recorded(operation, method, call.path, call.query, headers, call.body))
        fault = stand_in.faults.take(operation)
        if fault is None:
            return await run_in_threadpool(_answer, call, endpoint)
        return await _fail(call, endpoint, fault)

    return Route(prefix + path.replace("{branch}", "{branch:path}"), answer, methods=[method])


def _answer(call: Call, endpoint: _Endpoint) -> Response:
    renamed = call.stand_in.faults.renamed.get(f"{call.parameters.get('owner')}/{call.parameters.get('repo')}")
    quota = _find_quota(call)
    try:
        _spend(quota)
        response = _redirect(call, renamed) if renamed else endpoint(call)
    except Denied as denied:
        response = _problem(denied.message, denied.status)
    if quota is not None:
        response.headers["X-RateLimit-Remaining"] = str(quota.left)
        response.headers["X-RateLimit-Reset"] = str(quota.resets_at)
    response.headers["Date"] = _http_date(clock.now())
    response.headers["X-GitHub-Request-Id"] = f"LOCAL:{stable_id(call.path):X}"
    return response


def _find_quota(call: Call) -> Quota | None:
    """Returns the installation's remaining quota if the request has its token and is counted."""
    token = call.stand_in.find_token(call.authorization)
    quota = call.stand_in.faults.quotas.get(stable_id(token.owner)) if token else None
    return quota if quota is not None and quota.resets_at > clock.now() else None


def _spend(quota: Quota | None) -> None:
    if quota is None:
        return
    if quota.left == 0:
        raise Denied(403, "API rate limit exceeded")
    quota.left -= 1


async def _fail(call: Call, endpoint: _Endpoint, fault: Fault) -> Response:
    if fault.takes_effect or fault.cut_after_bytes is not None:
        response = await run_in_threadpool(_answer, call, endpoint)
        if fault.cut_after_bytes is not None:
            return StreamingResponse(_cut(response, fault.cut_after_bytes), headers={"Content-Length": "1000000000"})
    await asyncio.sleep(fault.hang_seconds)
    headers = {"Date": _http_date(clock.now()), **fault.headers}
    return JSONResponse(fault.content or shapes.problem("Server Error", fault.status), fault.status, headers)


async def _cut(response: Response, length: int) -> AsyncIterator[bytes]:
    """Returns the first bytes of a body whose Content-Length is longer. The server ends the connection."""
    body = b""
    if isinstance(response, StreamingResponse):
        async for chunk in response.body_iterator:
            body += bytes(chunk) if not isinstance(chunk, str) else chunk.encode()
    else:
        body = bytes(response.body)
    yield body[:length]


def _problem(message: str, status: int, **more: Any) -> Response:
    return JSONResponse(shapes.problem(message, status) | more, status)


async def _not_found(_: Request) -> Response:
    return _problem("Not Found", 404)


def _http_date(seconds: float) -> str:
    return formatdate(seconds, usegmt=True)


def _redirect(call: Call, renamed: str) -> Response:
    """Returns the redirect of a renamed repository: permanent for reads, with the same method for writes."""
    old = f"/repos/{call.parameters['owner']}/{call.parameters['repo']}"
    target = call.path.replace(old, f"/repos/{renamed}", 1) + (f"?{urlencode(call.query)}" if call.query else "")
    is_write = call.body is not None
    status = 307 if is_write else 301
    return JSONResponse(shapes.problem("Moved Permanently", status) | {"url": target}, status, {"Location": target})


def _get_app(call: Call) -> Response:
    call.stand_in.check_app(call.authorization)
    return JSONResponse(shapes.app(int(APP_ID), PERMISSIONS, call.address))


def _create_token(call: Call) -> Response:
    call.stand_in.check_app(call.authorization)
    wanted = call.body or {}
    token = call.stand_in.issue_token(
        number(call.parameters["installation_id"]),
        wanted.get("permissions"),
        wanted.get("repositories"),
        wanted.get("repository_ids"),
    )
    content = {
        "token": token.value,
        "expires_at": shapes.moment(token.expires_seconds),
        "permissions": token.permissions,
        "repository_selection": "all" if token.repository_ids is None else "selected",
    }
    return JSONResponse(content, 201)


def _get_installation(call: Call) -> Response:
    call.stand_in.check_app(call.authorization)
    owner = call.parameters["owner"]
    if call.stand_in.repositories.find(owner, call.parameters["repo"]) is None:
        raise Denied(404, "Not Found")
    installation_id = stable_id(owner)
    permissions = call.stand_in.permissions(installation_id)
    return JSONResponse(shapes.installation(installation_id, int(APP_ID), owner, permissions, call.address))


def _list_granted(call: Call) -> Response:
    token = call.stand_in.check_token(call.authorization)
    granted = [it for it in call.stand_in.repositories.list() if it.owner == token.owner]
    found = [it for it in granted if it.full_name not in call.stand_in.faults.removed]
    size, page = min(100, number(call.query.get("per_page", "30"))), number(call.query.get("page", "1"))
    shown = [shapes.repository(it, call.address) for it in found[(page - 1) * size : page * size]]
    return JSONResponse({"total_count": len(found), "repository_selection": "all", "repositories": shown})


def _get_issue(call: Call) -> Response:
    repository = call.repository("issues")
    wanted = number(call.parameters["issue_number"])
    found = call.stand_in.issues.find(repository.owner, repository.name, wanted)
    if found is not None:
        return JSONResponse(shapes.issue(repository, found, call.address))
    opened = call.stand_in.reviews.read(repository.owner, repository.name).find_pull_request(wanted)
    if opened is None:
        raise Denied(404, "Not Found")
    return JSONResponse(review_shapes.as_issue(repository, opened, call.address))


def _get_repository(call: Call) -> Response:
    return JSONResponse(shapes.repository(call.repository("metadata"), call.address))


def _get_branch(call: Call) -> Response:
    repository, name = call.repository("contents"), call.parameters["branch"]
    head = repository.find_commit(f"refs/heads/{name}")
    if head is None:
        raise Denied(404, "Branch not found")
    return JSONResponse(shapes.branch(repository, name, head, call.address))


def _get_tarball(call: Call) -> Response:
    repository, ref = call.repository("contents"), call.parameters["ref"]
    ticket = call.stand_in.offer_download(repository, ref)
    host = call.stand_in.download_url or call.address.html_url
    path = f"/_codeload/{repository.full_name}/legacy.tar.gz/{ref}?token={ticket}"
    return RedirectResponse(host + path, 302)


def _download(call: Call) -> Response:
    repository, sha = call.stand_in.take_download(call.query.get("token", ""))
    return StreamingResponse(repository.archive(sha), media_type="application/x-gzip")


def _create_issue(call: Call) -> Response:
    repository = call.repository("issues", "write")
    if repository.full_name in call.stand_in.faults.without_issues:
        raise Denied(410, "Issues has been disabled in this repository.")
    content = call.body if isinstance(call.body, dict) else {}
    title, body, labels = content.get("title"), content.get("body"), content.get("labels", [])
    wrong = _wrong_field(title, body, labels)
    if wrong is not None:
        problem = {"resource": "Issue", "field": wrong, "code": "invalid"}
        return _problem("Validation Failed", 422, errors=[problem])
    stored = call.stand_in.issues.create(repository.owner, repository.name, str(title), body, labels)
    return JSONResponse(shapes.issue(repository, stored, call.address), 201)


def _wrong_field(title: object, body: object, labels: object) -> str | None:
    if not isinstance(title, str) or not 0 < len(title) <= _TITLE_LIMIT:
        return "title"
    if body is not None and (not isinstance(body, str) or len(body) > _BODY_LIMIT):
        return "body"
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        return "labels"
    return None


def _list_issues(call: Call) -> Response:
    repository, query = call.repository("issues"), call.query
    visible_until = clock.now() - call.stand_in.faults.list_lag_seconds
    try:
        since = datetime.fromisoformat(query["since"]).timestamp() if "since" in query else 0
        size, page = min(100, int(query.get("per_page", "30"))), int(query.get("page", "1"))
    except ValueError:
        return _problem("Validation Failed", 422, errors=[{"resource": "Issue", "code": "invalid"}])
    found = [
        issue
        for issue in call.stand_in.issues.list(repository.owner, repository.name)
        if issue.updated_seconds >= since and issue.created_seconds <= visible_until
    ]
    if query.get("direction", "desc") == "desc":
        found.reverse()
    shown = found[(page - 1) * size : page * size]
    headers = {}
    if page * size < len(found):
        following = f"{call.address.api_url}/repositories/{repository.repository_id}/issues"
        headers["Link"] = f'<{following}?{urlencode(query | {"page": str(page + 1)})}>; rel="next"'
    content = [shapes.issue(repository, issue, call.address) for issue in shown]
    return JSONResponse(content, headers=headers)
