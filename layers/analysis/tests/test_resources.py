"""Each line of the resources: an example that it matches, and a near one that it doesn't."""

import re
from pathlib import Path

import pytest
import yaml

from analysis_testing.in_process import analyze_files, analyze_folder
from openassent_analysis.catalogue import CALLS, catalogue
from openassent_analysis.entries import Runs, runs
from openassent_analysis.files import reason_to_skip
from openassent_analysis.reading import alternatives, load_yaml, resource
from openassent_analysis.unknown import is_known_tag, unknown_host
from tests.support.each import each

PATHS = resource("paths")
# By list: for each line, in their order, what it matches and what it doesn't.
EXAMPLES = yaml.safe_load((Path(__file__).parent / "lines" / "paths.yml").read_text())
# Matched in any case of letters.
ANY_CASE = {"vendored", "copies", "libraries", "bundles", "messages", "partial", "pieces", "replaced", "wrappers"}
# How files of a list run.
RUNS = {"by_convention": Runs.ALL, "hooks": Runs.PERHAPS, "messages": Runs.NEVER, "pieces": Runs.NEVER}
TAG = b"<script src='https://static.hotjar.com/c/hotjar-1.js'></script>"


def lists():
    """Yields each list of expressions, by its name."""
    for name, written in PATHS.items():
        if name == "names":
            yield from ((f"names: {reason}", lines) for reason, lines in written.items())
        elif isinstance(written, str) and name != "kept":
            yield name, written


def lines():
    """Yields each line with the list that it is in, and its examples."""
    for name, written in lists():
        for line, (matched, near) in zip(written.split("\n"), EXAMPLES[name], strict=True):
            yield pytest.param(name, line, matched, near, id=f"{name}: {line}")


@each("name, line, matched, near", lines())
def test_a_line_matches_its_example_alone(name, line, matched, near):
    line = line.replace("KEPT", PATHS["kept"]).replace("LIBRARY", alternatives(PATHS["libraries"]))
    pattern = re.compile(line, re.IGNORECASE if name in ANY_CASE else 0)
    find = pattern.fullmatch if name == "libraries" else pattern.search
    assert (bool(find(matched)), bool(find(near))) == (True, False)


@each("name, matched, near", [(name, *pair) for name in RUNS for pair in EXAMPLES[name]])
def test_a_path_says_how_a_file_runs(name, matched, near):
    assert runs(matched) is RUNS[name]
    assert runs(near) is not RUNS[name]


@each("reason, folder", [(reason, folder) for reason, folders in PATHS["folders"].items() for folder in folders])
def test_a_folder_is_skipped(reason, folder):
    assert reason_to_skip(f"src/{folder}/a.js") == reason
    assert reason_to_skip(f"src/a-{folder}-a/a.js") is None


BESIDE = [(reason, folder) for reason, folders in PATHS["next_to_manifests"].items() for folder in folders]


@each("reason, folder", BESIDE)
class TestConventions:
    def test_a_folder_is_skipped_beside_a_manifest(self, reason, folder):
        files = [(f"web/{folder}/a/index.html", TAG), ("web/package.json", b"{}"), (f"web/{folder}/a.png", b"")]
        analysis = analyze_files(files)
        assert (analysis.findings, analysis.skipped) == ([], {reason: 1})
        assert analysis.skipped_examples == {reason: [f"web/{folder}/a/index.html"]}
        # A finding of an earlier scan isn't fixed.
        assert analysis.uncertain == {f"web/{folder}/a/index.html"}

    def test_a_folder_elsewhere_is_the_site(self, reason, folder):
        files = [(f"web/{folder}/index.html", TAG), ("package.json", b"{}"), (f"web/{folder}/package.json", b"{}")]
        assert analyze_files(files).findings
        assert not analyze_files(files).skipped


@each("manifest", PATHS["manifests"])
def test_a_manifest_shows_a_project(manifest, tmp_path):
    for name, content in ((manifest, b"a"), ("demo/index.html", TAG)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    assert analyze_folder(tmp_path).skipped["test or example"] == 1
    (tmp_path / manifest).rename(tmp_path / f"{manifest}.old")
    assert "test or example" not in analyze_folder(tmp_path).skipped


HOSTS = resource("hosts")
# Examples of the lines that are expressions.
PAYMENTS = {r"[\w-]*pay": "acme-pay", r"pay[\w-]*": "paywidgets", r"braintree(?:gateway)?": "braintree"}
TAGS = {
    "Umami": ("8f2b1a34-9c0d-4e5f-8a6b-7c8d9e0f1a2b", "https://a.widget-maker.io/u.js"),
    "Plausible": ("acme.io", "https://a.widget-maker.io/js/plausible.js"),
    "GoatCounter": ("https://a.widget-maker.io/count", "https://a.widget-maker.io/count.js"),
}


@each("name", HOSTS["payments"].splitlines())
def test_a_payment_provider_is_no_unknown_third_party(name):
    name = PAYMENTS.get(name, name)
    address = f"https://js.{name}.com/v1/sdk.js"
    assert catalogue().knows(f"js.{name}.com") or unknown_host(catalogue(), address) is None
    assert unknown_host(catalogue(), f"https://js.x{name}x.com/v1/sdk.js") == f"js.x{name}x.com"


@each("name", HOSTS["libraries"].splitlines())
def test_a_well_known_library_is_no_unknown_third_party(name):
    name = re.sub(r"\?|\\", "", name)
    assert unknown_host(catalogue(), f"https://files.widget-maker.io/js/{name}.min.js") is None
    assert unknown_host(catalogue(), f"https://files.widget-maker.io/js/acme{name}.js") is not None


@each("tool", HOSTS["self_hosted"])
def test_a_tag_of_analytics_without_identifiers_is_known_on_any_host(tool):
    value, address = TAGS[tool["tool"]]
    attribute = tool["attribute"]
    assert is_known_tag(f'<script {attribute}="{value}" src="{address}">', address)
    assert is_known_tag(f'<script {attribute}={{process.env.ID}} src="{address}">', address)
    assert not is_known_tag(f'<script {attribute.removeprefix("data-")}="{value}" src="{address}">', address)


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


PLAYER = "frame = document.createElement('iframe');\nframe.src = 'https://www.youtube.com/embed/' + id;\n"
LINES = "setting('a', 'b', 'c');\n" * 400


def skipped(path, banner, code=PLAYER + LINES):
    return dict(analyze_files([(path, f"{banner}\n{code}".encode())]).skipped)


class TestBanner:
    @each("path, banner", [
        ("js/photo.gallery.js", "/**\n * Photo Gallery v2.3.4\n * SEE LICENSE IN https://github.com/a/b\n */"),
        ("js/photo-gallery.js", "/*\n * jQuery PhotoGallery v1.3.3\n * Copyright (c) 2013 Someone Else\n */"),
        ("js/other.js", "/*!\n * Photo Gallery v2.3.4\n * Copyright (c) 2013 Someone Else\n */"),
    ])  # fmt: skip
    def test_a_file_named_like_its_banner_is_a_copy(self, path, banner):
        assert skipped(path, banner) == {"vendored": 1}

    @each("path, banner", [
        ("js/main.js", "/**\n * Photo Gallery v2.3.4\n * Copyright 2013 Someone Else\n */"),
        ("js/gallery.js", "/**\n * Photo Gallery v2.3.4\n * Copyright 2013 Someone Else\n */"),
        ("js/photo.gallery.js", "/**\n * Photo Gallery of our shop.\n * Copyright 2013 Someone Else\n */"),
        ("js/photo.gallery.js", "/**\n * Photo Gallery v2.3.4 is what this replaces.\n */"),
    ])  # fmt: skip
    def test_other_banners_dont_make_a_copy(self, path, banner):
        assert skipped(path, banner) == {}

    def test_a_short_file_is_not_a_copy(self):
        banner = "/**\n * Photo Gallery v2.3.4\n * Copyright 2013 Someone Else\n */"
        assert skipped("js/photo.gallery.js", banner, PLAYER) == {}


CALLS_OF_VENDORS = load_yaml(CALLS)


def loaded_by(path, text):
    """Returns the vendors that a file loads."""
    return {
        vendor_id for finding in analyze_files([(path, text.encode())]).findings for vendor_id in finding.vendor_ids
    }


@each("vendor, name", [(vendor, name) for vendor, names in CALLS_OF_VENDORS["fields"].items() for name in names])
def test_a_field_of_a_form_writes_a_vendors_script(vendor, name):
    form = f"class F({name}):\n    pass\n" if name.startswith("Wagtail") else f"class F(Form):\n    a = {name}()\n"
    assert loaded_by("a/forms.py", form) == {vendor}
    assert loaded_by("a/forms.py", form.replace(name, "CharField")) == set()


@each("vendor, word", [(vendor, word) for vendor, words in CALLS_OF_VENDORS["variables"].items() for word in words])
def test_a_variable_with_a_vendors_name_has_its_scripts_address(vendor, word):
    assert loaded_by("a.html", f'<script src="{{{{ site.{word}_url }}}}"></script>') == {vendor}
    assert loaded_by("a.html", f'<script src="{{{{ site.x{word} }}}}"></script>') == set()


ELEMENTS = [entry for entry in CALLS_OF_VENDORS["elements"] if "words" not in entry or entry.get("started")]


@each("element", [entry for entry in ELEMENTS if not entry["tag"].startswith("amp-")])
def test_an_element_loads_a_vendor(element):
    attributes = f'class="{element["words"][0]}"' if "words" in element else 'src="a"'
    assert loaded_by("a.html", f"<{element['tag']} {attributes}></{element['tag']}>") == {element["vendor"]}
    assert loaded_by("a.html", f"<x-{element['tag']} {attributes.replace('g-', 'x')}></x-{element['tag']}>") == set()


HELPERS = {
    "googletagmanager": "resources/views/a.blade.php: @include('googletagmanager::head')",
    "google_tag_manager": "a.twig: {{ google_tag_manager_head() }}",
    "matomo": "a.twig: {{ piwik_code() }}",
    "external_video_tag": "a.liquid: {{ media | external_video_tag }}",
    "recaptcha_tags": "a.erb: <%= recaptcha_tags %>",
    "recaptcha_v3": "a.erb: <%= recaptcha_v3(action: 'a') %>",
    "invisible_recaptcha": "a.erb: <%= invisible_recaptcha_tags %>",
    "NoCaptcha": "a.blade.php: {!! NoCaptcha::display() !!}",
    "app": "a.blade.php: {!! app('captcha')->display() !!}",
    "RecaptchaV3": "a.blade.php: {!! RecaptchaV3::field('a') !!}",
    "htmlScriptTagJsApi": "a.blade.php: {!! htmlScriptTagJsApi() !!}",
    "Type::class": "src/Form/A.php: <?php $builder->add('a', Recaptcha3Type::class);",
}


@each("name", [line for helper in resource("template-languages")["helpers"] for line in helper["names"].splitlines()])
def test_a_helper_writes_a_vendors_element(name):
    path, _, text = next(written for word, written in HELPERS.items() if word in name).partition(": ")
    assert re.search(name, text)
    assert loaded_by(path, text)
    assert not loaded_by(path, re.sub(r"(?i)captcha|matomo|piwik|manager|external|JsApi", "x", text))
