"""One visit of a website by a new visitor: opens its pages, makes one choice or none, and records what happens."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from playwright.async_api import Browser, BrowserContext, Error, Page, Response
from playwright.async_api import TimeoutError as PageTimeout

from openassent_audit.banners import Banner, Choice, answer, find_banner
from openassent_audit.limits import Limits
from openassent_audit.messages import MOST_PICTURE_BYTES
from openassent_audit.network import Network
from openassent_audit.proxy import Proxy
from openassent_audit.recording import Cookie, Recorder, Sent, bare, split
from openassent_audit.sites import same_site
from openassent_audit.untrusted import like
from openassent_audit.words import expression, script

_AGENT: Final = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{}.0.0.0 Safari/537.36"
_FOLLOW = """url => {
  const link = [...document.querySelectorAll("a[href]")].find((it) => it.href === url);
  link?.removeAttribute("target");
  link?.click();
  return !!link;
}"""
# The shape of the result of resources/page.js.
_STATE: Final = {
    "commands": [{"command": "", "signals": {}}],
    "tcf": {"cmpId": 0, "eventStatus": "", "tcString": ""},
    "rows": [[""]],
    "links": [{"url": "", "text": ""}],
    "title": "",
    "text": "",
    "asksToSignIn": False,
    "length": 0,
}
_SHORT_TEXT: Final = 700
_FAILED_CONNECTION: Final = re.compile(r"^Page\.goto: net::(ERR_[A-Z_]+) at .*$")
_LINGER: Final = 0.3
_REPORT_SECONDS: Final = 3


class Blocked(Exception):
    """The website couldn't be visited. code: `bot-protection`, `login`, `timeout`, `unreachable`, or `answer`."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass
class Visit:
    """A visit. answered_by: what answered the banner; None if nothing could. halted: why it ended early.

    aliases: the names behind the hosts that are aliases. states: by page, what it said of itself before a choice.
    """

    choice: Choice
    answered_by: str | None = None
    halted: str | None = None
    banner: Banner | None = None
    picture: bytes | None = None
    pages: list[str] = field(default_factory=list)
    states: list[dict[str, Any]] = field(default_factory=list)
    chosen: list[str] = field(default_factory=list)
    requests: list[Sent] = field(default_factory=list)
    cookies: list[Cookie] = field(default_factory=list)
    storage: dict[tuple[str, str, str], bool] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


async def make_visit(
    browser: Browser, start: str, choice: Choice, *, limits: Limits, network: Network, others: Sequence[str] = ()
) -> Visit:
    """Makes a visit. others: the pages after the first one; an untouched visit chooses them. Raises Blocked."""
    visit, halt = Visit(choice), asyncio.get_running_loop().create_future()

    def stop(reason: str) -> None:
        if not halt.done():
            halt.set_result(reason)

    def count(number: int) -> None:
        if number > limits.requests:
            stop(f"It sent more than {limits.requests:,} requests.")

    def lose(_: Browser) -> None:
        stop("It crashed the browser.")

    recorder = Recorder(count)
    proxy = Proxy(limits, network, stop, recorder.data_went_to)
    browser.on("disconnected", lose)
    try:
        async with proxy:
            visitor = _Visitor(start, limits, visit, recorder, proxy)
            await _run(visitor.come(browser, others, stop), halt, limits.visit_seconds)
    except (Blocked, Error) as error:
        # The calls to a browser that dies fail before the browser is reported as gone.
        await asyncio.wait({halt}, timeout=_REPORT_SECONDS)
        if not halt.done():
            if isinstance(error, Blocked):
                raise
            raise Blocked("unreachable", f"The browser ended the visit: {_reason(error)}") from error
    finally:
        browser.remove_listener("disconnected", lose)
        recorder.finish()
        visit.requests, visit.storage = recorder.requests, recorder.storage
        visit.cookies = list(recorder.cookies.values())
        visit.aliases, visit.refused = proxy.aliases, proxy.refused
    visit.halted = halt.result() if halt.done() else None
    return visit


async def _run(work: Coroutine[Any, Any, None], halt: asyncio.Future[str], seconds: float) -> None:
    """Runs the work until it ends, is halted, or has taken too long."""
    task = asyncio.ensure_future(work)
    ends: set[asyncio.Future[Any]] = {task, halt}
    try:
        await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        elif not halt.done():
            halt.set_result(f"It took longer than {seconds:.0f} s.")
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _reason(error: Error) -> str:
    """Returns Chromium's name of a failed connection, or the first line of another message."""
    line = str(error.message).partition("\n")[0].strip()
    return _FAILED_CONNECTION.sub(r"\1", line)


@asynccontextmanager
async def _window(browser: Browser, proxy: Proxy) -> AsyncIterator[BrowserContext]:
    context = await browser.new_context(
        proxy={"server": proxy.address}, accept_downloads=False, service_workers="block", locale="en-GB",
        viewport={"width": 1280, "height": 900}, user_agent=_AGENT.format(browser.version.partition(".")[0]),
        permissions=[],
    )  # fmt: skip
    try:
        yield context
    finally:
        with contextlib.suppress(Error, TimeoutError):
            async with asyncio.timeout(15):
                # First, because a context asks other things before it closes, and a page may flood the answers.
                await asyncio.gather(*(page.close() for page in context.pages))
                await context.close()


@dataclass
class _Visitor:
    start: str
    limits: Limits
    visit: Visit
    recorder: Recorder
    proxy: Proxy

    async def come(self, browser: Browser, others: Sequence[str], stop: Callable[[str], None]) -> None:
        async with _window(browser, self.proxy) as context:
            page = await context.new_page()
            page.on("crash", lambda _: stop("A page crashed the browser's renderer."))
            context.on("page", lambda it: asyncio.ensure_future(it.close()))
            await self.recorder.attach(context, page)
            await self._go(page, others)

    async def _go(self, page: Page, others: Sequence[str]) -> None:
        response = await self._open(page, self.start)
        await asyncio.sleep(self.limits.settle_seconds)
        state = await self._read(page)
        _raise_if_walled(self.start, page.url, response, state)
        if self.visit.choice == "untouched":
            self.visit.banner = await find_banner(page)
            with contextlib.suppress(Error):
                self.visit.picture = await _pictured(page)
            self.visit.chosen = choose_pages(page.url, state.get("links", ()), self.limits.pages - 1)
            others = self.visit.chosen
            await self._scroll(page)
        else:
            await self.recorder.read_jar(page.context)
            self.visit.answered_by = await answer(page, self.visit.choice, self.limits.banner_seconds, self._chosen)
            if self.visit.answered_by is None:
                return
            await asyncio.sleep(self.limits.settle_seconds)
            if self.visit.choice == "refused":  # the choice also counts when the visitor comes again
                others = [self.start, *others]
        for number, url in enumerate(others):
            await self._visit_next(page, url, follows=number == 0 and url != self.start)
        await self.recorder.read_jar(page.context)
        # Leaving a page makes it send its last requests.
        with contextlib.suppress(Error):
            await page.goto("about:blank", timeout=5_000)
        await asyncio.sleep(_LINGER)

    def _chosen(self) -> None:
        self.recorder.after_choice = True

    async def _open(self, page: Page, url: str) -> Response | None:
        self.recorder.page = bare(url)
        try:
            response = await page.goto(url, wait_until="domcontentloaded", timeout=self.limits.page_seconds * 1000)
        except PageTimeout:
            message = f"The website didn't answer within {self.limits.page_seconds:.0f} s."
            raise Blocked("timeout", message) from None
        except Error as error:
            refused = next(iter(self.proxy.refused.values()), "")
            reason = f"it isn't reachable from the internet ({refused})" if refused else _reason(error)
            raise Blocked("unreachable", f"The website can't be opened: {reason}.") from None
        if not same_site(urlsplit(page.url).hostname or "", urlsplit(url).hostname or ""):
            raise Blocked("answer", f"The website redirects to another one: {bare(page.url)}.")
        self.recorder.page = bare(page.url)
        self.visit.pages.append(bare(page.url))
        return response

    async def _visit_next(self, page: Page, url: str, *, follows: bool) -> None:
        """Opens a further page. One that can't be opened is left out."""
        with contextlib.suppress(Blocked, Error):
            if follows and await page.evaluate(_FOLLOW, url):
                self.recorder.page = bare(url)
                await page.wait_for_url(url, wait_until="domcontentloaded", timeout=self.limits.page_seconds * 1000)
                self.visit.pages.append(bare(url))
            else:
                await self._open(page, url)
            await asyncio.sleep(self.limits.settle_seconds)
            await self._read(page)
            if self.visit.choice == "untouched":
                await self._scroll(page)

    async def _read(self, page: Page) -> dict[str, Any]:
        await self.recorder.read_jar(page.context)
        try:
            said = await page.evaluate(script("page"), {"host": urlsplit(page.url).netloc})
        except Error:
            return {}
        state: dict[str, Any] = like(_STATE, said)
        state["tcf"] = state["tcf"] if state["tcf"]["tcString"] or state["tcf"]["eventStatus"] else None
        self.visit.states.append(state)
        return state

    async def _scroll(self, page: Page) -> None:
        """Does what every reader does. Tags that wait for it load, and scrolling isn't consent."""
        with contextlib.suppress(Error):
            await page.mouse.move(400, 300)
            for _ in range(3):
                await page.mouse.wheel(0, 900)
                await asyncio.sleep(self.limits.settle_seconds / 6)


async def _pictured(page: Page) -> bytes:
    """Returns a picture of what the visitor sees, small enough for a message if that is possible."""
    picture = b""
    for quality in (70, 45, 20, 5):
        picture = await page.screenshot(type="jpeg", quality=quality, timeout=10_000)
        if len(picture) <= MOST_PICTURE_BYTES:
            break
    return picture


def _raise_if_walled(start: str, url: str, response: Response | None, state: dict[str, Any]) -> None:
    """Raises Blocked if the page isn't the website: bot protection, a form to sign in, or an error."""
    status = response.status if response else 200
    headers = response.headers if response else {}
    text = f"{state.get('title', '')}\n{state.get('text', '')}"
    is_short = state.get("length", 0) < _SHORT_TEXT
    if "cf-mitigated" in headers or (is_short and expression("bot_walls").search(text)):
        raise Blocked("bot-protection", "The website shows bot protection instead of its page.")
    if status == 401 or (state.get("asksToSignIn") and urlsplit(url).path != (urlsplit(start).path or "/")):
        raise Blocked("login", "The website asks visitors to sign in.")
    if status in {403, 429}:
        raise Blocked("bot-protection", f"The website refuses the visit, with the status {status}.")
    if status >= 400:
        raise Blocked("answer", f"The website answers with the status {status}.")


def choose_pages(start: str, links: Iterable[dict[str, str]], number: int) -> list[str]:
    """Returns pages that differ from each other: first the one that lists cookies, then one of each section."""
    declaring: list[str] = []
    sections: dict[str, str] = {}
    for link in links:
        url = link["url"].partition("#")[0]
        parts = split(url)
        if parts.scheme not in {"http", "https"} or parts.netloc != urlsplit(start).netloc:
            continue
        if parts.path == urlsplit(start).path or expression("unvisited").search(f"{parts.path} {link['text']}"):
            continue
        if expression("declares").search(f"{parts.path} {link['text']}"):
            declaring.append(url)
        else:
            sections.setdefault(parts.path.strip("/").split("/")[0], url)
    return list(dict.fromkeys([*declaring[:1], *sections.values(), *declaring[1:]]))[:number]
