"""The edits of fixes in Chromium, with the consent libraries from npm: a tracker gets requests after consent only.

Every page is answered here, and so is the tracker, at its own address. The scripts of Cookiebot, OneTrust, and
Usercentrics come from their hosts alone, so the analysis layer's tests compare the attributes with their documentation.
"""

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route

from analysis_testing.in_process import analyze_files, inventory_of
from local.checkout import ROOT
from openassent_analysis.fixes import Fix, Project, fix_for
from openassent_analysis.inventory.stocktaking import with_loads
from tests.support.missing import is_missing

MODULES = ROOT / "node_modules"
HOTJAR = "https://static.hotjar.com/c/hotjar-1.js"
TAG = f'<script async src="{HOTJAR}"></script>'
# Reports the visit, like the package of the same name.
POSTHOG = "export default { init: (key) => fetch(`https://us.i.posthog.com/e/?token=${key}`, { mode: 'no-cors' }) };"
START = "import posthog from 'posthog-js';\nposthog.init('phc_abc');\n"
STYLE = '<link rel="stylesheet" href="cookieconsent.css">'
BUTTONS = '<button id="yes">Accept all</button> <button id="no">Reject all</button>'
# Google's tag, which honors the consent mode: it sends one hit once analytics_storage is granted.
GTAG = """(() => {
  let granted = true, configured = false, sent = false;
  const take = ([command, name, settings]) => {
    if (command === 'consent' && settings.analytics_storage) granted = settings.analytics_storage === 'granted';
    configured ||= command === 'config';
    if (granted && configured && !sent) {
      sent = true;
      fetch('https://www.google-analytics.com/g/collect?v=2', { mode: 'no-cors' });
    }
  };
  dataLayer.forEach(take);
  dataLayer.push = (item) => { Array.prototype.push.call(dataLayer, item); take(item); };
})();"""
GOOGLE = """<script async src="https://www.googletagmanager.com/gtag/js?id=G-ABC1234"></script>
<script>
  window.dataLayer = window.dataLayer || [];
  function gtag() { dataLayer.push(arguments); }
  gtag('js', new Date());
  gtag('config', 'G-ABC1234');
</script>"""
# The project's own banner, which keeps the choice.
BANNER = """<script>
  const grant = () => { AGREED };
  if (localStorage.choice === 'yes') grant();
  document.querySelector('#yes').onclick = () => { localStorage.choice = 'yes'; grant(); };
  document.querySelector('#no').onclick = () => { localStorage.choice = 'no'; };
</script>"""
CONSENT_3 = """CookieConsent.run({
  hideFromBots: false,
  categories: { necessary: { enabled: true, readOnly: true }, analytics: {} },
  language: { default: 'en', translations: { en: {
    consentModal: { title: 'Cookies', acceptAllBtn: 'Accept all', acceptNecessaryBtn: 'Reject all' },
    preferencesModal: { sections: [] },
  } } },
});
"""
CONSENT_2 = """initCookieConsent().run({
  current_lang: 'en',
  hide_from_bots: false,
  page_scripts: true,
  languages: { en: {
    consent_modal: {
      title: 'Cookies',
      primary_btn: { text: 'Accept all', role: 'accept_all' },
      secondary_btn: { text: 'Reject all', role: 'accept_necessary' },
    },
    settings_modal: { title: 'Cookies', blocks: [
      { title: 'Necessary', toggle: { value: 'necessary', enabled: true, readonly: true } },
      { title: 'Analytics', toggle: { value: 'analytics', enabled: false, readonly: false } },
    ] },
  } },
});
"""
KLARO = """var klaroConfig = {
  acceptAll: true,
  translations: { en: { ok: 'Accept all', decline: 'Reject all', purposes: { analytics: 'Analytics' } } },
  lang: 'en',
  services: [{ name: 'hotjar', purposes: ['analytics'] }],
};
"""
WIRED = """import './main';
import { accept, refuse } from './consent';
document.querySelector('#yes').onclick = accept;
document.querySelector('#no').onclick = refuse;
"""
RENDERED = "import { createRoot } from 'react-dom/client';\nimport { App } from './App';\n"
RENDERED += "createRoot(document.querySelector('#root')!).render(<App />);\n"


def manifest(**packages: str) -> dict[str, str]:
    return {"package.json": json.dumps({"dependencies": packages}), "package-lock.json": "{}"}


def page(head: str, body: str = "") -> str:
    title = '<meta charset="utf-8"><title>Shop</title>'
    return f"<!doctype html>\n<html><head>{title}\n{head}\n</head><body>\n{body}\n</body></html>\n"


@dataclass
class Site:
    """A project, served as a site. entry: the module that a bundler starts with, after the edits."""

    vendor: str
    tracker: str
    files: dict[str, str]
    # Files that are only served, or that a person adds as the fix says.
    served: dict[str, str] = field(default_factory=dict)
    entry: str = ""
    finish: Callable[[dict[str, str], Fix], None] = lambda _files, _fix: None


def library(package: str, *names: str) -> dict[str, str]:
    return {name: f"{package}/dist/{name}" for name in names}


def with_banner(files: dict[str, str], fix: Fix) -> None:
    """Adds the project's own banner, with the code of the fix."""
    is_html = fix.language == "html"
    agreed = "allow('analytics');" if is_html else fix.code.splitlines()[-1].partition(" //")[0]
    added = f"{BUTTONS}{fix.code if is_html else ''}{BANNER.replace('AGREED', agreed)}"
    files["index.html"] = files["index.html"].replace("</body>", f"{added}</body>")


def with_buttons(files: dict[str, str], _fix: Fix) -> None:
    files["src/banner.ts"] = WIRED


def with_root(files: dict[str, str], _fix: Fix) -> None:
    """Renders the component, as the fix says."""
    files["src/index.tsx"] = RENDERED.replace("./App", "./consent").replace("App", "Consent") + "import './main';\n"


SITES = {
    "CookieConsent 3": Site(
        "hotjar", HOTJAR,
        {"index.html": page(TAG + STYLE, f'<script src="cookieconsent.umd.js"></script><script>{CONSENT_3}</script>')},
        library("vanilla-cookieconsent", "cookieconsent.umd.js", "cookieconsent.css"),
    ),
    "CookieConsent 2": Site(
        "hotjar", HOTJAR,
        {"index.html": page(TAG + STYLE, f'<script src="cookieconsent.js"></script><script>{CONSENT_2}</script>')},
        library("vanilla-cookieconsent-2", "cookieconsent.js", "cookieconsent.css"),
    ),
    "Klaro": Site(
        "hotjar", HOTJAR,
        {"index.html": page(TAG, f'<script>{KLARO}</script><script defer src="klaro.js"></script>')},
        library("klaro", "klaro.js"),
    ),
    "Google consent mode": Site(
        "google-analytics", "https://www.google-analytics.com/g/collect?v=2",
        {"index.html": page(GOOGLE)}, finish=with_banner,
    ),
    "the project's own banner": Site("hotjar", HOTJAR, {"index.html": page(TAG)}, finish=with_banner),
    "CookieConsent 3 in code": Site(
        "posthog", "https://us.i.posthog.com/e/?token=phc_abc",
        {
            **manifest(**{"vanilla-cookieconsent": "^3.1.0", "posthog-js": "1.0.0"}),
            "src/main.ts": f"{START}import * as CookieConsent from 'vanilla-cookieconsent';\n{CONSENT_3}",
        },
        {"index.html": page(STYLE, '<script src="bundle.js"></script>')}
        | library("vanilla-cookieconsent", "cookieconsent.css"),
        "src/main.ts",
    ),
    "c15t in code": Site(
        "posthog", "https://us.i.posthog.com/e/?token=phc_abc",
        {**manifest(**{"vite": "6.0.0", "posthog-js": "1.0.0"}), "src/main.ts": START},
        {"index.html": page("", f'{BUTTONS}<script src="bundle.js"></script>')},
        "src/banner.ts",
        with_buttons,
    ),
    "c15t for React in code": Site(
        "posthog", "https://us.i.posthog.com/e/?token=phc_abc",
        {**manifest(**{"react": "19.0.0", "posthog-js": "1.0.0"}), "src/main.ts": START},
        {"index.html": page("", '<div id="root"></div><script src="bundle.js"></script>')},
        "src/index.tsx",
        with_root,
    ),
    "c15t for React": Site(
        "google-analytics", "https://www.googletagmanager.com/gtag/js?id=G-ABC1234",
        {
            **manifest(react="19.0.0"),
            "src/App.tsx": "import type { ReactNode } from 'react';\n\n"
            "export const App = (): ReactNode => (\n  <main>\n    <h1>Shop</h1>\n"
            '    <script async src="https://www.googletagmanager.com/gtag/js?id=G-ABC1234" />\n  </main>\n);\n',
            "src/index.tsx": RENDERED,
        },
        {"index.html": page("", '<div id="root"></div><script src="bundle.js"></script>')},
        "src/index.tsx",
    ),
}  # fmt: skip


def fix_of(site: Site) -> Fix:
    result = analyze_files([(path, content.encode()) for path, content in site.files.items()])
    project = Project.of(with_loads(inventory_of(site.files), result.loads), result)
    [finding] = [it for it in result.findings if it.category == "trackers" and it.vendor_ids == (site.vendor,)]
    fix = fix_for(finding, project)
    assert fix is not None
    assert fix.edits
    return fix


def edited(site: Site) -> dict[str, str]:
    fix, files = fix_of(site), dict(site.files)
    for edit in sorted(fix.edits, key=lambda it: it.start_line, reverse=True):
        lines = files.get(edit.path, "").split("\n")
        lines[edit.start_line - 1 : edit.start_line + edit.before.count("\n")] = edit.after.split("\n")
        files[edit.path] = "\n".join(lines)
    site.finish(files, fix)
    return files


def contents(site: Site, files: Mapping[str, str], folder: Path) -> dict[str, bytes]:
    """Returns what the site serves, by the name at the end of the address."""
    found = {name: content.encode() for name, content in files.items()}
    for name, content in site.served.items():
        found[name] = content.encode() if content.startswith("<") else (MODULES / content).read_bytes()
    if site.entry:
        # The edits don't add the entry: a person does, as the fix says.
        found["bundle.js"] = bundle(site.entry if site.entry in files else "src/main.ts", files, folder)
    return found


def bundle(entry: str, files: Mapping[str, str], folder: Path) -> bytes:
    for name, content in {**files, "posthog.js": POSTHOG}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    made = subprocess.run(
        [
            MODULES / ".bin/esbuild", folder / entry, "--bundle", "--jsx=automatic", "--log-level=warning",
            "--loader:.css=empty",
            f"--alias:posthog-js={folder / 'posthog.js'}", '--define:process.env.NODE_ENV="production"',
        ],
        env=os.environ | {"NODE_PATH": str(MODULES)}, capture_output=True, check=True,
    )  # fmt: skip
    return made.stdout


@dataclass
class Visitor:
    """A person who opens the site, and the requests that the tracker gets."""

    context: BrowserContext
    site: Site
    contents: Mapping[str, bytes]
    requests: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def requested(self) -> AbstractContextManager[Any]:
        """Waits for the tracker to answer a request. A slow browser sends it long after the page has loaded."""
        return self.context.expect_event("response", lambda it: it.url == self.site.tracker)

    def open(self) -> Page:
        opened = self.context.new_page()
        opened.on("pageerror", lambda error: self.problems.append(str(error)))
        opened.route("**/*", self._answer)
        opened.goto("http://shop.test/")
        opened.wait_for_load_state("networkidle")
        return opened

    def _answer(self, route: Route) -> None:
        address = route.request.url
        if address == self.site.tracker:
            self.requests.append(address)
        name = address.removeprefix("http://shop.test/") or "index.html"
        if name.startswith("https://www.googletagmanager.com/gtag/js"):
            route.fulfill(body=GTAG, content_type="text/javascript")
        elif name in self.contents:
            kinds = {".html": "text/html", ".css": "text/css"}
            route.fulfill(body=self.contents[name], content_type=kinds.get(Path(name).suffix, "text/javascript"))
        else:
            route.fulfill(body="", content_type="text/javascript")


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    if not (MODULES / ".bin/esbuild").exists():
        is_missing("not installed: the packages of package.json")


@pytest.fixture(params=SITES)
def site(request: pytest.FixtureRequest) -> Site:
    return SITES[request.param]


@pytest.fixture
def visitor(site: Site, chromium: Browser, tmp_path: Path) -> Iterator[Callable[[Mapping[str, str]], Visitor]]:
    contexts: list[BrowserContext] = []

    def make(files: Mapping[str, str]) -> Visitor:
        context = chromium.new_context(locale="en-GB")
        contexts.append(context)
        return Visitor(context, site, contents(site, files, tmp_path))

    yield make
    for context in contexts:
        context.close()


class TestEdits:
    def test_the_tracker_is_requested_after_consent_and_on_later_visits(self, site: Site, visitor):
        person = visitor(edited(site))
        page = person.open()
        assert person.requests == []
        with person.requested():
            page.get_by_role("button", name="Accept all").click()
        with person.requested():
            person.open()
        assert person.requests == [site.tracker] * 2
        assert person.problems == []

    def test_the_tracker_is_never_requested_after_refusal(self, site: Site, visitor):
        person = visitor(edited(site))
        page = person.open()
        page.get_by_role("button", name="Reject all").click()
        person.open()
        assert person.requests == []
        assert person.problems == []

    def test_without_the_edits_it_is_requested_at_once(self, site: Site, visitor):
        person = visitor(site.files)
        with person.requested():
            person.open()
        assert person.requests == [site.tracker]
