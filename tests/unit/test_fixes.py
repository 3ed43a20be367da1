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


class TestChoice:
    def test_a_next_application_gets_c15t_for_next(self):
        fix = fix_for(finding("app/layout.tsx", "posthog"), project("nextjs", "react", "npm"))
        assert fix is not None
        assert fix.packages == ("@c15t/nextjs@^2.2", "@c15t/scripts@^2.2")
        assert fix.language == "tsx"
        assert "import { posthog } from '@c15t/scripts/posthog';" in fix.code
        assert "loadMode: 'after-consent'" in fix.code

    def test_a_react_application_gets_c15t_for_react(self):
        fix = fix_for(finding("src/App.jsx", "meta-pixel"), project("react", "vite", "yarn"))
        assert fix is not None
        assert fix.packages == ("@c15t/react@^2.2", "@c15t/scripts@^2.2")
        assert "'use client'" not in fix.code

    @each("path", ["src/main.ts", "src/App.vue", "src/routes/+layout.svelte", "src/pages/index.astro"])
    def test_another_project_with_a_build_gets_c15t_without_a_framework(self, path):
        fix = fix_for(finding(path, "hotjar"), project("vite", "pnpm"))
        assert fix is not None
        assert fix.packages == ("c15t@^2.2", "@c15t/scripts@^2.2")
        assert "saveConsents('necessary')" in fix.code

    def test_a_vendor_without_a_helper_is_a_script_with_a_category(self):
        fix = fix_for(finding("src/main.ts", "yandex-metrica"), project("vite", "npm"))
        assert fix is not None
        assert fix.packages == ("c15t@^2.2",)
        assert "{ id: 'yandex-metrica', src: 'https://mc.yandex.ru/…', category: 'measurement' }" in fix.code

    @each(("vendor", "call"), [
        ("google-tag-manager", "gtag('consent', 'default'"), ("meta-pixel", "fbq('consent', 'revoke')"),
        ("tiktok-pixel", "ttq.holdConsent()"), ("matomo-cloud", "['requireConsent']"),
    ])  # fmt: skip
    def test_a_page_without_a_build_gets_the_vendors_consent_api(self, vendor, call):
        fix = fix_for(finding("app/views/layouts/application.html.erb", vendor), project("rails", "npm"))
        assert fix is not None
        assert call in fix.code
        assert fix.packages == ()

    def test_a_page_without_a_build_loads_a_vendor_without_an_api_by_its_banner(self):
        fix = fix_for(finding("_layouts/default.html", "statcounter"), project("jekyll"))
        assert fix is not None
        assert "function loadStatcounter() {" in fix.code

    def test_a_project_keeps_its_consent_manager(self):
        fix = fix_for(finding("app/layout.tsx", "hotjar"), project("nextjs", "npm", vendors=("cookiebot",)))
        assert fix is not None
        assert 'data-cookieconsent="statistics"' in fix.code
        assert "c15t" not in fix.code

    def test_an_application_for_phones_gets_an_option_of_the_sdk(self):
        phone = project("react-native", "react", "npm")
        fix = fix_for(finding("App.tsx", "mixpanel"), phone)
        assert fix is not None
        assert "opt_out_tracking_by_default" in fix.code
        assert fix_for(finding("App.tsx", "google-ads"), phone) is None

    def test_a_player_is_embedded_without_cookies(self):
        fix = fix_for(finding("about.html", "youtube"), project())
        assert fix is not None
        assert "youtube-nocookie.com" in fix.code

    def test_only_findings_about_loading_one_vendor_have_a_fix(self):
        assert fix_for(finding("a.js", "hotjar", category="personal-data"), project()) is None
        assert fix_for(finding("a.js"), project()) is None
        assert fix_for(finding("a.js", "hotjar", "heap"), project()) is None


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
