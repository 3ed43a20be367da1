"""Runs an audit: three visits, each of a new visitor, and the judgment of what they recorded."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from datetime import UTC, datetime
from typing import TypeAlias
from urllib.parse import urlsplit

from playwright.async_api import Browser

from openassent_audit.banners import Choice
from openassent_audit.browser import NoBrowser, started_browser
from openassent_audit.judgment import judge
from openassent_audit.limits import Limits
from openassent_audit.network import Network
from openassent_audit.report import Audit, Outcome, Reason
from openassent_audit.vendors import Parties
from openassent_audit.visits import Blocked, Visit, make_visit

Start: TypeAlias = Callable[[], AbstractAsyncContextManager[Browser]]

DEFAULTS = Limits()
INTERNET = Network()


async def audit_website(
    url: str,
    *,
    limits: Limits = DEFAULTS,
    network: Network = INTERNET,
    start: Start = started_browser,
    on_progress: Callable[[Choice], None] = lambda _: None,
) -> Audit:
    """Audits the website at an http or https address. Raises ValueError for other addresses.

    start: starts a browser, and another one after a crash. on_progress: gets each visit before it begins.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username is not None:
        raise ValueError("An audit needs an http or https address with a host, and without credentials.")
    run = _Run(url, parts.hostname, limits, network, on_progress)
    try:
        async with AsyncExitStack() as browsers:
            await run.visit(lambda: browsers.enter_async_context(start()))
    except NoBrowser as error:
        run.reason = Reason("no-browser", str(error))
    except Blocked as error:
        run.reason = Reason(error.code, str(error))
    return run.judged()


class _Run:
    def __init__(
        self, url: str, host: str, limits: Limits, network: Network, on_progress: Callable[[Choice], None]
    ) -> None:
        self.url, self.host, self.limits, self.network = url, host, limits, network
        self.on_progress = on_progress
        self.started_at = datetime.now(UTC)
        self.visits: list[Visit] = []
        self.reason: Reason | None = None

    async def visit(self, start: Callable[[], Awaitable[Browser]]) -> None:
        """Makes the three visits, or two if there is nothing to answer. Raises Blocked and NoBrowser."""
        browser = await start()
        others: list[str] = []
        choices: tuple[Choice, ...] = ("untouched", "refused", "accepted")
        for choice in choices:
            self.on_progress(choice)
            if not browser.is_connected():
                browser = await start()
            made = await make_visit(browser, self.url, choice, limits=self.limits, network=self.network, others=others)
            self.visits.append(made)
            if choice == "untouched":
                others = made.chosen
            if made.halted or (choice == "refused" and made.answered_by is None and not self._banner):
                return

    @property
    def _banner(self) -> bool:
        return any(visit.banner is not None for visit in self.visits)

    def judged(self) -> Audit:
        aliases = {host: name for visit in self.visits for host, name in visit.aliases.items()}
        parties = Parties(self.host, aliases)
        findings = judge(self.host, self.visits, parties)
        reason = self.reason or self._incomplete()
        outcome: Outcome = "failed" if findings else "blocked" if reason else "passed"
        return Audit(
            self.url, self.host, self.started_at, datetime.now(UTC), outcome, parties, reason, findings, self.visits,
            next((visit.picture for visit in self.visits if visit.picture), None),
        )  # fmt: skip

    def _incomplete(self) -> Reason | None:
        """Returns why a website without findings can't be said to pass."""
        for visit in self.visits:
            if visit.halted:
                return Reason("limit", f"The visit ended early. {visit.halted}")
        for visit in self.visits[1:]:
            if self._banner and visit.answered_by is None:
                return Reason("banner", f"The banner couldn't be answered as {visit.choice}.")
        return None
