"""Attempts at opening an issue for a code finding: at most one at a time for an item, and there only while it is open.

A code host takes no idempotency key, and a list of its issues lags. So an attempt is `wanted` until a worker is about
to ask for the issue, and `sending` from before it asks until the issue is known to be there, or known not to be. From
`sending` nothing is asked for again: the issues made since are searched for the attempt's marker, for as long as one
may still turn up. Every state is written with what must have been so before, so two workers never both ask.
"""

import secrets
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from controlplane import clock
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

# How long an issue may take to turn up in the code host's list. Lags of minutes were seen; after this it is not there.
UNSETTLED_SECONDS = 600
# A sweep sends the message of an attempt again that should have been taken up, or settled, by then.
_TAKEN_UP_WITHIN_SECONDS = 60
_SETTLED_WITHIN_SECONDS = UNSETTLED_SECONDS + 300


class IssueExists(StoreError):
    """The item has its issue."""


class RoleLost(StoreError):
    """The caller has no role any more that may ask for an issue."""


class AttemptMoved(StoreError):
    """The attempt is not as it was read: another worker or a person has moved it on."""


class Attempt(NamedTuple):
    """marker: 128 random bits, in the issue's text and nowhere else outside.

    claim: who is sending. sent_at: Unix seconds at which it began, None while wanted.
    due_at: Unix seconds from which a sweep looks after it.
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
    """Why the code host made no issue for the attempt with that marker."""

    marker: str
    reason: str


class Standing(NamedTuple):
    """An item, its attempt while one is open, and how the last one was refused."""

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
    """Consistent, in one round trip. None where there is no such item."""
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
    """The open attempts of all organizations, by item. Eventually consistent."""
    page = table.query(keys.ISSUE_ATTEMPTS_PK, limit=limit, after=after)
    return AttemptPage([_read(item) for item in page.items], page.next_sk)


def resume_overdue(run: SweepRun, announce: Callable[[str], None]) -> None:
    """A step of the sweep: announces the item of each attempt that should have been taken up, or settled, by now."""
    for item in run.entries([keys.ISSUE_ATTEMPTS_PK]):
        with run.isolating(item):
            attempt = _read(item)
            if attempt.is_overdue:
                announce(attempt.item_id)
                run.finished += 1


# Asking for an issue


def begin_attempt(item_id: str, user_id: str) -> tuple[Attempt, bool]:
    """The item's open attempt, and whether it is a new one, whose message is to be sent.

    Written while the person has the role and the item has no issue. Raises IssueExists, RoleLost, inbox.UnknownItem.
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
    """The attempt in the hands of this worker alone, which may now ask for the issue once. Raises AttemptMoved."""
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
        if failure.item is None or failure.item.get("claim") != claim:  # else our own write, whose answer was lost
            raise AttemptMoved from None
        return _read(failure.item)


def want_again(attempt: Attempt, seconds: int) -> Attempt:
    """The attempt, whose issue was not made, ready to be sent once more.

    A sweep looks after it when the seconds have passed, and a minute more. Raises AttemptMoved.
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
        return _read(stands)  # our own write, whose answer was lost


def refuse(attempt: Attempt, reason: str) -> None:
    """Ends the attempt without an issue, and keeps why on the item. Raises AttemptMoved."""
    refusal = {"marker": attempt.marker, "reason": reason, "at": clock.timestamp()}
    legs: dict[str, Leg] = {
        "attempt": Delete(
            keys.issue_attempt(attempt.item_id),
            "#marker = :marker AND #state = :state AND (attribute_not_exists(#claim) OR #claim = :claim)",
            {"marker": attempt.marker, "state": attempt.state, "claim": attempt.claim},
        ),
        # No change that anybody waits for in a list, and none that a decision about the finding would overlook.
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
    """Records the issue on the item and ends the attempt, whatever its state: the issue is a fact.

    marker: that of the attempt which made it; None where a person says so, which ends any attempt.
    An item that has an issue keeps the one it has. Raises AttemptMoved where another attempt is open by now.
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
    """Ends an attempt of which a person knows that it has made no issue. Raises AttemptMoved."""
    refuse(attempt, "withdrawn")
