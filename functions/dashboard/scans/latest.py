"""The latest scans of a repository and project, and how their findings develop over time, as a chart."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from controlplane.platform.core.ids import ProjectId, RepositoryId
from controlplane.platform.table.parallel import read_each
from controlplane.scans import reads
from controlplane.scans.items import ScanItem
from dashboard import charts
from dashboard.charts import Chart, Series, Tone

# Scans that a project's page lists.
SHOWN = 5
# A chart reads this many completed scans, and shows at most twelve of one repository and project.
TREND_SCANS = 40
_CHARTED = 12
# A repository can be scanned for several projects, of which a project's page lists one.
_READ_FOR_LATEST = 25
# A project's page looks at the scans of each linked repository, but of more than this at the organization's last scans.
_MOST_REPOSITORIES, _READ_OF_ORGANIZATION = 8, 100
_TONES: dict[str, Tone] = {"P0": "problem", "P1": "warning", "P2": "info", "P3": "accent"}
_LOCKED: Tone = "muted"


class Trend(NamedTuple):
    """The chart of a repository and project."""

    repository_name: str
    project_id: str
    chart: Chart


def list_latest(project_id: ProjectId, repository_ids: Sequence[RepositoryId]) -> list[ScanItem]:
    """Returns the project's scans among the latest of its repositories, newest first, in one round trip."""
    organization_id = project_id.organization_id

    def list_scans(repository_id: RepositoryId) -> list[ScanItem]:
        return reads.list_scans(organization_id, _READ_FOR_LATEST, None, repository_id).items

    listed: Iterable[ScanItem]
    if len(repository_ids) <= _MOST_REPOSITORIES:
        listed = chain.from_iterable(read_each(list_scans, repository_ids))
    else:
        listed = reads.list_scans(organization_id, _READ_OF_ORGANIZATION, None).items
    own = (scan for scan in listed if scan.project_id == project_id)
    return sorted(own, key=lambda scan: scan.created_at, reverse=True)


def trend_of(scans: Sequence[ScanItem]) -> Trend | None:
    """Returns the findings by priority of the last scanned repository and project, or None with less than two scans.

    scans: newest first. Scans of pull requests aren't part of it.
    """
    counted = [scan for scan in scans if scan.status == "completed" and scan.cause.pull_request_number is None]
    if not counted:
        return None
    last = counted[0]
    subject = (last.repository_id, last.project_id)
    shown = [scan for scan in counted if (scan.repository_id, scan.project_id) == subject][:_CHARTED][::-1]
    if len(shown) < 2:
        return None
    visible = [scan.visible_priorities or {} for scan in shown]
    series = [Series(name, [counts.get(name, 0) for counts in visible], tone) for name, tone in _TONES.items()]
    locked = Series("Locked", [scan.locked_count for scan in shown], _LOCKED)
    series = [it for it in (*series, locked) if any(it.values)] or series[:1]
    chart = charts.bars("Findings by priority", charts.labels_of([scan.created_at for scan in shown]), series)
    return Trend(last.repository_name, last.project_id, chart)
