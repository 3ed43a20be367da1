"""One operation of the document: FastAPI's description, completed and ordered."""

from controlplane.access.access import Requires
from controlplane.access.anonymous import Anonymous
from controlplane.platform.core.roles import RANK
from controlplane.platform.http.route import ControlRoute
from scripts.openapi import errors, requests, responses
from scripts.openapi.components import FAILURES, OAUTH, Components, Object
from scripts.openapi.schemas import reference
from scripts.openapi.texts import FIXED


def finish(route: ControlRoute, operation: Object, components: Components) -> Object:
    """Returns the complete operation. Raises SystemExit if its route has no summary or docstring."""
    if route.summary is None or not operation.get("description"):
        raise SystemExit(f"{operation['operationId']} has no summary or no docstring")
    (tag,) = operation["tags"]
    finished = {
        "tags": [tag],
        "summary": route.summary,
        "description": "\n\n".join(filter(None, (operation["description"], _notice(route), _needs(route)))),
        "operationId": operation["operationId"],
    }
    if operation.get("deprecated"):
        finished["deprecated"] = True
    finished["security"] = _security(route)
    finished |= _requirements(route)
    if "parameters" in operation:
        described = [requests.parameter(parameter) for parameter in operation["parameters"]]
        finished["parameters"] = [components.parameter(parameter) for parameter in described]
    if "requestBody" in operation:
        finished["requestBody"] = requests.body(operation, components)
    failures, names = components.failures(errors.enveloped(route, operation), FAILURES, reference("ErrorEnvelope"))
    finished["responses"] = {**responses.successes(route, operation, components), **failures}
    if names:
        finished["x-errors"] = names
    if (anonymous := route.requirements_as(Anonymous)) and anonymous.dialects:
        # Not as a second media type of the body: generated clients then lack one of the two, or don't compile.
        failures, names = components.failures(errors.in_oauth(route), OAUTH, {"$ref": "#/x-oauth/error"})
        finished["x-form-encoded"] = {
            "description": FIXED["x-form-encoded"],
            "requestBody": requests.form(route),
            "responses": {**responses.bare(route), **failures},
            "x-errors": names,
        }
    return finished


def _notice(route: ControlRoute) -> str:
    return route.deprecation.notice if route.deprecation else ""


def _security(route: ControlRoute) -> list[dict[str, list[str]]]:
    """Returns the kinds of credential that the operation accepts; empty if it needs none."""
    requires = route.requirements_as(Requires)
    if requires is None:
        return []
    kinds = ["organizationApiKey"] * requires.accepts_keys + ["userToken"]
    return [{kind: []} for kind in kinds]


def _requirements(route: ControlRoute) -> Object:
    """Returns the required scopes, for programs: OpenAPI 3.1 has no place for the scopes of a bearer token."""
    requires, required = route.requirements_as(Requires), {}
    if requires is not None and requires.scope is not None:
        required["x-required-scopes"] = [scope for scope in (requires.scope, requires.or_scope) if scope]
    if roles := _roles(route):
        required["x-required-roles"] = roles
    return required


def _roles(route: ControlRoute) -> list[str]:
    """Returns the roles that may call the operation, or none if every member may."""
    requires = route.requirements_as(Requires)
    if requires is None or requires.role == "member":
        return []
    return [role for role in RANK if RANK[role] >= RANK[requires.role]]


def _needs(route: ControlRoute) -> str:
    """Returns the same as a sentence."""
    requires = route.requirements_as(Requires)
    if requires is None:
        return "Needs no credential."
    if requires.scope is None:
        return "Needs any valid credential."
    credential = "an API key or a user token" if len(_security(route)) > 1 else "a user token"
    scopes = " or ".join(f"`{scope}`" for scope in (requires.scope, requires.or_scope) if scope)
    roles = _roles(route)
    role = f", of an {' or '.join(roles)}" if roles else ""
    return f"Needs {credential} with the scope {scopes}{role}."
