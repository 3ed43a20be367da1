"""Reports on the service itself, as agents and people send them.

A report's key follows from UTC day, caller and content: the same report of the same caller is one item a day, however
often it is sent, and its reference says where it is. The transaction that writes a report counts it against the
caller's hour. Whether intake is paused is read before: a report that passes in that moment does no harm.
"""

import json
import re
import secrets
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from controlplane import clock, ids
from controlplane.retention import expiry
from controlplane.settings import settings
from controlplane.store import keys, shards
from controlplane.store.keys import Key
from controlplane.store.table import Delete, Leg, LegFailed, Put, StoreError, Update, table

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
# What a report may have, as JSON, for its item to stay below 1 KB: the rest of the item has some 350 bytes.
INLINE_BYTES = 600

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
    if _is_paused():
        return _repeated(caller_id, local, moment)
    legs: dict[str, Leg] = {
        **(first or {}),
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
    """The item of a report among those of its day, which is below 1 KB, the one under its caller, and long texts."""
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
    """What a report gets while intake is paused: its receipt if it was taken before. Raises as `submit_report` does."""
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
    """Whether an earlier release has paused intake; from this one on, a change of the switch writes its copies."""
    return bool((table.get(keys.single_feedback_intake()) or {}).get("paused", False))


def _reference(day: str, local: str) -> str:
    groups = "-".join(local[start : start + 6] for start in range(0, len(local), 6))
    return f"FDB-{day.replace('-', '')}-{groups.upper()}"


def get_report(reference: str) -> dict[str, Any]:
    """The report of a reference, in whatever letter case. Consistent. Raises UnknownReport."""
    places = _find_keys(reference)
    if places is None:
        raise UnknownReport
    text, report, unsharded = table.batch_get(list(places))
    whole = _whole(report or unsharded, text)
    if whole is None:
        raise UnknownReport
    return whole


def _whole(item: dict[str, Any] | None, text: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The report with its texts, as if they were in one item. None if one of the two has expired."""
    if item is None or "detached" not in item:
        return item
    return None if text is None else {**text, **{name: item[name] for name in item if name != "detached"}}


def _find_keys(reference: str) -> tuple[Key, Key, Key] | None:
    """Where a report's texts may be, the report, and the report of an earlier release; None if it is no reference."""
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

    Reports of earlier releases have no item under their caller, and are not found here.
    """
    page = table.query(keys.feedback_by_pk(caller_id), after=after, limit=_PAGE, consistent=True)
    for item in page.items:
        delete_report(item["sk"])
    table.delete_all(keys.feedback_by(caller_id, item["sk"]) for item in page.items)
    return page.next_sk


def delete_report(reference: str) -> None:
    """Removes the report of a reference, if it is there."""
    # The texts first: only the report leads to them.
    for key in _find_keys(reference) or ():
        table.delete(Delete(key))


def list_reports(day: str) -> list[dict[str, Any]]:
    """All reports of a UTC day (2026-03-04), the newest first."""
    found: dict[str, dict[str, Any]] = {}
    for pk in keys.feedback_pks(day):
        # One that was sent before and after the deployment of the sharding is there twice, under one reference.
        found |= {item["sk"]: item for item in table.query(pk).items}
    detached = [local for local, item in found.items() if "detached" in item]
    texts = dict(zip(detached, table.batch_get([keys.feedback_text(day, local) for local in detached]), strict=True))
    whole = [_whole(item, texts.get(local)) for local, item in found.items()]
    reports = [report for report in whole if report is not None]
    return sorted(reports, key=lambda report: str(report["createdAt"]), reverse=True)


def set_intake(*, paused: bool) -> None:
    """Pauses or resumes the intake of new reports, for every caller and from the next request on."""
    switch = {"paused": paused, "changedAt": clock.timestamp()}
    copies = [keys.feedback_intake(copy) for copy in range(shards.FEEDBACK_INTAKE)]
    # Functions of earlier releases, which run for a while next to these, read the single one.
    places = [*copies, keys.single_feedback_intake()]
    table.transact({place.pk: Put({**place._asdict(), **switch}) for place in places})


def get_intake() -> tuple[bool, str | None]:
    """Whether intake is paused, and since when; None if it never was paused. Consistent."""
    copy, single = table.batch_get([keys.feedback_intake(0), keys.single_feedback_intake()])
    item = copy or single or {}
    return item.get("paused", False), item.get("changedAt")
