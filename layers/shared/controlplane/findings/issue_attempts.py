"""The life cycle of an attempt to open a GitHub issue for a code finding, or to link an existing one.

An item has at most one attempt, stored until its outcome is known. The steps, in order:

1. `begin_attempt`: a user requests an issue, and the attempt is stored as `wanted`. `send_message` starts the worker
   `issue_creation`.
2. `start_sending`: a worker claims the attempt, which is now `sending`, and then requests the issue from GitHub, once.
3. The worker learns the outcome from the response, or by searching the repository's issues for the attempt's marker.
   `complete` records the issue, `refuse` the reason why it wasn't created, and either ends the attempt. `retry_later`
   returns it to `wanted`: no issue was created, but a later request may succeed.
4. `find_progress`: the user's request, which waits for the outcome, reads it.

An attempt to link an existing issue is `linking` until the worker has looked it up. It sends nothing that would have to
be sent once, so it never is `sending`.

An attempt stays in the table until its outcome is known, so it is its own outbox: if its message was never sent, or had
no result, the sweep sends it again.

Code hosts accept no idempotency key, and their issue lists lag. So while an attempt is `sending`, the request is never
repeated: the issues created since are searched, for as long as one could still appear. Every transition is conditional
on the previous state, so two workers never both send the request. If a worker dies or a message is lost, a sweep sends
the message of the overdue attempt again.
"""

import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

from controlplane.findings import inbox
from controlplane.findings.items import GithubIssue, InboxItem
from controlplane.organizations.store import role_check
from controlplane.platform.core import clock
from controlplane.platform.core.actions import Action
from controlplane.platform.core.errors import RoleRequired, known
from controlplane.platform.core.ids import InboxItemId, RepositoryId
from controlplane.platform.queues.messages import CreateIssue, Queue, send
from controlplane.platform.queues.sweep_runs import SweepRun
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.legs import Check, Delete, Leg, Put, Recorded, Unrecorded, Update, present
from controlplane.platform.table.retry import ConditionFailed, LegFailed, StoreError, WriteConflict, retry_on_conflict
from controlplane.platform.table.stored import SPARSE, StoredItem, to_map
from controlplane.platform.table.table import table

State = Literal["wanted", "sending", "linking"]

# How long an issue can take to appear in the code host's list. Lags of minutes were observed. After this time, the
# issue doesn't exist.
UNSETTLED_SECONDS = 600
# After these times, a sweep resends the message of an attempt that should have been started or settled.
_TAKEN_UP_WITHIN_SECONDS = 60
_SETTLED_WITHIN_SECONDS = UNSETTLED_SECONDS + 300
# How long a message that was sent again may wait for others of its organization, before it counts as lost.
_RESENT_SECONDS = 600


class IssueExists(StoreError):
    """The item already has an issue."""


class RepositoryUnlinked(StoreError):
    """The finding's repository was disconnected, or is linked to no project."""


class RoleLost(RoleRequired):
    """The caller no longer has a role that can request an issue."""


class AttemptChanged(StoreError):
    """The attempt was changed or ended since it was read, by another worker or a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptItem(StoredItem):
    """An attempt.

    marker: 128 random bits, published only in the issue's text.
    claim: identifies the worker that is sending. sent_at: Unix time when sending began, None while wanted.
    due_at: Unix time from which a sweep picks it up. existing: the number of the issue to link; None opens one.
    """

    item_id: InboxItemId
    marker: str
    state: State
    requested_by: str
    requested_at: str
    claim: Annotated[str | None, SPARSE] = None
    sent_at: Annotated[int | None, SPARSE] = None
    due_at: int
    existing: Annotated[int | None, SPARSE] = None

    @property
    def key(self) -> Key:
        return keys.issue_attempt(self.item_id)

    @property
    def is_overdue(self) -> bool:
        return self.due_at <= clock.now()


def _recorded(action: Action, item_id: InboxItemId, after: Mapping[str, Any]) -> Recorded:
    return Recorded(action, item_id.organization_id, item_id, after=after)


# 1. A user requests an issue


def begin_attempt(
    item_id: InboxItemId, user_id: str, existing: int | None = None, *, repository_id: RepositoryId | None = None
) -> tuple[AttemptItem, bool]:
    """Returns the item's pending attempt, and True if it is new, in which case the caller must send its message.

    Creates one only if the user has the role, the repository is linked to a project, and the item has no issue.
    existing: see AttemptItem. repository_id: None doesn't check the repository.
    Raises IssueExists, RoleLost, RepositoryUnlinked, inbox.UnknownItem.
    """
    attempt = AttemptItem(
        item_id=item_id,
        marker=secrets.token_hex(16),
        state="wanted" if existing is None else "linking",
        requested_by=user_id,
        requested_at=clock.timestamp(),
        due_at=int(clock.now()) + _TAKEN_UP_WITHIN_SECONDS,
        existing=existing,
    )
    legs: dict[str, Leg] = {
        "caller": role_check(user_id, item_id.organization_id, "admin"),
        **(
            {"repository": Check(keys.repository(*repository_id.location), "attribute_exists(#links[0])")}
            if repository_id is not None
            else {}
        ),
        "item": Check(
            keys.inbox_item(*item_id.location), "attribute_exists(pk) AND attribute_not_exists(#githubIssue)"
        ),
        "attempt": Put(attempt.to_item(), "attribute_not_exists(pk)"),
    }
    try:
        table.transact(legs, _recorded(Action.ISSUE_REQUEST, item_id, present(existing=existing)))
    except LegFailed as failure:
        if failure.leg != "attempt":
            item_error = inbox.UnknownItem if failure.item is None else IssueExists
            raise failure.mapped({"caller": RoleLost, "repository": RepositoryUnlinked}, item_error) from None
        pending = AttemptItem.from_item(failure.item or {})
        return pending, pending.marker == attempt.marker  # its own marker: the response to our write was lost
    return attempt, True


# 2. A worker claims the attempt and sends the request


def start_sending(attempt: AttemptItem) -> AttemptItem:
    """Claims the attempt for this worker, which can then send the request once. Raises AttemptChanged."""
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
        attempt.key,
        "SET #state = :sending, #claim = :claim, #sentAt = :now, #dueAt = :due",
        "#marker = :marker AND #state = :wanted",
        values,
    )
    try:
        return AttemptItem.from_item(table.update(change, Unrecorded.LEASE))
    except ConditionFailed as failure:
        if failure.item is None or failure.item.get("claim") != claim:  # else our own write: its response was lost
            raise AttemptChanged from None
        return AttemptItem.from_item(failure.item)


# 3. The outcome


def retry_later(attempt: AttemptItem, seconds: int) -> AttemptItem:
    """Returns an attempt, whose issue was not created, to `wanted`, so that it can be retried.

    A sweep picks it up a minute after `seconds` have passed. Raises AttemptChanged.
    """
    values = {
        "sending": "sending",
        "wanted": "wanted",
        "claim": attempt.claim,
        "due": int(clock.now()) + seconds + _TAKEN_UP_WITHIN_SECONDS,
    }
    change = Update(
        attempt.key,
        "SET #state = :wanted, #dueAt = :due REMOVE #sentAt",
        "#state = :sending AND #claim = :claim",
        values,
    )
    try:
        return AttemptItem.from_item(table.update(change, Unrecorded.PROGRESS))
    except ConditionFailed as failure:
        current = AttemptItem.from_item(failure.item) if failure.item else None
        if current is None or current.state != "wanted" or current.claim != attempt.claim:
            raise AttemptChanged from None
        return current  # our own write: its response was lost


def put_off(attempt: AttemptItem, seconds: int) -> None:
    """Keeps the sweep from resending the attempt's message until a minute after `seconds` have passed.

    Does nothing if the attempt has changed.
    """
    due = int(clock.now()) + seconds + _TAKEN_UP_WITHIN_SECONDS
    values = {"marker": attempt.marker, "state": attempt.state, "due": due}
    key = attempt.key
    with suppress(ConditionFailed):
        table.update(
            Update(key, "SET #dueAt = :due", "#marker = :marker AND #state = :state", values), Unrecorded.PROGRESS
        )


def refuse(attempt: AttemptItem, reason: str) -> None:
    """Ends the attempt without an issue, and stores the reason on the item. Raises AttemptChanged."""
    refusal = {"marker": attempt.marker, "reason": reason, "at": clock.timestamp()}
    legs: dict[str, Leg] = {
        "attempt": Delete(
            attempt.key,
            "#marker = :marker AND #state = :state AND (attribute_not_exists(#claim) OR #claim = :claim)",
            {"marker": attempt.marker, "state": attempt.state, "claim": attempt.claim},
        ),
        # Keeps the item's list position and version: lists don't show this, and it affects no decision on the finding.
        "item": Update(
            keys.inbox_item(*attempt.item_id.location),
            "SET #issueRefusal = :refusal",
            "attribute_exists(pk)",
            {"refusal": refusal},
        ),
    }
    record = _recorded(Action.ISSUE_REFUSE, attempt.item_id, {"reason": reason})
    table.transact(legs, record, otherwise=AttemptChanged)


def complete(
    item_id: InboxItemId,
    marker: str | None,
    issue: GithubIssue,
    repository_id: RepositoryId | None = None,
) -> None:
    """Records the issue on the item and ends the attempt in any state, because the issue exists.

    marker: the marker of the attempt that created it; None if a person reports the issue, which ends any attempt.
    repository_id: the issue's repository, so that the item says when the issue is closed.
    Raises IssueExists if the item already has an issue, which it keeps, and AttemptChanged if another attempt is
    pending or the item doesn't exist.
    """
    ends = Delete(keys.issue_attempt(item_id))
    if marker is not None:
        ends = Delete(ends.key, "attribute_not_exists(pk) OR #marker = :marker", {"marker": marker})

    def record() -> None:
        existing = known(table.get(keys.inbox_item(*item_id.location)), AttemptChanged)
        item = InboxItem.from_item(existing)
        recorded = inbox.update_leg(
            item,
            inbox.new_version(),
            fields={"githubIssue": to_map(issue)},
            when="#version = :read AND attribute_not_exists(#githubIssue)",
            values={"read": item.version},
        )
        try:
            table.transact(
                {"item": recorded, "attempt": ends, **_opened(repository_id, issue.number, item_id)},
                _recorded(Action.ISSUE_RECORD, item_id, {"number": issue.number, "url": issue.url}),
            )
        except LegFailed as failure:
            if failure.leg != "item" or failure.item is None:
                raise AttemptChanged from None
            raise (IssueExists if failure.item.get("githubIssue") else WriteConflict) from None

    retry_on_conflict(record, "the item")


# 4. The user's request reads the outcome


class Refusal(NamedTuple):
    """The reason why the code host created no issue for the attempt with that marker."""

    marker: str
    reason: str


class IssueProgress(NamedTuple):
    """An item, its pending attempt, if any, and the refusal of its last failed attempt, if any."""

    item: InboxItem
    attempt: AttemptItem | None
    refusal: Refusal | None


def find_progress(item_id: InboxItemId) -> IssueProgress | None:
    """Returns the item and its attempt, or None if the item doesn't exist. Consistent, in one round trip."""
    item, attempt = table.batch_get([keys.inbox_item(*item_id.location), keys.issue_attempt(item_id)])
    if item is None:
        return None
    refusal = item.get("issueRefusal")
    return IssueProgress(
        InboxItem.from_item(item),
        AttemptItem.from_item(attempt) if attempt else None,
        Refusal(refusal["marker"], refusal["reason"]) if refusal else None,
    )


# Operators


def list_attempts() -> list[AttemptItem]:
    """Returns the pending attempts of all organizations, ordered by item. Eventually consistent."""
    return [AttemptItem.from_item(item) for item in table.query(keys.ISSUE_ATTEMPTS_PK).items]


# Messages


def send_message(item_id: InboxItemId) -> None:
    """Sends the message for the item's attempt. Raises Unreachable."""
    send(Queue.ISSUE_CREATION, CreateIssue(item_id=item_id).model_dump(by_alias=True))


def resend_overdue(run: SweepRun) -> None:
    """Sends the messages of attempts that a worker should have taken or settled by now. Runs as a step of the sweep."""
    for item in run.entries([keys.ISSUE_ATTEMPTS_PK]):
        with run.isolating(item):
            attempt = AttemptItem.from_item(item)
            if attempt.is_overdue:
                send_message(attempt.item_id)
                put_off(attempt, _RESENT_SECONDS)
                run.finished += 1


def _opened(repository_id: RepositoryId | None, number: int, item_id: InboxItemId) -> dict[str, Leg]:
    """Returns the leg that makes the issue lead to its item."""
    if repository_id is None:
        return {}
    return {"issue": Put({**keys.opened_issue(repository_id, number, item_id.local)._asdict(), "itemId": item_id})}


def find_items(repository_id: RepositoryId, number: int) -> list[InboxItemId]:
    """Returns the items that have the issue: none for most issues. Consistent."""
    pk = keys.finding_history_pk(repository_id)
    page = table.query(pk, prefix=keys.opened_issue_prefix(number), consistent=True)
    return [InboxItemId.stored(item["itemId"]) for item in page.items]


def record_state(item_id: InboxItemId, number: int, *, is_open: bool) -> None:
    """Records in the item whether its issue is open. Does nothing if it has another issue or was deleted.

    Nor if it says so already. The item's status doesn't change: the next scan decides whether the finding is gone.
    """
    before, after = ("closed", "open") if is_open else ("open", "closed")
    # An open issue has no state until it was closed once.
    unset = "" if is_open else "attribute_not_exists(#githubIssue.#state) OR "
    change = Update(
        keys.inbox_item(*item_id.location),
        "SET #githubIssue.#state = :after",
        f"#githubIssue.#number = :number AND ({unset}#githubIssue.#state = :before)",
        {"number": number, "before": before, "after": after},
    )
    record = Recorded(
        Action.ISSUE_CHANGE_STATE,
        item_id.organization_id,
        item_id,
        before={"state": before},
        after={"state": after},
    )
    with suppress(LegFailed):
        table.transact({"item": change}, record)
