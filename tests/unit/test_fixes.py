"""Fixes fit the project that they are for, and name only what exists."""

from typing import Any

from openassent_analysis.catalogue import catalogue
from openassent_analysis.findings import Finding, Location
from openassent_analysis.fixes import FIXES, Project, fix_for
from openassent_analysis.reading import load_yaml
from tests.support.each import each


def finding(path: str, *vendor_ids: str, category: str = "trackers") -> Finding:
    place = Location(path, 1, 1, 1, 2, "")
    return Finding("r", "t", "d", category, "high", "P1", place, "", (), "0" * 32, "0" * 32, 0, "", vendor_ids)


def project(*technologies: str, vendors: tuple[str, ...] = ()) -> Project:
    return Project(frozenset(technologies), frozenset(vendors))


NEXT, PHONE = project("nextjs", "react", "npm"), project("react-native", "react", "npm")
STATIC, ERB = project("jekyll"), "app/views/layouts/application.html.erb"
# A finding's file and vendor, its project, the packages of the fix, and what its code says and doesn't say.
CHOSEN = [
    ("app/layout.tsx", "posthog", NEXT, ("@c15t/nextjs@^2.2", "@c15t/scripts@^2.2"),
     "import { posthog } from '@c15t/scripts/posthog';", ""),
    ("app/layout.tsx", "posthog", NEXT, ("@c15t/nextjs@^2.2", "@c15t/scripts@^2.2"), "loadMode: 'after-consent'", ""),
    ("src/App.jsx", "meta-pixel", project("react", "vite", "yarn"), ("@c15t/react@^2.2", "@c15t/scripts@^2.2"), "",
     "'use client'"),
    *((path, "hotjar", project("vite", "pnpm"), ("c15t@^2.2", "@c15t/scripts@^2.2"), "saveConsents('necessary')", "")
      for path in ("src/main.ts", "src/App.vue", "src/routes/+layout.svelte", "src/pages/index.astro")),
    # A vendor without a helper is a script with a category.
    ("src/main.ts", "yandex-metrica", project("vite", "npm"), ("c15t@^2.2",),
     "{ id: 'yandex-metrica', src: 'THE ADDRESS OF ITS SCRIPT', category: 'measurement' }", ""),
    # A page without a build gets the vendor's consent API, or loads it by its banner.
    *((ERB, vendor, project("rails", "npm"), (), call, "c15t") for vendor, call in (
        ("google-tag-manager", "gtag('consent', 'default'"), ("meta-pixel", "fbq('consent', 'revoke')"),
        ("tiktok-pixel", "ttq.holdConsent()"), ("matomo-cloud", "['requireConsent']"),
    )),
    ("_layouts/default.html", "statcounter", STATIC, (), "allow('analytics')", "c15t"),
    ("app/layout.tsx", "hotjar", project("nextjs", "npm", vendors=("cookiebot",)), (),
     'data-cookieconsent="statistics"', "c15t"),
    ("App.tsx", "mixpanel", PHONE, (), "opt_out_tracking_by_default", "c15t"),
    ("about.html", "youtube", project(), (), "youtube-nocookie.com", "c15t"),
]  # fmt: skip


@each("case", CHOSEN, ids=lambda case: f"{case[0]} {case[1]}")
def test_a_fix_fits_the_project(case):
    path, vendor, kind, packages, said, unsaid = case
    fix = fix_for(finding(path, vendor), kind)
    assert (fix.packages, said in fix.code, bool(unsaid) and unsaid in fix.code) == (packages, True, False)
    assert fix.language == "tsx" or kind is not NEXT


def test_only_findings_about_loading_one_vendor_have_a_fix():
    assert fix_for(finding("a.js", "hotjar", category="personal-data"), project()) is None
    assert fix_for(finding("a.js"), project()) is None
    assert fix_for(finding("a.js", "hotjar", "heap"), project()) is None
    assert fix_for(finding("App.tsx", "google-ads"), PHONE) is None


class TestFacts:
    def test_every_vendor_is_in_the_catalog(self):
        written: dict[str, Any] = load_yaml(FIXES)
        named = {
            *written["c15t"]["vendors"], *written["options"], *written["embeds"],
            *(it["vendor"] for it in written["managers"]),
            *(vendor for it in written["apis"] for vendor in it["vendors"]),
        }  # fmt: skip
        assert named <= catalogue().vendors.keys()

    def test_every_tracker_has_a_fix_without_placeholders_in_every_kind_of_project(self):
        trackers = ("analytics", "marketing", "tag-manager", "session-replay", "ab-testing", "chat", "social")
        kinds = [
            ("app/page.tsx", project("nextjs", "npm")), ("src/a.jsx", project("react", "npm")),
            ("src/a.ts", project("npm")), ("index.php", project()),
            ("index.html", project(vendors=("onetrust",))), ("index.html", project(vendors=("cookieyes",))),
            ("index.html", project(vendors=("vanilla-cookieconsent",))),
        ]  # fmt: skip
        for vendor in catalogue().vendors.values():
            if vendor.category not in trackers:
                continue
            for path, kind in kinds:
                fix = fix_for(finding(path, vendor.id), kind)
                assert fix is not None, vendor.id
                assert not {"{VENDOR}", "{HOST}", "{PURPOSE}"} & set(fix.code.split()), vendor.id
                assert "{PURPOSE}" not in fix.code
