"""Unlocking a scan's locked findings with the organization's credits, charged once.

One transaction writes the ledger, the balance, the report, and the scan, so a scan is unlocked if and only if its
report was charged. A report is charged once for all of its scans (`reports`).
"""

from collections.abc import Mapping
from typing import Literal

from controlplane.billing import charges
from controlplane.organizations.items import BillingItem
from controlplane.organizations.store import role_check
from controlplane.platform.core.actions import Action
from controlplane.platform.core.errors import ApiError, Conflict, Forbidden
from controlplane.platform.queues import messages
from controlplane.platform.queues.messages import PublishScan, Queue
from controlplane.platform.queues.outbox import Entry
from controlplane.platform.table.retry import WriteConflict, retry_on_conflict
from controlplane.platform.table.table import Leg, LegFailed, Put, Recorded, Update, table
from controlplane.scans import reports
from controlplane.scans.items import ScanItem, UnknownScan


class NothingToUnlock(Conflict):
    """The scan has no findings to unlock: it is still open, it failed, or they have expired."""

    message = "Only the findings of a completed scan can be unlocked, and only until they expire."

    def __init__(self, status: str, reason: str = "not_completed") -> None:
        super().__init__(details={"reason": reason, "status": status})


class InsufficientCredits(ApiError):
    """The balance is lower than the scan's price."""

    code = "INSUFFICIENT_CREDITS"
    message = "The organization doesn't have enough credits."

    def __init__(self, remaining: int, required: int) -> None:
        super().__init__(details={"remainingCredits": remaining, "requiredCredits": required})


# `charged`: unlocked for its price. `included`: unlocked, and its report had been paid for with another scan.
# `already`: nothing was left to unlock.
Outcome = Literal["charged", "included", "already"]


def unlock_scan(scan: ScanItem, user_id: str, balance: BillingItem | None = None) -> bool:
    """Unlocks the scan and charges for it. Returns False, without charging, if its report was unlocked before.

    Takes `balance` and raises as `charge`.
    """
    message = messages.entry(Queue.SCAN_EXECUTION, PublishScan(scan_id=scan.scan_id))
    outcome = charge(scan, user_id, message, balance)
    if outcome != "already":
        messages.dispatch(message)
    return outcome == "charged"


def charge(scan: ScanItem, caller_id: str, message: Entry, balance: BillingItem | None = None) -> Outcome:
    """Unlocks all findings of the scan for its price, and writes the message to publish the rest of them.

    One transaction charges and unlocks. If the charge leaves too few credits, it also includes the automatic top-up.
    The message is written unless the outcome is `already`.

    balance: the balance as it was read. Without it, a top-up or a balance that becomes low takes another round trip.
    Raises NothingToUnlock, InsufficientCredits, UnknownScan, and Forbidden if the caller is no longer an owner.
    """
    if scan.access == "full" or scan.unlock_credits is None:
        return "already"
    if scan.status != "completed":
        raise NothingToUnlock(scan.status)
    if scan.findings_expired:
        raise NothingToUnlock(scan.status, "findings_expired")
    price, account = scan.unlock_credits, balance or charges.unread(scan.organization_id)
    unlocking = _unlocking_legs(scan, caller_id, message)

    def unlock() -> Outcome:
        nonlocal account
        legs = unlocking | reports.payment_legs(scan) | charges.charge_legs(account, scan.scan_id, price, caller_id)
        try:
            table.transact(legs, _recorded(scan, -price, legs.get("topUp")))
        except LegFailed as failure:
            if _is_unlocked(failure):
                return "already"
            if failure.leg == "report":
                return _unlock_included(scan, unlocking)
            account = _read_account(failure, price)
            raise WriteConflict from None
        return "charged"

    return retry_on_conflict(unlock, "the balance")


def _unlock_included(scan: ScanItem, unlocking: Mapping[str, Leg]) -> Outcome:
    try:
        table.transact(unlocking, _recorded(scan, 0))
    except LegFailed as failure:
        if _is_unlocked(failure):
            return "already"
        raise
    return "included"


def _recorded(scan: ScanItem, charged: int, top_up: Leg | None = None) -> Recorded:
    after = {"access": "full", "credits": charged}
    if isinstance(top_up, Put):
        after["topUp"] = top_up.item["credits"]
    return Recorded(
        Action.SCAN_UNLOCK,
        scan.organization_id,
        scan.scan_id,
        scan.repository_name,
        before={"access": scan.access},
        after=after,
    )


def _is_unlocked(failure: LegFailed) -> bool:
    """Returns whether the transaction failed because the scan is unlocked. Raises Forbidden, UnknownScan."""
    if failure.leg == "caller":
        raise Forbidden from None
    if "scan" in failure.items and failure.items["scan"] is None:
        raise UnknownScan from None
    return failure.leg in {"scan", "ledger"}


def _read_account(failure: LegFailed, price: int) -> BillingItem:
    """Returns the billing item for which the charge must be decided again. Raises InsufficientCredits."""
    if failure.leg != "billing" or failure.item is None:
        raise failure
    account = BillingItem.from_item(failure.item)
    if not charges.covers(account, price):
        raise InsufficientCredits(account.credits, price) from None
    return account


def _unlocking_legs(scan: ScanItem, caller_id: str, message: Entry) -> dict[str, Leg]:
    return {
        "caller": role_check(caller_id, scan.organization_id, "owner"),
        "scan": Update(
            scan.key,
            "SET #access = :full REMOVE #unlockCredits",
            # The price is final once the scan is completed, and so is the status.
            "#access IN (:preview, :locked) AND #status = :completed AND #unlockCredits = :price",
            {
                "full": "full",
                "preview": "free-preview",
                "locked": "locked",
                "completed": "completed",
                "price": scan.unlock_credits,
            },
        ),
        **reports.unlocking_legs(scan),
        "message": message.leg,
    }
