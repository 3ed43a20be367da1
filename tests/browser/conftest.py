"""The pages in a real browser: the whole local stack, its sign-in page, and the system's Chromium.

`make browser` runs these tests. If Chromium, MiniStack, or axe is missing, they fail in CI and are skipped elsewhere.
BROWSER_PICTURES names a folder for screenshots of every page.
"""

import json
import os
import shutil
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from local.checkout import ROOT
from openassent_audit.browser import QUIET_FLAGS
from tests.support.local_stack import LocalStack
from tests.support.missing import is_missing

AXE = ROOT / "node_modules/axe-core/axe.min.js"
# No style depends on both.
LOOKS = pytest.mark.parametrize(("width", "scheme"), [("desktop", "light"), ("phone", "dark")])
WIDTHS = {"desktop": {"width": 1280, "height": 800}, "phone": {"width": 360, "height": 740}}
# On a busy machine, the reference takes as long to render.
_MOST_MILLISECONDS = 60_000
expect.set_options(timeout=_MOST_MILLISECONDS)
_NUMBERS = count(1)
# Redoc lays its transparent lists over text that it draws.
_TRANSPARENT = """[...document.querySelectorAll("a, button, input, select:not(.dropdown-select), textarea, summary")]
    .filter(it => it.checkVisibility() && !it.checkVisibility({opacityProperty: true}))
    .map(it => it.outerHTML)"""
# Chromium renders two popups of the address bar for each window, which takes half of the window's CPU time. This
# replaces Playwright's list of disabled features, of which the tests need the last one: no http:// becomes https://.
_FEATURES = "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup,HttpsUpgrades"
# The whole result would take longer to send than to find.
_RUN_AXE = """axe.run(document, {resultTypes: ["violations"]}).then(({violations, passes}) =>
    [violations.map(it => [it.id, it.nodes.map(node => node.html)]), passes.length])"""
# All people here share one address, which on AWS gets 60 requests a minute.
_LIMITS = {"SIGN_IN_REQUESTS_PER_MINUTE": "10000"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


def _missing() -> list[str]:
    found = {
        "Chromium": _chromium() is not None,
        "MiniStack": (ROOT / ".tools/ministack/.ready").exists(),
        "axe-core": AXE.exists(),
    }
    return [name for name, is_there in found.items() if not is_there]


def _chromium() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser")


@dataclass
class Stack:
    """`make run` on a free port with its own data, and the credentials of the demo."""

    base_url: str
    credentials: dict[str, Any]
    directory: Path

    def person(self, role: str = "owner") -> dict[str, Any]:
        return next(it for it in self.credentials["users"] if it["role"] == role)

    @property
    def outsider(self) -> dict[str, Any]:
        return self.credentials["users"][-1]

    def call(self, path: str, body: dict[str, Any] | None = None, token: str = "") -> tuple[int, dict[str, Any]]:
        headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {token}"} if token else {})
        sent = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self.base_url + path, sent, headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def scan(self) -> dict[str, Any]:
        """Returns a completed scan of the demo's repository, with the project that it is linked to."""
        owner = self.person()
        token, organization = owner["accessToken"], f"organizationId={owner['organizationId']}"
        listed = self.call(f"/v1/code-audit/repositories?{organization}", token=token)[1]["data"]
        demo = self.credentials["repositories"][0]["repositoryId"]
        repository = next(it for it in listed if it["id"] == demo)
        scans = f"/v1/code-audit/scans?{organization}&repositoryId={demo}"
        if not self.call(scans, token=token)[1]["data"]:
            status, started = self.call(scans, {"repositoryId": repository["id"]}, token)
            assert status == 202, started
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            found = self.call(f"{scans}&status=completed", token=token)[1]["data"]
            if found:
                return {**found[0], "project": repository["projects"][0]}
            time.sleep(0.5)
        raise AssertionError("the scan wasn't completed")

    def device(self) -> "Device":
        body = {
            "clientId": "assent-cli",
            "codeChallenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
            "codeChallengeMethod": "S256",
            "scope": "organizations.read projects.read projects.write inbox.read",
            "deviceName": "Ada's laptop",
        }
        deadline = time.monotonic() + 65
        while True:
            status, answer = self.call("/v1/auth/device/code", body)
            # An address gets ten codes a minute, and all devices here share one address.
            if status != 429 or time.monotonic() > deadline:
                break
            time.sleep(1)
        assert status == 201, answer
        return Device(self, **{name: answer["data"][name] for name in ("deviceCode", "userCode")})


@dataclass
class Device:
    """A device that requested authorization."""

    stack: Stack
    deviceCode: str  # noqa: N815 (as on the wire)
    userCode: str  # noqa: N815

    @property
    def link(self) -> str:
        return f"{self.stack.base_url}/device?user_code={self.userCode}"

    def redeem(self) -> tuple[int, dict[str, Any]]:
        verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
        body = {"deviceCode": self.deviceCode, "codeVerifier": verifier, "clientId": "assent-cli"}
        return self.stack.call("/v1/auth/device/token", body)


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    if missing := _missing():
        is_missing(f"not installed: {', '.join(missing)}")
    local = LocalStack(tmp_path_factory.mktemp("stack"), **_LIMITS)
    # It logs each request. Once the pipe was full, it would wait forever.
    assert local.process.stdout is not None
    reader = threading.Thread(target=local.process.stdout.read)
    reader.start()
    yield Stack(f"http://127.0.0.1:{local.port}", local.credentials, local.directory)
    local.process.terminate()
    with suppress(subprocess.TimeoutExpired):
        local.process.wait(20)
    reader.join(20)
    local.process.stdout.close()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    if _chromium() is None:
        is_missing("not installed: Chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=_chromium(), args=[*QUIET_FLAGS, _FEATURES], chromium_sandbox=False, timeout=60_000
        )
        yield browser
        browser.close()


@dataclass
class Visit:
    """A person with a browser. `look` checks each page against axe's rules."""

    stack: Stack
    context: BrowserContext
    page: Page
    label: str
    problems: list[str] = field(default_factory=list)

    def open(self, path: str) -> None:
        self.page.goto(self.stack.base_url + path)

    def sign_in(self, person: dict[str, Any]) -> None:
        """Fills in the sign-in service's own page."""
        self.page.get_by_label("Email").fill(person["email"])
        self.page.locator("[name=password]").fill(person["password"])
        self.page.get_by_role("button", name="Sign in", exact=True).click()

    def sign_out(self) -> None:
        """Signs out with the menu of the person's account."""
        self.page.locator("summary", has_text="Your account").click()
        self.press("Sign out")

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name).click()

    def arrive(self, heading: str) -> None:
        """Waits for the page with that heading to have loaded: until then, its layout may be one without styles."""
        self.page.get_by_role("heading", name=heading, level=1).wait_for()
        self.page.wait_for_load_state("load")

    def look(self, heading: str, name: str, except_for: Collection[str] = ()) -> None:
        """Arrives at the page, takes a screenshot, and checks axe's rules except those listed.

        Also checks that no control is transparent, which axe and clicks ignore.
        """
        self.arrive(heading)
        pictures = os.environ.get("BROWSER_PICTURES")
        if pictures:
            Path(pictures).mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=f"{pictures}/{name}-{self.label}.png", full_page=True)
        assert self.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), "it scrolls sideways"
        assert self.page.evaluate(_TRANSPARENT) == []
        violations, passes = self.page.evaluate(f"{AXE.read_text()}; {_RUN_AXE}")
        assert [it for it in violations if it[0] not in except_for] == []
        assert passes


@pytest.fixture
def visit(stack: Stack, chromium: Browser) -> Iterator[Callable[..., Visit]]:
    """Makes visits at a given width and color scheme, with or without scripts."""
    contexts: list[BrowserContext] = []

    def make(width: str = "desktop", scheme: Any = "light", *, scripts: bool = True) -> Visit:
        context = chromium.new_context(
            viewport=WIDTHS[width], color_scheme=scheme, java_script_enabled=scripts, locale="en-GB"
        )
        context.set_default_timeout(_MOST_MILLISECONDS)
        contexts.append(context)
        page = context.new_page()
        made = Visit(stack, context, page, f"{width}-{scheme}")
        page.on("pageerror", lambda error: made.problems.append(str(error)))
        page.on("console", lambda message: made.problems.append(message.text) if is_refusal(message.text) else None)
        made_visits.append(made)
        return made

    made_visits: list[Visit] = []
    yield make
    for context in contexts:
        context.close()
    assert [problem for made in made_visits for problem in made.problems] == []


def is_refusal(text: str) -> bool:
    """Returns whether the browser reports that it refused something a page requested."""
    return "Refused to" in text or "Content Security Policy" in text or "violates" in text


@pytest.fixture
def invitation(stack: Stack) -> Callable[[str], str]:
    """Creates an organization and invites an address to it. Returns the organization's name."""

    def make(email: str) -> str:
        name = f"Cedar {next(_NUMBERS)}"
        inviter = stack.outsider
        status, made = stack.call("/v1/organizations", {"name": name}, inviter["accessToken"])
        assert status == 201, made
        query = f"?organizationId={made['data']['id']}"
        status, answer = stack.call(
            f"/v1/invitations{query}", {"email": email, "role": "admin"}, inviter["accessToken"]
        )
        assert status == 201, answer
        return name

    return make
