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


LOCK = "".join(f'"{name}@^1.0.0":\n  version "1.{n}.0"\n\n' for n, name in enumerate(("@c15t/nextjs", "@c15t/react")))
CDN = '<script src="https://cdn.jsdelivr.net/npm/vanilla-cookieconsent@2.8.0/dist/cookieconsent.js"></script>'
PIXEL = """
<script>!function(f,b,e,v){var t=b.createElement(e);t.src=v;b.head.append(t)}(window,document,'script',
'https://connect.facebook.net/en_US/fbevents.js'); fbq('init', '1'); fbq('track', 'PageView');</script>
<noscript><img height="1" width="1" src="https://www.facebook.com/tr?id=1&ev=PageView"></noscript>
"""
CONSENT = {"src/consent.js": "export const useConsent = () => CookieConsent.run({});"}
POSTHOG = "import posthog from 'posthog-js';\nposthog.init('phc_1');\nsetTimeout(() => posthog.init('phc_1'));\n"
ALL = "gtag('event', 'join', { email: user.email, phone: user.phone, password: form.password });\n"
TWO = "gtag('event', 'join', { email: user.email });\ngtag('event', 'buy', { email: user.email });\n"
# Files, and the rule and the path of each finding.
FINDINGS = {
    "an upgrade in a workspace": (
        {
            "package.json": manifest({"vue": "3.5.0"}),
            "apps/shop/package.json": manifest(OLD),
            "apps/blog/package.json": manifest(OLD),
            "package-lock.json": lock_file(**{"vanilla-cookieconsent": "2.8.9"}),
            "yarn.lock": "".join(f'vanilla-cookieconsent@^2.{n}.0:\n  version "2.{n}.1"\n\n' for n in (8, 9)),
        },
        [("consent-library-outdated", "apps/blog/package.json")],
    ),
    "packages of one product": (
        {"yarn.lock": f'{LOCK}c15t@^1.0.0:\n  version "1.0.0"\n'},
        [("consent-library-outdated-in-lock-file", "yarn.lock")],
    ),
    "a library by its address": ({"index.html": CDN}, [("consent-script-outdated", "index.html")]),
    "a library by its address and in a manifest": (
        {"index.html": CDN, "web/package.json": manifest(OLD)}, [("consent-library-outdated", "web/package.json")],
    ),
    "two libraries": (
        {"package.json": manifest({**OLD, "tarteaucitronjs": "1.9.0"})},
        [("consent-library-outdated", "package.json")] * 2,
    ),
    "a tag, its start, and its picture": ({"index.html": PIXEL, **CONSENT}, [("marketing-pixel-loaded", "index.html")]),
    "two starts of a package": ({"src/a.js": POSTHOG, **CONSENT}, [("analytics-sdk-started", "src/a.js")]),
    "an event with several personal fields": ({"src/a.js": ALL}, [("sensitive-data-in-event", "src/a.js")]),
    "two events": ({"src/a.js": TWO}, [("personal-data-in-event", "src/a.js")] * 2),
}  # fmt: skip


@each("name", FINDINGS)
def test_a_fact_is_one_finding(name):
    files, expected = FINDINGS[name]
    assert rule_ids(files) == expected


def test_a_manifests_package_is_located_after_its_name_as_text():
    text = '{"keywords": ["cookieconsent"], "dependencies": {"cookieconsent" : "3.0.0"}}'
    (pinned,) = read_manifest(text)
    assert text[pinned.start : pinned.end] == '"cookieconsent" : "3.0.0"'


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
