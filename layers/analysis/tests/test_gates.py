"""Consent as the whole project shows it: providers, exports that nothing calls, and defaults in another file."""

from analysis_testing.in_process import analyze_files

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
