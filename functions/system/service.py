"""Business rules of `system`: reachable organizations, and the discovery documents."""

from typing import Any, get_args

from controlplane.access.authentication import Principal, key_organization
from controlplane.feedback import store as feedback
from controlplane.organizations import store as organizations
from controlplane.organizations.store import Membership
from controlplane.platform.core import clock
from controlplane.platform.core.errors import RouteNotFound, known
from controlplane.platform.core.scopes import SCOPES
from controlplane.platform.core.settings import settings
from controlplane.platform.core.urls import public_base_url

# RFC 9116 recommends less than a year.
_CONTACT_SECONDS = 180 * 86_400


def describe_authorization_server() -> dict[str, Any]:
    """Returns the authorization server metadata (RFC 8414), with the device grant (RFC 8628 section 4).

    Raises RouteNotFound if device authorization is disabled, because there is no authorization server then.
    """
    if not settings.device_authorization_enabled:
        raise RouteNotFound
    issuer = public_base_url()
    return {
        "issuer": issuer,
        "device_authorization_endpoint": f"{issuer}/v1/auth/device/code",
        "token_endpoint": f"{issuer}/v1/auth/device/token",
        "revocation_endpoint": f"{issuer}/v1/auth/device/revoke",
        "grant_types_supported": ["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"],
        # Required by RFC 8414 although there is no authorization endpoint.
        "response_types_supported": ["none"],
        "scopes_supported": sorted(SCOPES),
        "code_challenge_methods_supported": ["S256"],
        # Clients are public: they have an ID but no secret.
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "service_documentation": f"{issuer}/docs",
    }


def describe_protected_resource() -> dict[str, Any]:
    """Returns the protected resource metadata (RFC 9728), which names the authorization server of this API.

    Raises RouteNotFound if device authorization is disabled, because there is no authorization server then.
    """
    server = describe_authorization_server()
    return {
        "resource": server["issuer"],
        "authorization_servers": [server["issuer"]],
        "bearer_methods_supported": ["header"],
        "resource_name": settings.service_brand.capitalize(),
        "resource_documentation": server["service_documentation"],
    }


def describe_security_contact() -> str:
    """Returns whom to tell about a vulnerability (RFC 9116). Raises RouteNotFound without a contact."""
    contact = known(settings.contact, RouteNotFound)
    expires = clock.timestamp(clock.now() + _CONTACT_SECONDS)
    address = contact if "://" in contact else f"mailto:{contact}"
    canonical = f"{public_base_url()}/.well-known/security.txt"
    return f"Contact: {address}\nExpires: {expires}\nPreferred-Languages: en\nCanonical: {canonical}\n"


def describe_feedback() -> dict[str, Any]:
    """Returns the feedback.now discovery document: what to report, where, how often, and how."""
    base, name = public_base_url(), settings.service_brand
    return {
        "schema_version": "1.0",
        "name": name,
        "description": f"Reports on the {name} API, its documentation and its tools, from agents and people.",
        "endpoints": {"feedback": f"{base}/v1/feedback"},
        "categories": [*get_args(feedback.Category)],
        "surfaces": [*get_args(feedback.Surface)],
        "rate_limits": {
            "submissions_per_hour": feedback.NEW_PER_HOUR,
            "window": "UTC clock hour",
            "counted_by": "the person behind a user token, the organization behind an API key",
            "exceeded": "429 with Retry-After",
        },
        "auth": {
            "required": True,
            "schemes": ["bearer"],
            "scopes": [],
            "authorization_server": f"{base}/.well-known/oauth-authorization-server",
        },
        "field_limits": {
            name: {"required": name == "message", "min_length": 1, "max_length": longest}
            for name, longest in feedback.FIELD_LIMITS.items()
        },
        "deduplication": {
            "window": "UTC day",
            "scope": "caller and all fields, after trimming; leaving out surface is the same as sending other",
            "repeated": "200 with the first report's reference; doesn't count as a new report",
        },
        "guidance": {
            "report": [
                "an unexpected failure",
                "documentation that misleads",
                "a capability that is missing",
                "a workaround you had to find",
            ],
            "rules": [
                "Send one report for each distinct issue.",
                "Say what you expected, what happened, and the smallest way to see it again.",
                "If the report is about a response, send its X-Request-Id in requestId.",
                "Keep the reference that the response returns. Quote it to ask about the report.",
            ],
            "never_include": [
                "credentials",
                "personal data",
                "payloads of customers",
                "full transcripts",
            ],
            "documentation": f"{base}/docs",
        },
    }


def list_reachable(principal: Principal) -> tuple[list[Membership], Membership | None]:
    """Returns the organizations the credential can access, sorted by slug, and the default one or None."""
    if principal.user_id is None:
        own = key_organization(principal)
        return [own], own
    account = organizations.get_account(principal.user_id)
    return sorted(account.memberships, key=lambda membership: membership.slug), account.active
