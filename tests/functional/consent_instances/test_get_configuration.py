"""The public configuration of a consent instance: what it shows, who may read it, how often, and what it costs."""

import pytest

from consent_instances import service
from controlplane.billing import store as billing
from controlplane.platform.core.settings import settings
from controlplane.platform.table.table import Put, table
from controlplane.projects.items import MAX_CONFIGURED_VENDORS, MAX_DECIDED_VENDORS, ConfiguredVendor, ProjectItem
from tests.functional.projects.builders import add_audits, without_consent
from tests.functional.projects.conftest import Organization, reread
from tests.functional.projects.test_vendors import detect
from tests.support.api import Api, Reply
from tests.support.calls import recorded_calls
from tests.support.each import each
from tests.support.table import PREPARED
from tests.support.world import World

SITE = {"Origin": "https://example.com"}


@pytest.fixture
def acme(api: Api, world: World) -> Organization:
    return Organization(api, world)


@pytest.fixture
def project(acme):
    return acme.project("example.com", "*.example.org")


def path_of(project: ProjectItem) -> str:
    assert project.consent is not None
    return f"/v1/consent-instances/{project.consent.instance_id}/configuration"


def read(acme: Organization, project: ProjectItem, **headers: str) -> Reply:
    return acme.api.get(path_of(project), headers={name.replace("_", "-"): text for name, text in headers.items()})


class TestContents:
    def test_it_has_the_origins_the_branding_and_the_vendors_and_nothing_else(self, acme, project):
        detect(project, category="analytics", seenOn=["https://example.com/account/jane"])
        acme.decide(project)
        detect(project, "adform", name="Adform", domain="adform.net")
        assert read(acme, project).data == {
            "instanceId": project.consent.instance_id,
            "version": reread(project).version,
            "origins": ["example.com", "*.example.org"],
            "branding": "assent",
            "vendors": [
                {"vendorId": "adform", "name": "Adform", "domain": "adform.net", "category": None, "state": None},
                {
                    "vendorId": "segment",
                    "name": "Segment",
                    "domain": "segment.com",
                    "category": "analytics",
                    "state": "approved",
                },
            ],
        }

    def test_the_address_and_version_in_the_projects_responses_are_those_of_the_configuration(self, acme, project):
        for _ in range(2):
            shown, listed = acme.get(project).data["consent"], acme.call("GET").data[0]["products"]["consent"]
            address = f"https://api.assent.test{path_of(project)}"
            assert {f"{shown['backendUrl']}/configuration", f"{listed['backendURL']}/configuration"} == {address}
            version = read(acme, project).data["version"]
            assert {shown["version"], listed["backendVersion"]} == {version}
            acme.decide(project, "ignore")
        assert read(acme, project).data["vendors"][0]["state"] == "ignored"

    def test_a_change_of_websites_branding_decision_or_vendor_is_in_the_next_response(self, acme, project):
        detect(project)
        changes = {
            "origins": lambda: acme.update(project, websites=["new.example.com"]),
            "branding": lambda: acme.update(project, consent={"branding": "none"}),
            "a decision": lambda: acme.decide(project),
            "a category": lambda: detect(project, category="marketing", observedAt="2026-03-04T05:01:00Z"),
        }
        seen = [read(acme, project)]
        for change in changes.values():
            change()
            seen.append(read(acme, project))
        assert len({reply.data["version"] for reply in seen}) == len({reply.headers["etag"] for reply in seen}) == 5
        last = seen[-1].data
        assert (last["origins"], last["branding"]) == (["new.example.com"], "none")
        assert (last["vendors"][0]["state"], last["vendors"][0]["category"]) == ("approved", "marketing")

    def test_a_change_of_a_website_keeps_the_vendors(self, acme, project):
        detect(project)
        acme.update(project, projectName="Market")
        add_audits(reread(project))
        assert [vendor["vendorId"] for vendor in read(acme, project).data["vendors"]] == ["segment"]

    def test_a_repeated_detection_or_decision_does_not_change_the_version(self, acme, project):
        for state in range(2):
            detect(project, observedAt=f"2026-03-04T05:0{state}:00Z")
            acme.decide(project)
            version = read(acme, project).data["version"]
            detect(project, observedAt=f"2026-03-04T05:0{state}:30Z")
            acme.decide(project)
            assert read(acme, project).data["version"] == version

    def test_a_downgrade_makes_the_removed_branding_ineffective_and_an_upgrade_restores_it(self, acme):
        project = acme.project(branding="none")
        seen = []
        for plan in ("pro", "starter", "pro"):
            billing.change_plan(acme.id, plan)
            shown = read(acme, project)
            assert shown.data["version"] == acme.get(project).data["consent"]["version"]
            seen.append((shown.data["branding"], shown.headers["etag"]))
        assert [branding for branding, _ in seen] == ["none", "assent", "none"]
        assert seen[0] == seen[2] != seen[1]

    def test_beyond_the_most_vendors_those_with_a_decision_stay(self, project):
        full = project.with_vendors(*(ConfiguredVendor(f"v{number}") for number in range(MAX_CONFIGURED_VENDORS + 1)))
        assert len(full.vendors) == MAX_CONFIGURED_VENDORS
        decided = full.with_vendors(ConfiguredVendor("late", state="ignored"))
        assert (decided.vendors[0].vendor_id, len(decided.vendors)) == ("late", MAX_CONFIGURED_VENDORS)
        assert full.with_vendors(ConfiguredVendor("later")) is full

    def test_decisions_are_in_the_configuration_up_to_their_limit_and_then_refused(self, acme, project):
        decided = [ConfiguredVendor(f"v{number}", state="ignored") for number in range(MAX_DECIDED_VENDORS - 1)]
        table.put(Put(project.with_vendors(*decided).to_item()), PREPARED)
        assert (acme.decide(project, vendor_id="segment").status, len(reread(project).vendors)) == (200, 400)
        refused = acme.decide(project, vendor_id="hotjar")
        assert (refused.status, refused.code, refused.error["details"]["limit"]) == (409, "CONFLICT", 400)
        assert acme.decide(project, "ignore", "segment").status == 200
        states = {it["vendorId"]: it["state"] for it in read(acme, project).data["vendors"]}
        assert (len(states), states["segment"], "hotjar" in states) == (400, "ignored", False)


class TestUnknown:
    def test_a_deleted_project_an_organization_and_an_unknown_instance_have_no_configuration(self, acme, project):
        assert read(acme, project).status == 200
        acme.delete(project)
        assert (read(acme, project).status, read(acme, project).code) == (404, "NOT_FOUND")
        with recorded_calls() as calls:
            for wrong in ("-", project.project_id, "ins_" + "0" * 34):
                assert acme.api.get(f"/v1/consent-instances/{wrong}/configuration").code == "NOT_FOUND"
        assert {call.operation for call in calls} == {"BatchGetItem"}
        bare = acme.project()
        without_consent(bare)
        assert read(acme, bare).status == 404


class TestCaching:
    def test_a_current_copy_is_304_without_a_body(self, acme, project):
        first = read(acme, project)
        etag = first.headers["etag"]
        assert (first.headers["cache-control"], etag[0]) == ("public, max-age=60", '"')
        for known in (etag, f"W/{etag}", f'"other", {etag}', "*"):
            again = read(acme, project, If_None_Match=known, **SITE)
            assert (again.status, again.text, again.headers["etag"]) == (304, "", etag)
            assert again.headers["access-control-allow-origin"] == "https://example.com"
        acme.update(project, websites=["new.example.com"])
        assert read(acme, project, If_None_Match=etag).status == 200


class TestOrigins:
    @each(
        ("origin", "is_allowed"),
        [
            ("https://example.com", True),
            ("http://example.com", True),
            ("https://a.b.example.org", True),
            ("https://example.org", False),
            ("https://badexample.org", False),
            ("https://example.com:8443", False),
            ("https://example.com.evil.test", False),
            ("capacitor://example.com", False),
            ("null", False),
            ("", False),
        ],
    )
    def test_only_the_projects_websites_may_read_it_in_a_browser(self, origin, is_allowed, acme, project):
        for method, status in (("GET", 200), ("OPTIONS", 204)):
            reply = acme.api.call(method, path_of(project), headers={"Origin": origin})
            assert (reply.status, "Origin" in reply.headers["vary"]) == (status, True)
            assert reply.headers.get("access-control-allow-origin") == (origin if is_allowed else None)
        assert ("access-control-allow-methods" in reply.headers) is is_allowed

    @each(
        ("website", "origin", "is_allowed"),
        [
            ("*", "https://anything.test", True),
            ("*", "null", False),
            ("localhost:3000", "http://localhost:3000", True),
            ("localhost:3000", "http://localhost:3001", False),
            ("capacitor://localhost", "capacitor://localhost", True),
            ("capacitor://localhost", "https://localhost", False),
            ("*.example.com:8080", "https://a.example.com:8080", True),
            ("[2001:db8::1]", "https://[2001:db8::1]", True),
        ],
    )
    def test_each_form_of_a_website_allows_its_own_origin(self, website, origin, is_allowed, acme):
        assert service.allows(acme.project(website), origin) is is_allowed


class TestLimit:
    @pytest.fixture(autouse=True)
    def _limit(self, monkeypatch):
        monkeypatch.setitem(settings.__dict__, "configuration_requests_per_minute", 200)

    def test_a_request_costs_a_read_and_a_block_a_write_which_grows_up_to_one_percent_of_the_limit(
        self, acme, project, monkeypatch, now
    ):
        monkeypatch.setitem(settings.__dict__, "configuration_requests_per_minute", 1_000)
        for _ in range(2):
            with recorded_calls() as calls:
                for _ in range(1 + 2 + 4 + 8 + 10 + 1):
                    assert read(acme, project).status == 200
            kinds = [call.operation for call in calls]
            assert (kinds.count("BatchGetItem"), kinds.count("UpdateItem"), len(kinds)) == (26, 6, 32)
            now.advance(60)

    def test_many_environments_with_one_request_each_use_up_no_more_than_these(self, acme, project, monkeypatch):
        statuses = []
        for _ in range(201):
            for memory in ("_reserved", "_counts"):
                monkeypatch.setattr(service, memory, {})
            statuses.append(read(acme, project).status)
        assert statuses == [200] * 200 + [429]

    def test_an_address_is_limited_without_any_call_before_it_uses_up_the_limit_of_the_instance(
        self, acme, project, now
    ):
        assert [read(acme, project).status for _ in range(21)] == [200] * 20 + [429]
        with recorded_calls() as calls:
            for path in (path_of(project), f"/v1/consent-instances/ins_{'0' * 34}/configuration"):
                refused = acme.api.get(path)
                assert (refused.code, refused.headers["retry-after"]) == ("RATE_LIMITED", "53")
                assert acme.api.call("OPTIONS", path).status == 429
        assert calls == []
        assert Api(source_ip="2001:db8::1").get(path_of(project)).status == 200
        now.advance(60)
        assert read(acme, project).status == 200

    def test_the_instance_is_limited_per_minute_and_then_refused_without_any_call(self, acme, project, now):
        visitors = [Api(source_ip=f"203.0.113.{number // 20}") for number in range(201)]
        statuses = [visitor.get(path_of(project)).status for visitor in visitors]
        assert statuses == [200] * 200 + [429]
        other = acme.project(name="Other")
        with recorded_calls() as calls:
            refused = read(acme, project)
        assert (refused.code, refused.headers["retry-after"], calls) == ("RATE_LIMITED", "53", [])
        assert read(acme, other).status == 200
        now.advance(60)
        assert read(acme, project).status == 200
