"""Findings of rules that don't ask for consent, in files that nothing in the project loads."""

from analysis_testing.in_process import analyze_files
from tests.support.each import each

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
