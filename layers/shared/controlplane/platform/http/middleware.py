"""The outermost middleware of every app: request id, time limit, uncaught errors, common headers, log line."""

import time
import uuid

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from controlplane.platform.core import acting, deadline, request_ids, urls
from controlplane.platform.core.errors import Forbidden, InternalError
from controlplane.platform.core.observability import describe, logger
from controlplane.platform.core.settings import settings
from controlplane.platform.http import deprecations, front_door, request_log
from controlplane.platform.http.request_state import RequestState

# Browsers then only use TLS for the host, for a year after each response. It isn't for subdomains or preloading: an
# operator's domain can have other hosts, and we don't know these. Deployed, no address of ours is served without TLS.
TRANSPORT_SECURITY = (b"strict-transport-security", b"max-age=31536000")


class NotThroughFrontDoor(Forbidden):
    message = "This address doesn't accept requests. Send them to the service's public address."


class RequestMiddleware:
    """Creates the request's state, limits the time of its calls, handles uncaught errors, and logs one line.

    If the front door is required, rejects any other request. HEAD gets the response to GET without its body.

    Every response gets an X-Request-Id header, the headers of the caller's credential, of deprecations, and of a dry
    run, and, unless the endpoint sets another one, Cache-Control: no-store. Over TLS, it has
    Strict-Transport-Security: RFC 6797 (7.2) forbids that without TLS, as on this machine.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started_at = time.perf_counter()
        method = scope["method"]
        if method == "HEAD":
            # Checked, counted, and answered like GET (RFC 9110, section 9.3.2), but for the body.
            scope, send = {**scope, "method": "GET"}, _without_body(send)
        state = RequestState(scope, _request_id(scope))
        urls.read_stage(scope.get("aws.event"))
        uses_front_door = front_door.was_used(lambda name: Headers(scope=scope).getlist(name))
        app = _reject if settings.front_door_required and not uses_front_door else self.app
        status = 500
        response_started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal status, response_started
            if message["type"] == "http.response.start":
                status, response_started = message["status"], True
                _add_headers(message, state)
                if uses_front_door:
                    front_door.carry_challenge(message)
            try:
                await send(message)
            except OSError:
                raise ClientDisconnect from None

        with acting.request(state.request_id):
            try:
                with deadline.budget(settings.dependency_seconds):
                    await app(scope, receive, send_with_headers)
            except ClientDisconnect:
                # Not a server error. No response can be sent; the request's writes are kept.
                status = request_log.CLIENT_CLOSED_REQUEST
            except Exception as error:  # the outermost handler: every error gets a response and a log line
                logger.error(
                    "failed", extra={"requestId": state.request_id, "operation": state.operation, **describe(error)}
                )
                if response_started:
                    raise
                await state.failure(InternalError())(scope, receive, send_with_headers)
        request_log.log(state, method, status, time.perf_counter() - started_at)


def _without_body(send: Send) -> Send:
    async def send_without_body(message: Message) -> None:
        await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

    return send_without_body


async def _reject(scope: Scope, receive: Receive, send: Send) -> None:
    await RequestState.of(scope).failure(NotThroughFrontDoor())(scope, receive, send)


def _add_headers(start: Message, state: RequestState) -> None:
    headers = start.setdefault("headers", [])
    headers.append((b"x-request-id", state.request_id.encode()))
    headers.append(TRANSPORT_SECURITY)
    more = state.caller.headers | deprecations.headers(state.deprecations)
    if state.is_dry_run and start["status"] < 400:
        more["Dry-Run"] = "true"
    headers += [(name.lower().encode(), value.encode()) for name, value in more.items()]
    if not any(name == b"cache-control" for name, _ in headers):
        headers.append((b"cache-control", b"no-store"))


def _request_id(scope: Scope) -> str:
    """Returns an id that begins with the gateway's, so that its log can be joined with ours, or a new id locally."""
    event = scope.get("aws.event") or {}
    return request_ids.with_time((event.get("requestContext") or {}).get("requestId") or str(uuid.uuid4()))
