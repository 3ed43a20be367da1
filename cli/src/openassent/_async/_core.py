"""Sends calls: with retries, and with the errors of this package."""

import logging
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from openassent._calls import Call, Page
from openassent._clock import monotonic, sleep_async
from openassent._retries import failure_of, pause_before_retry
from openassent.errors import AssentError, MalformedResponse, error_of

M = TypeVar("M", bound=BaseModel)

_log = logging.getLogger("openassent")


class AsyncCore:
    """An HTTP client with the settings that all resources share.

    organization: the organization of operations that aren't given one.
    max_retries: how often a failed request is repeated at most.
    """

    def __init__(self, http: httpx.AsyncClient, *, organization: str | None, max_retries: int) -> None:
        self.http = http
        self.organization = organization
        self._max_retries = max_retries

    async def result(self, call: Call, returns: type[M]) -> M:
        """Returns the result of an operation, without its envelope."""
        response = await self._send(call)
        return _parse(returns, _member(response, "data"), response)

    async def page(self, call: Call, returns: type[M]) -> Page[M]:
        """Returns a page of a list."""
        response = await self._send(call)
        items = _member(response, "data")
        if not isinstance(items, list):
            raise _malformed(response, "isn't a list")
        # Lists that always fit one page can be without `pagination`.
        pagination = response.json().get("pagination") or {}
        return Page([_parse(returns, it, response) for it in items], pagination.get("nextCursor"))

    async def document(self, call: Call) -> Any:
        """Returns the JSON of a response without an envelope."""
        return _json(await self._send(call))

    async def _send(self, call: Call) -> httpx.Response:
        began, attempt = monotonic(), 0
        while True:
            attempt += 1
            try:
                return await self._attempt(call)
            except AssentError as error:
                pause = pause_before_retry(
                    call, error, attempt=attempt, max_retries=self._max_retries, elapsed_seconds=monotonic() - began
                )
                if pause is None:
                    raise
                _log.debug("%s %s: attempt %d failed, the next one is in %.1f s", call.method, call.url, attempt, pause)
                await sleep_async(pause)

    async def _attempt(self, call: Call) -> httpx.Response:
        request = self.http.build_request(
            call.method, call.url, params=dict(call.query) or None, json=call.body, headers=dict(call.headers)
        )
        auth = None if call.public else httpx.USE_CLIENT_DEFAULT
        try:
            response = await self.http.send(request, auth=auth)
        except httpx.TransportError as error:
            raise failure_of(call, error) from error
        except httpx.DecodingError as error:
            raise MalformedResponse(f"{call.method} {call.url}: the response can't be decoded") from error
        request_id = response.headers.get("X-Request-Id")
        _log.debug("%s %s: %d (request %s)", call.method, call.url, response.status_code, request_id)
        if response.status_code >= 400:
            raise error_of(response)
        if response.status_code >= 300:
            raise _malformed(response, "is a redirect: check the base URL")
        return response


def _json(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError as error:
        raise _malformed(response, "isn't JSON: check the base URL") from error


def _member(response: httpx.Response, name: str) -> Any:
    envelope = _json(response)
    if not isinstance(envelope, dict) or name not in envelope:
        raise _malformed(response, f"has no `{name}`: check the base URL")
    return envelope[name]


def _parse(returns: type[M], value: Any, response: httpx.Response) -> M:
    try:
        return returns.model_validate(value)
    except ValidationError as error:
        # Not the error's own text, which contains the values.
        fields = ", ".join(".".join(map(str, it["loc"])) or "data" for it in error.errors(include_input=False))
        raise _malformed(response, f"isn't a {returns.__name__} ({fields})") from None


def _malformed(response: httpx.Response, reason: str) -> MalformedResponse:
    request = response.request
    return MalformedResponse(
        f"{request.method} {request.url.path}: the response {reason}",
        status=response.status_code,
        request_id=response.headers.get("X-Request-Id"),
    )
