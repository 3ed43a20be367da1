"""Applies a project's decisions on vendors to the findings of its code.

A finding is settled if all of its vendors are decided on, and only if it is about loading them: approving a vendor
doesn't approve sending it personal data. A person's later decision on the finding itself counts more.
"""

from collections.abc import Iterable, Mapping

from controlplane.findings.items import Discovery, VendorDecision
from controlplane.findings.vendors import DecidedVendor
from controlplane.scans.findings import FindingItem, FindingVendor
from openassent_analysis.catalogue import Catalogue, Vendor, catalogue

# A decision is about loading a vendor. It doesn't excuse personal data or secrets in code that calls the vendor.
_CATEGORIES = frozenset({"trackers", "banner"})

type Decisions = Mapping[str, VendorDecision]


def vendor_of(decided: DecidedVendor, known: Catalogue) -> Vendor | None:
    """Returns the catalogue's vendor that the decision is about, or None if the catalogue doesn't contain it.

    The runtime may use other ids than the catalogue. Then the vendor is found by domain: the id, if it is one, or the
    domain from which the runtime saw the vendor loaded.
    """
    vendor_id = decided.decision.vendor_id
    return known.vendors.get(vendor_id) or known.vendor_of(vendor_id) or known.vendor_of(decided.domain or "")


def by_vendor(decided: Iterable[DecidedVendor]) -> Decisions:
    """Returns the decisions by the catalogue's vendor id. The last one counts if several are about the same vendor."""
    found: dict[str, VendorDecision] = {}
    for entry in sorted(decided, key=lambda it: it.decision.decided_at):
        if vendor := vendor_of(entry, catalogue()):
            found[vendor.id] = entry.decision
    return found


def vendors_of(vendor_ids: Iterable[str]) -> tuple[FindingVendor, ...]:
    """Returns the vendors as a finding stores them."""
    known = catalogue().vendors
    return tuple(
        FindingVendor(it.id, it.name, it.domains[0].partition("/")[0]) for it in map(known.__getitem__, vendor_ids)
    )


def apply(decisions: Decisions, finding: FindingItem, discovery: Discovery) -> Discovery:
    """Returns the discovery of the finding, settled if all vendors that the finding is about are decided on."""
    if finding.category not in _CATEGORIES or not finding.vendors:
        return discovery
    if not all(vendor.id in decisions for vendor in finding.vendors):
        return discovery
    decided = tuple(decisions[vendor.id] for vendor in finding.vendors)
    said = ", ".join(f"{it.state} {vendor.name}" for it, vendor in zip(decided, finding.vendors, strict=True))
    return discovery._replace(settled=True, settled_reason=f"The project {said}.", decisions=decided)
