"""Unlocking a scan's locked findings with the organization's credits, charged once.

One transaction writes the ledger, the balance, and the scan, so a scan is unlocked if and only if it was charged.
"""

from controlplane.core import clock
from controlplane.store import keys
from controlplane.store.organizations import role_check
from controlplane.store.outbox import Entry
from controlplane.store.scans import ScanItem, UnknownScan
from controlplane.store.table import Leg, LegFailed, Put, StoreError, Update, table


class NotCompleted(StoreError):
    """The scan has no findings to unlock: it is still open, or it failed."""


class FindingsExpired(StoreError):
    """The scan's findings have expired: there is nothing to pay for."""


class AlreadyUnlocked(StoreError):
    """The scan has no locked findings."""


class InsufficientCredits(StoreError):
    """The balance is lower than the scan's price."""

    def __init__(self, remaining: int, required: int) -> None:
        super().__init__(f"{remaining} of {required}")
        self.remaining = remaining
        self.required = required


class NoLongerOwner(StoreError):
    """The caller is no longer an owner of the organization."""


def unlock_scan(scan: ScanItem, caller_id: str, message: Entry) -> None:
    """Unlocks all findings of the scan for its price, and writes the message to publish the rest of them.

    One transaction charges and unlocks, if the caller is an owner. Raises AlreadyUnlocked, NotCompleted,
    FindingsExpired, InsufficientCredits, NoLongerOwner, UnknownScan.
    """
    if scan.access == "full" or scan.unlock_credits is None:
        raise AlreadyUnlocked
    if scan.status != "completed":
        raise NotCompleted
    if scan.findings_expired:
        raise FindingsExpired
    location, price = scan.location, scan.unlock_credits
    entry = {
        **keys.ledger_of_scan(*location)._asdict(),
        "credits": -price,
        "scanId": scan.scan_id,
        "by": caller_id,
        "at": clock.timestamp(),
    }
    legs: dict[str, Leg] = {
        "caller": role_check(caller_id, scan.organization_id, "owner"),
        "scan": Update(
            keys.scan(*location),
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
    try:
        table.transact(legs)
    except LegFailed as refusal:
        if refusal.leg == "caller":
            raise NoLongerOwner from None
        if "scan" in refusal.items and refusal.items["scan"] is None:
            raise UnknownScan from None
        if refusal.leg in {"scan", "ledger"}:
            raise AlreadyUnlocked from None
        if refusal.leg != "billing" or refusal.item is None:
            raise
        raise InsufficientCredits(refusal.item["credits"], price) from None
