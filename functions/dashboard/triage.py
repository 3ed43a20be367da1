"""Business rules of decisions on the inbox's pages: on one finding or on many at once, and undoing them."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, cast

from controlplane.findings import changes as inbox_changes
from controlplane.findings import inbox, vendors
from controlplane.findings.changes import Outcome
from controlplane.findings.inbox import StaleVersion
from controlplane.findings.items import InboxItem
from controlplane.findings.status_history import Status
from controlplane.findings.vendors import VendorState
from controlplane.organizations.store import Account, Membership
from controlplane.platform.core.errors import Forbidden, InvalidPayload
from controlplane.platform.core.ids import InboxItemId, ProjectId
from controlplane.platform.table.parallel import read_both
from controlplane.projects import store as projects
from dashboard.forms import NotAcceptable
from dashboard.inbox import STATUSES, FoundItem
from dashboard.organizations import get_organization, require_admin

MOST_AT_ONCE = 50
# A form names each chosen item in a field of its own, with the version that the person has seen.
CHOSEN = "item-"
UNDO = "undo"
_REASON_LENGTH = 1_000


class Decision(NamedTuple):
    """A status to set with a reason, or `undo`, which restores the former status."""

    action: str
    reason: str | None = None

    @classmethod
    def read(cls, form: Mapping[str, str]) -> "Decision":
        """Returns the decision of a form. Raises NotAcceptable."""
        action, reason = form.get("action", ""), form.get("reason", "").strip()
        if action not in (*STATUSES, UNDO):
            raise NotAcceptable("Choose what to do with the findings.")
        if len(reason) > _REASON_LENGTH:
            raise NotAcceptable("The reason can have 1,000 characters. Shorten it.")
        return cls(action, reason or None)


class NotAdmin(Forbidden):
    message = "Only admins and owners can open issues and decide about vendors. Ask one of them."


class NothingToUndo(InvalidPayload):
    message = "The former status of this finding isn't known."


def decide(item: InboxItem, decision: Decision, version: str, user_id: str) -> InboxItem:
    """Applies the decision if the item still has the version. Raises StaleVersion, UnknownItem, NothingToUndo."""
    if decision.action != UNDO:
        return inbox.change_status(item, cast("Status", decision.action), version, user_id, decision.reason)
    if item.version != version:
        raise StaleVersion(item)
    if item.former is None:
        raise NothingToUndo
    return inbox.change_status(item, item.former.status, version, user_id, item.former.reason)


def is_undoable(item: InboxItem, user_id: str) -> bool:
    """Returns whether the item's last change is a decision of the user, and its former status is known."""
    return item.former is not None and item.history[-1].by == user_id and item.history[-1].at == item.updated_at


def read_chosen(form: Mapping[str, str]) -> dict[InboxItemId, str]:
    """Returns the versions of the items that a form names. Raises NotAcceptable."""
    chosen: dict[InboxItemId, str] = {}
    for name in form:
        item_id = InboxItemId.parse(name.removeprefix(CHOSEN)) if name.startswith(CHOSEN) else None
        if item_id is not None:
            chosen[item_id] = form[name]
    if not chosen:
        raise NotAcceptable("Select at least one finding.")
    if len(chosen) > MOST_AT_ONCE:
        raise NotAcceptable(f"Select at most {MOST_AT_ONCE} findings.")
    return chosen


def find_chosen(
    organization_slug: str, chosen: Iterable[InboxItemId], account: Account
) -> tuple[Membership, dict[str, InboxItem]]:
    """Returns the account's organization and those of the items that it has, in one round trip. Raises NotMember."""
    organization, items = get_organization(organization_slug, account), inbox.find_items(chosen)
    own = {key: item for key, item in items.items() if item.organization_id == organization.organization_id}
    return organization, own


def decide_all(
    chosen: Mapping[InboxItemId, str], items: Mapping[str, InboxItem], decision: Decision, user_id: str
) -> list[Outcome]:
    """Applies the decision to each item that still has its version. Each has its own outcome, in the same order."""
    return inbox_changes.change_each(chosen, items, lambda item, version: decide(item, decision, version, user_id))


def people_of(outcomes: Iterable[Outcome]) -> list[str]:
    """Returns the IDs of the users who changed findings in the meantime."""
    changed = [it.item.history[-1].by for it in outcomes if it.failure and it.item]
    return [user_id for user_id in changed if user_id]


def decide_vendor(found: FoundItem, decision: str, user_id: str) -> VendorState:
    """Approves or ignores the vendor of a runtime finding, for its project. Returns the vendor's state.

    Raises NotAdmin, NotAcceptable.
    """
    require_admin(found.organization, NotAdmin)
    vendor, state = found.item.runtime_vendor, vendors.STATES.get(decision)
    if vendor is None or state is None:
        raise NotAcceptable("Choose to approve or to ignore the vendor of a finding on a website.")
    try:
        project_id = ProjectId.stored(vendor.project_id)
        project, stored = read_both(
            lambda: projects.get_project(project_id), lambda: vendors.find_vendor(project_id, vendor.vendor_id)
        )
        vendors.decide_vendor(project, vendor.vendor_id, state, user_id, vendors.Seen(stored, found.item))
    except projects.UnknownProject:
        raise NotAcceptable("The project of this vendor was deleted.") from None
    return state


async def open_issue(found: FoundItem, user_id: str, existing: str | None) -> bool:
    """Opens an issue for the finding, or links the existing one. Returns False if the outcome isn't known yet.

    Raises NotAdmin, and the errors of `findings.issues.open_issue`.
    """
    from controlplane.findings import issues  # noqa: PLC0415 (with the models of messages, which few requests need)

    require_admin(found.organization, NotAdmin)
    try:
        await issues.open_issue(found.item, user_id, existing)
    except issues.CreationPending:
        return False
    return True
