"""Routes: a class that runs every check of a request in the documented order, and groups that are built when needed.

docs/architecture.md shows the order. The checks themselves are in `reader` (the request) and in the requirements that
the endpoint declares (`callers`).
"""

import inspect
import typing
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import AsyncExitStack
from functools import cached_property
from importlib import import_module
from typing import Annotated, Any

from fastapi import Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BeforeValidator
from pydantic.alias_generators import to_camel
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from controlplane.platform.core import acting, lazy_imports
from controlplane.platform.core.errors import ApiError, DatabaseUnavailable, Problems, RateLimited, invalid
from controlplane.platform.core.observability import describe, logger
from controlplane.platform.http import bodies, deprecations
from controlplane.platform.http.callers import CallerRequirements, RequestState
from controlplane.platform.http.envelope import Wire
from controlplane.platform.http.reader import DRY_RUN, SINGLE_HEADERS, RequestReader
from controlplane.platform.http.validation import to_problems
from controlplane.platform.table.table import TableUnavailable, Throttled


def _plain_boolean(value: Any) -> Any:
    """Rejects other spellings of true, which a client could mean for a dry run."""
    if isinstance(value, str) and value not in {"true", "false"}:
        raise ValueError("Must be true or false")
    return value


_DryRun = Annotated[
    bool,
    BeforeValidator(_plain_boolean),
    Query(
        alias=DRY_RUN,
        description=(
            "With `true`, the request is checked and answered like any other, but changes nothing and sends nothing. "
            "It counts against the rate limit. A successful response has the header `Dry-Run: true`. Its IDs, times, "
            "and versions are examples, and a secret in it is a placeholder that never authenticates."
        ),
        examples=[True],
    ),
]
# The attribute of an endpoint with the errors that it declares, and the scope's key with the route that a group found.
_REFUSALS = "_refusals"
_GROUP_ROUTE = "controlplane.route"
# The path of a route for every address that no other route has. It doesn't make these addresses known.
EVERY_PATH = "/{page:path}"
_NO_REQUIREMENTS: CallerRequirements[Any] = CallerRequirements()
# The scope's keys in which FastAPI's validation expects exit stacks.
_SCOPES = ("fastapi_middleware_astack", "fastapi_inner_astack", "fastapi_function_astack")


class ControlRoute(APIRoute):
    """A route with requirements on its caller. `return_type` is the endpoint's, and so is the operation's name."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        parameter, self.requirements = _declared_requirements(endpoint)
        hints = typing.get_type_hints(endpoint)
        self.return_type = hints.get("return")
        self.service_endpoint = endpoint
        options["response_model"] = None
        options["operation_id"] = to_camel(endpoint.__name__)
        self.deprecation = deprecations.OPERATIONS.get(options["operation_id"])
        options["deprecated"] = self.deprecation is not None
        status = options.get("status_code") or 200
        has_dry_runs = self.requirements.has_dry_runs and not {"GET"} & {*options.get("methods", ())}
        adapted = _adapt(endpoint, parameter, self.requirements, status, has_dry_runs=has_dry_runs)
        super().__init__(path, adapted, **options)
        self.label = f"{next(iter(self.methods or ()))} {path}"
        self.app = self._respond
        self._has_dry_runs = has_dry_runs and self.include_in_schema

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Runs every check, calls the endpoint, and responds.

        It replaces FastAPI's own request handling, whose dependency scopes take a quarter of a request's time.
        """
        request, state, requirements = RequestReader(scope, receive), RequestState.of(scope), self.requirements
        try:
            state.operation = self.label
            state.deprecations += [self.deprecation] if self.deprecation else []
            state.dialect = requirements.select_dialect(request)
            state.is_dry_run = self._has_dry_runs and request.asks_for_dry_run
            await request.read_body(requirements.body_limit_bytes)
            state.caller = caller = requirements.identify(request)
            acting.identify(caller.actor)
            requirements.check(caller)
            request.check_headers()
            if self.body_field is not None:
                request.parse_body(state.dialect.read if state.dialect else None)
            # RFC 6749 (3.2): OAuth's endpoints ignore unknown parameters.
            ignores_unknown = self.known_query is None or state.dialect is not None
            request.check_query(self.accepted_query, ignores_unknown=ignores_unknown)
            if self.body_model is not None and state.dialect is None:
                problems, state.warnings, deprecated = bodies.compare(self.body_model, request.content)
                request.problems += problems
                state.deprecations += deprecated
            if self._always_has_values or scope["query_string"]:
                async with AsyncExitStack() as stack:
                    scope.update(dict.fromkeys(_SCOPES, stack))
                    response = await self._validate_and_call(request)
            else:
                # FastAPI would pass the endpoint's own defaults, which takes a third of such a request.
                response = await self.endpoint(adapted_request=request)
        except ApiError as error:
            response = state.refuse(error, self.declared_names)
        except RequestValidationError as error:
            problems = [*request.problems, *self._find_invalid(request, error), *state.warnings]
            response = state.refuse(invalid(problems), self.declared_names)
        except (Throttled, TableUnavailable) as error:
            # Without a record: the table is refusing writes.
            response = state.failure(_public_error(error))
        await response(scope, receive, send)

    def _find_invalid(self, request: RequestReader, error: RequestValidationError) -> Problems:
        """Returns the problems that FastAPI found, except in values that are known to be unreadable or repeated."""
        errors = [it for it in error.errors() if request.is_body_readable or it["loc"][0] != "body"]
        repeated = [it["path"] for it in request.problems if it["code"] == "repeated"]
        return [it for it in to_problems(errors, self.accepted_fields) if it["path"] not in repeated]

    def get_route_handler(self) -> Callable[[RequestReader], Awaitable[Response]]:  # type: ignore[override]
        """Keeps FastAPI's validation, which calls the endpoint, for `_respond`."""
        self._validate_and_call = super().get_route_handler()
        return self._validate_and_call

    @cached_property
    def _always_has_values(self) -> bool:
        """Returns whether a request without a query has values to validate, or lacks required ones."""
        own = self.dependant
        elsewhere = any((own.path_params, own.header_params, own.cookie_params, own.body_params))
        return elsewhere or any(field.field_info.is_required() for field in own.query_params)

    @cached_property
    def known_query(self) -> list[str] | None:
        """The query parameters of a list, or of an operation that changes something. None: unknown ones are ignored.

        A list whose filter is ignored returns more than was asked for. If a mistyped `dryRun` were ignored, the change
        would be made, and with a mistyped `organizationId`, it would be made elsewhere. What GitHub calls isn't in the
        document, and ignores what its registered address has. `organizationId` is accepted everywhere, and has no
        effect where the resource or the caller determines the organization.
        """
        is_list = (self.operation_id or "").startswith("list") and self.return_type is not Response
        changes = self.include_in_schema and "GET" not in (self.methods or ())
        return self.accepted_query if is_list or changes else None

    @cached_property
    def accepted_query(self) -> list[str]:
        """The query parameters that the operation knows. A page ignores `dryRun`, like all unknown ones."""
        hidden = [] if self.include_in_schema else [DRY_RUN]
        names = (field.alias for field in self.dependant.query_params)
        return [*dict.fromkeys(["organizationId", *names, *hidden])]

    @cached_property
    def accepted_fields(self) -> list[str]:
        return bodies.field_names(self.body_model) if self.body_model is not None else []

    @cached_property
    def body_model(self) -> type[Wire] | None:
        return bodies.model_in(self.body_field.field_info.annotation) if self.body_field else None

    @cached_property
    def declared_names(self) -> frozenset[str]:
        """The names of query parameters, fields, and headers, of which none is a text that the client chose."""
        return frozenset({*self.accepted_query, *self.accepted_fields, *SINGLE_HEADERS.values()})

    def requirements_as[R: CallerRequirements[Any]](self, kind: type[R]) -> R | None:
        """Returns the requirements if they are of that kind, for tools that describe or test routes."""
        return self.requirements if isinstance(self.requirements, kind) else None


def _declared_requirements(endpoint: Callable[..., Any]) -> tuple[str | None, CallerRequirements[Any]]:
    """Returns the name of the parameter that declares the route's requirements, or None, and the requirements."""
    for name, hint in typing.get_type_hints(endpoint, include_extras=True).items():
        for extra in getattr(hint, "__metadata__", ()):
            if isinstance(extra, CallerRequirements):
                return name, extra
    return None, _NO_REQUIREMENTS


def _adapt(
    endpoint: Callable[..., Awaitable[Any]],
    caller_parameter: str | None,
    requirements: CallerRequirements[Any],
    status: int,
    *,
    has_dry_runs: bool,
) -> Callable[..., Any]:
    """Returns the endpoint with the signature that FastAPI sees.

    The caller's parameter is replaced by the request and by the id that the requirements are resolved from after
    FastAPI has validated the rest. The return value is serialized here, so FastAPI encodes nothing. If the request has
    other problems than those that FastAPI finds, it is rejected here.
    """

    async def adapted(
        adapted_request: RequestReader,
        adapted_id: str | None = None,
        adapted_dry_run: bool = False,  # noqa: ARG001 (only validated here: the state has it)
        **arguments: Any,
    ) -> Response:
        state = RequestState.of(adapted_request.scope)
        if adapted_request.problems:
            raise RequestValidationError([])
        requirements.resolve(state.caller, adapted_id)
        if caller_parameter is not None:
            arguments[caller_parameter] = state.caller
        with acting.dry_run(active=state.is_dry_run):
            return state.success(await endpoint(**arguments), status)

    keyword = inspect.Parameter.KEYWORD_ONLY
    own = inspect.signature(endpoint, eval_str=True).parameters.items()
    parameters = [parameter.replace(kind=keyword) for name, parameter in own if name != caller_parameter]
    parameters.append(inspect.Parameter("adapted_request", keyword, annotation=Request))
    if (id_parameter := requirements.id_parameter) is not None:
        annotation, default = id_parameter
        parameters.append(inspect.Parameter("adapted_id", keyword, annotation=annotation, default=default))
    if has_dry_runs:
        parameters.append(inspect.Parameter("adapted_dry_run", keyword, annotation=_DryRun, default=False))
    adapted.__name__, adapted.__doc__, adapted.__module__ = endpoint.__name__, endpoint.__doc__, endpoint.__module__
    adapted.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    adapted.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return adapted


def _public_error(error: Exception) -> ApiError:
    """Returns the error that the client receives for an exception raised below the endpoint."""
    if isinstance(error, Throttled):
        logger.warning("throttled", extra=describe(error))
        return RateLimited(1)
    logger.error("table unavailable", extra=describe(error))
    return DatabaseUnavailable()


def refuses[F: Callable[..., object]](*errors: type[ApiError]) -> Callable[[F], F]:
    """Declares the errors that are specific to an operation.

    It has no effect on requests: scripts/openapi reads it. The errors of the operation's access, parameters, body, and
    Idempotency-Key are derived from their declarations.
    """

    def declare(endpoint: F) -> F:
        setattr(endpoint, _REFUSALS, errors)
        return endpoint

    return declare


def refusals_of(endpoint: Callable[..., object]) -> tuple[type[ApiError], ...]:
    """Returns the errors that `refuses` declared, or an empty tuple."""
    declared: tuple[type[ApiError], ...] = getattr(endpoint, _REFUSALS, ())
    return declared


class RouteGroup(BaseRoute):
    """The routes of a module's `router`, which is imported at the first request for one of them.

    A route takes more than a millisecond of a cold start, and its module imports what it needs. A cold start answers
    one request, so it builds only the routes of that request's group. paths: those of the routes, as declared there.
    """

    def __init__(self, module: str, *paths: str) -> None:
        self.module = module
        self.paths = paths
        self._segments = [path.split("/") for path in paths]

    @cached_property
    def routes(self) -> list[APIRoute]:
        with lazy_imports.resumed():
            return list(import_module(self.module).router.routes)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Returns the first full match of the group's routes, or else the first one of another method."""
        found: tuple[Match, Scope] = Match.NONE, {}
        requested = scope["path"].split("/")
        if not any(_may_match(declared, requested) for declared in self._segments):
            return found
        for route in self.routes:
            match, child_scope = route.matches(scope)
            if match.value > found[0].value:
                found = match, {**child_scope, _GROUP_ROUTE: route}
            if match is Match.FULL:
                break
        return found

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await scope[_GROUP_ROUTE].handle(scope, receive, send)


def routes_of(routes: Iterable[BaseRoute]) -> Iterator[APIRoute]:
    """Yields an app's routes, with those of groups in their places. Builds them."""
    for route in routes:
        if isinstance(route, RouteGroup):
            yield from route.routes
        elif isinstance(route, APIRoute):
            yield route


def _may_match(declared: list[str], requested: list[str]) -> bool:
    """Returns False if a route of that path can't match. Compiling the path's expression would take longer."""
    takes_rest = declared[-1].endswith(":path}")
    if len(declared) != len(requested) and not (takes_rest and len(declared) < len(requested)):
        return False
    return all(name.startswith("{") or name == segment for name, segment in zip(declared, requested, strict=False))
