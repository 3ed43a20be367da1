"""Sends calls: with retries, and with the errors of this package."""

import logging
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from openassent._bodies import json_of, warnings_of
from openassent._calls import Call, Page
from openassent._retries import failure_of, monotonic, pause_before_retry, sleep_async
from openassent.errors import AssentError, MalformedResponse, error_of

M = TypeVar("M", bound=BaseModel)

_log = logging.getLogger("openassent")
# How many wrong fields of a response an error names.
_NAMED_FIELDS = 5


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
        pagination = _json(response).get("pagination") or {}
        cursor = pagination.get("nextCursor") if isinstance(pagination, dict) else pagination
        if not (cursor is None or isinstance(cursor, str)):
            raise _malformed(response, "has no valid cursor")
        return Page([_parse(returns, it, response) for it in items], cursor)

    async def document(self, call: Call) -> dict[str, Any]:
        """Returns the JSON object of a response without an envelope."""
        response = await self._send(call)
        document = _json(response)
        if not isinstance(document, dict):
            raise _malformed(response, "isn't an object: check the base URL")
        return document

    async def parsed(self, call: Call, returns: type[M]) -> M:
        """Returns the result of an operation without an envelope."""
        response = await self._send(call)
        return _parse(returns, _json(response), response)

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
                _log.debug("%s: attempt %d failed, the next one is in %.1f s", call, attempt, pause)
                await sleep_async(pause)

    async def _attempt(self, call: Call) -> httpx.Response:
        response = await self._exchange(call)
        request_id = response.headers.get("X-Request-Id")
        _log.debug("%s: %d (request %s)", call, response.status_code, request_id)
        if response.status_code >= 400:
            raise error_of(response)
        if response.status_code >= 300:
            raise _malformed(response, "is a redirect: check the base URL")
        return response

    async def _exchange(self, call: Call) -> httpx.Response:
        auth = None if call.public else httpx.USE_CLIENT_DEFAULT
        try:
            request = self.http.build_request(
                call.method, call.url, params=dict(call.query) or None, json=call.body, headers=dict(call.headers)
            )
            return await self.http.send(request, auth=auth)
        except (httpx.RequestError, httpx.InvalidURL, UnicodeError, OverflowError) as error:
            failure = failure_of(call, error)
        raise failure


def _json(response: httpx.Response) -> Any:
    value = json_of(response.content)
    if value is None:
        raise _malformed(response, "isn't JSON that can be read: check the base URL")
    return value


def _member(response: httpx.Response, name: str) -> Any:
    envelope = _json(response)
    if not isinstance(envelope, dict) or name not in envelope:
        raise _malformed(response, f"has no `{name}`: check the base URL")
    for warning in warnings_of(envelope):
        _log.warning("%s %s: %s", response.request.method, response.request.url.path, warning)
    return envelope[name]


def _parse(returns: type[M], value: Any, response: httpx.Response) -> M:
    try:
        return returns.model_validate(value)
    except ValidationError as error:
        # Not the error's own text, nor the error as context: both have the values.
        wrong = error.errors(include_input=False, include_context=False)[:_NAMED_FIELDS]
        fields = ", ".join(".".join(map(str, it["loc"])) or "data" for it in wrong)
    raise _malformed(response, f"isn't a {returns.__name__} ({fields})")


def _malformed(response: httpx.Response, reason: str) -> MalformedResponse:
    request = response.request
    return MalformedResponse(
        f"{request.method} {request.url.path}: the response {reason}",
        status=response.status_code,
        request_id=response.headers.get("X-Request-Id"),
    )
