"""The page of an organization's plan and credits: what plans include, the usage against the limits, and the ledger."""

from datetime import datetime

from fastapi import Response

from controlplane.billing import store as billing
from controlplane.billing.store import FIRST_PAGE, list_exceeded
from controlplane.organizations.items import LedgerItem
from controlplane.platform.core import clock
from controlplane.platform.core.plans import PLANS, SCAN_UNLOCK_CREDITS
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.http.pagination import CursorCodec
from controlplane.platform.table.parallel import read_both
from dashboard import charts
from dashboard.charts import Chart, Series
from dashboard.pages import page
from dashboard.parameters import MemberSees

router = ControlRouter(tags=["Pages"], include_in_schema=False)

ENTRIES_PER_PAGE = 25
_DAY_SECONDS = 86_400
_CHART_DAYS = 30


@router.get("/organizations/{organizationSlug}/billing")
async def show_billing(session: MemberSees) -> Response:
    """Shows the plan with what it includes, the usage against its limits, and the credits with their ledger."""
    organization_id = session.organization.organization_id
    codec = CursorCodec(session.parameters.get("after"), "showBilling", organization_id)
    # The last entry of each kind, or nothing.
    position = tuple(sk or None for sk in codec.after.split(" ")) if codec.after else FIRST_PAGE
    (organization, balance), listed = read_both(
        lambda: billing.get_billing(organization_id),
        lambda: billing.list_latest_ledger(organization_id, ENTRIES_PER_PAGE, position),
    )
    following, entries = listed.next_position, listed.entries
    return page(
        "billing",
        session,
        stored=organization,
        plan=PLANS[organization.plan],
        plans=[*PLANS.values()],
        balance=balance,
        exceeded=list_exceeded(organization),
        entries=entries,
        next_cursor=codec.cursor(" ".join(sk or "" for sk in following)) if following else None,
        chart=_draw(balance.credits, entries, is_complete=not following) if entries and not codec.after else None,
        price=SCAN_UNLOCK_CREDITS,
        topped_up=balance.top_up.used_in(clock.month()),
    )


def _draw(balance: int, entries: list[LedgerItem], *, is_complete: bool) -> Chart:
    """Returns the balance at the end of each of the last days that these latest entries cover."""
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
