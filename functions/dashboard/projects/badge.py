"""The badge of a project for a README: an SVG at a public address, which an admin creates and can revoke.

It says how many urgent findings are open and when the code was scanned, and names neither project nor organization.
"""

import hmac
from html import escape
from typing import Annotated, Final, NamedTuple

from fastapi import Path, Response

from controlplane.access.anonymous import Anonymous, AnonymousCaller
from controlplane.findings import inbox
from controlplane.platform.core.errors import NotFound
from controlplane.platform.core.ids import ProjectId
from controlplane.platform.core.settings import settings
from controlplane.platform.core.urls import dashboard_base_url
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.table.parallel import read_both
from controlplane.projects import store as projects
from controlplane.projects.items import ProjectItem
from controlplane.scans import reads
from controlplane.scans.items import ScanItem

router = ControlRouter(tags=["Pages"], include_in_schema=False)

# The code host's proxy requests the badges of many READMEs from few addresses, each once while its copy is fresh.
_REQUESTS_PER_MINUTE = 300
_FRESH_SECONDS = 300
# Of the organization's lists. With more, the number is a lower bound, and the date may be missing.
_MOST_OPEN, _MOST_SCANS = 1_000, 100
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


@router.get("/badges/{badge}", operation_id="getBadge")
async def get_badge(
    _: Annotated[AnonymousCaller, Anonymous("pages.badges", _REQUESTS_PER_MINUTE)], badge: Annotated[str, Path()]
) -> Response:
    """Returns the badge at its secret address."""
    project = _find_project(badge)
    if project is None:
        raise UnknownBadge
    return Response(_draw(settings.service_brand, _read(project.project_id)), headers=_HEADERS)


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


def _read(project_id: ProjectId) -> Shown:
    organization_id = project_id.organization_id
    found, scans = read_both(
        lambda: inbox.read_positions(organization_id, "open", _MOST_OPEN, None),
        lambda: reads.list_scans(organization_id, _MOST_SCANS, None, status="completed").items,
    )
    # The latest of each repository and folder. Those of pull requests say nothing about what is released.
    latest: dict[tuple[str, str | None], ScanItem] = {}
    for scan in scans:
        if scan.project_id == project_id and scan.cause.pull_request_number is None:
            latest.setdefault((scan.repository_id, scan.root_directory), scan)
    if not latest:
        return Shown("no recent scan", _CALM)
    urgent = sum(item.project_id == project_id and item.priority in _URGENT for item in found.items)
    locked = sum(scan.locked_count for scan in latest.values())
    scanned = max(scan.created_at for scan in latest.values())[:10]
    number = f"{urgent}{'+' if found.next_position else ''} open P0/P1{f', {locked} locked' if locked else ''}"
    is_unknown = locked or found.next_position
    return Shown(f"{number}, scanned {scanned}", _BAD if urgent else _CALM if is_unknown else _GOOD)


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
