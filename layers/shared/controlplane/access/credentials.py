"""Authentication and request counting in one write. API keys and user tokens are found by the hash of their secret.

The counter is exact per credential and minute. Every attempt counts, including rejected ones. If the counter can't be
written, the request is rejected.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from controlplane.api_keys import usage as key_usage
from controlplane.api_keys.items import KeySecretItem
from controlplane.api_keys.usage import NOTHING, Closing
from controlplane.people import tokens as user_tokens
from controlplane.people.tokens import UserTokenItem
from controlplane.platform.core import clock
from controlplane.platform.table import keys
from controlplane.platform.table.rate import Counted
from controlplane.platform.table.retry import WriteConflict, retry_on_conflict
from controlplane.platform.table.table import ConditionFailed, StoreError, Throttled, Unrecorded, Update, table

_WINDOW_SECONDS = 60
_HOUR_SECONDS = 3600

type Credential = KeySecretItem | UserTokenItem


class UnknownSecret(StoreError):
    """No credential has that secret, or it was revoked."""


def authenticate_api_key(digest: str) -> tuple[KeySecretItem, Counted]:
    """Counts a request of the API key with that digest, and returns the key. The caller checks its restrictions.

    The first use in an hour is also recorded on the listed item, so that `lastUsedAt` is accurate to the hour. A rolled
    key isn't listed. Raises UnknownSecret, Throttled.
    """
    hour = int(clock.now()) // _HOUR_SECONDS
    item, counted, previous = _count(keys.key_secret(digest), hour, key_usage.closing)
    key = KeySecretItem.from_item(item)
    is_listed = key.successor is None and not key.restrictions.has_expired
    if is_listed and previous is not None and previous["usedHour"] < hour:
        _note_key_use(key)
    return key, counted


def authenticate_user_token(digest: str) -> tuple[UserTokenItem, Counted]:
    """Counts a request of the user token with that digest, and returns the token. The caller checks its expiry.

    The first use in an hour is also recorded in the index of the user's credentials. Raises UnknownSecret, Throttled.
    """
    item, counted, previous = _count(keys.user_token(digest), int(clock.now()) // _HOUR_SECONDS)
    token = UserTokenItem.from_item(item)
    if previous is not None and token.expires_at > clock.now():
        user_tokens.note_use(token, previous["usedHour"])
    return token, counted


def mark_refused(credential: Credential, minute: int, owner_id: str) -> None:
    """Records on the credential that this owner's limit for this minute is used up."""
    _note_for(credential, minute, "SET #refusedFor = :note", {"note": refusal_note(minute, owner_id)})


def mark_exact(token: UserTokenItem, minute: int, first_hit: int) -> None:
    """Records on the credential that its requests in this minute are reserved one by one from `first_hit` on."""
    _note_for(token, minute, "SET #exactWin = :minute, #exactFrom = :first", {"first": first_hit})


def _note_for(credential: Credential, minute: int, change: str, values: dict[str, Any]) -> None:
    """Writes a note, which the count of the credential's next request returns, so that it costs no read.

    A failed write is ignored: the next block of requests triggers it again.
    """
    with suppress(StoreError):
        table.update(Update(credential.key, change, "#win = :minute", {**values, "minute": minute}), Unrecorded.COUNTER)


def refusal_note(minute: int, owner_id: str) -> str:
    """Returns the attribute `refusedFor` of a credential whose owner's limit for this minute is used up."""
    return f"{minute}#{owner_id}"


def _count(
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


def _note_key_use(used: KeySecretItem) -> None:
    """Records the use on the listed item."""
    at = {"at": clock.timestamp()}
    note = Update(keys.api_key(*used.key_id.location), "SET #lastUsedAt = :at", "attribute_exists(pk)", at)
    # If the key was just revoked, or the write is throttled, the request goes on without the last use in lists.
    with suppress(ConditionFailed, Throttled):
        table.update(note, Unrecorded.COUNTER)
