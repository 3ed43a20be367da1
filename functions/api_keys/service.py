"""Business rules of `api_keys`: admins manage keys; creating and rolling need a plan with API access."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from controlplane.core.errors import ApiError, Forbidden, NotFound, PlanRequired
from controlplane.core.plans import API_KEYS_PER_ORGANIZATION
from controlplane.store import api_keys, organizations
from controlplane.store.api_keys import MintedKey
from controlplane.store.table import Leg, LegFailed, QueryPage

CREATED_FROM = "api"
_CALLER = "caller"


class PlanHasNoApiAccess(PlanRequired):
    message = "The organization's plan doesn't include API access. Keys require the Starter plan or higher."


class KeyLimitReached(ApiError):
    code = "KEY_LIMIT_REACHED"
    message = f"The organization has {API_KEYS_PER_ORGANIZATION} API keys. Delete one first, or roll one."

    def __init__(self) -> None:
        super().__init__(details={"limit": API_KEYS_PER_ORGANIZATION})


class UnknownKey(NotFound):
    message = "The organization has no such API key."


@contextmanager
def _refusals() -> Iterator[None]:
    """Translates the store's exceptions to API errors."""
    try:
        yield
    except api_keys.PlanHasNoKeys:
        raise PlanHasNoApiAccess from None
    except api_keys.KeyLimitReached:
        raise KeyLimitReached from None
    except api_keys.UnknownKey:
        raise UnknownKey from None
    except LegFailed as refusal:
        if refusal.leg != _CALLER:
            raise
        raise Forbidden from None  # the caller lost the role after this request was authorized


def list_keys(organization_id: str, limit: int, after: str | None) -> QueryPage:
    """Returns one page, newest first. Works on every plan, so that keys can be listed and deleted after a downgrade."""
    return api_keys.list_keys(organization_id, limit, after)


def create_key(organization_id: str, name: str, user_id: str, extra_legs: Mapping[str, Leg], secret: str) -> MintedKey:
    """Creates a key with this secret. Raises PlanHasNoApiAccess, KeyLimitReached, Forbidden."""
    legs = {**extra_legs, _CALLER: organizations.role_check(user_id, organization_id, "admin")}
    with _refusals():
        return api_keys.create_key(organization_id, name, user_id, CREATED_FROM, extra_legs=legs, secret=secret)


def roll_key(organization_id: str, key_id: str, user_id: str, extra_legs: Mapping[str, Leg], secret: str) -> MintedKey:
    """Replaces the key with a new one with this secret. Raises UnknownKey, PlanHasNoApiAccess, Forbidden."""
    legs = {**extra_legs, _CALLER: organizations.role_check(user_id, organization_id, "admin")}
    with _refusals():
        return api_keys.roll_key(organization_id, key_id, user_id, CREATED_FROM, extra_legs=legs, secret=secret)


def delete_key(organization_id: str, key_id: str, user_id: str) -> None:
    """Revokes the key. Raises UnknownKey, Forbidden."""
    with _refusals():
        api_keys.delete_key(
            organization_id, key_id, {_CALLER: organizations.role_check(user_id, organization_id, "admin")}
        )
