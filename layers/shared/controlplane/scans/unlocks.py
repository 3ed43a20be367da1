"""Unlocking a scan's locked findings with the organization's credits, charged once.

One transaction writes the ledger, the balance, the report, and the scan, so a scan is unlocked if and only if its
report was charged. A report is what scans of the same commit and folder of a repository share, if they were made with
the same rules. The transaction that charges for it writes an item, which the completion of every locked scan checks. A
scan that is completed before that has an entry, so that it is unlocked in the background.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Literal

from controlplane.billing import charges
from controlplane.organizations.items import BillingItem
from controlplane.organizations.store import role_check
from controlplane.platform.core import clock
from controlplane.platform.core.actions import Action
from controlplane.platform.core.errors import ApiError, Conflict, RoleRequired
from controlplane.platform.core.ids import ScanId
from controlplane.platform.queues import messages
from controlplane.platform.queues.messages import PublishScan, Queue
from controlplane.platform.queues.outbox import Entry
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.legs import Check, Delete, Leg, Put, Recorded, Unrecorded, Update
from controlplane.platform.table.retry import ConditionFailed, LegFailed, WriteConflict, retry_on_conflict
from controlplane.platform.table.table import table
from controlplane.scans.items import ScanItem, UnknownScan, work_key


class NothingToUnlock(Conflict):
    """The scan has no findings to unlock: it is still open, it failed, or they have expired."""

    message = "Only the findings of a completed scan can be unlocked, and only until they expire."

    def __init__(self, status: str, reason: str = "not_completed") -> None:
        super().__init__(details={"reason": reason, "status": status})


class InsufficientCredits(ApiError):
    """The balance is lower than the scan's price."""

    code = "INSUFFICIENT_CREDITS"
    message = "The organization doesn't have enough credits. Ask {operator} for more."

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
    Raises NothingToUnlock, InsufficientCredits, UnknownScan, and RoleRequired if the caller is no longer an owner.
    """
    if scan.access == "full" or scan.unlock_credits is None:
        return "already"
    if scan.status != "completed":
        raise NothingToUnlock(scan.status)
    if scan.findings_expired:
        raise NothingToUnlock(scan.status, "findings_expired")
    price, account = scan.unlock_credits, balance or charges.unread(scan.organization_id)
    unlocking = _unlocking_legs(scan, caller_id, message)
    is_included = False  # until the report turns out to be paid for

    def unlock() -> Outcome:
        nonlocal account, is_included
        legs = dict(unlocking)
        if not is_included:
            legs |= _payment_legs(scan) | charges.charge_legs(account, scan.scan_id, price, caller_id)
        try:
            table.transact(legs, _recorded(scan, 0 if is_included else -price, legs.get("topUp")))
        except LegFailed as failure:
            if _is_unlocked(failure):
                return "already"
            if failure.leg == "report":
                is_included = True
            else:
                account = _read_account(failure, price)
            raise WriteConflict from None
        return "included" if is_included else "charged"

    return retry_on_conflict(unlock, "the balance")


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
    """Returns whether the transaction failed because the scan is unlocked. Raises RoleRequired, UnknownScan."""
    if failure.leg == "caller":
        raise RoleRequired("owner") from None
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


def _payment_legs(scan: ScanItem) -> dict[str, Leg]:
    """Returns the leg that records that the scan's report is paid for. `report` fails if it is already."""
    if scan.report is None:
        return {}
    paid = {**_paid_key(scan, scan.report)._asdict(), "at": clock.timestamp()}
    return {"report": Put(paid, "attribute_not_exists(pk)")}


def _unlocking_legs(scan: ScanItem, caller_id: str, message: Entry) -> dict[str, Leg]:
    """Returns the legs that unlock the scan for an owner, and remove it from the locked scans of its report."""
    listed: dict[str, Leg] = {} if scan.report is None else {"lockedScan": Delete(_entry_key(scan, scan.report))}
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
        **listed,
        "message": message.leg,
    }


def with_paid_access(scan: ScanItem) -> ScanItem:
    """Returns the scan, unlocked if its report has been paid for. Consistent."""
    if scan.access == "full" or scan.report is None or table.get(_paid_key(scan, scan.report)) is None:
        return scan
    return scan.as_unlocked()


def completion_legs(scan: ScanItem) -> dict[str, Leg]:
    """Returns the legs of a scan's completion. `report` fails if a locked scan's report has been paid for."""
    if scan.access == "full" or scan.report is None:
        return {}
    entry = {**_entry_key(scan, scan.report)._asdict(), "scanId": scan.scan_id}
    return {
        "report": Check(_paid_key(scan, scan.report), "attribute_not_exists(pk)"),
        "lockedScan": Put(entry),
    }


def entry_keys(scan: ScanItem) -> list[Key]:
    """Returns the keys of items that must be deleted with the scan."""
    return [] if scan.report is None else [_entry_key(scan, scan.report)]


def unlock_others(scan: ScanItem) -> Iterator[ScanItem]:
    """Unlocks the other scans of the report if it has been paid for, and yields each, to publish its findings.

    Can be repeated: the entry of a scan is deleted after the caller has published its findings. Scans whose
    findings have expired stay locked.
    """
    if scan.report is None:
        return
    pk, prefix = _paid_key(scan, scan.report)
    items = table.query(pk, prefix=prefix, consistent=True).items
    if not items or items[0]["sk"] != prefix:
        return
    for entry in items[1:]:
        with suppress(ConditionFailed):
            yield _unlock(ScanId.stored(entry["scanId"]))
        table.delete(Delete(Key(entry["pk"], entry["sk"])), Unrecorded.PUBLICATION)


def _unlock(scan_id: ScanId) -> ScanItem:
    """Returns the unlocked scan. Raises ConditionFailed if it was deleted or its findings have expired."""
    change = Update(
        work_key(scan_id),
        "SET #access = :full REMOVE #unlockCredits",
        "attribute_exists(pk) AND (attribute_not_exists(#findingsExpireAt) OR #findingsExpireAt > :now)",
        {"full": "full", "now": int(clock.now())},
    )
    return ScanItem.from_item(table.update(change, Unrecorded.PUBLICATION))


def _paid_key(scan: ScanItem, report: str) -> Key:
    return keys.paid_report(scan.repository_id, report)


def _entry_key(scan: ScanItem, report: str) -> Key:
    return keys.locked_scan(scan.repository_id, report, scan.scan_id.local)
