"""Records a visit through the DevTools protocol, from where a page can neither see nor stop it.

Values of cookies and storage are never kept, and addresses lose their query and fragment, which may identify a person.
"""

import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import SplitResult, parse_qs, urlsplit

from playwright.async_api import BrowserContext, Page, Request

# Bits of a value's letters above which it looks like an identifier, and not like a setting.
_IDENTIFYING_BITS: Final = 40
_LONGEST_CHAIN: Final = 12
# As many cookies as Chromium keeps. A page can set and store any number.
_MOST_STORED: Final = 3_300
# A page can ask for ages beyond all numbers.
_LONGEST_SECONDS: Final = 10**12
# A visit runs in a private window, which has no cookies of third parties. An ordinary window stores them.
_OF_PRIVATE_WINDOWS: Final = frozenset({"UserPreferences", "ThirdPartyPhaseout", "ThirdPartyBlockedInFirstPartySet"})
_SCHEMES: Final = ("http://", "https://", "ws://", "wss://")
# A script chooses its own address, which the intake refuses if it has no host.
_SCRIPT: Final = re.compile(r"https?://(\w[\w.-]*|\[[0-9a-f:.]+\])(:\d*)?(/.*)?", re.DOTALL)
# Google's hits and tags say in these parameters which consent they were sent with.
_GOOGLE_CONSENT: Final = ("gcs", "gcd")


@dataclass(slots=True)
class Sent:
    """A request that left the browser. at: milliseconds since the visit began. chain: what led to it, nearest first."""

    url: str
    kind: str
    at: int
    page: str
    after_choice: bool
    chain: tuple[str, ...] = ()
    consent: dict[str, str] = field(default_factory=dict)

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""


@dataclass(slots=True)
class Cookie:
    """A cookie that was stored. set_by: the response that set it, or an empty string for a script.

    lifetime_seconds: None until the browser closes. identifies: its value looks like an identifier.
    """

    name: str
    domain: str
    path: str
    lifetime_seconds: int | None
    secure: bool
    http_only: bool
    same_site: str
    set_by: str
    page: str
    at: int
    after_choice: bool
    identifies: bool


def split(url: str) -> SplitResult:
    """Returns the parts of an address, empty if it has none: pages make up the addresses of scripts and links."""
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")


def bare(url: str) -> str:
    """Returns the address without query and fragment."""
    parts = split(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def looks_identifying(value: str) -> bool:
    """Returns whether a value has enough variety to tell visitors apart."""
    counts = Counter(value)
    bits = -sum(it * math.log2(it / len(value)) for it in counts.values()) if value else 0.0
    return bits >= _IDENTIFYING_BITS and any(it.isdigit() for it in value)


class Recorder:
    """Records the pages of one visit. on_request is called for each request, with the number so far."""

    def __init__(self, on_request: Callable[[int], None]) -> None:
        self.page = ""
        self.after_choice = False
        self.requests: list[Sent] = []
        self.cookies: dict[tuple[str, str, str], Cookie] = {}
        self.storage: dict[tuple[str, str, str], bool] = {}
        self._on_request = on_request
        self._began = time.monotonic()
        # The requests of each hop of a redirect by the request's ID, and how many responses came.
        self._hops: dict[str, list[Sent]] = {}
        self._answered: Counter[str] = Counter()
        # The chain of scripts that led to the last request of each address.
        self._chains: dict[str, tuple[str, ...]] = {}
        self._early: dict[str, list[list[str]]] = {}
        # Requests that Playwright reports, and hosts to which the proxy saw data go: what the page's session misses.
        self._elsewhere: list[Sent] = []
        self._seen: set[str] = set()

    @property
    def now(self) -> int:
        return int((time.monotonic() - self._began) * 1000)

    async def attach(self, context: BrowserContext, page: Page) -> None:
        session = await context.new_cdp_session(page)
        on: dict[str, Callable[[Any], None]] = {
            "Network.requestWillBeSent": self._sent,
            "Network.responseReceivedExtraInfo": self._response,
            "Network.loadingFailed": self._failed,
            "Network.webSocketCreated": self._socket,
            "DOMStorage.domStorageItemAdded": self._stored,
        }
        for name, handler in on.items():
            session.on(name, handler)
        await session.send("Network.enable")
        await session.send("DOMStorage.enable")
        # Workers and further windows have sessions of their own, which Playwright reads.
        context.on("request", self._otherwise_sent)

    def _add(self, url: str, kind: str, initiator: Mapping[str, Any]) -> Sent | None:
        if not url.startswith(_SCHEMES):
            return None
        query = parse_qs(urlsplit(url).query)
        consent: dict[str, str] = {name: query[name][0][:60] for name in _GOOGLE_CONSENT if name in query}
        sent = Sent(bare(url), kind, self.now, self.page, self.after_choice, self._chain(initiator), consent)
        self.requests.append(sent)
        self._chains[sent.url] = sent.chain
        self._on_request(len(self.requests))
        return sent

    def _sent(self, event: dict[str, Any]) -> None:
        url, key = event["request"]["url"], event["requestId"]
        self._seen.add(bare(url))
        sent = self._add(url, event.get("type", "Other").lower(), event.get("initiator", {}))
        if sent is None:
            return
        self._hops.setdefault(key, []).append(sent)
        for lines in self._early.pop(key, []):
            self._keep_cookies(key, lines)

    def _socket(self, event: dict[str, Any]) -> None:
        self._add(event["url"], "websocket", event.get("initiator", {}))

    def _otherwise_sent(self, request: Request) -> None:
        if request.url.startswith("http"):
            self._note(bare(request.url), request.resource_type)

    def data_went_to(self, url: str) -> None:
        """Notes that a host got data, as the proxy sees it."""
        self._note(url, "unseen")

    def _note(self, url: str, kind: str) -> None:
        self._elsewhere.append(Sent(url, kind, self.now, self.page, self.after_choice))
        self._on_request(max(len(self.requests), len(self._elsewhere)))

    def finish(self) -> None:
        """Adds what only Playwright or the proxy saw: requests of workers, and those of a page that was left."""
        named = [it for it in self._elsewhere if it.kind != "unseen" and it.url not in self._seen]
        hosts = {it.host for it in (*self.requests, *named)} | {split(url).hostname for url in self._seen}
        unseen = [it for it in self._elsewhere if it.kind == "unseen" and it.host not in hosts]
        self.requests = sorted([*self.requests, *named, *unseen], key=lambda it: it.at)

    def _failed(self, event: dict[str, Any]) -> None:
        """Forgets a request that the browser blocked, for example because of the page's policy: it was never sent."""
        if event.get("blockedReason") and event["requestId"] in self._hops:
            blocked = self._hops[event["requestId"]][-1]
            self.requests = [it for it in self.requests if it is not blocked]

    def _chain(self, initiator: Mapping[str, Any]) -> tuple[str, ...]:
        """Returns the addresses of the scripts and pages that led to a request, nearest first."""
        frames: list[Mapping[str, Any]] = []
        stack = initiator.get("stack")
        while stack and len(frames) < _LONGEST_CHAIN:
            frames += stack.get("callFrames", ())
            stack = stack.get("parent")
        urls = [*(frame["url"] for frame in frames), initiator.get("url", "")]
        chain = list(dict.fromkeys(filter(_SCRIPT.fullmatch, map(bare, urls))))
        # The scripts that loaded the script that sent this request.
        if chain:
            chain += [url for url in self._chains.get(chain[-1], ()) if url not in chain]
        return tuple(chain[:_LONGEST_CHAIN])

    def _response(self, event: dict[str, Any]) -> None:
        headers = {name.lower(): value for name, value in event["headers"].items()}
        blocked = {
            it["cookieLine"]
            for it in event.get("blockedCookies", ())
            if not _OF_PRIVATE_WINDOWS & {*it["blockedReasons"]}
        }
        lines = [line for line in headers.get("set-cookie", "").split("\n") if line and line not in blocked]
        key = event["requestId"]
        if key in self._hops:
            self._keep_cookies(key, lines)
        else:
            self._early.setdefault(key, []).append(lines)

    def _keep_cookies(self, key: str, lines: Iterable[str]) -> None:
        hops = self._hops[key]
        sent = hops[min(self._answered[key], len(hops) - 1)]
        self._answered[key] += 1
        for line in lines:
            if len(self.cookies) >= _MOST_STORED:
                return
            cookie = _parsed(line, sent, self.now, after_choice=self.after_choice)
            if cookie is not None:
                self.cookies.setdefault((cookie.name, cookie.domain, cookie.path), cookie)

    def _stored(self, event: dict[str, Any]) -> None:
        if len(self.storage) >= _MOST_STORED:
            return
        place = event["storageId"]
        origin = place.get("securityOrigin") or place.get("storageKey", "")
        kind = "local" if place["isLocalStorage"] else "session"
        self.storage.setdefault((origin.rstrip("/"), kind, event["key"][:200]), self.after_choice)

    async def read_jar(self, context: BrowserContext) -> None:
        """Adds the cookies that scripts have set, which never were on the wire."""
        for it in await context.cookies():
            lifetime = None if it["expires"] < 0 else max(0, int(it["expires"] - time.time()))
            key = (it["name"], it["domain"], it["path"])
            known = self.cookies.get(key)
            if known is not None:
                # A script can extend a cookie that a response has set.
                if lifetime is not None and known.lifetime_seconds is not None:
                    known.lifetime_seconds = max(known.lifetime_seconds, lifetime)
                continue
            self.cookies[key] = Cookie(
                it["name"], it["domain"], it["path"], lifetime, it["secure"], it["httpOnly"], it["sameSite"], "",
                self.page, self.now, self.after_choice, looks_identifying(it["value"]),
            )  # fmt: skip


def _parsed(line: str, sent: Sent, now: int, *, after_choice: bool) -> Cookie | None:
    """Returns the cookie of a Set-Cookie header, or None if it deletes one (RFC 6265 section 5.2)."""
    pair, *rest = line.split(";")
    name, _, value = pair.partition("=")
    named = {key.strip().lower(): given.strip() for key, _, given in (it.partition("=") for it in rest)}
    lifetime: int | None = None
    try:
        if "max-age" in named:
            lifetime = min(int(named["max-age"]), _LONGEST_SECONDS)
        elif "expires" in named:
            lifetime = int(parsedate_to_datetime(named["expires"]).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        lifetime = None
    if not value.strip() or (lifetime is not None and lifetime <= 0):
        return None
    domain = f".{named['domain'].lstrip('.').lower()}" if named.get("domain") else sent.host
    path = named.get("path", "")
    return Cookie(
        name.strip(), domain, path if path.startswith("/") else "/", lifetime, "secure" in named, "httponly" in named,
        named.get("samesite", "").capitalize(), sent.url, sent.page, now, after_choice,
        looks_identifying(value.strip()),
    )  # fmt: skip
