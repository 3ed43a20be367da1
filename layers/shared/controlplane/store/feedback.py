"""Reports on the service itself, as agents and people send them.

A report stands under its UTC day, and its own part follows from caller and content: the same report of the same caller
is one item a day, whoever sends it how often, and its reference says where it stands. The transaction that writes a
report counts it against the caller's hour, and is refused while intake is paused.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from controlplane import clock, ids
from controlplane.store import keys
from controlplane.store.table import Check, Leg, LegFailed, Put, StoreError, Update, table

Category = Literal["bug", "friction", "docs_mismatch", "feature_request", "performance"]
Surface = Literal["api", "mcp", "cli", "docs", "sdk", "dashboard", "other"]

NEW_PER_HOUR = 10
# The longest text of each field, in characters and after trimming.
FIELD_LIMITS = {
    "message": 8_000,
    "expected": 2_000,
    "actual": 2_000,
    "reproduction": 4_000,
    "requestId": 128,
    "operation": 255,
    "clientName": 100,
    "clientVersion": 100,
}
KEPT_DAYS = 400

_HOUR_SECONDS, _DAY_SECONDS = 3_600, 86_400
_PAGE = 100
_GROUP = "([0-9a-hjkmnp-tv-z]{6})"
_REFERENCE = re.compile(rf"fdb-(\d{{4}})(\d{{2}})(\d{{2}})-{_GROUP}-{_GROUP}-{_GROUP}")


class UnknownReport(StoreError):
    """No such report, or no longer."""


class QuotaUsedUp(StoreError):
    """The caller has sent as many new reports in this UTC hour as are taken; `seconds` are left of it."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"{seconds} s to the next hour")
        self.seconds = seconds


class IntakePaused(StoreError):
    """New reports are not taken for now."""


class Receipt(NamedTuple):
    """The reference of a report, and whether it had been taken already."""

    reference: str
    already_submitted: bool


def submit_report(caller_id: str, report: Mapping[str, str], first: Mapping[str, Leg] | None = None) -> Receipt:
    """Takes a report, or finds that the caller has sent it before on this UTC day.

    report: trimmed texts by their names on the wire; what is absent is left out. first: legs that go before.
    A repetition succeeds whatever is left of the quota, and also while intake is paused. Raises QuotaUsedUp,
    IntakePaused.
    """
    # One reading for everything: day, hour and the way to the next hour must not disagree at midnight.
    moment = clock.now()
    at = clock.timestamp(moment)
    day, hour = at[:10], at[:13]
    local = ids.derived_local(caller_id, json.dumps(report, sort_keys=True, ensure_ascii=False))
    reference = _reference(day, local)
    item = {
        **keys.feedback_report(day, local)._asdict(),
        "reference": reference,
        "callerId": caller_id,
        **report,
        "createdAt": at,
        "expiresAt": int(moment) + KEPT_DAYS * _DAY_SECONDS,
    }
    legs: dict[str, Leg] = {
        **(first or {}),
        "report": Put(item, "attribute_not_exists(pk)"),
        "quota": Update(
            keys.feedback_quota(caller_id, hour),
            "SET #expiresAt = :until ADD #taken :one",
            "attribute_not_exists(#taken) OR #taken < :most",
            {"one": 1, "most": NEW_PER_HOUR, "until": int(moment) + _DAY_SECONDS},
        ),
        "intake": Check(keys.feedback_intake(), "attribute_not_exists(#paused) OR #paused = :false", {"false": False}),
    }
    try:
        table.transact(legs)
    except LegFailed as refusal:
        if refusal.leg == "report":
            return Receipt(reference, already_submitted=True)
        if refusal.leg == "quota":
            raise QuotaUsedUp(_HOUR_SECONDS - int(moment) % _HOUR_SECONDS) from None
        if refusal.leg == "intake":
            raise IntakePaused from None
        raise
    return Receipt(reference, already_submitted=False)


def _reference(day: str, local: str) -> str:
    groups = "-".join(local[start : start + 6] for start in range(0, len(local), 6))
    return f"FDB-{day.replace('-', '')}-{groups.upper()}"


def get_report(reference: str) -> dict[str, Any]:
    """The report of a reference, in whatever letter case. Consistent. Raises UnknownReport."""
    match = _REFERENCE.fullmatch(reference.strip().lower())
    item = None
    if match is not None:
        year, month, day, *groups = match.groups()
        item = table.get(keys.feedback_report(f"{year}-{month}-{day}", "".join(groups)))
    if item is None:
        raise UnknownReport
    return item


def list_reports(day: str) -> list[dict[str, Any]]:
    """All reports of a UTC day (2026-03-04), the newest first."""
    reports: list[dict[str, Any]] = []
    after = None
    while True:
        page = table.query(keys.feedback_pk(day), after=after, limit=_PAGE)
        reports += page.items
        after = page.next_sk
        if after is None:
            return sorted(reports, key=lambda report: str(report["createdAt"]), reverse=True)


def set_intake(*, paused: bool) -> None:
    """Pauses or resumes the intake of new reports, for every caller and from the next request on."""
    table.put(Put({**keys.feedback_intake()._asdict(), "paused": paused, "changedAt": clock.timestamp()}))


def get_intake() -> tuple[bool, str | None]:
    """Whether intake is paused, and since when it is as it is (None where it never was paused). Consistent."""
    item = table.get(keys.feedback_intake()) or {}
    return item.get("paused", False), item.get("changedAt")
