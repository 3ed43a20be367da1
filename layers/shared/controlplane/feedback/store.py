"""Feedback reports about the service, sent by agents and people.

A report's key is derived from UTC day, caller, and content, so a caller's repeated report is one item per day, and its
reference contains its key. The transaction that writes a report counts it against the caller's hourly quota. The pause
switch is read before it: a report accepted at the moment of the pause does no harm.
"""

import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

from controlplane.platform.core import clock, ids
from controlplane.platform.core.clock import expiry
from controlplane.platform.core.errors import RateLimited, ServiceUnavailable, known
from controlplane.platform.core.settings import settings
from controlplane.platform.table import keys, shards
from controlplane.platform.table.keys import Key
from controlplane.platform.table.table import Delete, Leg, LegFailed, Put, StoreError, Unrecorded, Update, table

Category = Literal["bug", "friction", "docs_mismatch", "feature_request", "performance"]
Surface = Literal["api", "mcp", "cli", "docs", "sdk", "dashboard", "other"]

NEW_PER_HOUR = 10
# Maximum length of each field, in characters after trimming.
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
_FIELDS = ("category", "surface", *FIELD_LIMITS)
# Maximum size of a report as JSON that keeps its item below 1 KB. The rest of the item takes about 350 bytes.
INLINE_BYTES = 600

_HOUR_SECONDS, _DAY_SECONDS = 3_600, 86_400
_PAGE = 100
_GROUP = "([0-9a-hjkmnp-tv-z]{6})"
_REFERENCE = re.compile(rf"fdb-(\d{{4}})(\d{{2}})(\d{{2}})-{_GROUP}-{_GROUP}-{_GROUP}")


class UnknownReport(StoreError):
    """The report doesn't exist, or was removed."""


class HourlyQuotaReached(RateLimited):
    message = (
        f"You have sent {NEW_PER_HOUR} new reports in this hour, which is the limit. Send this one after the time in "
        "Retry-After. Repeating an earlier report is still possible."
    )

    def __init__(self, retry_after_seconds: int) -> None:
        super().__init__(retry_after_seconds)
        self.details = {"reason": "feedback_quota", "limit": NEW_PER_HOUR}


class IntakePaused(ServiceUnavailable):
    message = "New reports are temporarily not accepted. Keep the report and send it later."


class Receipt(NamedTuple):
    """The reference of a report, and whether it had been submitted before."""

    reference: str
    already_submitted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportItem:
    """A stored report. `fields` are the submitted fields by their API names; fields that weren't set are absent."""

    reference: str
    caller_id: str
    created_at: str
    fields: Mapping[str, str]

    @classmethod
    def from_items(cls, item: Mapping[str, Any] | None, texts: Mapping[str, Any] | None) -> Self | None:
        """Returns the report of the day's item and, if its texts were too long for that, the item of its texts.

        Returns None if either item has expired.
        """
        source = texts if item is not None and "detached" in item else item
        if item is None or source is None:
            return None
        fields = {name: source[name] for name in _FIELDS if name in source}
        return cls(reference=item["reference"], caller_id=item["callerId"], created_at=item["createdAt"], fields=fields)

    @property
    def is_detached(self) -> bool:
        """Returns True if the fields are stored in an item of their own, so that the day's item is below 1 KB."""
        return len(json.dumps(self.fields, ensure_ascii=False).encode()) > INLINE_BYTES

    def to_item(self) -> dict[str, Any]:
        """Returns the day's item without its key and expiry."""
        return {
            "reference": self.reference,
            "callerId": self.caller_id,
            **({"detached": True} if self.is_detached else self.fields),
            "createdAt": self.created_at,
        }


def submit_report(caller_id: str, fields: Mapping[str, str], extra_legs: Mapping[str, Leg] | None = None) -> Receipt:
    """Stores a report, unless the caller has already submitted it on this UTC day.

    fields: trimmed texts by their API names; absent fields are left out. extra_legs: go first in the transaction.
    A repeated report succeeds even if the quota is used up or intake is paused. Raises HourlyQuotaReached or
    IntakePaused without writing anything.
    """
    # Read the clock once: day, hour, and seconds to the next hour must be consistent at midnight.
    moment = clock.now()
    at = clock.timestamp(moment)
    day, hour = at[:10], at[:13]
    local = ids.derived_local(caller_id, json.dumps(_compared(fields), sort_keys=True, ensure_ascii=False))
    report = ReportItem(reference=_reference(day, local), caller_id=caller_id, created_at=at, fields=fields)
    if _is_paused():
        return _get_receipt(report, local, moment)
    legs: dict[str, Leg] = {
        **(extra_legs or {}),
        **_report_legs(report, local, moment),
        "quota": Update(
            keys.feedback_quota(caller_id, hour),
            "SET #expiresAt = :until ADD #taken :one",
            "attribute_not_exists(#taken) OR #taken < :most",
            {"one": 1, "most": NEW_PER_HOUR, "until": int(moment) + _DAY_SECONDS},
        ),
    }
    try:
        table.transact(legs, Unrecorded.FEEDBACK)
    except LegFailed as failure:
        if failure.leg == "report":
            return Receipt(report.reference, already_submitted=True)
        if failure.leg == "quota":
            raise HourlyQuotaReached(_HOUR_SECONDS - int(moment) % _HOUR_SECONDS) from None
        raise
    return Receipt(report.reference, already_submitted=False)


def _compared(fields: Mapping[str, str]) -> dict[str, str]:
    """Returns the fields that two reports are compared by. The surface `other` is the same as none."""
    return {name: text for name, text in fields.items() if (name, text) != ("surface", "other")}


def _report_legs(report: ReportItem, local: str, moment: float) -> dict[str, Leg]:
    """Returns the legs that write a report: its item of the day, the one by caller, and its fields if they are long."""
    day, expires = report.created_at[:10], expiry(settings.feedback_retention_days, moment)
    item = {**keys.feedback_report(day, local)._asdict(), **report.to_item(), **expires}
    legs: dict[str, Leg] = {
        "report": Put(item, "attribute_not_exists(pk)"),
        "byCaller": Put({**keys.feedback_by(report.caller_id, report.reference)._asdict(), **expires}),
    }
    if report.is_detached:
        legs["text"] = Put({**keys.feedback_text(day, local)._asdict(), **report.fields, **expires})
    return legs


def _get_receipt(report: ReportItem, local: str, moment: float) -> Receipt:
    """Returns the receipt of a report that was submitted before intake was paused. Raises as `submit_report` does."""
    day, hour = report.created_at[:10], report.created_at[:13]
    existing, quota = table.batch_get([keys.feedback_report(day, local), keys.feedback_quota(report.caller_id, hour)])
    if existing:
        return Receipt(report.reference, already_submitted=True)
    if quota is not None and quota["taken"] >= NEW_PER_HOUR:
        raise HourlyQuotaReached(_HOUR_SECONDS - int(moment) % _HOUR_SECONDS)
    raise IntakePaused


def _is_paused() -> bool:
    switch = table.get(keys.feedback_intake(secrets.randbelow(shards.FEEDBACK_INTAKE)))
    return switch is not None and bool(switch["paused"])


def _reference(day: str, local: str) -> str:
    groups = "-".join(local[start : start + 6] for start in range(0, len(local), 6))
    return f"FDB-{day.replace('-', '')}-{groups.upper()}"


def get_report(reference: str) -> ReportItem:
    """Returns the report with the reference, in any letter case. Consistent. Raises UnknownReport."""
    locations = known(find_keys(reference), UnknownReport)
    texts, item = table.batch_get(list(locations))
    return known(ReportItem.from_items(item, texts), UnknownReport)


def find_keys(reference: str) -> tuple[Key, Key] | None:
    """Returns the keys of a report's texts and the report. None if it isn't a reference."""
    match = _REFERENCE.fullmatch(reference.strip().lower())
    if match is None:
        return None
    year, month, date, *groups = match.groups()
    day, local = f"{year}-{month}-{date}", "".join(groups)
    return keys.feedback_text(day, local), keys.feedback_report(day, local)


def delete_reports_of(caller_id: str, after: str | None = None) -> str | None:
    """Removes a page of the caller's reports. Returns the position of the next page, or None after the last one."""
    page = table.query(keys.feedback_by_pk(caller_id), after=after, limit=_PAGE, consistent=True)
    for item in page.items:
        delete_report(item["sk"])
    table.delete_all((keys.feedback_by(caller_id, item["sk"]) for item in page.items), Unrecorded.CLEANUP)
    return page.next_sk


def delete_report(reference: str) -> None:
    """Removes the report with the reference, if it exists."""
    # Texts first: they can be found only through the report.
    for key in find_keys(reference) or ():
        table.delete(Delete(key), Unrecorded.FEEDBACK)


def list_reports(day: str) -> list[ReportItem]:
    """Returns all reports of a UTC day (2026-03-04), newest first."""
    found = {item["sk"]: item for pk in keys.feedback_pks(day) for item in table.query(pk).items}
    detached = [local for local, item in found.items() if "detached" in item]
    texts = dict(zip(detached, table.batch_get([keys.feedback_text(day, local) for local in detached]), strict=True))
    reports = [ReportItem.from_items(item, texts.get(local)) for local, item in found.items()]
    return sorted((report for report in reports if report is not None), key=lambda it: it.created_at, reverse=True)


def set_intake(*, paused: bool) -> None:
    """Pauses or resumes the intake of new reports for all callers, starting with the next request."""
    switch = {"paused": paused, "changedAt": clock.timestamp()}
    copies = [keys.feedback_intake(copy) for copy in range(shards.FEEDBACK_INTAKE)]
    table.transact({key.pk: Put({**key._asdict(), **switch}) for key in copies}, Unrecorded.SERVICE)


def get_intake() -> tuple[bool, str | None]:
    """Returns whether intake is paused, and when that last changed (None if never). Consistent."""
    item = table.get(keys.feedback_intake(0)) or {}
    return item.get("paused", False), item.get("changedAt")
