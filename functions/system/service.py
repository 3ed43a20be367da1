"""The rules of `system`: what a credential reaches, whether the database answers, and how to sign in."""

from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from controlplane.access import Principal, key_organization
from controlplane.addresses import public_base_url
from controlplane.errors import RouteNotFound, ServiceUnavailable
from controlplane.scopes import SCOPES
from controlplane.settings import settings
from controlplane.store import organizations
from controlplane.store.organizations import Membership
from controlplane.store.table import StoreError, table


class DatabaseUnreachable(ServiceUnavailable):
    message = "The database does not answer. Try again shortly."


def check_database() -> None:
    """Raises DatabaseUnreachable unless a read of the table succeeds."""
    try:
        table.ping()
    except (ClientError, BotoCoreError, StoreError) as error:
        raise DatabaseUnreachable(reason=type(error).__name__) from error


def describe_authorization_server() -> dict[str, Any]:
    """The authorization server metadata of RFC 8414, with the device grant of RFC 8628 section 4.

    Raises RouteNotFound where device authorization is switched off: there is no authorization server then.
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
        # There is no authorization endpoint. The member is required all the same.
        "response_types_supported": ["none"],
        "scopes_supported": sorted(SCOPES),
        "code_challenge_methods_supported": ["S256"],
        # Clients are public: they have an id and no secret.
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
    }


def list_reachable(principal: Principal) -> tuple[list[Membership], Membership | None]:
    """The organizations the credential reaches, by slug, and the one acted in where none is named."""
    if principal.user_id is None:
        own = key_organization(principal)
        return [own], own
    account = organizations.get_account(principal.user_id)
    return sorted(account.memberships, key=lambda membership: membership.slug), account.active
