"""Rules of unlocking the findings of scans."""

from controlplane.organizations.items import BillingItem
from controlplane.platform.queues import messages
from controlplane.platform.queues.messages import PublishScan, Queue
from controlplane.scans import unlocks
from controlplane.scans.items import ScanItem


def unlock_scan(scan: ScanItem, user_id: str, balance: BillingItem | None = None) -> bool:
    """Unlocks the scan and charges for it. Returns False, without charging, if its report was unlocked before.

    balance: the organization's balance if it was just read. Raises NothingToUnlock, InsufficientCredits, Forbidden,
    UnknownScan.
    """
    message = messages.entry(Queue.SCAN_EXECUTION, PublishScan(scan_id=scan.scan_id))
    outcome = unlocks.unlock_scan(scan, user_id, message, balance)
    if outcome != "already":
        messages.dispatch(message)
    return outcome == "charged"
