"""GET /v1/inbox/{itemId}, and the fields that GET /v1/inbox has of an item."""

from controlplane.findings.fixes import Edit, Fix
from controlplane.findings.items import Evidence, RuntimeVendor


def test_a_code_finding_shows_location_reason_and_remediation(acme, world):
    repository = acme.connect(name="shop")
    fix = Fix("Waits for consent.", "html", "", edits=(Edit("src/a.html", 3, "<script>", "<script async>"),))
    item = acme.find(repository, confidence="high", fix=fix)
    listed = {
        "id": item.item_id,
        "organizationId": acme.id,
        "title": item.title,
        "summary": "It should not be so.",
        "priority": "P2",
        "status": "open",
        "source": "code-audit",
        "projectId": repository.links[0].project_id,
        "repositoryName": "shop",
        "githubIssue": None,
        "runtimeVendor": None,
        "assignee": None,
        "updatedAt": "2026-03-04T05:06:07.000Z",
        "version": item.version,
    }
    location = {
        "path": "src/index.html",
        "startLine": 12,
        "endLine": 14,
        "snippet": '<script src="a.js"></script>',
        "lines": [{"number": 12, "text": '<script src="a.js"></script>'}],
    }
    permalink = f"https://github.com/acme/shop/blob/{'1f0c2b9e' * 5}/src/index.html#L12-L14"
    detail = {
        **listed,
        "description": "Visitors are tracked before they could say no.",
        "confidence": "high",
        "fix": {
            "summary": "Waits for consent.",
            "language": "html",
            "code": "",
            "packages": [],
            "edits": [{"path": "src/a.html", "startLine": 3, "before": "<script>", "after": "<script async>"}],
        },
        "remediation": "Load the tag once consent is given.",
        "references": ["https://example.com/consent"],
        "evidence": [{"description": "src/index.html, line 12", "url": permalink, "location": location}],
        "statusReason": None,
        "dismissedUntil": None,
        "resolvedBy": None,
        "vendorIds": [],
        "decisions": [],
        "comments": [],
        "lockedFindings": None,
    }
    for who in (acme.owner.token, world.member(acme.company).token, world.key(acme.company)):
        assert acme.listed(who=who).data == [listed]
        assert acme.get(item, who) == detail


def test_a_runtime_finding_names_the_vendor_to_decide_about(acme):
    vendor = RuntimeVendor("prj_x", "segment", "Segment", "segment.com")
    seen = Evidence("A request on https://shop.example.com", "https://api.segment.com/v1/t")
    shown = acme.get(acme.find(source="runtime", runtime_vendor=vendor, evidence=(seen,), project_id="prj_x"))
    assert shown["runtimeVendor"] == {
        "projectId": "prj_x", "vendorId": "segment", "name": "Segment", "domain": "segment.com",
    }  # fmt: skip
    assert shown["evidence"] == [{"description": seen.description, "url": seen.url, "location": None}]


def test_fields_that_the_source_lacks_are_null(acme):
    acme.find(summary=None, priority=None)
    (shown,) = acme.listed().data
    lacking = {"summary", "priority", "projectId", "repositoryName", "githubIssue", "runtimeVendor", "assignee"}
    assert {name for name, value in shown.items() if value is None} == lacking
