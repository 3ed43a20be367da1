"""Charges for scans, each with the automatic top-up that it needs, as legs of the transaction that unlocks the scan.

The legs are built for the billing item as it was read. If it has changed so that the decision would be another one, the
leg `billing` fails and returns the current item. So the balance and the limit per month hold under concurrency.
"""

from dataclasses import replace
from typing import Any, NamedTuple

from controlplane.organizations.items import BillingItem, LedgerItem, TopUpItem
from controlplane.platform.core import clock
from controlplane.platform.core.ids import ScanId
from controlplane.platform.core.plans import LOW_CREDITS
from controlplane.platform.queues import events
from controlplane.platform.table import keys
from controlplane.platform.table.table import Leg, Update


def unread(organization_id: str) -> BillingItem:
    """Returns the billing item to assume before it was read: one without a top-up, as most are."""
    return BillingItem(organization_id=organization_id)


def covers(account: BillingItem, price: int) -> bool:
    """Returns whether the balance is sufficient, together with the top-up that the charge would need."""
    top_up = _due_top_up(account, price)
    return account.credits + (top_up.amount if top_up else 0) >= price


def charge_legs(account: BillingItem, scan_id: ScanId, price: int, caller_id: str) -> dict[str, Leg]:
    """Returns the legs that charge for the scan: `ledger` and `billing`, and `topUp` if a top-up is due.

    With `event` if the charge makes the balance low.
    """
    charged = LedgerItem(
        key=keys.ledger_of_scan(*scan_id.location),
        kind="unlock",
        credits=-price,
        at=clock.timestamp(),
        scan_id=scan_id,
        by=caller_id,
    )
    top_up = _due_top_up(account, price)
    if top_up is None:
        return {"ledger": charged.leg, "billing": _plain_charge(account, price), **_event_legs(account, -price)}
    key = keys.ledger_of_top_up(*scan_id.location)
    added = replace(charged, key=key, kind="top-up", credits=top_up.amount, by=None)
    return {
        "ledger": charged.leg,
        "billing": _charge_with(top_up, account, price),
        "topUp": added.leg,
        **_event_legs(account, top_up.amount - price),
    }


def _becomes_low(account: BillingItem, difference: int) -> bool:
    return account.credits >= LOW_CREDITS > account.credits + difference


def _event_legs(account: BillingItem, difference: int) -> dict[str, Leg]:
    if not _becomes_low(account, difference):
        return {}
    return {"event": events.entry(account.organization_id, "credits.low").leg}


def _same_event(account: BillingItem, difference: int) -> tuple[str, dict[str, Any]]:
    """Returns a condition, and its values: the balance crosses the threshold exactly if it did when it was read."""
    values = {"low": LOW_CREDITS, "ample": LOW_CREDITS - difference}
    if _becomes_low(account, difference):
        return "#credits >= :low AND #credits < :ample", values
    return "(#credits < :low OR #credits >= :ample)", values


class _TopUp(NamedTuple):
    """A top-up of `amount` credits, if a charge leaves fewer than `threshold`. `counted` are the settings after it."""

    threshold: int
    amount: int
    counted: TopUpItem


def _available_top_up(account: BillingItem, price: int) -> _TopUp | None:
    """Returns the top-up, or None if it is disabled, used up for this month, or if the charge is nothing."""
    top_up = account.top_up
    if not top_up.enabled or top_up.threshold is None or top_up.amount is None or price == 0:
        return None
    month = max(clock.month(), top_up.month or "")  # another instance's clock may be ahead
    counted = replace(top_up, month=month, used=top_up.used_in(month) + 1)
    if counted.used > (top_up.monthly_limit or 0):
        return None
    return _TopUp(top_up.threshold, top_up.amount, counted)


def _due_top_up(account: BillingItem, price: int) -> _TopUp | None:
    top_up = _available_top_up(account, price)
    return top_up if top_up is not None and account.credits < price + top_up.threshold else None


def _plain_charge(account: BillingItem, price: int) -> Update:
    available = _available_top_up(account, price)
    # With fewer credits, the top-up would be due.
    values: dict[str, Any] = {"price": price, "least": price + (available.threshold if available else 0)}
    if account.top_up.enabled:
        when, values = "#topUp = :seen", {**values, "seen": account.top_up.to_map()}
    else:
        when, values = "#topUp.#enabled = :false", {**values, "false": False}
    key = keys.billing(account.organization_id)
    same, limits = _same_event(account, -price)
    when = f"#credits >= :least AND {when} AND {same}"
    return Update(key, "SET #credits = #credits - :price", when, {**values, **limits})


def _charge_with(top_up: _TopUp, account: BillingItem, price: int) -> Update:
    difference = top_up.amount - price
    same, limits = _same_event(account, difference)
    return Update(
        keys.billing(account.organization_id),
        "SET #credits = #credits + :difference, #topUp = :counted",
        f"#topUp = :seen AND #credits >= :least AND #credits < :enough AND {same}",
        {
            **limits,
            "difference": difference,
            "counted": top_up.counted.to_map(),
            "seen": account.top_up.to_map(),
            "least": max(0, price - top_up.amount),
            "enough": price + top_up.threshold,
        },
    )
