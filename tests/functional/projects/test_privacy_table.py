"""The table of a project's vendors and cookies for its privacy page, in the API and on its page."""

import re

import pytest

from controlplane.findings import code_uses, vendor_facts, vendors
from controlplane.findings.code_uses import FoundVendor
from controlplane.findings.items import CodeUse, VendorPlace
from controlplane.findings.privacy_table import make_table, to_html, to_markdown
from controlplane.findings.vendors import VendorItem
from openassent_analysis.catalogue import catalogue
from tests.functional.projects.test_vendors import detect
from tests.support.each import each


@pytest.fixture
def project(acme):
    return acme.project()


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
        for vendor_id, facts in vendor_facts._all_facts().items():
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
        assert categories - {"other"} == set(vendor_facts.PURPOSES)

    @each(("category", "purpose"), [(None, None), ("other", None), ("live-polls", "Live polls")])
    def test_a_category_of_another_source_is_shown_as_it_is(self, category, purpose):
        assert vendor_facts.purpose_of(category) == purpose
