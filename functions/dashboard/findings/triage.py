"""Decisions on the inbox's pages: on one finding or on many at once, and undoing them."""

from collections.abc import Mapping
from datetime import date, timedelta
from typing import NamedTuple, cast

from controlplane.findings import conversations, inbox, vendors
from controlplane.findings.batches import Outcome, change_each
from controlplane.findings.inbox import KEPT, ItemChange, StaleVersion
from controlplane.findings.items import InboxItem, Status
from controlplane.findings.vendors import VendorState
from controlplane.platform.core import clock, ids
from controlplane.platform.core.errors import known
from controlplane.platform.core.ids import InboxItemId, ProjectId
from controlplane.platform.table.parallel import read_both
from controlplane.projects import store as projects
from dashboard.findings.filters import STATUSES
from dashboard.forms import NotAcceptable, read_choice

_MOST_AT_ONCE = 100
# A form names each chosen item in a field of its own, with the version that the person has seen, or all of a group.
_CHOSEN, _CHOSEN_GROUP = "item-", "group-"
UNDO, ASSIGN = "undo", "assign"
# Dismissals for these numbers of days.
SNOOZES = {"week": 7, "month": 30}
_REASON_LENGTH = 1_000
_NO_VENDOR_DECISION = "Choose to approve or to ignore the vendor of a finding on a website."


class Decision(NamedTuple):
    """A status to set with a reason, `undo`, which restores the former status, or `assign`.

    until: the end of a dismissal. assignee: see `ItemChange`.
    """

    action: str
    reason: str | None = None
    until: str | None = None
    assignee: str | None = KEPT

    @classmethod
    def read(cls, form: Mapping[str, str]) -> "Decision":
        """Returns the decision of a form. Raises NotAcceptable."""
        possible = (*STATUSES, UNDO, ASSIGN, *SNOOZES)
        action = read_choice(form, "action", possible, "Choose what to do with the findings.")
        if action == ASSIGN:
            return cls(action, assignee=form.get("assignee") or None)
        reason = form.get("reason", "").strip()
        if len(reason) > _REASON_LENGTH:
            raise NotAcceptable("The reason can have 1,000 characters. Shorten it.")
        if action in SNOOZES:
            day = date.fromisoformat(clock.timestamp()[:10]) + timedelta(days=SNOOZES[action])
            return cls("dismissed", reason or None, _read_end(day.isoformat()))
        return cls(action, reason or None, _read_end(form.get("until", "")) if action == "dismissed" else None)


def _read_end(day: str) -> str | None:
    """Returns the beginning of a day, or None without one. Raises NotAcceptable."""
    if not day:
        return None
    try:
        end = f"{date.fromisoformat(day).isoformat()}T00:00:00.000Z"
    except ValueError:
        end = ""
    if end <= clock.timestamp():
        raise NotAcceptable("Choose a day in the future, or none.")
    return end


def decide(item: InboxItem, decision: Decision, version: str, user_id: str, *, announces: bool = True) -> InboxItem:
    """Applies the decision if the item still has the version. announces: see `inbox.change_item`.

    Raises StaleVersion, UnknownItem, NotAssignable, NotAcceptable.
    """
    if decision.action == ASSIGN:
        change = ItemChange(assignee=decision.assignee)
        return inbox.change_item(item, change, version, user_id, announces=announces)
    if decision.action != UNDO:
        status = cast("Status", decision.action)
        return inbox.change_status(item, status, version, user_id, decision.reason, until=decision.until)
    if item.version != version:
        raise StaleVersion(item)
    if item.former is None:
        raise NotAcceptable("The former status of this finding isn't known.")
    former = item.former
    return inbox.change_status(item, former.status, version, user_id, former.reason, until=former.until)


def is_undoable(item: InboxItem, user_id: str) -> bool:
    """Returns whether the item's last change is a decision of the user, and its former status is known."""
    return item.former is not None and item.history[-1].by == user_id and item.history[-1].at == item.updated_at


def read_chosen(form: Mapping[str, str]) -> dict[InboxItemId, str]:
    """Returns the versions of the items that a form names. Raises NotAcceptable."""
    named = [(name.removeprefix(_CHOSEN), form[name]) for name in form if name.startswith(_CHOSEN)]
    for name in form:
        if name.startswith(_CHOSEN_GROUP):
            named += [(item_id, version) for item_id, _, version in (it.partition("=") for it in form[name].split())]
    chosen = {item_id: version for name, version in named if (item_id := InboxItemId.parse(name)) is not None}
    if not chosen:
        raise NotAcceptable("Select at least one finding.")
    if len(chosen) > _MOST_AT_ONCE:
        raise NotAcceptable(f"Select at most {_MOST_AT_ONCE} findings.")
    return chosen


def decide_all(
    organization_id: str, chosen: Mapping[InboxItemId, str], decision: Decision, user_id: str
) -> list[Outcome]:
    """Applies the decision to each of the organization's items that still has its version.

    Each has its own outcome, in the same order.
    """
    items = {key: item for key, item in inbox.find_items(chosen).items() if item.organization_id == organization_id}
    outcomes = change_each(
        chosen, items, lambda item, version: decide(item, decision, version, user_id, announces=False)
    )
    if decision.action == ASSIGN:
        conversations.announce_assigned((it.item for it in outcomes if it.item and it.is_changed), user_id)
    return outcomes


def read_comment(form: Mapping[str, str]) -> str:
    """Returns the comment of a form, which mentions the chosen member. Raises NotAcceptable."""
    text, mentioned = form.get("text", "").replace("\r\n", "\n").strip(), form.get("mention", "")
    if not mentioned:
        return text
    if not ids.is_root(ids.USER, mentioned):
        raise NotAcceptable("Choose a member to mention.")
    return f"@{mentioned} {text}" if text else ""


def decide_vendor(item: InboxItem, form: Mapping[str, str], user_id: str) -> VendorState:
    """Approves or ignores the vendor of a runtime finding, for its project. Returns the vendor's state.

    Raises NotAcceptable, Forbidden.
    """
    state = vendors.STATES[read_choice(form, "decision", vendors.STATES, _NO_VENDOR_DECISION)]
    vendor = known(item.runtime_vendor, NotAcceptable(_NO_VENDOR_DECISION))
    try:
        project_id = ProjectId.stored(vendor.project_id)
        of_audit = None if vendors.is_detection(item) else item.item_id
        project, seen = read_both(
            lambda: projects.get_project(project_id),
            lambda: vendors.see_vendor(project_id, vendor.vendor_id, of_audit),
        )
        vendors.decide_vendor(project, vendor.vendor_id, state, user_id, seen)
    except projects.UnknownProject:
        raise NotAcceptable("The project of this vendor was deleted.") from None
    return state


async def open_issue(item: InboxItem, user_id: str, existing: str | None) -> bool:
    """Opens an issue for the finding, or links the existing one. Returns False if the outcome isn't known yet.

    Raises the errors of `findings.issues.open_issue`.
    """
    from controlplane.findings import issues  # noqa: PLC0415 (with the models of messages, which few requests need)

    try:
        await issues.open_issue(item, user_id, existing)
    except issues.CreationPending:
        return False
    return True
