"""Business rules of the billing page: the plan and what others include, the credits, and the ledger."""

import re
from datetime import datetime
from typing import NamedTuple

from controlplane.billing import store as billing
from controlplane.billing.store import FIRST_PAGE, Exceeded, LedgerPosition, list_exceeded
from controlplane.organizations.items import BillingItem, LedgerItem, OrganizationItem
from controlplane.organizations.store import Account, Membership
from controlplane.platform.core import clock
from controlplane.platform.core.plans import PLANS, Plan
from controlplane.platform.table import keys
from controlplane.platform.table.parallel import read_both
from dashboard import charts
from dashboard.charts import Chart, Series
from dashboard.organizations import get_organization

ENTRIES_PER_PAGE = 25

_DAY_SECONDS = 86_400
_CHART_DAYS = 30
# The position of a next page in a link: the last entry of each kind, or nothing.
_LOCAL = re.compile(r"[0-9a-z]{1,32}")


class ShownBilling(NamedTuple):
    """The plan and the credits of an organization, and a page of its ledger. chart: None without entries to draw."""

    membership: Membership
    organization: OrganizationItem
    balance: BillingItem
    exceeded: list[Exceeded]
    entries: list[LedgerItem]
    next_after: str | None
    chart: Chart | None

    @property
    def plan(self) -> Plan:
        return PLANS[self.organization.plan]


def get_billing(organization_slug: str, account: Account, after: str | None) -> ShownBilling:
    """Returns the billing of one of the account's organizations. Raises NotMember.

    after: the position of a next page. One that can't be read is that of the first page.
    """
    membership = get_organization(organization_slug, account)
    organization_id, position = membership.organization_id, _read_position(after)
    (organization, balance), page = read_both(
        lambda: billing.get_billing(organization_id),
        lambda: billing.list_latest_ledger(organization_id, ENTRIES_PER_PAGE, position),
    )
    is_complete = page.next_position is None
    chart = _draw(balance.credits, page.entries, is_complete=is_complete) if position == FIRST_PAGE else None
    next_after = _write_position(page.next_position) if page.next_position else None
    return ShownBilling(membership, organization, balance, list_exceeded(organization), page.entries, next_after, chart)


def _draw(balance: int, entries: list[LedgerItem], *, is_complete: bool) -> Chart | None:
    """Returns the balance at the end of each of the last days that these latest entries cover."""
    if not entries:
        return None
    today = int(clock.now()) // _DAY_SECONDS
    changes: dict[int, int] = {}
    for entry in entries:
        day = _day_of(entry)
        changes[day] = changes.get(day, 0) + entry.credits
    # Before the first entry of all, the balance was 0.
    known = _day_of(entries[-1]) - 1 if is_complete else _day_of(entries[-1])
    first = max(today - _CHART_DAYS + 1, known)
    balances: list[int] = []
    for day in range(today, first - 1, -1):
        balances.append(max(0, balance))
        balance -= changes.get(day, 0)
    labels = charts.labels_of_days(range(first, today + 1))
    return charts.lines("Credits at the end of each day", labels, [Series("Credits", balances[::-1])])


def _day_of(entry: LedgerItem) -> int:
    return int(datetime.fromisoformat(entry.at).timestamp()) // _DAY_SECONDS


def _write_position(position: LedgerPosition) -> str:
    shown = zip(keys.LEDGER_PREFIXES, position, strict=True)
    return ".".join(sk.removeprefix(prefix) if sk else "" for prefix, sk in shown)


def _read_position(text: str | None) -> LedgerPosition:
    parts = (text or "").split(".")
    if len(parts) != len(keys.LEDGER_PREFIXES) or any(part and not _LOCAL.fullmatch(part) for part in parts):
        return FIRST_PAGE
    return tuple(prefix + part if part else None for prefix, part in zip(keys.LEDGER_PREFIXES, parts, strict=True))
