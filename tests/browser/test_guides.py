"""The sites of the guide to consent in Chromium, word by word: the tracker gets its first request after consent.

Next.js, Nuxt, and Astro aren't installed. React renders the layout that is for Next.js, and the tests do what Nuxt and
Astro do with the guide's files: a head from the configuration, and a bundle of the scripts.
"""

import json
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext

from tests.browser.test_fixes import MODULES, Site, Visitor, bundle, library
from tests.support.guides import files_of, write
from tests.support.missing import is_missing

TRACKER = "https://www.googletagmanager.com/gtag/js?id=G-ABC1234"
STYLE = "vanilla-cookieconsent/dist/cookieconsent.css"
# CookieConsent hides its banner from programs.
PERSON = "Object.defineProperty(navigator, 'webdriver', { get: () => false });"
NEXT = """import { createElement } from 'react';
import { hydrateRoot } from 'react-dom/client';
import Layout from './app/layout';
hydrateRoot(document, createElement(Layout, null, createElement('h1', null, 'Shop')));
"""
NEXT_ON_THE_SERVER = """import { createElement } from 'react';
import { renderToString } from 'react-dom/server';
import Layout from './app/layout';
console.log(renderToString(createElement(Layout, null, createElement('h1', null, 'Shop'))));
process.exit(); // React keeps a channel open
"""
NUXT = """globalThis.defineNuxtPlugin = (plugin) => plugin({ hook: (name, call) => setTimeout(call) });
globalThis.defineNuxtConfig = (config) => console.log(JSON.stringify(config.app.head.script));
"""


def run(script: bytes) -> str:
    return subprocess.run(["node", "-"], input=script, capture_output=True, check=True, timeout=60).stdout.decode()


def plain_html(files: dict[str, str], folder: Path) -> Mapping[str, bytes]:
    served = library("vanilla-cookieconsent", "cookieconsent.umd.js", "cookieconsent.css")
    written = {name: files[name].encode() for name in ("index.html", "consent.js")}
    return written | {name: (MODULES / path).read_bytes() for name, path in served.items()}


def next_js(files: dict[str, str], folder: Path) -> Mapping[str, bytes]:
    on_the_server = bundle("server.js", {**files, "server.js": NEXT_ON_THE_SERVER}, folder)
    page = run(b"process.env.NODE_ENV = 'production';" + on_the_server)
    head = f'<link rel="stylesheet" href="{Path(STYLE).name}">'
    return {
        "index.html": f"<!doctype html>{page.replace('<body>', f'<head>{head}</head><body>')}".encode(),
        "bundle.js": bundle("client.js", {**files, "client.js": NEXT}, folder),
    }


def nuxt(files: dict[str, str], folder: Path) -> Mapping[str, bytes]:
    configured = {**files, "nuxt.js": NUXT, "read.js": "import './nuxt'; import './nuxt.config';"}
    (script,) = json.loads(run(bundle("read.js", configured, folder)))
    attributes = " ".join(name if value is True else f'{name}="{value}"' for name, value in script.items())
    started = {**configured, "client.js": "import './nuxt'; import './plugins/consent.client';"}
    return {
        "index.html": f"<!doctype html><head><script {attributes}></script></head><h1>Shop</h1>".encode(),
        "bundle.js": bundle("client.js", started, folder),
    }


def astro(files: dict[str, str], folder: Path) -> Mapping[str, bytes]:
    _, _, page = files["src/layouts/Layout.astro"].split("---\n")
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    shown = (
        page.replace(f"<script>{script}</script>", "").replace("is:inline ", "").replace("<slot />", "<h1>Shop</h1>")
    )
    started = {**files, "src/layouts/script.js": script}
    return {"index.html": shown.encode(), "bundle.js": bundle("src/layouts/script.js", started, folder)}


@pytest.fixture(params=[plain_html, next_js, nuxt, astro])
def contents(request: pytest.FixtureRequest, tmp_path: Path) -> Mapping[str, bytes]:
    if not (MODULES / ".bin/esbuild").exists():
        is_missing("not installed: the packages of package.json")
    made: Callable[[dict[str, str], Path], Mapping[str, bytes]] = request.param
    files = files_of("consent")
    write(files, tmp_path)
    return made(files, tmp_path)


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    made = chromium.new_context(locale="en-GB")
    made.add_init_script(PERSON)
    yield made
    made.close()


def test_the_tracker_gets_no_request_before_consent_and_one_after_it(
    contents: Mapping[str, bytes], context: BrowserContext
):
    person = Visitor(context, Site("google-analytics", TRACKER, {}), contents)
    page = person.open()
    if "bundle.js" in contents:
        page.add_script_tag(content=contents["bundle.js"].decode())
    page.get_by_role("heading", name="Shop").wait_for()
    accept = page.get_by_role("button", name="Accept all").first
    accept.wait_for()
    assert person.requests == []
    with person.requested():
        accept.click()
    assert (person.requests, person.problems) == ([TRACKER], [])
