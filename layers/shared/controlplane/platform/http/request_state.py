"""The state of one request, which the middleware, the route, and the log line share, and its responses."""

from collections.abc import Collection
from typing import Any

from starlette.responses import Response
from starlette.types import Scope

from controlplane.platform.core.errors import ApiError
from controlplane.platform.core.observability import logger
from controlplane.platform.http import envelope
from controlplane.platform.http.callers import Caller, Dialect
from controlplane.platform.http.deprecations import Deprecation
from controlplane.platform.http.explanations import Refusal

_SCOPE_KEY = "controlplane"
_JSON_HEADERS = {"content-type": "application/json"}


class RequestState:
    """One request's id, operation, caller, dialect, and the deprecated things it uses, each set once it is known.

    is_dry_run: whether the request changes nothing because the client wants that.
    """

    __slots__ = ("caller", "deprecations", "dialect", "is_dry_run", "operation", "request_id", "scope")

    def __init__(self, scope: Scope, request_id: str) -> None:
        self.scope = scope
        self.request_id = request_id
        self.operation = "-"
        self.caller = Caller()
        self.dialect: Dialect | None = None
        self.deprecations: list[Deprecation] = []
        self.is_dry_run = False
        scope[_SCOPE_KEY] = self

    @staticmethod
    def of(scope: Scope) -> "RequestState":
        state: RequestState = scope[_SCOPE_KEY]
        return state

    def success(self, content: Any, status: int) -> Response:
        """Returns the response for an endpoint's return value. A Response is returned as it is."""
        if isinstance(content, Response):
            return content
        if self.dialect is not None:
            return self.dialect.success(content)
        if isinstance(content, envelope.Answer):
            headers = {**_JSON_HEADERS, **content.headers}
            return Response(envelope.success(content.content), content.status or status, headers)
        return Response(envelope.success(content), status, _JSON_HEADERS)

    def refuse(self, error: ApiError, declared: Collection[str]) -> Response:
        """Returns the response for an error, like `failure`, after recording the refusal of a known caller.

        declared: the names of the operation's fields, parameters, and headers.
        """
        if error.status < 500:
            self.caller.note_refusal(Refusal(error, self.operation, self.request_id, declared))
        return self.failure(error)

    def failure(self, error: ApiError) -> Response:
        """Returns the response for an error. Logs its context, which only operators may see."""
        if error.context:
            logger.info("refused", extra={"requestId": self.request_id, "code": error.code, **error.context})
        if self.dialect is not None:
            return self.dialect.failure(error, self.caller)
        return Response(envelope.failure(error), error.status, {**_JSON_HEADERS, **error.headers})
