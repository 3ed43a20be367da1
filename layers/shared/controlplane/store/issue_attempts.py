"""Attempts to open an issue for a code finding: at most one per item, stored only while it is pending.

Code hosts accept no idempotency key, and their issue lists lag. So an attempt is `wanted` until a worker is about to
send the request, and `sending` from then until the issue is known to exist or not to exist. In `sending`, the request
is never repeated: the issues created since are searched for the attempt's marker, for as long as one could still
appear. Every transition is conditional on the previous state, so two workers never both send the request.
"""

import secrets
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from controlplane.core import clock
from controlplane.store import inbox, keys
from controlplane.store.inbox import GithubIssue, InboxItem
from controlplane.store.organizations import role_check
from controlplane.store.sweep_runs import SweepRun
from controlplane.store.table import (
    Check,
    ConditionFailed,
    Delete,
    Leg,
    LegFailed,
    Put,
    StoreError,
    Update,
    table,
)

State = Literal["wanted", "sending"]

# How long an issue can take to appear in the code host's list. Lags of minutes were observed. After this time, the
# issue doesn't exist.
UNSETTLED_SECONDS = 600
# After these times, a sweep resends the message of an attempt that should have been started or settled.
_TAKEN_UP_WITHIN_SECONDS = 60
_SETTLED_WITHIN_SECONDS = UNSETTLED_SECONDS + 300


class IssueExists(StoreError):
    """The item already has an issue."""


class RoleLost(StoreError):
    """The caller no longer has a role that can request an issue."""


class AttemptMoved(StoreError):
    """The attempt changed since it was read, by another worker or a person."""


class Attempt(NamedTuple):
    """An attempt.

    marker: 128 random bits, published only in the issue's text.
    claim: identifies the worker that is sending. sent_at: Unix time when sending began, None while wanted.
    due_at: Unix time from which a sweep picks it up.
    """

    item_id: str
    marker: str
    state: State
    requested_by: str
    requested_at: str
    claim: str | None
    sent_at: int | None
    due_at: int

    @property
    def is_overdue(self) -> bool:
        return self.due_at <= clock.now()


class Refusal(NamedTuple):
    """The reason why the code host created no issue for the attempt with that marker."""

    marker: str
    reason: str


class Standing(NamedTuple):
    """An item, its pending attempt, if any, and the refusal of its last failed attempt, if any."""

    item: InboxItem
    attempt: Attempt | None
    refusal: Refusal | None


class AttemptPage(NamedTuple):
    attempts: list[Attempt]
    next_sk: str | None


def _read(item: dict[str, Any]) -> Attempt:
    return Attempt(
        item["sk"],
        item["marker"],
        item["state"],
        item["requestedBy"],
        item["requestedAt"],
        item.get("claim"),
        item.get("sentAt"),
        item["dueAt"],
    )


# Reading


def find_standing(item_id: str) -> Standing | None:
    """Returns the item's standing, or None if the item doesn't exist. Consistent, in one round trip."""
    item, attempt = table.batch_get([keys.inbox_item(*inbox.locate(item_id)), keys.issue_attempt(item_id)])
    if item is None:
        return None
    refused = item.get("issueRefusal")
    return Standing(
        inbox.read_item(item),
        _read(attempt) if attempt else None,
        Refusal(refused["marker"], refused["reason"]) if refused else None,
    )


def list_attempts(limit: int | None = None, after: str | None = None) -> AttemptPage:
    """Returns the pending attempts of all organizations, ordered by item. Eventually consistent."""
    page = table.query(keys.ISSUE_ATTEMPTS_PK, limit=limit, after=after)
    return AttemptPage([_read(item) for item in page.items], page.next_sk)


def resume_overdue(run: SweepRun, announce: Callable[[str], None]) -> None:
    """Runs a sweep step: announces the item of each overdue attempt."""
    for item in run.entries([keys.ISSUE_ATTEMPTS_PK]):
        with run.isolating(item):
            attempt = _read(item)
            if attempt.is_overdue:
                announce(attempt.item_id)
                run.finished += 1


# Asking for an issue


def begin_attempt(item_id: str, user_id: str) -> tuple[Attempt, bool]:
    """Returns the item's pending attempt, and True if it is new, in which case the caller must send its message.

    Creates one only if the user has the role and the item has no issue. Raises IssueExists, RoleLost,
    inbox.UnknownItem.
    """
    located = inbox.locate(item_id)
    item = {
        **keys.issue_attempt(item_id)._asdict(),
        "marker": secrets.token_hex(16),
        "state": "wanted",
        "requestedBy": user_id,
        "requestedAt": clock.timestamp(),
        "dueAt": int(clock.now()) + _TAKEN_UP_WITHIN_SECONDS,
    }
    legs: dict[str, Leg] = {
        "caller": role_check(user_id, located.organization_id, "admin"),
        "item": Check(keys.inbox_item(*located), "attribute_exists(pk) AND attribute_not_exists(#githubIssue)"),
        "attempt": Put(item, "attribute_not_exists(pk)"),
    }
    try:
        table.transact(legs)
    except LegFailed as refusal:
        if refusal.leg == "caller":
            raise RoleLost from None
        if refusal.leg == "item":
            raise (inbox.UnknownItem if refusal.item is None else IssueExists) from None
        open_attempt = _read(refusal.item or {})
        return open_attempt, open_attempt.marker == item["marker"]
    return _read(item), True


# Opening it


def start_sending(attempt: Attempt) -> Attempt:
    """Claims the attempt for this worker, which can then send the request once. Raises AttemptMoved."""
    claim, now = secrets.token_hex(8), int(clock.now())
    values = {
        "sending": "sending",
        "wanted": "wanted",
        "claim": claim,
        "now": now,
        "due": now + _SETTLED_WITHIN_SECONDS,
        "marker": attempt.marker,
    }
    change = Update(
        keys.issue_attempt(attempt.item_id),
        "SET #state = :sending, #claim = :claim, #sentAt = :now, #dueAt = :due",
        "#marker = :marker AND #state = :wanted",
        values,
    )
    try:
        return _read(table.update(change))
    except ConditionFailed as failure:
        if failure.item is None or failure.item.get("claim") != claim:  # else our own write: its response was lost
            raise AttemptMoved from None
        return _read(failure.item)


def want_again(attempt: Attempt, seconds: int) -> Attempt:
    """Returns an attempt, whose issue was not created, to `wanted`, so that it can be retried.

    A sweep picks it up a minute after `seconds` have passed. Raises AttemptMoved.
    """
    values = {
        "sending": "sending",
        "wanted": "wanted",
        "claim": attempt.claim,
        "due": int(clock.now()) + seconds + _TAKEN_UP_WITHIN_SECONDS,
    }
    change = Update(
        keys.issue_attempt(attempt.item_id),
        "SET #state = :wanted, #dueAt = :due REMOVE #sentAt",
        "#state = :sending AND #claim = :claim",
        values,
    )
    try:
        return _read(table.update(change))
    except ConditionFailed as failure:
        stands = failure.item
        if stands is None or stands["state"] != "wanted" or stands.get("claim") != attempt.claim:
            raise AttemptMoved from None
        return _read(stands)  # our own write: its response was lost


def refuse(attempt: Attempt, reason: str) -> None:
    """Ends the attempt without an issue, and stores the reason on the item. Raises AttemptMoved."""
    refusal = {"marker": attempt.marker, "reason": reason, "at": clock.timestamp()}
    legs: dict[str, Leg] = {
        "attempt": Delete(
            keys.issue_attempt(attempt.item_id),
            "#marker = :marker AND #state = :state AND (attribute_not_exists(#claim) OR #claim = :claim)",
            {"marker": attempt.marker, "state": attempt.state, "claim": attempt.claim},
        ),
        # Keeps the item's list position and version: lists don't show this, and it affects no decision on the finding.
        "item": Update(
            keys.inbox_item(*inbox.locate(attempt.item_id)),
            "SET #issueRefusal = :refusal",
            "attribute_exists(pk)",
            {"refusal": refusal},
        ),
    }
    try:
        table.transact(legs)
    except LegFailed:
        raise AttemptMoved from None


def complete(item_id: str, marker: str | None, issue: GithubIssue) -> None:
    """Records the issue on the item and ends the attempt in any state, because the issue exists.

    marker: the marker of the attempt that created it; None if a person reports the issue, which ends any attempt.
    Raises IssueExists if the item already has an issue, which it keeps, and AttemptMoved if another attempt is pending.
    """
    ends = Delete(keys.issue_attempt(item_id))
    if marker is not None:
        ends = Delete(ends.key, "attribute_not_exists(pk) OR #marker = :marker", {"marker": marker})
    recorded = inbox.moved(
        item_id,
        inbox.new_version(),
        fields={"githubIssue": {"number": issue.number, "url": issue.url, "createdAt": issue.created_at}},
        when="attribute_exists(pk) AND attribute_not_exists(#githubIssue)",
    )
    try:
        table.transact({"item": recorded, "attempt": ends})
    except LegFailed as refusal:
        if refusal.leg == "item" and refusal.item is not None:
            raise IssueExists from None
        raise AttemptMoved from None


def withdraw(attempt: Attempt) -> None:
    """Ends an attempt that, as a person has confirmed, created no issue. Raises AttemptMoved."""
    refuse(attempt, "withdrawn")
