"""Public URLs of this API and its pages, as used in responses and pages.

With a custom domain they are settings. Without one they can't be, because CloudFormation creates the gateway after the
functions: a stage variable contains the gateway's URL and arrives with every request. The client id at the template's
user pool arrives the same way, because the pool's client depends on that URL.
"""

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from controlplane.platform.core.settings import settings

_stage_variables: ContextVar[Mapping[str, str] | None] = ContextVar("stage_variables", default=None)


def read_stage(event: dict[str, Any] | None) -> None:
    """Stores the stage variables of an API Gateway event for the duration of its request."""
    _stage_variables.set((event or {}).get("stageVariables"))


def _stage_variable(name: str) -> str | None:
    return (_stage_variables.get() or {}).get(name) or None


def public_base_url() -> str:
    """Returns the base URL of the API's paths, without a trailing slash."""
    url = _find_public_base_url()
    if url is None:
        raise LookupError("neither PUBLIC_BASE_URL nor the stage variable publicBaseUrl is set")
    return url


def _find_public_base_url() -> str | None:
    return settings.public_base_url or _stage_variable("publicBaseUrl")


def error_page(code: str) -> str:
    """Returns the URL of an error code's entry in the reference.

    It is only a path before the first request of a snapshot, which has no address yet.
    """
    return f"{_find_public_base_url() or ''}/docs/errors#{code}"


def dashboard_base_url() -> str:
    """Returns the base URL of the web pages: the API's own unless another one is set."""
    return settings.dashboard_base_url or public_base_url()


def project_page(organization_slug: str, project_slug: str) -> str:
    """Returns the URL of the project's page. Its consent page is one level below, at `/consent`."""
    return f"{dashboard_base_url()}/organizations/{organization_slug}/projects/{project_slug}"


def consent_runtime_url(region: str, instance_id: str) -> str | None:
    """Returns the instance's URL at the consent runtime of that region, or None if the region has none."""
    base = next((it.runtime_url for it in settings.regions if it.id == region), None)
    return f"{base}/{instance_id}" if base else None


def consent_backend_url(region: str, instance_id: str) -> str:
    """Returns the URL below which `/configuration` is served: the region's runtime, or else this API.

    The latter also serves a project whose region this deployment doesn't offer any longer.
    """
    return consent_runtime_url(region, instance_id) or f"{public_base_url()}/v1/consent-instances/{instance_id}"


def sign_in_client_id() -> str | None:
    """Returns our client id at the sign-in issuer, or None if sign-in is disabled."""
    return settings.sign_in_client_id or _stage_variable("signInClientId")
