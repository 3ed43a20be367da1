"""Authentication and counting in one write: an API key's or a user token's item, found by the hash of its secret.

The counter is exact per key and minute. Every attempt counts, refused ones too, and a counter that cannot be written
admits nobody.
"""

from contextlib import suppress
from typing import Any, NamedTuple

from controlplane import clock, ids
from controlplane.store import credential_index, keys
from controlplane.store.table import ConditionFailed, StoreError, Throttled, Update, table

_WINDOW_SECONDS = 60
_HOUR_SECONDS = 3600
_TURNS = 4


class UnknownSecret(StoreError):
    """No credential has that secret (any more)."""


class Counted(NamedTuple):
    """Where a request stands in its window: the limit per minute, the requests so far, the window's end (Unix time)."""

    limit: int
    hits: int
    resets_at: int

    @property
    def minute(self) -> int:
        """The window itself. It can be ahead of this instance's clock."""
        return self.resets_at // _WINDOW_SECONDS - 1


def count_key(digest: str) -> tuple[dict[str, Any], Counted]:
    """The API key behind the digest, counted. Raises UnknownSecret, Throttled.

    The first use in an hour is also noted on the item that lists show, so that `lastUsedAt` is right to the hour.
    """
    hour = int(clock.now()) // _HOUR_SECONDS
    item, counted, previous = _count(keys.key_secret(digest), hour)
    if previous is not None and previous["usedHour"] < hour:
        _note_use(item)
    return item, counted


def count_user_token(digest: str) -> tuple[dict[str, Any], Counted]:
    """The user token behind the digest, counted. The caller checks its expiry. Raises the same errors.

    The first use in an hour is also noted in the index of the person's credentials.
    """
    item, counted, previous = _count(keys.user_token(digest), int(clock.now()) // _HOUR_SECONDS)
    if previous is not None and item["expiresAt"] > clock.now():
        credential_index.note_use(item, previous["usedHour"])
    return item, counted


def mark_refused(item: dict[str, Any], minute: int, owner_id: str) -> None:
    """Notes on the credential that this owner's requests are used up in this minute."""
    _note_for(item, minute, "SET #refusedFor = :note", {"note": refusal_note(minute, owner_id)})


def mark_exact(item: dict[str, Any], minute: int, first_hit: int) -> None:
    """Notes on the credential that its requests of this minute are reserved one by one, from `first_hit` on."""
    _note_for(item, minute, "SET #exactWin = :minute, #exactFrom = :first", {"first": first_hit})


def _note_for(item: dict[str, Any], minute: int, change: str, values: dict[str, Any]) -> None:
    """The write that counts the credential's next request returns the note, so it costs no read.

    A note that could not be written is not an error: the next block of requests leads to it again.
    """
    key = keys.Key(item["pk"], item["sk"])
    with suppress(StoreError):
        table.update(Update(key, change, "#win = :minute", {**values, "minute": minute}))


def refusal_note(minute: int, owner_id: str) -> str:
    """The attribute `refusedFor` of a credential whose owner's requests are used up in this minute."""
    return f"{minute}#{owner_id}"


def _count(key: keys.Key, hour: int) -> tuple[dict[str, Any], Counted, dict[str, Any] | None]:
    """The item after the count, where it stands, and, where this request opened the window, the item before.

    In a minute already open it is one write, conditional on item and minute. When the minute has turned, the refused
    write hands back the item and a second one opens the new window; the loser of that race counts into it.
    """
    minute = int(clock.now()) // _WINDOW_SECONDS
    for _ in range(_TURNS):
        try:
            count = Update(key, "SET #hits = #hits + :one", "#win = :minute", {"one": 1, "minute": minute})
            return *_counted(table.update(count), minute), None
        except ConditionFailed as failure:
            if failure.item is None:
                raise UnknownSecret from None
            previous = failure.item
        if previous["win"] > minute:  # another clock is ahead of this one: its window is the current one
            minute = previous["win"]
            continue
        try:
            change = "SET #win = :minute, #hits = :one, #usedHour = :hour"
            when = "attribute_exists(pk) AND #win < :minute"
            item = table.update(Update(key, change, when, {"one": 1, "minute": minute, "hour": hour}))
            return *_counted(item, minute), previous
        except ConditionFailed as failure:
            if failure.item is None:
                raise UnknownSecret from None
    raise Throttled("window contended")


def _counted(item: dict[str, Any], minute: int) -> tuple[dict[str, Any], Counted]:
    return item, Counted(item["rateLimit"], item["hits"], (minute + 1) * _WINDOW_SECONDS)


def _note_use(item: dict[str, Any]) -> None:
    located = ids.locate(ids.KEY, item["keyId"])
    if located is None:
        raise LookupError("a key's item holds no key id")
    try:
        key = keys.api_key(*located)
        table.update(Update(key, "SET #lastUsedAt = :at", "attribute_exists(pk)", {"at": clock.timestamp()}))
    except (ConditionFailed, Throttled):
        pass  # revoked a moment ago, or busy: what a list shows of use is not worth refusing a request
