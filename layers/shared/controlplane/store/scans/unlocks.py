"""Unlocking a scan's locked findings with the organization's credits, charged once.

One transaction writes the ledger, the balance, and the scan, so a scan is unlocked if and only if it was charged.
"""

from controlplane.core import clock
from controlplane.core.errors import ApiError, Conflict, Forbidden
from controlplane.store import keys
from controlplane.store.organizations import role_check
from controlplane.store.outbox import Entry
from controlplane.store.scans.items import ScanItem, UnknownScan
from controlplane.store.table import Leg, LegFailed, Put, Update, table


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


def unlock_scan(scan: ScanItem, caller_id: str, message: Entry) -> bool:
    """Unlocks all findings of the scan for its price, and writes the message to publish the rest of them.

    One transaction charges and unlocks. Returns False, without charging, if the scan has no locked findings. Raises
    NothingToUnlock, InsufficientCredits, UnknownScan, and Forbidden if the caller is no longer an owner.
    """
    if scan.access == "full" or scan.unlock_credits is None:
        return False
    if scan.status != "completed":
        raise NothingToUnlock(scan.status)
    if scan.findings_expired:
        raise NothingToUnlock(scan.status, "findings_expired")
    try:
        table.transact(_unlock_legs(scan, scan.unlock_credits, caller_id, message))
    except LegFailed as failure:
        if failure.leg == "caller":
            raise Forbidden from None
        if "scan" in failure.items and failure.items["scan"] is None:
            raise UnknownScan from None
        if failure.leg in {"scan", "ledger"}:
            return False
        if failure.leg != "billing" or failure.item is None:
            raise
        raise InsufficientCredits(failure.item["credits"], scan.unlock_credits) from None
    return True


def _unlock_legs(scan: ScanItem, price: int, caller_id: str, message: Entry) -> dict[str, Leg]:
    entry = {
        **keys.ledger_of_scan(*scan.scan_id.location)._asdict(),
        "credits": -price,
        "scanId": scan.scan_id,
        "by": caller_id,
        "at": clock.timestamp(),
    }
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
                "price": price,
            },
        ),
        "ledger": Put(entry, "attribute_not_exists(pk)"),
        "billing": Update(
            keys.billing(scan.organization_id),
            "SET #credits = #credits - :price",
            "#credits >= :price",
            {"price": price},
        ),
        "message": message.leg,
    }
