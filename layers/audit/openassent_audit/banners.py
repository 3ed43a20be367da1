"""Finds the banner of a page, and answers it: through the consent library's own interface if it has one, with the
visible button that says so, or else with autoconsent's rules, which know banners that need more than one click.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from playwright.async_api import Error, Frame, Page

from openassent_audit.untrusted import like
from openassent_audit.words import autoconsent, script, words

Choice = Literal["untouched", "refused", "accepted"]
CHOICES: Final[tuple[Choice, ...]] = get_args(Choice)

_PAUSE: Final = 0.15
_FRAME_SECONDS: Final = 15
# They take a few seconds, and end by themselves if none of them knows the banner.
_RULES_SECONDS: Final = 15
_ACTIONS: Final = {"refused": "refuse", "accepted": "accept"}
_OF_AUTOCONSENT: Final = {"refused": "optOut", "accepted": "optIn"}
_BINDING: Final = "autoconsentSendMessage"
_RECEIVE: Final = "message => window.autoconsentReceiveMessage(message)"


@dataclass(frozen=True, slots=True)
class Banner:
    """A banner. library: the consent library behind it, if it is known. buttons: their labels.

    accepts and refuses: a button that is visible without another click does that.
    """

    library: str | None
    is_shown: bool
    accepts: bool
    refuses: bool
    buttons: tuple[str, ...]


async def _evaluated(frame: Frame, code: str, argument: object = None) -> Any:
    """Runs code in a frame. Raises TimeoutError if it doesn't answer."""
    return await asyncio.wait_for(frame.evaluate(code, argument), _FRAME_SECONDS)


def _frames(page: Page) -> list[Frame]:
    """Returns the frames that have a document. One that may not load, such as of a file, never gets one."""
    return [it for it in page.frames if it.url][:20]


def _argument(action: str) -> dict[str, Any]:
    return {"action": action, "words": {name: words()[name] for name in ("refuse", "accept", "banner")}}


async def _in_frames(page: Page, action: str) -> dict[str, Any] | None:
    """Runs the script in each frame, until one returns something."""
    for frame in _frames(page):
        try:
            found: dict[str, Any] | None = await _evaluated(frame, script("banner"), _argument(action))
        except (Error, TimeoutError):  # the frame is gone, another page has come, or it is busy
            continue
        if found:
            return found
    return None


async def _in_closed_roots(page: Page, action: str) -> dict[str, Any] | None:
    """Runs the script in each closed shadow root, which only the DevTools protocol can open."""
    session = await page.context.new_cdp_session(page)
    try:
        document = (await session.send("DOM.getDocument", {"depth": -1, "pierce": True}))["root"]
        for node in list(_closed_roots(document))[:20]:
            root = (await session.send("DOM.resolveNode", {"backendNodeId": node}))["object"]["objectId"]
            called = await session.send("Runtime.callFunctionOn", {
                "functionDeclaration": f"function (argument) {{ return ({script('banner')})(argument, this); }}",
                "objectId": root, "arguments": [{"value": _argument(action)}], "returnByValue": True,
            })  # fmt: skip
            found: dict[str, Any] | None = called["result"].get("value")
            if found:
                return found
    except Error:  # another page has come, or this one has too many levels for the protocol
        return None
    finally:
        with contextlib.suppress(Error):
            await session.detach()
    return None


def _closed_roots(node: dict[str, Any]) -> Iterator[int]:
    for root in node.get("shadowRoots", ()):
        if root["shadowRootType"] == "closed":
            yield root["backendNodeId"]
    inner = [node["contentDocument"]] if "contentDocument" in node else []
    for child in (*node.get("shadowRoots", ()), *node.get("children", ()), *inner):
        yield from _closed_roots(child)


async def find_banner(page: Page) -> Banner | None:
    found = await _in_frames(page, "inspect") or await _in_closed_roots(page, "inspect")
    return _banner(found) if found else None


def _by(done: dict[str, Any]) -> str:
    return str(like({"by": ""}, done)["by"][:100]) or "button"


def _banner(found: dict[str, Any]) -> Banner:
    said = like({"library": "", "isShown": False, "accepts": False, "refuses": False, "buttons": [""]}, found)
    buttons = tuple(it[:100] for it in said["buttons"][:10])
    return Banner(said["library"][:100] or None, said["isShown"], said["accepts"], said["refuses"], buttons)


async def answer(page: Page, choice: Choice, seconds: float, on_answer: Callable[[], None]) -> str | None:
    """Answers the banner. Returns the library or rule that did it, or None if no banner can be answered.

    on_answer: called right before the choice is made.
    """
    action, ends = _ACTIONS[choice], time.monotonic() + seconds
    while True:
        found = await _in_frames(page, "inspect")
        banner = _banner(found) if found else None
        if banner is not None and banner.library:
            on_answer()
            if done := await _in_frames(page, action):
                return _by(done)
        can = banner is not None and (banner.refuses if choice == "refused" else banner.accepts)
        if can or time.monotonic() > ends:
            break
        await asyncio.sleep(_PAUSE)
    for look in (_in_frames, _in_closed_roots):
        if await look(page, "inspect"):
            on_answer()
            if done := await look(page, f"{action}-by-button"):
                return _by(done)
    return "autoconsent" if await _by_rules(page, choice, on_answer) else None


async def _by_rules(page: Page, choice: Choice, on_answer: Callable[[], None]) -> bool:
    """Answers the banner with autoconsent's rules. Returns whether one of them has."""
    prepared = autoconsent()
    if prepared is None:
        return False
    code, rules = prepared
    run = _Rules(choice, rules, on_answer)
    try:
        await page.expose_binding(_BINDING, run.receive)
        for frame in _frames(page):
            with contextlib.suppress(Error, TimeoutError):
                await _evaluated(frame, code)
        await asyncio.wait_for(run.ended.wait(), _RULES_SECONDS)
    except (Error, TimeoutError):
        pass  # what was answered until then counts
    return any(run.results)


class _Rules:
    """Talks to autoconsent's script, which asks for its rules, and to run code in the page."""

    def __init__(self, choice: Choice, rules: list[dict[str, Any]], on_answer: Callable[[], None]) -> None:
        self._choice, self._rules, self._on_answer = choice, rules, on_answer
        self.ended = asyncio.Event()
        self.results: list[bool] = []
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def _config(self) -> dict[str, Any]:
        silent = ("lifecycle", "rulesteps", "detectionsteps", "evals", "errors", "messages", "waits")
        return {
            "enabled": True, "autoAction": _OF_AUTOCONSENT[self._choice], "disabledCmps": [], "enablePrehide": False,
            "enableCosmeticRules": False, "enableGeneratedRules": True, "detectRetries": 1, "isMainWorld": False,
            "prehideTimeout": 2000, "enableHeuristicDetection": False, "heuristicMode": "off", "visualTest": False,
            "logs": dict.fromkeys(silent, False),
        }  # fmt: skip

    def receive(self, source: dict[str, Any], message: dict[str, Any]) -> None:
        kind = message["type"]
        if kind in {"init", "eval"}:
            task = asyncio.ensure_future(self._reply(source["frame"], message))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        elif kind == "popupFound":
            self._on_answer()
        elif kind in {"optOutResult", "optInResult"}:
            self.results.append(bool(message["result"]))
            self.ended.set()
        elif kind == "report" and message["mainFrame"] and message["state"]["lifecycle"] == "nothingDetected":
            self.ended.set()

    async def _reply(self, frame: Frame, message: dict[str, Any]) -> None:
        response = {"type": "initResp", "config": self._config, "rules": {"autoconsent": self._rules}}
        try:
            if message["type"] == "eval":
                response = {"type": "evalResp", "id": message["id"], "result": await frame.evaluate(message["code"])}
            await frame.evaluate(_RECEIVE, response)
        except Error:
            return
