"""Authentication by bearer credential, and the rate limits of credentials, their people, and organizations.

Nothing is cached between requests, so a change of membership, role, key, or plan applies to the next request.

API keys and user tokens are found by the hash of their secret. One write reads the credential and counts the request,
exactly per credential and minute. Every attempt counts, including rejected ones; if it can't be counted, the request is
rejected. An owner's counter with one more write per request would double the cost of authentication. Instead, one
request in a block reserves the whole block at the owner's counter. Once the owner's limit is reached, the credential is
marked, so that the write that counts its next request also rejects it.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from controlplane.api_keys import usage as key_usage
from controlplane.api_keys.items import KeySecretItem
from controlplane.api_keys.usage import NOTHING, Closing
from controlplane.organizations import store as organizations
from controlplane.people import tokens as user_tokens
from controlplane.people.tokens import UserTokenItem
from controlplane.platform.core import clock, tokens
from controlplane.platform.core.errors import IncompleteCredential, InvalidToken, RateLimited, Unauthorized
from controlplane.platform.core.plans import PLANS
from controlplane.platform.core.roles import Role
from controlplane.platform.core.scopes import API_KEY_SCOPES, SCOPES
from controlplane.platform.core.settings import settings
from controlplane.platform.http.client_address import network_of
from controlplane.platform.table import keys, rate
from controlplane.platform.table.rate import Counted
from controlplane.platform.table.retry import WriteConflict, retry_on_conflict
from controlplane.platform.table.table import ConditionFailed, StoreError, Throttled, Unrecorded, Update, table

# An API key belongs to the organization, not to a person. Within its scopes it has the permissions of an admin.
_API_KEY_ROLE: Role = "admin"

_USER_TOKEN_PREFIXES = {settings.service_brand + tokens.ACCESS, settings.service_brand + tokens.SESSION}
_WINDOW_SECONDS = 60
_HOUR_SECONDS = 3600
# A person's blocks are 1% of the limit: 12 requests at the default of 1,200, and 1 request below a limit of 200.
_BLOCKS_OF_PERSON = 100
# An organization's blocks are 0.1% of its limit: small enough that incomplete blocks hardly matter.
_BLOCKS_OF_ORGANIZATION = 1000

# The last minute with malformed credentials and their number, by address.
_malformed: dict[str, tuple[int, int]] = {}

type Credential = KeySecretItem | UserTokenItem


class UnknownSecret(StoreError):
    """No credential has that secret, or it was revoked or has expired."""


class TooManyRejected(RateLimited):
    """The address sent too many rejected credentials."""

    message = "Too many invalid credentials came from your address. Wait as long as the Retry-After header says."


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


@dataclass(slots=True)
class Principal:
    """The authenticated caller: a person with a token, or an API key. Fields of the other kind are None."""

    kind: Literal["session", "api_key", "oauth"]
    scopes: tuple[str, ...]
    user_id: str | None = None
    key_id: str | None = None
    organization_id: str | None = None
    created_by: str | None = None
    token: UserTokenItem | None = None
    key: KeySecretItem | None = None


def authenticate(authorization: str | None, address: str) -> tuple[Principal, Counted]:
    """Authenticates an Authorization header and counts the request, in one write. Raises Unauthorized, RateLimited.

    A secret with the wrong format or checksum is rejected without accessing the table: with IncompleteCredential if it
    begins like one of ours. Any other rejected bearer token is an InvalidToken. Rejected credentials count against the
    client's address; beyond its limit, raises TooManyRejected. A valid credential is never counted there, and never
    rejected because of others from the same address.
    """
    if not authorization:
        raise Unauthorized
    secret = _bearer_secret(authorization)
    prefix = tokens.prefix_of(secret)
    if prefix not in {settings.service_brand, *_USER_TOKEN_PREFIXES}:
        count_malformed(address)
        # A comma joins the values of repeated headers.
        is_incomplete = "," not in secret and tokens.is_incomplete(secret)
        raise IncompleteCredential if is_incomplete else InvalidToken if secret else Unauthorized
    authenticate_credential = authenticate_api_key if prefix == settings.service_brand else _authenticate_user_token
    try:
        return authenticate_credential(tokens.digest(secret))
    except UnknownSecret:
        _count_unknown(address)
        raise InvalidToken from None
    except Throttled as error:
        raise RateLimited(1, reason=str(error)) from error


def _bearer_secret(authorization: str) -> str:
    """Returns an empty text for another scheme."""
    scheme, _, secret = authorization.partition(" ")
    return secret.strip(" ") if scheme.lower() == "bearer" else ""


def check_rate(principal: Principal, counted: Counted) -> None:
    """Raises RateLimited if the credential, its person, or an API key's organization has exceeded its limit.

    Rejected requests count too. Those beyond the credential's own limit count only against the credential.
    """
    if counted.hits > counted.limit:
        raise RateLimited(counted.resets_at - int(clock.now()))
    if principal.token is not None:
        _check_person(principal.token, counted)
    elif principal.key is not None:
        _check_organization_of_key(principal.key, counted)


def key_organization(principal: Principal) -> organizations.Membership:
    """Returns an API key's organization from the item that authentication read. Raises LookupError for a person."""
    key = principal.key
    if key is None:
        raise LookupError("a person's token belongs to no organization")
    return organizations.Membership(
        organization_id=key.organization_id, slug=key.slug, name=key.name, role=_API_KEY_ROLE
    )


def _count_unknown(address: str) -> None:
    """Counts a well-formed credential that doesn't exist or has expired. Raises TooManyRejected, Throttled.

    Checking it has read the table, so it is also counted there, across all Lambda environments.
    """
    counted = rate.count_address("rejected", network_of(address), settings.rejected_credentials_per_minute)
    if counted.hits > counted.limit:
        raise TooManyRejected(counted.resets_at - int(clock.now()))


def count_malformed(address: str) -> None:
    """Counts a malformed credential in this environment's memory, so that it costs no write. Raises TooManyRejected."""
    counted = rate.count_in_memory(_malformed, network_of(address), settings.rejected_credentials_per_minute)
    if counted.hits > counted.limit:
        raise TooManyRejected(counted.resets_at - int(clock.now()))


def authenticate_api_key(digest: str) -> tuple[Principal, Counted]:
    """Counts a request of the API key with that digest.

    The first use in an hour is also recorded on the listed item, so that `lastUsedAt` is accurate to the hour. A rolled
    key isn't listed. Raises UnknownSecret, Throttled.
    """
    hour = int(clock.now()) // _HOUR_SECONDS
    item, counted, previous = _count_use(keys.key_secret(digest), hour, key_usage.closing)
    key = KeySecretItem.from_item(item)
    if key.restrictions.has_expired:
        raise UnknownSecret
    if key.successor is None and previous is not None and previous["usedHour"] < hour:
        _note_key_use(key)
    scopes = API_KEY_SCOPES if key.restrictions.scopes is None else key.restrictions.scopes
    principal = Principal(
        "api_key",
        scopes,
        key_id=key.key_id,
        organization_id=key.organization_id,
        created_by=key.created_by,
        key=key,
    )
    return principal, counted


def _authenticate_user_token(digest: str) -> tuple[Principal, Counted]:
    """Counts a request of the user token with that digest. Raises UnknownSecret, Throttled.

    The first use in an hour is also recorded in the index of the user's credentials.
    """
    item, counted, previous = _count_use(keys.user_token(digest), int(clock.now()) // _HOUR_SECONDS)
    token = UserTokenItem.from_item(item)
    if token.expires_at <= clock.now():
        raise UnknownSecret
    if previous is not None:
        user_tokens.note_use(token, previous["usedHour"])
    # A session has every scope, also those that came after its sign-in.
    scopes = SCOPES if token.kind == "session" else token.scopes
    return Principal(token.kind, tuple(scopes), user_id=token.user_id, token=token), counted


def mark_exact(token: UserTokenItem, minute: int, first_hit: int) -> None:
    """Records on the credential that its requests in this minute are reserved one by one from `first_hit` on."""
    _note_for(token, minute, "SET #exactWin = :minute, #exactFrom = :first", {"first": first_hit})


def _note_for(credential: Credential, minute: int, change: str, values: dict[str, Any]) -> None:
    """Writes a note, which the count of the credential's next request returns, so that it costs no read.

    A failed write is ignored: the next block of requests triggers it again.
    """
    with suppress(StoreError):
        table.update(Update(credential.key, change, "#win = :minute", {**values, "minute": minute}), Unrecorded.COUNTER)


def _refusal_note(minute: int, owner_id: str) -> str:
    """Returns the attribute `refusedFor` of a credential whose owner's limit for this minute is used up."""
    return f"{minute}#{owner_id}"


def _count_use(
    key: keys.Key, hour: int, close: Callable[[dict[str, Any]], Closing] = lambda _: NOTHING
) -> tuple[dict[str, Any], Counted, dict[str, Any] | None]:
    """Counts a request. Returns the item, its window, and, if this request opened the window, the previous item.

    close: returns what else to write when the window before ends.

    In an open window, this takes one write, conditional on item and minute. In a new minute, the failed write returns
    the item and a second write opens the new window. The loser of that race counts in the winner's window.
    """
    minute = int(clock.now()) // _WINDOW_SECONDS

    def attempt() -> tuple[dict[str, Any], Counted, dict[str, Any] | None]:
        nonlocal minute
        try:
            count = Update(key, "SET #hits = #hits + :one", "#win = :minute", {"one": 1, "minute": minute})
            return *_counted(table.update(count, Unrecorded.COUNTER), minute), None
        except ConditionFailed as failure:
            if failure.item is None:
                raise UnknownSecret from None
            previous = failure.item
        if previous["win"] > minute:  # another instance's clock is ahead: its window is the current one
            minute = previous["win"]
            raise WriteConflict
        try:
            ended = close(previous)
            change = f"SET #win = :minute, #hits = :one, #usedHour = :hour{ended.set_part}{ended.remove_part}"
            values = {"one": 1, "minute": minute, "hour": hour, "previous": previous["win"], **ended.values}
            item = table.update(Update(key, change, "#win = :previous", values), Unrecorded.COUNTER)
            return *_counted(item, minute), previous
        except ConditionFailed as lost:
            if lost.item is None:
                raise UnknownSecret from None
            raise WriteConflict from None

    return retry_on_conflict(attempt, "the rate window")


def _counted(item: dict[str, Any], minute: int) -> tuple[dict[str, Any], Counted]:
    return item, Counted(item["rateLimit"], item["hits"], (minute + 1) * _WINDOW_SECONDS)


def _minute_of(counted: Counted) -> int:
    """Returns the window's minute since the epoch. It can be ahead of this instance's clock."""
    return counted.resets_at // _WINDOW_SECONDS - 1


def _note_key_use(used: KeySecretItem) -> None:
    """Records the use on the listed item."""
    at = {"at": clock.timestamp()}
    note = Update(keys.api_key(*used.key_id.location), "SET #lastUsedAt = :at", "attribute_exists(pk)", at)
    # If the key was just revoked, or the write is throttled, the request goes on without the last use in lists.
    with suppress(ConditionFailed, Throttled):
        table.update(note, Unrecorded.COUNTER)


def _check_person(token: UserTokenItem, counted: Counted) -> None:
    """Counts a request with a user token for its person. Raises PersonRateLimited, Throttled.

    The first request of each block reserves it, so that a person's requests are never undercounted. The others in the
    block don't wait for the reservation, so near the limit, requests that race with the first could exceed it. Once
    half of the limit is used, each request is therefore reserved individually.
    """
    user_id = token.user_id
    _check_mark(token, counted, user_id, PersonRateLimited)
    limit = settings.requests_per_minute_user
    is_exact = token.exact_win == _minute_of(counted)
    if is_exact and counted.hits < (token.exact_from or 0):
        return  # in a block that is already reserved
    block = 1 if is_exact else max(1, limit // _BLOCKS_OF_PERSON)
    if counted.hits % block != 1 % block:
        return
    reserved = rate.reserve_requests(user_id, _minute_of(counted), block)
    if reserved > limit:
        _mark_and_refuse(token, counted, user_id, PersonRateLimited)
    if block > 1 and reserved > limit // 2:
        mark_exact(token, _minute_of(counted), counted.hits + block)


def _check_organization_of_key(key: KeySecretItem, counted: Counted) -> None:
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
    return 0 if counted.hits % block else rate.reserve_requests(organization_id, _minute_of(counted), block)


def _limit_of(organization_id: str) -> int:
    organization = organizations.find_organization(organization_id)
    return limit_of_plan(organization.plan) if organization else 0


def _check_mark(credential: Credential, counted: Counted, owner_id: str, kind: type[RateLimited]) -> None:
    if credential.refused_for == _refusal_note(_minute_of(counted), owner_id):
        raise _error(counted, kind)


def _mark_and_refuse(credential: Credential, counted: Counted, owner_id: str, kind: type[RateLimited]) -> None:
    """Records on the credential that this owner's limit for this minute is used up, and raises the error."""
    note = {"note": _refusal_note(_minute_of(counted), owner_id)}
    _note_for(credential, _minute_of(counted), "SET #refusedFor = :note", note)
    raise _error(counted, kind)


def _error(counted: Counted, kind: type[RateLimited]) -> RateLimited:
    return kind(counted.resets_at - int(clock.now()))
