"""How findings and credits develop over time, as charts."""

from collections.abc import Sequence
from typing import NamedTuple

from controlplane.api_keys.usage import DayUsage
from controlplane.scans.items import ScanItem
from dashboard import charts
from dashboard.charts import Chart, Series, Tone

# A chart reads this many completed scans, and shows at most twelve of one repository and project.
TREND_SCANS = 40
_SHOWN = 12
_TONES: dict[str, Tone] = {"P0": "problem", "P1": "warning", "P2": "info", "P3": "accent"}
_LOCKED: Tone = "muted"


class Trend(NamedTuple):
    """The chart of a repository and project."""

    repository_name: str
    project_id: str
    chart: Chart


def trend_of(scans: Sequence[ScanItem]) -> Trend | None:
    """Returns the findings by priority of the last scanned repository and project, or None with less than two scans.

    scans: newest first. Scans of pull requests aren't part of it.
    """
    counted = [scan for scan in scans if scan.status == "completed" and scan.cause.pull_request_number is None]
    if not counted:
        return None
    last = counted[0]
    subject = (last.repository_id, last.project_id)
    shown = [scan for scan in counted if (scan.repository_id, scan.project_id) == subject][:_SHOWN][::-1]
    if len(shown) < 2:
        return None
    visible = [scan.visible_priorities or {} for scan in shown]
    series = [Series(name, [counts.get(name, 0) for counts in visible], tone) for name, tone in _TONES.items()]
    locked = Series("Locked", [scan.locked_count for scan in shown], _LOCKED)
    series = [it for it in (*series, locked) if any(it.values)] or series[:1]
    chart = charts.bars("Findings by priority", charts.labels_of([scan.created_at for scan in shown]), series)
    return Trend(last.repository_name, last.project_id, chart)


def usage_chart(usage: Sequence[DayUsage]) -> Chart:
    """Returns the requests of an API key by day, those over its limit on top."""
    days = charts.labels_of_days(it.day for it in usage)
    accepted = Series("Requests", [it.requests - it.refused for it in usage])
    return charts.bars("Requests by day", days, [accepted, Series("Refused", [it.refused for it in usage], "problem")])
