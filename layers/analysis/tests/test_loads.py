"""The inventory counts the files that load a vendor, and those that load it without consent."""

from analysis_testing.in_process import analyze_files

START = b"import posthog from 'posthog-js';\nposthog.init('phc_abc');\n"
GATED = b"import posthog from 'posthog-js';\nif (hasConsent('analytics')) posthog.init('phc_abc');\n"
CONFIG = b"gtag('config', 'G-8Q2WZKX1PL');\n"
TAG = b'<script async src="https://www.googletagmanager.com/gtag/js?id=G-8Q2WZKX1PL"></script>'


def counts(vendor_id, **files):
    loads = analyze_files((path.replace("_", "."), content) for path, content in files.items()).loads[vendor_id]
    return loads.files, loads.ungated


def test_counts_the_places_without_consent_among_those_that_load_a_vendor():
    assert counts("posthog", main_ts=START, other_ts=GATED) == (2, 1)


def test_counts_a_start_call_only_if_nothing_else_loads_the_vendor():
    assert counts("google-analytics", main_js=CONFIG) == (1, 1)
    assert counts("google-analytics", main_js=CONFIG, index_html=TAG) == (1, 1)


def test_counts_a_setting_of_the_site():
    assert counts("google-analytics", mkdocs_yml=b"google_analytics: ['UA-98765432-1', auto]\n") == (1, 1)


def test_counts_a_file_once_for_several_findings():
    other = b"const s = document.createElement('script'); s.src = 'https://static.hotjar.com/c/hotjar-2.js';\n"
    page = b'<script src="https://static.hotjar.com/c/hotjar-1.js"></script>\n'
    assert counts("hotjar", index_html=page * 2, main_js=other * 2) == (2, 2)
    assert counts("google-analytics", index_js=CONFIG * 2, main_js=CONFIG) == (2, 2)
