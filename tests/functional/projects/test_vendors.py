"""A project's vendors: their list with its evidence, decisions, and the table for the privacy page."""

import re
from typing import Any
from urllib.parse import quote

import pytest

from controlplane.findings import code_uses, inbox, intake, privacy_table, vendors
from controlplane.findings.code_uses import FoundVendor
from controlplane.findings.items import CodeUse, VendorPlace
from controlplane.findings.privacy_table import make_table, to_html, to_markdown
from controlplane.findings.vendors import VendorItem
from controlplane.platform.core.ids import InboxItemId
from controlplane.projects.items import ProjectItem
from openassent_analysis.catalogue import catalogue
from tests.functional.projects.builders import add_finding, stored
from tests.functional.projects.conftest import Organization, nothing_written
from tests.support.api import Reply
from tests.support.each import each
from tests.support.populated_organization import detection
from tests.support.told import told


@pytest.fixture
def project(acme):
    return acme.project()


def detect(project: ProjectItem, vendor_id: str = "segment", minute: int = 0, **fields: Any) -> None:
    """Records a detection of the vendor, seen at 05:<minute>."""
    seen = {"category": None, "observedAt": f"2026-03-04T05:{minute:02d}:00Z", **fields}
    intake.record_detection(detection(project.project_id, vendor_id, **seen))


def listed(acme: Organization, project: ProjectItem, query: str = "") -> Reply:
    return acme.get(project, f"/vendors{query}")


def test_a_detected_vendor_has_these_fields(acme, project):
    assert listed(acme, project).body["pagination"] == {"nextCursor": None, "hasMore": False}
    detect(project, minute=3, category="analytics", seenOn=["https://a.test/3"], beforeConsent=True)
    detect(project, minute=1, seenOn=["https://a.test/1"])
    (item,) = acme.api.get("/v1/inbox", acme.key).data
    assert listed(acme, project).data == [
        {
            "vendorId": "segment",
            "projectId": project.project_id,
            "name": "Segment",
            "domain": "segment.com",
            "category": "analytics",
            "state": None,
            "reviewState": "suggested",
            "decidedAt": None,
            "decidedBy": None,
            "inboxItemId": item["id"],
            "evidence": {"count": 2, "pages": ["https://a.test/3", "https://a.test/1"], "beforeConsent": True},
            "firstSeenAt": "2026-03-04T05:01:00.000Z",
            "lastSeenAt": "2026-03-04T05:03:00.000Z",
            "repositories": [],
        }
    ]


def test_a_vendor_that_was_only_decided_on_has_no_fields_of_a_detection_until_it_is_detected(acme, project):
    vendors.decide_vendor(project, "segment", "ignored", acme.owner.user_id)
    (vendor,) = listed(acme, project).data
    assert vendor == {
        **dict.fromkeys(("name", "domain", "category", "inboxItemId", "firstSeenAt", "lastSeenAt")),
        "vendorId": "segment",
        "projectId": project.project_id,
        "state": "ignored",
        "reviewState": "rejected",
        "decidedAt": "2026-03-04T05:06:07.000Z",
        "decidedBy": acme.owner.user_id,
        "evidence": {"count": 0, "pages": [], "beforeConsent": False},
        "repositories": [],
    }
    for minute in range(7):
        detect(project, minute=minute, seenOn=[f"https://a.test/{minute}"], beforeConsent=minute < 6)
    (detected,) = listed(acme, project).data
    decision = ("state", "reviewState", "decidedAt", "decidedBy")
    assert [detected[name] for name in decision] == [vendor[name] for name in decision]
    pages = [f"https://a.test/{minute}" for minute in (6, 5, 4, 3, 2)]
    assert detected["evidence"] == {"count": 7, "pages": pages, "beforeConsent": False}
    assert detected["lastSeenAt"] == "2026-03-04T05:06:00.000Z"


def test_vendors_of_the_project_alone_are_listed_by_id(acme, project):
    for vendor_id in ("b", "a", "c"):
        detect(project, vendor_id)
    detect(other := acme.project(name="Other"), "d")
    cursor = listed(acme, project, "?limit=1").body["pagination"]["nextCursor"]
    assert listed(acme, other, f"?cursor={cursor}").code == "INVALID_PAYLOAD"
    assert [vendor["vendorId"] for vendor in listed(acme, project).data] == ["a", "b", "c"]


@each(("decision", "state", "review_state"), [("approve", "approved", "accepted"), ("ignore", "ignored", "rejected")])
def test_a_vendor_can_be_decided_before_any_scan_finds_it(decision, state, review_state, acme):
    project, admin = acme.project(), acme.member("admin")
    reply = acme.decide(project, decision, by=admin)
    assert (reply.status, reply.data) == (
        200,
        {
            "inboxItemId": None,
            "projectId": project.project_id,
            "reviewState": review_state,
            "state": state,
            "vendorId": "segment",
        },
    )
    (vendor,) = (item for item in stored("VENDOR#") if item["projectId"]["S"] == project.project_id)
    assert (vendor["state"]["S"], vendor["reviewState"]["S"]) == (state, review_state)
    assert (vendor["decidedBy"]["S"], vendor["decidedAt"]["S"]) == (admin.user_id, "2026-03-04T05:06:07.000Z")


def test_a_decision_resolves_the_vendors_finding_which_moves_to_the_top(acme, now):
    project = acme.project()
    finding = add_finding(project, "segment")
    other = acme.world.finding(acme.company).item_id
    acme.decide(project, vendor_id="hotjar")
    now.advance(1)
    assert acme.decide(project).data["inboxItemId"] == finding
    item = next(item for item in stored("INBOX#") if item["itemId"]["S"] == finding)
    assert [item[name]["S"] for name in ("status", "updatedAt", "title")] == [
        "resolved",
        "2026-03-04T05:06:08.000Z",
        "Segment loads before consent",
    ]
    assert item["version"]["S"] != "first"
    for query, listed in (("", [finding, other]), ("?status=resolved", [finding]), ("?status=open", [other])):
        assert [it["id"] for it in acme.api.get(f"/v1/inbox{query}", acme.owner.token).data] == listed


def test_a_decision_can_be_changed_and_repeated_but_resolves_its_finding_once(acme, now):
    project = acme.project()
    finding = add_finding(project, "segment")
    for vendor_id in ("a", "google-analytics_4.v2", "0", "x" * 100):
        with nothing_written():
            unknown = acme.decide(project, vendor_id=vendor_id)
        assert (unknown.status, unknown.code) == (404, "NOT_FOUND")
    for vendor_id in ("google-analytics", "hotjar"):
        decided = acme.decide(project, vendor_id=vendor_id).data
        assert (decided["vendorId"], decided["inboxItemId"]) == (vendor_id, None)
    assert [item["status"]["S"] for item in stored("INBOX#")] == ["open"]
    resolved = []
    for decision, state in (("approve", "approved"), ("approve", "approved"), ("ignore", "ignored")):
        now.advance(1)
        decided = acme.decide(project, decision).data
        assert (decided["state"], decided["inboxItemId"]) == (state, finding)
        resolved += stored("INBOX#")
    assert {item["state"]["S"] for item in stored("VENDOR#") if item["vendorId"]["S"] == "segment"} == {"ignored"}
    assert resolved == [resolved[0]] * 3
    assert [it for it in told(acme.company) if it[0] != "key.created"] == [("finding.resolved", [finding])]


def test_what_a_person_decided_before_stays_in_the_history(acme, now):
    project = acme.project()
    finding = add_finding(project, "segment")
    body = {"status": "dismissed", "version": "first", "reason": "Known."}
    assert acme.api.patch(f"/v1/inbox/{finding}", acme.owner.token, json_body=body).status == 200
    now.advance(1)
    acme.decide(project, "ignore")
    item = inbox.get_item(InboxItemId.stored(finding))
    assert [(it.status, it.by, it.reason) for it in item.history[-2:]] == [
        ("dismissed", acme.owner.user_id, "Known."),
        ("resolved", acme.owner.user_id, None),
    ]


@each("vendor_id", ["Segment", "x" * 101, "a b", "a#b", "ségment", "a\n"])
def test_an_invalid_vendor_id_is_rejected(vendor_id, acme):
    project = acme.project()
    with nothing_written():
        reply = acme.decide(project, vendor_id=quote(vendor_id))
    assert (reply.code, reply.error["details"][0]["path"]) == ("INVALID_PAYLOAD", ["vendorId"])


def find(project, vendor_id: str, name: str, category: str = "analytics", *, gated: bool = True) -> None:
    """Stores a vendor as a scan finds it."""
    scan = CodeUse("rep_1", "shop", "scn_1", "2026-03-04T05:00:00.000Z", "https://github.com/acme/shop/tree/1f0c")
    found = {vendor_id: FoundVendor(name, category, (VendorPlace("index.html", gated),))}
    code_uses.record_uses(project.project_id, scan, found, lambda _: False)


def test_the_table_has_what_was_approved_and_found_and_names_the_rest(acme, project):
    find(project, "google-analytics", "Google Analytics", gated=False)
    detect(project, "hotjar", name="Hotjar", category="session-replay")
    detect(project, "own", name="Own|<b>", domain="own.test")
    for vendor_id in ("google-analytics", "own", "intercom"):
        vendors.decide_vendor(project, vendor_id, "approved", acme.owner.user_id)
    for vendor_id, name in (("segment", "Segment"), ("stripe", "Stripe")):
        detect(project, vendor_id, name=name)
    vendors.decide_vendor(project, "stripe", "ignored", acme.owner.user_id)
    table = acme.get(project, "/vendors/privacy-table").data
    assert [table[name] for name in ("undecided", "ignored", "unseen")] == [
        ["Hotjar", "Segment"],
        ["Stripe"],
        ["intercom"],
    ]
    analytics, own = table["vendors"]
    assert analytics == {
        "vendorId": "google-analytics",
        "name": "Google Analytics",
        "purpose": "Measures how visitors use the site",
        "cookies": [
            "_ga (2 years): Distinguishes visitors",
            "_ga_<container> (2 years): Keeps the state of a visit",
        ],
        "privacyPolicy": "https://policies.google.com/privacy",
        "beforeConsent": True,
    }
    assert [own[name] for name in ("purpose", "cookies", "privacyPolicy", "beforeConsent")] == [None, None, None, False]
    assert (
        '<tr><th scope="row">Google Analytics</th><td>Measures how visitors use the site</td>'
        "<td><code>_ga</code> (2 years): Distinguishes visitors<br>"
        "<code>_ga_&lt;container&gt;</code> (2 years): Keeps the state of a visit</td>"
        '<td><a href="https://policies.google.com/privacy">policies.google.com</a></td></tr>\n'
        '<tr><th scope="row">Own|&lt;b&gt;</th><td>Not known</td><td>Not known</td><td>Not known</td></tr>\n'
    ) in table["html"]
    assert table["markdown"].splitlines()[2:] == [
        (
            "| Google Analytics | Measures how visitors use the site | `_ga` (2 years): Distinguishes visitors<br>"
            "`_ga_<container>` (2 years): Keeps the state of a visit | [policies.google.com]"
            "(https://policies.google.com/privacy) |"
        ),
        "| Own\\|\\<b\\> | Not known | Not known | Not known |",
    ]


def test_a_project_without_vendors_has_an_empty_table(acme, project):
    table = acme.get(project, "/vendors/privacy-table").data
    assert table["vendors"] == table["undecided"] == []
    assert "<tbody>\n\n</tbody>" in table["html"]


def test_a_vendor_that_is_gone_from_the_code_is_not_listed():
    gone = VendorItem(project_id="prj_1", vendor_id="plausible", name="Plausible", state="approved", decided_at="2026")
    assert make_table([gone]).unseen == ["Plausible"]
    seen = VendorItem(
        **{it: getattr(gone, it) for it in ("project_id", "vendor_id", "name", "state")}, last_seen_at="2026"
    )
    (listed,) = make_table([seen]).listed
    assert "<td>None</td>" in to_html([listed])
    assert "| None |" in to_markdown([listed])


@each(
    ("name", "in_html", "in_markdown"),
    [
        *(
            (f"a{end}b", "a b", "a b")
            for end in ("\n", "\r", "\r\n", "\v", "\f", "\x85", "\u2028", "\u2029", "\x1e", "\0")
        ),
        ("a|b](x)", "a|b](x)", "a\\|b\\](x)"),
        ("![x](y)", "![x](y)", "\\!\\[x\\](y)"),
        ("<b>&lt;`*_~~", "&lt;b&gt;&amp;lt;`*_~~", "\\<b\\>&amp;lt;\\`\\*\\_\\~\\~"),
        ("https://x.test", "https://x.test", "https\\://x.test"),
        ("Www.x.test \\", "Www.x.test \\", "Www\\.x.test \\\\"),
        ("me@x.test", "me@x.test", "me@\u200bx.test"),
    ],
)
def test_texts_from_outside_are_shown_literally_in_one_cell(name, in_html, in_markdown):
    (listed,) = make_table(
        [
            VendorItem(
                project_id="prj_1", vendor_id="own", name=name, state="approved", category=name, last_seen_at="2026"
            )
        ]
    ).listed
    *_, html_row, _, _, _ = to_html([listed]).split("\n")
    assert html_row.startswith(f'<tr><th scope="row">{in_html}</th><td>')
    assert to_markdown([listed]).splitlines()[2:] == [
        f"| {in_markdown} | {in_markdown[:1].upper()}{in_markdown[1:]} | Not known | Not known |"
    ]


class TestFacts:
    def test_facts_are_about_vendors_of_the_catalog_and_name_their_source(self):
        known = catalogue().vendors
        for vendor_id, facts in privacy_table._all_facts().items():
            assert vendor_id in known
            assert facts.cookies is None or facts.source, vendor_id
            for address in filter(None, (facts.privacy_policy, facts.source)):
                assert re.fullmatch(r"https://[a-z0-9.-]+/[A-Za-z0-9/._-]*", address), address
            for cookie in facts.cookies or ():
                assert re.fullmatch(r"[A-Za-z_.<>/-]+", cookie.name)
                assert re.fullmatch(
                    r"Session|\d+ (minutes|days?|weeks?|months|years?)|lifetime not known", cookie.lifetime
                )

    def test_every_category_of_the_catalog_has_a_purpose(self):
        categories = {vendor.category for vendor in catalogue().vendors.values()}
        assert categories - {"other"} == set(privacy_table.PURPOSES)

    @each(("category", "purpose"), [(None, None), ("other", None), ("live-polls", "Live polls")])
    def test_a_category_of_another_source_is_shown_as_it_is(self, category, purpose):
        assert privacy_table.purpose_of(category) == purpose
