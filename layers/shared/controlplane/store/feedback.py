"""Feedback reports about the service, sent by agents and people.

A report's key is derived from UTC day, caller, and content, so a caller's repeated report is one item per day, and its
reference contains its key. The transaction that writes a report counts it against the caller's hourly quota. The pause
switch is read before it: a report accepted at the moment of the pause does no harm.
"""

import json
import re
import secrets
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from controlplane.core import clock, ids
from controlplane.core.retention import expiry
from controlplane.core.settings import settings
from controlplane.store import keys, shards
from controlplane.store.keys import Key
from controlplane.store.table import Delete, Leg, LegFailed, Put, StoreError, Update, table

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
# Maximum size of a report as JSON that keeps its item below 1 KB. The rest of the item takes about 350 bytes.
INLINE_BYTES = 600

_HOUR_SECONDS, _DAY_SECONDS = 3_600, 86_400
_PAGE = 100
_GROUP = "([0-9a-hjkmnp-tv-z]{6})"
_REFERENCE = re.compile(rf"fdb-(\d{{4}})(\d{{2}})(\d{{2}})-{_GROUP}-{_GROUP}-{_GROUP}")


class UnknownReport(StoreError):
    """The report doesn't exist, or was removed."""


class QuotaUsedUp(StoreError):
    """The caller has reached the limit of new reports in this UTC hour, which ends in `seconds`."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"{seconds} s to the next hour")
        self.seconds = seconds


class IntakePaused(StoreError):
    """Intake of new reports is paused."""


class Receipt(NamedTuple):
    """The reference of a report, and whether it had been submitted before."""

    reference: str
    already_submitted: bool


def submit_report(caller_id: str, report: Mapping[str, str], extra_legs: Mapping[str, Leg] | None = None) -> Receipt:
    """Stores a report, unless the caller has already submitted it on this UTC day.

    report: trimmed texts by their API names; absent fields are left out. extra_legs: go first in the transaction.
    A repeated report succeeds even if the quota is used up or intake is paused. Raises QuotaUsedUp, IntakePaused.
    """
    # Read the clock once: day, hour, and seconds to the next hour must be consistent at midnight.
    moment = clock.now()
    at = clock.timestamp(moment)
    day, hour = at[:10], at[:13]
    local = ids.derived_local(caller_id, json.dumps(report, sort_keys=True, ensure_ascii=False))
    reference = _reference(day, local)
    if _is_paused():
        return _repeated(caller_id, local, moment)
    legs: dict[str, Leg] = {
        **(extra_legs or {}),
        **_stored(caller_id, report, local, moment),
        "quota": Update(
            keys.feedback_quota(caller_id, hour),
            "SET #expiresAt = :until ADD #taken :one",
            "attribute_not_exists(#taken) OR #taken < :most",
            {"one": 1, "most": NEW_PER_HOUR, "until": int(moment) + _DAY_SECONDS},
        ),
    }
    try:
        table.transact(legs)
    except LegFailed as refusal:
        if refusal.leg == "report":
            return Receipt(reference, already_submitted=True)
        if refusal.leg == "quota":
            raise QuotaUsedUp(_HOUR_SECONDS - int(moment) % _HOUR_SECONDS) from None
        raise
    return Receipt(reference, already_submitted=False)


def _stored(caller_id: str, report: Mapping[str, str], local: str, moment: float) -> dict[str, Leg]:
    """Returns the legs that write a report: its item of the day (below 1 KB), the one by caller, and long texts."""
    at = clock.timestamp(moment)
    day = at[:10]
    reference, expires = _reference(day, local), expiry(settings.feedback_retention_days, moment)
    is_long = len(json.dumps(report, ensure_ascii=False).encode()) > INLINE_BYTES
    item = {
        **keys.feedback_report(day, local)._asdict(),
        "reference": reference,
        "callerId": caller_id,
        **({"detached": True} if is_long else report),
        "createdAt": at,
        **expires,
    }
    legs: dict[str, Leg] = {
        "report": Put(item, "attribute_not_exists(pk)"),
        "byCaller": Put({**keys.feedback_by(caller_id, reference)._asdict(), **expires}),
    }
    if is_long:
        legs["text"] = Put({**keys.feedback_text(day, local)._asdict(), **report, **expires})
    return legs


def _repeated(caller_id: str, local: str, moment: float) -> Receipt:
    """Returns the receipt of a report that was submitted before intake was paused. Raises as `submit_report` does."""
    at = clock.timestamp(moment)
    day = at[:10]
    report, unsharded, quota = table.batch_get(
        [
            keys.feedback_report(day, local),
            keys.unsharded_feedback_report(day, local),
            keys.feedback_quota(caller_id, at[:13]),
        ]
    )
    if report or unsharded:
        return Receipt(_reference(day, local), already_submitted=True)
    if quota is not None and quota["taken"] >= NEW_PER_HOUR:
        raise QuotaUsedUp(_HOUR_SECONDS - int(moment) % _HOUR_SECONDS)
    raise IntakePaused


def _is_paused() -> bool:
    switch = table.get(keys.feedback_intake(secrets.randbelow(shards.FEEDBACK_INTAKE)))
    return _was_paused(table.name) if switch is None else bool(switch["paused"])


@lru_cache(maxsize=1)
def _was_paused(_table_name: str) -> bool:
    """Returns True if an earlier release paused intake. This release writes the copies of the switch on each change."""
    return bool((table.get(keys.single_feedback_intake()) or {}).get("paused", False))


def _reference(day: str, local: str) -> str:
    groups = "-".join(local[start : start + 6] for start in range(0, len(local), 6))
    return f"FDB-{day.replace('-', '')}-{groups.upper()}"


def get_report(reference: str) -> dict[str, Any]:
    """Returns the report with the reference, in any letter case. Consistent. Raises UnknownReport."""
    places = _find_keys(reference)
    if places is None:
        raise UnknownReport
    text, report, unsharded = table.batch_get(list(places))
    whole = _whole(report or unsharded, text)
    if whole is None:
        raise UnknownReport
    return whole


def _whole(item: dict[str, Any] | None, text: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Returns the report merged with its texts. None if either item has expired."""
    if item is None or "detached" not in item:
        return item
    return None if text is None else {**text, **{name: item[name] for name in item if name != "detached"}}


def _find_keys(reference: str) -> tuple[Key, Key, Key] | None:
    """Returns the keys of a report's texts, the report, and its unsharded form. None if it isn't a reference."""
    match = _REFERENCE.fullmatch(reference.strip().lower())
    if match is None:
        return None
    year, month, date, *groups = match.groups()
    day, local = f"{year}-{month}-{date}", "".join(groups)
    return (
        keys.feedback_text(day, local),
        keys.feedback_report(day, local),
        keys.unsharded_feedback_report(day, local),
    )


def delete_reports_of(caller_id: str, after: str | None = None) -> str | None:
    """Removes a page of the caller's reports. Returns the position of the next page, or None after the last one.

    Doesn't find reports of earlier releases, which have no item by caller.
    """
    page = table.query(keys.feedback_by_pk(caller_id), after=after, limit=_PAGE, consistent=True)
    for item in page.items:
        delete_report(item["sk"])
    table.delete_all(keys.feedback_by(caller_id, item["sk"]) for item in page.items)
    return page.next_sk


def delete_report(reference: str) -> None:
    """Removes the report with the reference, if it exists."""
    # Texts first: they can be found only through the report.
    for key in _find_keys(reference) or ():
        table.delete(Delete(key))


def list_reports(day: str) -> list[dict[str, Any]]:
    """Returns all reports of a UTC day (2026-03-04), newest first."""
    found: dict[str, dict[str, Any]] = {}
    for pk in keys.feedback_pks(day):
        # A report sent before and after sharding was deployed exists twice, with one reference.
        found |= {item["sk"]: item for item in table.query(pk).items}
    detached = [local for local, item in found.items() if "detached" in item]
    texts = dict(zip(detached, table.batch_get([keys.feedback_text(day, local) for local in detached]), strict=True))
    whole = [_whole(item, texts.get(local)) for local, item in found.items()]
    reports = [report for report in whole if report is not None]
    return sorted(reports, key=lambda report: str(report["createdAt"]), reverse=True)


def set_intake(*, paused: bool) -> None:
    """Pauses or resumes the intake of new reports for all callers, starting with the next request."""
    switch = {"paused": paused, "changedAt": clock.timestamp()}
    copies = [keys.feedback_intake(copy) for copy in range(shards.FEEDBACK_INTAKE)]
    # Functions of earlier releases, which run in parallel for a while, read the single item.
    places = [*copies, keys.single_feedback_intake()]
    table.transact({place.pk: Put({**place._asdict(), **switch}) for place in places})


def get_intake() -> tuple[bool, str | None]:
    """Returns whether intake is paused, and when that last changed (None if never). Consistent."""
    copy, single = table.batch_get([keys.feedback_intake(0), keys.single_feedback_intake()])
    item = copy or single or {}
    return item.get("paused", False), item.get("changedAt")
