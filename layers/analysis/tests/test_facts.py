"""One fact is one finding, whatever shows it, with the confidence that the whole project gives it."""

import json

from analysis_testing.in_process import analyze_files
from openassent_analysis.libraries import read_manifest
from tests.support.each import each

OLD = {"vanilla-cookieconsent": "^2.8.0"}


def rule_ids(files):
    """Returns (rule, path) of each finding, sorted."""
    found = analyze_files((path, text.encode()) for path, text in files.items()).findings
    return sorted((finding.rule_id, finding.location.path) for finding in found)


def manifest(dependencies):
    return json.dumps({"dependencies": dependencies}, indent=2)


def lock_file(**versions):
    return json.dumps(
        {"packages": {f"node_modules/{name}": {"version": version} for name, version in versions.items()}}, indent=2
    )


class TestLibraries:
    def test_an_upgrade_is_one_finding_in_a_workspace(self):
        assert rule_ids({
            "package.json": manifest({"vue": "3.5.0"}),
            "apps/shop/package.json": manifest(OLD),
            "apps/blog/package.json": manifest(OLD),
            "package-lock.json": lock_file(**{"vanilla-cookieconsent": "2.8.9"}),
            "yarn.lock": "".join(f'vanilla-cookieconsent@^2.{n}.0:\n  version "2.{n}.1"\n\n' for n in (8, 9)),
        }) == [("consent-library-outdated", "apps/blog/package.json")]  # fmt: skip

    def test_packages_of_one_product_are_upgraded_together(self):
        lock = "".join(
            f'"{name}@^1.0.0":\n  version "1.{n}.0"\n\n' for n, name in enumerate(("@c15t/nextjs", "@c15t/react"))
        )
        assert rule_ids({"yarn.lock": f'{lock}c15t@^1.0.0:\n  version "1.0.0"\n'}) == [
            ("consent-library-outdated-in-lock-file", "yarn.lock"),
        ]

    def test_a_library_by_its_address_and_in_a_manifest_is_one_finding(self):
        page = '<script src="https://cdn.jsdelivr.net/npm/vanilla-cookieconsent@2.8.0/dist/cookieconsent.js"></script>'
        assert rule_ids({"index.html": page}) == [("consent-script-outdated", "index.html")]
        assert rule_ids({"index.html": page, "web/package.json": manifest(OLD)}) == [
            ("consent-library-outdated", "web/package.json"),
        ]

    def test_two_libraries_are_two_findings(self):
        assert rule_ids({"package.json": manifest({**OLD, "tarteaucitronjs": "1.9.0"})}) == [
            ("consent-library-outdated", "package.json"), ("consent-library-outdated", "package.json"),
        ]  # fmt: skip


def test_a_manifests_package_is_located_after_its_name_as_text():
    text = '{"keywords": ["cookieconsent"], "dependencies": {"cookieconsent" : "3.0.0"}}'
    (pinned,) = read_manifest(text)
    assert text[pinned.start : pinned.end] == '"cookieconsent" : "3.0.0"'


class TestTrackers:
    def test_a_tag_its_start_its_package_and_its_picture_are_one_finding(self):
        page = """
        <script>!function(f,b,e,v){var t=b.createElement(e);t.src=v;b.head.append(t)}(window,document,'script',
        'https://connect.facebook.net/en_US/fbevents.js'); fbq('init', '1'); fbq('track', 'PageView');</script>
        <noscript><img height="1" width="1" src="https://www.facebook.com/tr?id=1&ev=PageView"></noscript>
        """
        code = "import posthog from 'posthog-js';\nposthog.init('phc_1');\nsetTimeout(() => posthog.init('phc_1'));\n"
        assert rule_ids(
            {"index.html": page, "src/consent.js": "export const useConsent = () => CookieConsent.run({});"}
        ) == [
            ("marketing-pixel-loaded", "index.html"),
        ]
        assert [found for found in rule_ids({"src/a.js": code}) if found[0] != "consent-manager-missing"] == [
            ("analytics-sdk-started", "src/a.js"),
        ]


class TestPersonalData:
    def test_an_event_with_several_personal_fields_is_one_finding(self):
        code = "gtag('event', 'join', { email: user.email, phone: user.phone, password: form.password });\n"
        assert rule_ids({"src/a.js": code}) == [("sensitive-data-in-event", "src/a.js")]

    def test_two_events_are_two_findings(self):
        code = "gtag('event', 'join', { email: user.email });\ngtag('event', 'buy', { email: user.email });\n"
        assert rule_ids({"src/a.js": code}) == [("personal-data-in-event", "src/a.js")] * 2


LOAD = "const s = document.createElement('script'); s.src = 'https://static.hotjar.com/c/hotjar-1.js';"
ASKS = ("src/ask.ts", "export const hasConsent = () => localStorage.getItem('cookie-consent') === 'yes';")


def trackers(*files):
    found = analyze_files((path, code.encode()) for path, code in files).findings
    return [finding for finding in found if finding.category == "trackers"]


def test_a_provider_of_a_consent_library_shows_its_children_to_every_visitor():
    page = "<ConsentManagerProvider><Script src='//hotjar.com/h.js' /></ConsentManagerProvider>"
    layout = f"export default function Layout() {{ return <html>{page}</html>; }}"
    assert [it.vendor_id for it in trackers(("app/layout.tsx", layout), ASKS)] == ["hotjar"]


def test_an_exported_function_that_nothing_calls_is_an_uncertain_finding_whether_or_not_the_project_asks_for_consent():
    file = "src/tags.ts", f"export function startHotjar() {{ {LOAD} }}"
    for others in ((), (ASKS,)):
        [finding] = trackers(file, *others)
        assert (finding.vendor_id, finding.confidence) == ("hotjar", "low")
        assert finding.description.endswith("Nothing in the repository was found that runs this code.")


def test_consent_defaults_in_another_file_leave_a_doubt_about_googles_tags_alone():
    tags = '<script src="//googletagmanager.com/gtm.js?id=1"></script><script src="//hotjar.com/h.js"></script>'
    page = "index.html", tags
    default = ("src/mode.js", "gtag('consent', 'default', { analytics_storage: 'denied', ad_storage: 'denied' });")
    assert {it.vendor_id: it.confidence for it in trackers(page)} == {"google-tag-manager": "high", "hotjar": "high"}
    found = trackers(page, default)
    assert {it.vendor_id: it.confidence for it in found} == {"google-tag-manager": "low", "hotjar": "high"}
    assert any("consent defaults to denied" in it.description for it in found if it.confidence == "low")


BANNER = """
export default function Banner() {
  useEffect(() => { CookieConsent.run({ mode: 'opt-out', categories: {} }); }, []);
  return null;
}
"""
TAG = "<script>gtag('config', 'UA-12345678-1');</script>"
UNUSED = "Nothing in the repository was found that runs this code."


def confidence(rule_id, files):
    found = analyze_files((path, text.encode()) for path, text in files.items()).findings
    return {(it.confidence, it.description.endswith(UNUSED)) for it in found if it.rule_id == rule_id}


@each("rule_id, unused, user", [
    ("opt-out-mode", {"components/Banner.tsx": BANNER},
     {"app/layout.tsx": "import Banner from '../components/Banner';\nexport default () => <Banner />;"}),
    ("universal-analytics-left", {"templates/includes/analytics.html": TAG},
     {"templates/base.html": "<head>{% include 'includes/analytics.html' %}</head>"}),
])  # fmt: skip
def test_the_confidence_is_low_unless_a_file_loads_it(rule_id, unused, user):
    assert confidence(rule_id, unused) == {("low", True)}
    assert confidence(rule_id, unused | user) == {("high", False)}


def test_a_page_needs_no_file_that_loads_it():
    assert confidence("universal-analytics-left", {"about.html": TAG}) == {("high", False)}
