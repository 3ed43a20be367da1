"""The badge of a project for a README: an SVG at a public address, which an admin creates and can revoke.

It says how many urgent findings are open and when the code was scanned, and names neither project nor organization.
"""

import hmac
from functools import lru_cache
from html import escape
from typing import Annotated, Final, NamedTuple

from fastapi import Path, Response

from controlplane.access.anonymous import AnonymousCaller
from controlplane.code_host import repositories
from controlplane.code_host.items import RepositoryItem
from controlplane.findings import inbox
from controlplane.platform.core import clock
from controlplane.platform.core.errors import NotFound, RateLimited
from controlplane.platform.core.ids import ProjectId
from controlplane.platform.core.settings import settings
from controlplane.platform.core.urls import dashboard_base_url
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.http.callers import CallerRequirements
from controlplane.platform.http.client_address import network_of
from controlplane.platform.http.reader import RequestReader
from controlplane.platform.table import rate
from controlplane.platform.table.parallel import read_both
from controlplane.projects import store as projects
from controlplane.projects.items import ProjectItem
from controlplane.scans import reads
from controlplane.scans.items import ScanItem

router = ControlRouter(tags=["Pages"], include_in_schema=False)

# Of each badge, in this environment. Requests for unknown ones are counted by address.
_REQUESTS_PER_MINUTE = 300
# How long clients, and at most this environment, keep a badge, and how many it keeps.
_FRESH_SECONDS, _MOST_KEPT = 300, 1_000
# Of the organization's lists. With more, the number is a lower bound, or the badge says that it doesn't cover all.
_MOST_OPEN, _MOST_REPOSITORIES = 500, 100
_URGENT = ("P0", "P1")
_GOOD, _BAD, _CALM = "#17603f", "#9c2318", "#5b625e"
_CHARACTER, _PADDING = 6.6, 12
_HEADERS: Final = {
    "content-type": "image/svg+xml",
    "cache-control": f"public, max-age={_FRESH_SECONDS}",
    "content-security-policy": "default-src 'none'",
    "x-content-type-options": "nosniff",
}


class UnknownBadge(NotFound):
    """No project has the badge, or it was revoked."""


class Shown(NamedTuple):
    """The text of a badge, and its color."""

    text: str
    color: str


class _Viewer(CallerRequirements[AnonymousCaller]):
    """The endpoint counts its requests: the code host's proxy requests the badges of all customers."""

    def identify(self, request: RequestReader) -> AnonymousCaller:
        return AnonymousCaller(request.address)


# The last minute of each project or address, and its requests in it.
_counts: dict[str, tuple[int, int]] = {}


@router.get("/badges/{badge}")
async def get_badge(caller: Annotated[AnonymousCaller, _Viewer()], badge: Annotated[str, Path()]) -> Response:
    """Returns the badge at its secret address."""
    project = _find_project(badge)
    subject = project.project_id if project else network_of(caller.address)
    counted = rate.count_in_memory(_counts, subject, _REQUESTS_PER_MINUTE)
    if counted.hits > counted.limit:
        raise RateLimited(counted.resets_at - int(clock.now()))
    if project is None:
        raise UnknownBadge
    shown = _read(project.project_id, int(clock.now()) // _FRESH_SECONDS)
    return Response(_draw(settings.service_brand, shown), headers=_HEADERS)


def badge_url(project: ProjectItem) -> str | None:
    """Returns the address of the project's badge, or None if it has none."""
    if project.badge is None:
        return None
    return f"{dashboard_base_url()}/badges/{project.project_id.removeprefix('prj_')}-{project.badge}.svg"


def _find_project(badge: str) -> ProjectItem | None:
    place, _, secret = badge.removesuffix(".svg").partition("-")
    project_id = ProjectId.parse(f"{ProjectId.prefix}_{place}")
    project = projects.find_project(project_id) if project_id is not None else None
    if project is None or project.badge is None or not hmac.compare_digest(project.badge.encode(), secret.encode()):
        return None
    return project


@lru_cache(_MOST_KEPT)
def _read(project_id: ProjectId, _window: int) -> Shown:
    """Reads what the badge shows, in three round trips, once in each window. It is only green if nothing is unknown."""
    organization_id = project_id.organization_id
    found, connected = read_both(
        lambda: inbox.read_positions(organization_id, "open", _MOST_OPEN, None),
        lambda: repositories.list_repositories(organization_id, _MOST_REPOSITORIES, None),
    )
    linked = [repository for repository in connected.items if repository.find_link(project_id)]
    latest = reads.find_latest_scans(project_id, [repository.repository_id for repository in linked])
    if not latest:
        return Shown("not scanned", _CALM)
    urgent = sum(item.project_id == project_id and item.priority in _URGENT for item in found.items)
    locked = sum(scan.locked_count for scan in latest.values())
    covered = sum(_is_covered(it, project_id, latest.get(it.repository_id)) for it in linked)
    parts = [f"{urgent}{'+' if found.next_position else ''} open P0/P1"]
    if locked:
        parts.append(f"{locked} locked")
    if connected.next_sk or covered < len(linked):
        parts.append(f"not all code, {covered} of {len(linked)}{'+' if connected.next_sk else ''} repositories")
    is_unknown = len(parts) > 1 or found.next_position
    parts.append(f"scanned {min(scan.created_at for scan in latest.values())[:10]}")
    return Shown(", ".join(parts), _BAD if urgent else _CALM if is_unknown else _GOOD)


def _is_covered(repository: RepositoryItem, project_id: ProjectId, scan: ScanItem | None) -> bool:
    """Returns whether the scan is a whole one of the folder and branch that the repository's link names now."""
    link = repository.find_link(project_id)
    if scan is None or link is None or (scan.coverage and scan.coverage.incomplete):
        return False
    branch = link.production_branch or repository.default_branch
    return scan.root_directory == link.root_directory and branch in {None, scan.branch}


def _draw(label: str, shown: Shown) -> str:
    left, right = (_PADDING + _CHARACTER * len(text) for text in (label, shown.text))
    width, name = left + right, escape(f"{label}: {shown.text}")
    inner = right - 3  # without the round corners
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="20" role="img" aria-label="{name}">'
        f'<title>{name}</title><rect width="{width:.0f}" height="20" rx="3" fill="#2b302d"/>'
        f'<path fill="{shown.color}" d="M{left:.0f} 0h{inner:.0f}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3h-{inner:.0f}z"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">'
        f"{_text(left / 2, left, label)}{_text(left + right / 2, right, shown.text)}</g></svg>"
    )


def _text(middle: float, width: float, text: str) -> str:
    """Returns a text that fills its part, whatever font there is."""
    return f'<text x="{middle:.1f}" y="14" textLength="{width - _PADDING:.0f}">{escape(text)}</text>'
