"""Where this API and its pages are reached: the addresses that answers and pages hold.

Behind a custom domain they are settings. Without one the functions cannot be told, since the gateway's address is made
after them: the stage carries it in a variable, which comes with every request. What the template's user pool calls the
pages comes the same way, since the pool is told that address.
"""

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from controlplane.settings import settings

_of_stage: ContextVar[Mapping[str, str] | None] = ContextVar("variables_of_stage", default=None)


def read_stage(event: dict[str, Any] | None) -> None:
    """Takes note of the stage variables of a gateway's event, for the request it carries."""
    _of_stage.set((event or {}).get("stageVariables"))


def _stage_variable(name: str) -> str | None:
    return (_of_stage.get() or {}).get(name) or None


def public_base_url() -> str:
    """The address that the paths of the API are relative to, without a slash at the end."""
    address = settings.public_base_url or _stage_variable("publicBaseUrl")
    if address is None:
        raise LookupError("neither PUBLIC_BASE_URL nor the stage variable publicBaseUrl says where this API is")
    return address


def dashboard_base_url() -> str:
    """The address of the pages for people: the API's own where no other is set."""
    return settings.dashboard_base_url or public_base_url()


def project_page(organization_slug: str, project_slug: str) -> str:
    """Where a person sees the project; its consent is shown one level below, at `/consent`."""
    return f"{dashboard_base_url()}/organizations/{organization_slug}/projects/{project_slug}"


def consent_runtime_url(instance_id: str) -> str | None:
    """Where the consent runtime serves an instance. None: this deployment was not told of a runtime."""
    base = settings.consent_runtime_base_url
    return f"{base}/{instance_id}" if base else None


def sign_in_client_id() -> str | None:
    """What the issuer that people sign in with calls these pages. None: nobody can sign in."""
    return settings.sign_in_client_id or _stage_variable("signInClientId")
