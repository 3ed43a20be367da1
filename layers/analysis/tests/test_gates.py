"""Code that waits for consent isn't a finding; code that only appears to wait is."""

import pytest

from analysis_testing.in_process import analyze_files
from tests.support.each import each

LOAD = "const s = document.createElement('script'); s.src = 'https://static.hotjar.com/c/hotjar-1.js';"
# Code that asks for consent elsewhere in the project changes nothing.
ASKS = ("src/ask.ts", "export const hasConsent = () => localStorage.getItem('cookie-consent') === 'yes';")

GATED = {
    "a condition": f"if (consent.analytics) {{ {LOAD} }}",
    "a call in the condition": f"if (hasConsent('analytics')) {{ {LOAD} }}",
    "a condition around a condition": f"if (cookiesAccepted) {{ if (ready) {{ {LOAD} }} }}",
    "a return before": f"function run() {{ if (!consent) return; {LOAD} }} run();",
    "a short circuit": "hasConsent() && loadScript('https://static.hotjar.com/c/hotjar-1.js');",
    "a ternary": "consented ? loadScript('https://static.hotjar.com/c/hotjar-1.js') : null;",
    "a callback": f"onConsentChange(() => {{ {LOAD} }});",
    "an option of the consent library": f"CookieConsent.run({{ onConsent: () => {{ {LOAD} }} }});",
    "an event of a consent tool": f"window.addEventListener('CookiebotOnAccept', function () {{ {LOAD} }});",
    "the TCF": f"__tcfapi('addEventListener', 2, (data) => {{ {LOAD} }});",
    "a function that only gated code calls": f"function go() {{ {LOAD} }}\nif (consent) go();",
    "a function passed to the consent tool": f"const go = () => {{ {LOAD} }};\nDidomi.on('consent.changed', go);",
    "a function of a function": f"function a() {{ {LOAD} }}\nfunction b() {{ a(); }}\nonConsentGranted(b);",
    "a handler by its name": f"export function handleAccept() {{ {LOAD} }}",
    "an effect with a condition": f"useEffect(() => {{ if (consents.marketing) {{ {LOAD} }} }}, [consents.marketing]);",
    "a list by category": "const tags = [{ src: 'https://static.hotjar.com/hotjar-1.js', category: 'measurement' }];",
}
OPEN = {
    "the top of a file": LOAD,
    "an effect": f"export default function App() {{ useEffect(() => {{ {LOAD} }}, []); }}\nrender(App);",
    "a condition unrelated to consent": f"if (process.env.NODE_ENV === 'production') {{ {LOAD} }}",
    "a function that is called": f"function go() {{ {LOAD} }}\ngo();",
    "a function that is called gated and not": f"function go() {{ {LOAD} }}\nif (consent) go();\ngo();",
    "an effect that runs again after the choice": f"useEffect(() => {{ {LOAD} }}, [consents.marketing]);",
    "next to a gate": f"if (consent) {{ other(); }}\n{LOAD}",
    "an event of the page": f"window.addEventListener('load', () => {{ {LOAD} }});",
}
MARKUP_GATED = {
    "a type that does not run": '<script type="text/plain" src="//hotjar.com/h.js"></script>',
    "an attribute of a consent tool": '<script data-cookieconsent="statistics" src="//hotjar.com/h.js"></script>',
    "a class of a consent tool": '<script type="text/plain" class="optanon-category-2" src="//hotjar.com/"></script>',
    "a template's condition": '{% if consent %}<script src="//hotjar.com/h.js"></script>{% endif %}',
    "a condition of Handlebars": '{{#if hasConsent}}<script src="//hotjar.com/h.js"></script>{{/if}}',
    "a blocking script before": '<script src="https://consent.cookiebot.com/uc.js" data-blockingmode="auto"></script>'
    '<script src="//hotjar.com/h.js"></script>',
    "an inline script that does not run": f'<script type="text/plain" data-category="analytics">{LOAD}</script>',
    "an element of a consent library": '<consent-gate><script src="//hotjar.com/h.js"></script></consent-gate>',
}
MARKUP_OPEN = {
    "a plain element": '<script async src="//hotjar.com/h.js"></script>',
    "an inline script": f"<script>{LOAD}</script>",
    "a condition of something else": '{% if user %}<script src="//hotjar.com/h.js"></script>{% endif %}',
    "behind the end of a condition": '{% if consent %}<b>{% endif %}<script src="//hotjar.com/h.js"></script>',
    "a blocking script behind": '<script src="//hotjar.com/h.js"></script>'
    '<script src="https://consent.cookiebot.com/uc.js" data-blockingmode="auto"></script>',
}
JSX = "export default function Layout({{ children }}) {{ const c = useThing(); return <html>{}{{children}}</html>; }}"
JSX_GATED = {
    "a gate around it": '<ConsentGate><Script src="//hotjar.com/h.js" /></ConsentGate>',
    "a script component": '<ConsentScript src="//hotjar.com/h.js" />',
    "a condition": '{consents.analytics && <Script src="//hotjar.com/h.js" />}',
    "a type that does not run": '<script type="text/plain" data-category="a" src="//hotjar.com/h.js" />',
}


def trackers(path, code, *others):
    analysis = analyze_files([(path, code.encode()), *((p, c.encode()) for p, c in others)])
    return [finding.vendor_id for finding in analysis.findings if finding.category == "trackers"]


@each("code", GATED.values(), ids=GATED)
@each("path", ["src/tags.js", "src/tags.ts", "src/tags.tsx"])
def test_a_script_is_gated_by(path, code):
    assert trackers(path, code, ASKS) == []


@each("code", OPEN.values(), ids=OPEN)
@each("path", ["src/tags.js", "src/tags.ts", "src/tags.tsx"])
def test_a_script_is_not_gated_by(path, code):
    assert trackers(path, code, ASKS) == ["hotjar"]


@each("code", MARKUP_GATED.values(), ids=MARKUP_GATED)
def test_markup_is_gated_by(code):
    assert trackers("page.html", code, ASKS) == []


@each("code", MARKUP_OPEN.values(), ids=MARKUP_OPEN)
def test_markup_is_not_gated_by(code):
    assert trackers("page.html", code, ASKS) == ["hotjar"]


@pytest.mark.parametrize("code", JSX_GATED.values(), ids=JSX_GATED)
def test_an_element_is_gated_by(code):
    assert trackers("app/layout.tsx", JSX.format(code), ASKS) == []


def test_a_provider_of_a_consent_library_shows_its_children_to_every_visitor():
    code = JSX.format('<ConsentManagerProvider><Script src="//hotjar.com/h.js" /></ConsentManagerProvider>')
    assert trackers("app/layout.tsx", code, ASKS) == ["hotjar"]


def test_an_element_of_the_entry_file_is_not_gated():
    code = JSX.format('<Script src="//hotjar.com/h.js" />')
    assert trackers("app/layout.tsx", code, ASKS) == ["hotjar"]


def test_an_exported_function_that_nothing_calls_is_an_uncertain_finding_whether_or_not_the_project_asks_for_consent():
    path, code = "src/tags.ts", f"export function startHotjar() {{ {LOAD} }}".encode()
    for others in ([], [(ASKS[0], ASKS[1].encode())]):
        [finding] = [it for it in analyze_files([(path, code), *others]).findings if it.category == "trackers"]
        assert (finding.vendor_id, finding.confidence) == ("hotjar", "low")
        assert finding.description.endswith("Nothing in the repository was found that runs this code.")


def test_consent_defaults_in_another_file_leave_a_doubt_about_googles_tags_alone():
    page = '<script src="//googletagmanager.com/gtm.js?id=1"></script><script src="//hotjar.com/h.js"></script>'
    default = ("src/mode.js", "gtag('consent', 'default', { analytics_storage: 'denied', ad_storage: 'denied' });")
    assert sorted(trackers("index.html", page)) == ["google-tag-manager", "hotjar"]
    found = analyze_files([("index.html", page.encode()), (default[0], default[1].encode())]).findings
    levels = {it.vendor_id: it.confidence for it in found if it.category == "trackers"}
    assert levels == {"google-tag-manager": "low", "hotjar": "high"}
    assert any("consent defaults to denied" in it.description for it in found if it.confidence == "low")


def test_a_tag_with_its_start_and_its_pixel_is_one_finding():
    page = """
    <script>!function(f,b,e,v,n,t,s){t=b.createElement(e);t.src=v}(window,document,'script',
    'https://connect.facebook.net/en_US/fbevents.js'); fbq('init', '1');</script>
    <noscript><img src="https://www.facebook.com/tr?id=1&ev=PageView"></noscript>
    """
    assert trackers("index.html", page) == ["meta-pixel"]
