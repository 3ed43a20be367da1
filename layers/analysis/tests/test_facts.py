"""One fact is one finding, whatever shows it."""

import json

from analysis_testing.in_process import analyze_files
from openassent_analysis.libraries import read_manifest

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
