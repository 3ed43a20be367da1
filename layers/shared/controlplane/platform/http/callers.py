"""The interface between the route class and the kinds of caller.

An endpoint declares its caller as one parameter, `Annotated[<Caller>, <CallerRequirements>]`. There are five kinds:

    access           Access, Requires                    an API key or a user token
    anonymous        AnonymousCaller, Anonymous          no credential, rate limited by address
    web_session      WebSession, RequiresSession         a browser with a session cookie, which gets pages
    signed_requests  Delivery, SignedByGithub            GitHub, with the secret of the App's webhooks
    signed_requests  LeakReport, SignedBySecretScanning  GitHub, with a key that it publishes

The route class (`controlplane.platform.http.route`) calls the requirements' methods in the order in which they are
defined here. An endpoint without such a parameter, such as the health check, has the base classes, which check nothing.
"""

from collections.abc import Callable, Collection
from http import HTTPStatus
from typing import Any, ClassVar, Protocol

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

from controlplane.platform.core.acting import Actor
from controlplane.platform.core.errors import ApiError, Problems
from controlplane.platform.core.observability import logger
from controlplane.platform.http import envelope
from controlplane.platform.http.deprecations import Deprecation
from controlplane.platform.http.negotiation import quality_of
from controlplane.platform.http.reader import MAX_BODY_BYTES, RequestReader
from controlplane.platform.table.refusals import Refusal


class Caller:
    """The caller of a request: the endpoint's argument, the fields of the log, and the response headers."""

    __slots__ = ()

    @property
    def actor(self) -> Actor | None:
        """The actor that the audit log names. None: a caller that changes nothing of an organization."""
        return None

    @property
    def log_fields(self) -> dict[str, Any]:
        """The caller's fields in the request's log line, without personal data."""
        return {}

    @property
    def headers(self) -> dict[str, str]:
        """The response headers about the caller's credential, such as its rate limit."""
        return {}

    @property
    def rate_group(self) -> str:
        """The group under which the metric counts the caller's rate-limited requests."""
        return "anonymous"

    def note_refusal(self, refusal: Refusal) -> None:
        """Records why the request was refused, for a caller that can ask for it later."""


class Dialect(Protocol):
    """A format of requests and responses other than JSON in the envelope: OAuth's forms, and pages."""

    def read(self, body: bytes) -> dict[str, Any]:
        """Returns the body's fields under the names of the endpoint's model, in snake_case. Raises InvalidPayload."""

    def success(self, content: Any) -> Response:
        """Returns the response for the endpoint's return value."""

    def failure(self, error: ApiError, caller: Caller) -> Response:
        """Returns the response for an error. Used for every error of the route, starting with its first check.

        caller: a `Caller` of the base class until the caller is identified.
        """


class CallerRequirements[C: Caller]:
    """Requirements of a route on its caller."""

    __slots__ = ()

    # Whether operations that change something can be dry runs.
    has_dry_runs: ClassVar[bool] = False

    def select_dialect(self, request: RequestReader) -> Dialect | None:  # noqa: ARG002
        """Returns the dialect of the response. Runs before the body is read. Raises RouteNotFound if disabled."""
        return None

    @property
    def body_limit_bytes(self) -> int:
        """The largest body that is read."""
        return MAX_BODY_BYTES

    def identify(self, request: RequestReader) -> C:  # noqa: ARG002
        """Returns the caller. Runs before the body is parsed."""
        return Caller()  # type: ignore[return-value]  # the base class has no other kind

    def check(self, caller: C) -> None:
        """Checks the caller's rate limit and permissions. Its errors are logged with the caller."""

    @property
    def id_parameter(self) -> tuple[Any, Any] | None:
        """The annotation and default of the parameter with the id that `resolve` needs. None: it needs none."""
        return None

    def resolve(self, caller: C, named_id: str | None) -> None:
        """Checks the organization and the resource of the request, after FastAPI has validated the rest."""


# Renders an error for a browser, like `Dialect.failure`.
type ErrorPage = Callable[[ApiError, Caller], Response]

_SCOPE_KEY = "controlplane"
_JSON_HEADERS = {"content-type": "application/json"}


class RequestState:
    """One request's id, operation, caller, dialect, and the deprecated things it uses, each set once it is known.

    error_page: renders errors for browsers if the route has no dialect. None: they have the API's format.
    is_dry_run: whether the request changes nothing because the client wants that.
    warnings: the unknown fields of the body, which a success names, too.
    """

    __slots__ = (
        "caller",
        "deprecations",
        "dialect",
        "error_page",
        "is_dry_run",
        "operation",
        "request_id",
        "scope",
        "warnings",
    )

    def __init__(self, scope: Scope, request_id: str) -> None:
        self.scope = scope
        self.request_id = request_id
        self.operation = "-"
        self.caller = Caller()
        self.dialect: Dialect | None = None
        self.error_page: ErrorPage | None = None
        self.deprecations: list[Deprecation] = []
        self.is_dry_run = False
        self.warnings: Problems = []
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
            if content.status == HTTPStatus.NOT_MODIFIED:
                return Response(None, content.status, content.headers)
            headers = {**_JSON_HEADERS, **content.headers}
            return Response(envelope.success(content.content, self.warnings), content.status or status, headers)
        return Response(envelope.success(content, self.warnings), status, _JSON_HEADERS)

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
        if self.error_page is not None and self._prefers_html():
            return self.error_page(error, self.caller)
        return Response(envelope.failure(error), error.status, {**_JSON_HEADERS, **error.headers})

    def _prefers_html(self) -> bool:
        """Returns whether the client is a browser. A program that doesn't prefer HTML to JSON gets the API's format."""
        accept = ",".join(Headers(scope=self.scope).getlist("accept"))
        return quality_of("text/html", accept) > quality_of("application/json", accept)
