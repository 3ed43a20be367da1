"""Rate limits per person and per organization, across all of their credentials.

Each credential counts its requests in one write (`access.credentials`). An owner's counter with one more write per
request would double the cost of authentication. Instead, one request in a block reserves the whole block at the owner's
counter. Once the owner's limit is reached, the credential is marked, so that the write that counts its next request
also rejects it.
"""

from controlplane.access import credentials
from controlplane.access.credentials import Credential
from controlplane.api_keys.items import KeySecretItem
from controlplane.organizations import store as organizations
from controlplane.people.tokens import UserTokenItem
from controlplane.platform.core import clock
from controlplane.platform.core.errors import RateLimited
from controlplane.platform.core.plans import PLANS
from controlplane.platform.core.settings import settings
from controlplane.platform.table import rate
from controlplane.platform.table.rate import Counted

# A person's blocks are 1% of the limit: 12 requests at the default of 1,200, and 1 request below a limit of 200.
_BLOCKS_OF_PERSON = 100
# An organization's blocks are 0.1% of its limit: small enough that incomplete blocks hardly matter.
_BLOCKS_OF_ORGANIZATION = 1000


class PersonRateLimited(RateLimited):
    """All credentials of a person together exceeded the person's limit per minute."""

    message = (
        "Your account sent too many requests, all of its tokens and sessions together. "
        "Wait as long as the Retry-After header says."
    )


class OrganizationRateLimited(RateLimited):
    """All API keys and people of an organization together exceeded its limit per minute."""

    message = (
        "Your organization sent too many requests, all of its API keys and members together. "
        "Wait as long as the Retry-After header says."
    )


def check_person(token: UserTokenItem, counted: Counted) -> None:
    """Counts a request with a user token for its person. Raises PersonRateLimited, Throttled.

    The first request of each block reserves it, so that a person's requests are never undercounted. The others in the
    block don't wait for the reservation, so near the limit, requests that race with the first could exceed it. Once
    half of the limit is used, each request is therefore reserved individually.
    """
    user_id = token.user_id
    _check_mark(token, counted, user_id, PersonRateLimited)
    limit = settings.requests_per_minute_user
    is_exact = token.exact_win == counted.minute
    if is_exact and counted.hits < (token.exact_from or 0):
        return  # in a block that is already reserved
    block = 1 if is_exact else max(1, limit // _BLOCKS_OF_PERSON)
    if counted.hits % block != 1 % block:
        return
    reserved = rate.reserve_requests(user_id, counted.minute, block)
    if reserved > limit:
        _mark_and_refuse(token, counted, user_id, PersonRateLimited)
    if block > 1 and reserved > limit // 2:
        credentials.mark_exact(token, counted.minute, counted.hits + block)


def check_organization_of_key(key: KeySecretItem, counted: Counted) -> None:
    """Counts a request with an API key for its organization. Raises OrganizationRateLimited, Throttled."""
    organization_id = key.organization_id
    _check_mark(key, counted, organization_id, OrganizationRateLimited)
    limit = limit_of_plan(key.plan)
    if _reserve(organization_id, counted, limit) > limit:
        _mark_and_refuse(key, counted, organization_id, OrganizationRateLimited)


def check_organization_of_person(token: UserTokenItem, counted: Counted, organization_id: str) -> None:
    """Counts a person's request for the organization it acts in. Raises OrganizationRateLimited, Throttled.

    Neither token nor membership contains the organization's plan. It is read only if the lowest limit of all plans is
    exceeded.
    """
    _check_mark(token, counted, organization_id, OrganizationRateLimited)
    lowest = min(map(limit_of_plan, PLANS))
    hits = _reserve(organization_id, counted, lowest)
    if hits > lowest and hits > _limit_of(organization_id):
        _mark_and_refuse(token, counted, organization_id, OrganizationRateLimited)


def limit_of_plan(plan: str) -> int:
    """Returns the requests per minute for all keys and people of an organization: overload protection, not a quota."""
    return settings.organization_rate_factor * PLANS[plan].organization_rate


def _reserve(organization_id: str, counted: Counted, limit: int) -> int:
    """Returns the organization's requests so far, or 0 if this request doesn't complete a block."""
    block = max(1, limit // _BLOCKS_OF_ORGANIZATION)
    return 0 if counted.hits % block else rate.reserve_requests(organization_id, counted.minute, block)


def _limit_of(organization_id: str) -> int:
    organization = organizations.find_organization(organization_id)
    return limit_of_plan(organization.plan) if organization else 0


def _check_mark(credential: Credential, counted: Counted, owner_id: str, kind: type[RateLimited]) -> None:
    if credential.refused_for == credentials.refusal_note(counted.minute, owner_id):
        raise _error(counted, kind)


def _mark_and_refuse(credential: Credential, counted: Counted, owner_id: str, kind: type[RateLimited]) -> None:
    credentials.mark_refused(credential, counted.minute, owner_id)
    raise _error(counted, kind)


def _error(counted: Counted, kind: type[RateLimited]) -> RateLimited:
    return kind(counted.resets_at - int(clock.now()))
