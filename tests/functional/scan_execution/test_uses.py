"""A scan writes the vendors that it found into the projects that its repository is linked to."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from controlplane.code_host import repositories
from controlplane.code_host.items import Link
from controlplane.findings import code_uses, intake, vendors
from controlplane.findings.code_uses import FoundVendor, record_uses
from controlplane.findings.items import CodeUse, VendorPlace
from controlplane.platform.core.ids import ProjectId
from controlplane.platform.queues.messages import PublishScan
from controlplane.platform.table.stored import to_map
from controlplane.platform.table.table import Put, table
from controlplane.projects import store as projects
from controlplane.scans.items import Cause
from openassent_analysis.catalogue import catalogue
from tests.functional.projects.builders import make_project
from tests.functional.scan_execution.repeated_scans import BING, GA, HOTJAR, Audit, page
from tests.functional.scan_execution.test_access_levels import unlock  # noqa: F401 (a fixture)
from tests.support import invariants
from tests.support.api import Api
from tests.support.calls import recorded_calls
from tests.support.cleanup import finish_deletions
from tests.support.populated_organization import detection
from tests.support.sqs import FakeSqs
from tests.support.table import PREPARED
from tests.support.world import Company, World

MANIFEST = {"package.json": json.dumps({"dependencies": {"mixpanel-browser": "^2.0.0"}})}
LATER = (
    "if (hasConsent('analytics')) { const s = document.createElement('script'); s.src = '//static.hotjar.com/c/h.js'; }"
)
BOTH = {"a.html": page(GA), "src/later.js": LATER, **MANIFEST}
# Four findings, of which a free preview shows three.
MORE = {"a.html": page(GA), "b.html": page(HOTJAR), "c.html": page(BING), "d.html": page(GA), **MANIFEST}


class Lists:
    """The vendors of projects, as the API lists them to the owner."""

    def __init__(self, audit: Audit, api: Api, company: Company) -> None:
        self._api, self.owner = api, company.owner
        self.project_id = audit.repository.links[0].project_id

    def __call__(self, project_id: str | None = None) -> dict[str, dict[str, Any]]:
        reply = self._api.get(f"/v1/projects/{project_id or self.project_id}/vendors", self.owner.token)
        return {vendor["vendorId"]: vendor for vendor in reply.data}

    def uses(self, project_id: str | None = None) -> dict[str, dict[str, bool | None]]:
        """Returns whether each file gates each vendor. Without a vendor that the last scan no longer found."""
        return {
            vendor_id: {place["path"]: place["gated"] for use in vendor["repositories"] for place in use["places"]}
            for vendor_id, vendor in self(project_id).items()
        }

    def decide(self, vendor_id: str, decision: str) -> Any:
        path = f"/v1/projects/{self.project_id}/vendors/{vendor_id}/decision"
        return self._api.post(path, self.owner.token, json_body={"decision": decision})


@pytest.fixture
def lists(audit: Audit, api: Api, company: Company) -> Lists:
    return Lists(audit, api, company)


@pytest.fixture(autouse=True)
def _configured() -> Iterator[None]:
    """The public configuration has the vendors that the project has, after every test."""
    yield
    invariants.configurations_have_the_vendors(invariants.read_items(table.client, table.name))


def test_the_vendors_of_a_scan_are_listed_with_their_places_next_to_those_of_websites(audit, lists):
    intake.record_detection(detection(lists.project_id, "hotjar", name="Hotjar on the site"))
    scan = audit.scan(BOTH)
    assert lists.uses() == {
        "google-analytics": {"a.html": False},
        "hotjar": {"src/later.js": True},
        "mixpanel": {"package.json": None},
    }
    listed = lists()
    found = listed["google-analytics"]
    assert [found[name] for name in ("name", "category", "state", "reviewState", "domain", "lastSeenAt")] == [
        "Google Analytics", "analytics", None, "suggested", None, None,
    ]  # fmt: skip
    assert found["repositories"] == [
        {
            "repositoryId": scan.repository_id,
            "repositoryName": scan.repository_name,
            "scanId": scan.scan_id,
            "scannedAt": scan.created_at,
            "found": True,
            "beforeConsent": True,
            "places": [
                {
                    "path": "a.html",
                    "url": f"{scan.repository_url}/blob/{scan.head_commit_sha}/a.html",
                    "gated": False,
                    "package": None,
                }
            ],
        }
    ]
    assert listed["mixpanel"]["repositories"][0]["places"][0]["package"] == "mixpanel-browser"
    assert (listed["hotjar"]["name"], listed["hotjar"]["repositories"][0]["beforeConsent"]) == (
        "Hotjar on the site",
        False,
    )
    assert lists.decide("google-analytics", "approve").data["inboxItemId"] is None


def test_a_vendor_that_is_gone_says_so_and_keeps_its_decision(audit, lists):
    audit.scan(BOTH)
    lists.decide("google-analytics", "approve")
    second = audit.scan(MANIFEST)
    audit.scan(MANIFEST)
    gone = lists()["google-analytics"]
    (use,) = gone["repositories"]
    assert (use["found"], use["places"], use["scanId"], gone["state"]) == (False, [], second.scan_id, "approved")
    audit.scan({**MANIFEST, "b.html": page(GA)})
    back = lists()["google-analytics"]
    assert (back["state"], back["repositories"][0]["places"][0]["path"]) == ("approved", "b.html")
    audit.scan({**MANIFEST, "b.html": page(GA) + "\0" * 10})
    assert lists.uses()["google-analytics"] == {"b.html": False}, "the scan couldn't read the file"


def configured(lists: Lists) -> dict[str, str | None]:
    """Returns the states of the vendors in the public configuration, by ID."""
    return {it.vendor_id: it.state for it in projects.get_project(ProjectId.stored(lists.project_id)).vendors}


def test_a_vendor_that_is_gone_leaves_the_public_configuration_unless_it_was_reported_or_decided_on(audit, lists):
    audit.scan({**BOTH, "b.html": page(BING)})
    lists.decide("hotjar", "approve")
    intake.record_detection(detection(lists.project_id, "google-analytics", name="GA"))
    gone = {"mixpanel", *lists()} - {"hotjar", "google-analytics"}
    assert len(gone) == 2
    assert configured(lists).keys() == {"hotjar", "google-analytics", *gone}
    audit.scan({"src/other.js": "1"})
    assert configured(lists) == {"hotjar": "approved", "google-analytics": None}
    lists.decide("mixpanel", "ignore")
    assert configured(lists)["mixpanel"] == "ignored"
    audit.scan(BOTH | {"b.html": page(BING)})
    assert configured(lists).keys() == {"hotjar", "google-analytics", *gone}


def test_a_vendor_keeps_the_id_that_the_project_has_for_it(audit, lists):
    intake.record_detection(detection(lists.project_id, "hotjar.com", name="hotjar.com", domain="hotjar.com"))
    intake.record_detection(detection(lists.project_id, "ga4-tag", name="GA4", domain="www.google-analytics.com"))
    lists.decide("google-analytics", "approve")
    audit.scan(BOTH)
    assert lists.uses() == {
        "google-analytics": {"a.html": False},
        "ga4-tag": {},
        "hotjar.com": {"src/later.js": True},
        "mixpanel": {"package.json": None},
    }
    assert configured(lists).keys() == lists().keys()


def test_a_vendor_that_a_website_reports_later_under_another_id_takes_over_the_places(audit, lists):
    audit.scan(BOTH)
    intake.record_detection(detection(lists.project_id, "hotjar.com", name="hotjar.com", domain="hotjar.com"))
    assert {"hotjar", "hotjar.com"} <= configured(lists).keys()
    audit.scan(BOTH)
    assert (lists.uses()["hotjar"], lists.uses()["hotjar.com"]) == ({}, {"src/later.js": True})
    assert configured(lists).keys() == {"google-analytics", "hotjar.com", "mixpanel"}


@pytest.mark.parametrize(
    ("access", "shown"),
    [
        ("locked", {"mixpanel": {"package.json": None}}),
        ("free-preview", {"google-analytics": {"a.html": False}, "hotjar": {"b.html": False}}),
    ],
)
def test_a_list_reveals_what_the_scan_reveals(access, shown, audit, lists, unlock):  # noqa: F811
    repository = audit.repository
    table.put(Put({**(table.get(repository.key) or {}), "previewUsed": access == "locked"}), PREPARED)
    scan = audit.scan(MORE, access)
    before = lists.uses()
    assert {**before, **shown} == before
    assert ("d.html" in str(before), "google-analytics" in before) == (False, access == "free-preview")
    unlock(scan)
    assert lists.uses()["google-analytics"] == {"a.html": False, "d.html": False}
    audit.scan(MORE, "locked")
    assert lists.uses()["google-analytics"] == {"a.html": False, "d.html": False}, "it is known, and still there"
    audit.scan(MANIFEST, "locked")
    assert lists.uses()["google-analytics"] == {}


def test_an_older_report_that_is_unlocked_adds_no_vendor_that_is_gone_since(audit, lists, unlock):  # noqa: F811
    older = audit.scan(MORE, "locked")
    newer = audit.scan({"b.html": page(HOTJAR)}, "locked")
    assert lists.uses() == {"mixpanel": {}}
    unlock(older)
    assert lists.uses() == {"mixpanel": {}, "hotjar": {"b.html": False}}
    audit.deliver(PublishScan(scan_id=older.scan_id))
    assert lists()["mixpanel"]["repositories"][0]["scanId"] == newer.scan_id


def test_the_scan_of_a_pull_request_does_not_count(audit, lists):
    scan = audit.start()
    table.put(Put({**(table.get(scan.key) or {}), "cause": to_map(Cause("pull_request", 7))}), PREPARED)
    audit.run(scan, BOTH)
    assert lists() == {}


def test_a_scan_counts_for_projects_that_are_built_from_the_same_branch_and_folder(audit, lists, company):
    same, folder, branch = (make_project(company, name).project_id for name in ("Same", "Folder", "Branch"))
    for link in (
        Link(same, "main", None, False),
        Link(folder, None, "apps/web", False),
        Link(branch, "next", None, False),
    ):
        repositories.link_project(audit.repository.repository_id, link)
    audit.scan(BOTH)
    assert [len(lists.uses(it)) for it in (lists.project_id, same, folder, branch)] == [3, 3, 0, 0]


@pytest.fixture
def other(lists: Lists, company: Company, world: World, sqs: FakeSqs, now: Any) -> Audit:
    """Another repository of the project."""
    made = world.connected_repository(company, linked=False)
    linked = repositories.link_project(made.repository_id, Link(ProjectId.stored(lists.project_id), None, None, False))
    return Audit(linked, sqs, now.advance)


def test_vendors_forget_a_repository_that_is_unlinked(audit, other, lists):
    other.scan({"z.html": page(GA)})
    audit.scan({**BOTH, "b.html": page(BING)})
    assert len(lists()) == 4
    assert lists.uses()["google-analytics"] == {"a.html": False, "z.html": False}
    lists.decide("hotjar", "approve")
    intake.record_detection(detection(lists.project_id, "mixpanel", name="Mixpanel"))
    repositories.unlink_project(audit.repository.repository_id, lists.project_id)
    assert finish_deletions() == 1
    assert lists.uses() == {"google-analytics": {"z.html": False}, "hotjar": {}, "mixpanel": {}}
    repositories.disconnect_repository(other.repository.repository_id)
    finish_deletions()
    assert lists.uses() == {"hotjar": {}, "mixpanel": {}}


def test_a_vendor_that_is_gone_elsewhere_leaves_the_configuration_with_its_last_place(audit, other, lists):
    for files in ({"z.html": page(GA)}, {"src/other.js": "1"}):
        other.scan(files)
        audit.scan({"a.html": page(GA)})
    assert configured(lists).keys() == {"google-analytics"}
    repositories.unlink_project(audit.repository.repository_id, lists.project_id)
    assert finish_deletions() == 1
    assert (lists.uses(), configured(lists)) == ({"google-analytics": {}}, {})


def test_a_project_that_is_linked_again_keeps_what_a_scan_finds_then(audit, lists):
    link = audit.repository.links[0]
    audit.scan(BOTH)
    repositories.unlink_project(audit.repository.repository_id, link.project_id)
    repositories.link_project(audit.repository.repository_id, link)
    finish_deletions()
    assert lists.uses()["google-analytics"] == {"a.html": False}


def use_of(audit: Audit, **changes: Any) -> CodeUse:
    use = CodeUse(audit.repository.repository_id, "shop", "scn_1", "2026-03-04T05:00:00.000Z", "https://git.test/tree")
    return use._replace(**changes)


def found(*vendor_ids: str) -> dict[str, FoundVendor]:
    return {it: FoundVendor(it, "analytics", (VendorPlace("a.html", gated=False),)) for it in vendor_ids}


def test_a_repeated_publication_writes_nothing_and_an_older_one_changes_nothing(audit, lists):
    project_id = ProjectId.stored(lists.project_id)
    many = found(*[*catalogue().vendors][:60])
    with recorded_calls() as calls:
        record_uses(project_id, use_of(audit), many, str)
    assert len(calls) == 5, "the project, its vendors, and a transaction for each 25 of them"
    older = use_of(audit, scan_id="scn_0", scanned_at="2026-03-03T05:00:00.000Z")
    for scan, seen in ((use_of(audit), many), (older, many), (older, {})):
        with recorded_calls() as calls:
            record_uses(project_id, scan, seen, str)
        assert len(calls) == 2
    assert {use["scanId"] for vendor in lists().values() for use in vendor["repositories"]} == {"scn_1"}


def test_a_vendor_that_is_decided_on_while_its_repository_is_forgotten_is_kept(audit, lists, company):
    project = projects.get_project(ProjectId.stored(lists.project_id))
    record_uses(project.project_id, use_of(audit), found("hotjar"), str)
    (vendor,) = vendors.list_all_vendors(project.project_id)
    vendors.decide_vendor(project, "hotjar", "ignored", company.owner.user_id)
    code_uses.forget_uses(vendor, audit.repository.repository_id)
    assert lists()["hotjar"]["state"] == "ignored"


def test_the_inbox_finds_code_and_runtime_findings_of_a_vendor(audit, lists, api, company):
    intake.record_detection(detection(lists.project_id, "google-analytics", name="GA"))
    audit.scan({"a.html": page(GA), "b.html": page(HOTJAR)})
    reply = api.get("/v1/inbox?vendorId=google-analytics", company.owner.token)
    assert sorted((it["source"], it["title"]) for it in reply.data) == [
        ("code-audit", "Google Analytics is loaded before consent"),
        ("runtime", "New vendor: GA"),
    ]
    assert api.get("/v1/inbox?vendorId=mixpanel", company.owner.token).data == []
