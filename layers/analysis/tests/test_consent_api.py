"""Each line of resources/consent-api.yaml, with a twin that asks for consent."""

import re

from analysis_testing.in_process import analyze_files
from openassent_analysis.reading import resource
from tests.support.each import each

API = resource("consent-api")
LOAD = "loadScript('https://static.hotjar.com/c/hotjar-1.js');"
# How code reaches each library, and a condition by which it asks for a category.
REACHED = {
    "c15t": ("import { useConsentManager } from 'c15t';\nconst c = useConsentManager();", "c", "has('marketing')"),
    "vanilla-cookieconsent": (
        "import * as c from 'vanilla-cookieconsent';", "c", "acceptedCategory('marketing')",
    ),
    "Cookiebot": ("", "Cookiebot", "consent.marketing"),
    "klaro": ("import * as klaro from 'klaro';\nconst c = klaro.getManager();", "c", "getConsent('hotjar')"),
    "orejime": ("import orejime from 'orejime';", "orejime.manager", "getConsent('hotjar')"),
    "OneTrust": ("", "window.OneTrust", "getGroups().includes('C0002')"),
    "UC_UI": ("", "UC_UI", "areAllConsentsAccepted()"),
    "Didomi": ("", "window.Didomi", "getUserConsentStatusForPurpose('analytics')"),
    "CookieFirst": ("", "CookieFirst", "consent.performance"),
    "cookiehub": ("", "window.cookiehub", "hasConsented('analytics')"),
    "CookieYes": ("", "getCkyConsent()", "categories.analytics"),
    "nuxt-cookie-control": ("const c = useCookieControl();", "c", "cookiesEnabledIds.value.includes('hotjar')"),
}  # fmt: skip
ANSWERED = [(library, name) for library, names in API["answered"].items() for name in names]
NECESSARY = ["strictly necessary", "necessary", "essential", "required", "mandatory", "C0001"]


def is_reported(code):
    files = [("src/tags.js", code.encode())]
    return any("hotjar" in it.vendor_ids for it in analyze_files(files).findings if it.category == "trackers")


@each("library", REACHED)
def test_a_librarys_question_for_a_category_is_a_gate(library):
    before, on, condition = REACHED[library]
    assert not is_reported(f"{before}\nif ({on}.{condition}) {LOAD}")


@each(("library", "name"), ANSWERED)
def test_an_answer_of_any_kind_is_no_gate(library, name):
    before, on, _ = REACHED[library]
    bare = name.removesuffix("()")
    called = "" if name in {"consentInfo", "confirmed", "hasResponse", "isUserActionCompleted"} else "()"
    assert is_reported(f"{before}\nif ({on}.{bare}{called}) {LOAD}")
    assert is_reported(f"{before}\nif (!{on}.{bare}) throw 1;\n{LOAD}") or name.endswith("()")


@each("alternative", API["necessary"].splitlines())
def test_each_name_of_the_necessary_category_has_an_example(alternative):
    assert any(re.fullmatch(alternative, name, re.IGNORECASE) for name in NECESSARY)


@each("category", NECESSARY)
def test_the_necessary_category_is_no_gate(category):
    asks = "import { acceptedCategory } from 'vanilla-cookieconsent';\nif (acceptedCategory('%s')) "
    assert is_reported(asks % category + LOAD)
    assert not is_reported(asks % f"{category}-analytics" + LOAD)


@each("function", API["functional_is_necessary"])
def test_functional_is_necessary_for_some(function):
    assert is_reported(f"if ({function}('functional')) {LOAD}")
    assert not is_reported(f"if (hasConsent('functional')) {LOAD}")


@each("handler", API["before"])
def test_a_handler_that_runs_before_the_answer_is_no_gate(handler):
    assert is_reported(f"CookieConsent.run({{ {handler}: () => {LOAD.rstrip(';')} }});")
    assert not is_reported(f"CookieConsent.run({{ onConsent: () => {LOAD.rstrip(';')} }});")
