"""The findings and vendors of a report, as the inbox and the project show them."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from pydantic import ValidationError

from controlplane.audits import reports
from controlplane.audits.kinds import KINDS
from controlplane.audits.reports import WebsiteAuditReport
from controlplane.findings.discoveries import Discovery, finding_item_id
from controlplane.findings.intake import RuntimeVendorDetection
from controlplane.findings.items import AuditRun, CodeUse, Evidence, RuntimeVendor, VendorPlace
from controlplane.findings.vendors import VendorItem
from controlplane.platform.core.ids import InboxItemId, ProjectId

_SOURCE = "website-audit"
_MOST_PLACES = 3
_VISITORS = {
    "untouched": "of a visitor who hasn't chosen",
    "refused": "of a visitor who refuses",
    "accepted": "of a visitor who accepts",
}


def item_id_of(project_id: ProjectId, audit_id: str, finding_id: str) -> InboxItemId:
    return finding_item_id(project_id.organization_id, "runtime", _SOURCE, audit_id, finding_id)


def detection_of(report: WebsiteAuditReport, vendor: reports.Vendor) -> RuntimeVendorDetection | None:
    """Returns the detection of a vendor, or None if the project's list can't have it."""
    try:
        return RuntimeVendorDetection(
            project_id=report.project_id,
            vendor_id=vendor.vendor_id,
            name=vendor.name,
            domain=vendor.domain,
            category=vendor.category,
            before_consent=vendor.before,
            seen_on=vendor.pages,
            observed_at=report.finished_at,
        )
    except ValidationError:
        return None


def discovery_of(
    report: WebsiteAuditReport, host: str, finding: reports.Finding, stored: Mapping[str, VendorItem]
) -> Discovery:
    """Returns the finding as an inbox discovery, settled if the project ignores its vendor.

    host: that of the audited website. stored: the project's vendors, by ID.
    """
    project_id, about = ProjectId.stored(report.project_id), KINDS[finding.kind]
    known = stored.get(finding.vendor_id or "")
    decision = known.decision if known else None
    vendor = next((it for it in report.vendors if it.vendor_id == finding.vendor_id), None)
    discovery = Discovery(
        organization_id=project_id.organization_id,
        source="runtime",
        identity=(_SOURCE, report.audit_id, finding.id),
        title=finding.title,
        observed_at=report.at,
        summary=finding.summary or None,
        priority=finding.priority,
        project_id=report.project_id,
        description=f"{finding.summary} {about.meaning}".strip(),
        remediation=about.remediation,
        evidence=(
            *(_causes(known.code) if known else ()),
            *(_evidence(it, host, report.at) for it in finding.evidence),
        ),
        runtime_vendor=RuntimeVendor(report.project_id, vendor.vendor_id, vendor.name, vendor.domain)
        if vendor
        else None,
        vendor_ids=(vendor.vendor_id,) if vendor else (),
        decisions=(decision,) if decision else (),
        audit_run=AuditRun(report.audit_id, report.run_id),
    )
    if decision is None or decision.state != "ignored":
        return discovery
    name = vendor.name if vendor else decision.vendor_id
    return discovery._replace(settled=True, settled_reason=f"The project ignored {name}.")


def _evidence(piece: reports.Evidence, host: str, seen_at: str) -> Evidence:
    """Returns the evidence with a link to the page, if that is one of the website."""
    what = f"{piece.description} ({piece.url})" if piece.url and piece.url != piece.page else piece.description
    when = f"{piece.at / 1000:.1f} s after the visit {_VISITORS[piece.visit]} began"
    cause = f". Caused by {', '.join(piece.chain)}" if piece.chain else ""
    page = urlsplit(piece.page).hostname or ""
    is_own = page == host or page.endswith(f".{host}") or host.endswith(f".{page}")
    return Evidence(f"{what}, {when}{cause}", piece.page if page and is_own else None, seen_at=seen_at)


def _causes(uses: tuple[CodeUse, ...]) -> list[Evidence]:
    """Returns the places in the project's code that load the vendor, those without consent first."""
    places = [(use, place) for use in uses for place in use.places if place.gated is not True]
    places.sort(key=lambda it: it[1].gated is not False)
    return [
        Evidence(_cause(use, place), use.url_of(place), place.path if len(place.path) <= 1_000 else None)
        for use, place in places[:_MOST_PLACES]
    ]


def _cause(use: CodeUse, place: VendorPlace) -> str:
    if place.package:
        return f"{place.path} in {use.repository_name} names its package {place.package}"
    consent = " without consent" if place.gated is False else ""
    return f"{place.path} in {use.repository_name} loads it{consent}"
