"""GET /v1/inbox/{itemId}."""

from controlplane.store import inbox
from controlplane.store.inbox_items import Evidence, Fix, RuntimeVendor
from tests.support.api import Api
from tests.support.world import World


class Test200:
    def test_a_code_finding_shows_location_reason_and_remediation(self, api: Api, world: World):
        company = world.company()
        repository = world.connected_repository(company, name="shop")
        fix = Fix("Waits for consent.", "html", "<script></script>")
        item = world.finding(company, repository, confidence="high", fix=fix)
        permalink = f"https://github.com/acme/shop/blob/{'1f0c2b9e' * 5}/src/index.html#L12-L14"
        assert api.get(f"/v1/inbox/{item.item_id}", company.owner.token).data == {
            "id": item.item_id,
            "organizationId": company.organization_id,
            "title": item.title,
            "summary": "It should not be so.",
            "priority": "P2",
            "status": "open",
            "source": "code-audit",
            "projectId": repository.links[0].project_id,
            "repositoryName": "shop",
            "githubIssue": None,
            "updatedAt": "2026-03-04T05:06:07.000Z",
            "version": item.version,
            "description": "Visitors are tracked before they could say no.",
            "confidence": "high",
            "fix": {"summary": "Waits for consent.", "language": "html", "code": "<script></script>", "packages": []},
            "remediation": "Load the tag once consent is given.",
            "references": ["https://example.com/consent"],
            "evidence": [
                {
                    "description": "src/index.html, line 12",
                    "url": permalink,
                    "location": {
                        "path": "src/index.html",
                        "startLine": 12,
                        "endLine": 14,
                        "snippet": '<script src="a.js"></script>',
                    },
                }
            ],
            "runtimeVendor": None,
            "statusReason": None,
            "resolvedBy": None,
            "decisions": [],
            "lockedFindings": None,
        }

    def test_a_runtime_finding_names_the_vendor_to_decide_about(self, api: Api, world: World):
        company = world.company()
        vendor = RuntimeVendor("prj_x", "segment", "Segment", "segment.com")
        seen = Evidence("A request on https://shop.example.com", "https://api.segment.com/v1/t")
        item = world.finding(company, source="runtime", runtime_vendor=vendor, evidence=(seen,), project_id="prj_x")
        shown = api.get(f"/v1/inbox/{item.item_id}", company.owner.token).data
        assert shown["runtimeVendor"] == {
            "projectId": "prj_x",
            "vendorId": "segment",
            "name": "Segment",
            "domain": "segment.com",
        }
        assert shown["evidence"] == [{"description": seen.description, "url": seen.url, "location": None}]

    def test_a_key_and_a_member_can_read_evidence(self, api: Api, world: World):
        company = world.company()
        item = world.finding(company, world.connected_repository(company))
        for token in (world.key(company), world.member(company).token):
            assert len(api.get(f"/v1/inbox/{item.item_id}", token).data["evidence"]) == 1

    def test_a_change_is_visible_at_once(self, api: Api, world: World):
        company = world.company()
        item = world.finding(company)
        changed = inbox.change_status(item, "dismissed", item.version, company.owner.user_id, "a test page")
        shown = api.get(f"/v1/inbox/{item.item_id}", company.owner.token).data
        assert (shown["status"], shown["version"]) == ("dismissed", changed.version)
        assert shown["statusReason"] == "a test page"


class Test403:
    def test_returns_403_without_the_scope(self, api: Api, world: World):
        company = world.company()
        token = world.token(company.owner.user_id, ["inbox.write"])
        reply = api.get(f"/v1/inbox/{world.finding(company).item_id}", token)
        assert reply.code == "INSUFFICIENT_SCOPE"


class Test404:
    def test_another_organizations_item_looks_like_an_unknown_one(self, api: Api, world: World):
        item, other = world.finding(world.company()), world.company()
        unknown = item.item_id[:-18] + "0" * 18
        texts = {
            api.get(f"/v1/inbox/{item_id}", token).text
            for item_id in (item.item_id, unknown)
            for token in (other.owner.token, world.key(other))
        }
        assert len(texts) == 1
        assert api.get(f"/v1/inbox/{item.item_id}", other.owner.token).code == "NOT_FOUND"
