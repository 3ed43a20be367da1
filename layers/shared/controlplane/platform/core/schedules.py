"""The times of scheduled scans and website audits, computed from the schedule and IDs, so that no state is needed."""

import hashlib
from typing import Literal

Schedule = Literal["daily", "weekly"]

_MINUTE_SECONDS = 60
_PERIOD_MINUTES: dict[Schedule, int] = {"daily": 24 * 60, "weekly": 7 * 24 * 60}


def next_run(schedule: Schedule, subject_id: str, project_id: str, after: float) -> float:
    """Returns the first time of a schedule later than `after`, both in Unix seconds.

    subject_id: that of what is scheduled for the project. A hash of the IDs selects the minute of the day in UTC, or of
    the week, so that all schedules are spread evenly. A run is due in the interval (a, b] if `next_run(…, a) <= b`.
    """
    digest = hashlib.sha256(f"{subject_id}\0{project_id}".encode()).digest()
    period = _PERIOD_MINUTES[schedule] * _MINUTE_SECONDS
    offset = int.from_bytes(digest[:8]) % _PERIOD_MINUTES[schedule] * _MINUTE_SECONDS
    elapsed_periods = (after - offset) // period
    return (elapsed_periods + 1) * period + offset
