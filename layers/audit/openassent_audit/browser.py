"""Chromium on this machine: where it is, and how it is started so that a website learns and reaches as little of the
machine as possible.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from playwright.async_api import Browser, Error, Playwright, async_playwright

_NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_ON_MACOS: Final = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
# For audits and for tests of pages: no GPU, and no traffic of its own.
QUIET_FLAGS: Final = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_FLAGS: Final = (
    *QUIET_FLAGS,
    "--disable-domain-reliability",
    "--disable-breakpad",
    # WebRTC without the proxy would reach any address.
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    # Only the proxy resolves names.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    # Frames of other sites report to the page's own session, with their initiators.
    "--disable-site-isolation-trials",
    # Consent libraries hide from automated browsers, and trackers that ask for consent then don't load.
    "--disable-blink-features=AutomationControlled",
)
# Traffic that belongs to no visit has no proxy to go to: port 9 discards.
_NOWHERE: Final = "http://127.0.0.1:9"
_KEPT: Final = ("PATH", "LANG", "LC_ALL", "TZ", "FONTCONFIG_PATH", "FONTCONFIG_FILE")


class NoBrowser(Exception):
    """Chromium isn't installed, or doesn't start. The text says what to do."""


@dataclass(frozen=True, slots=True)
class Chromium:
    """A Chromium other than the system's, for a machine on which its sandbox can't work."""

    path: str
    flags: tuple[str, ...]
    environment: Mapping[str, str]


def find_chromium(playwright: Playwright) -> str | None:
    """Returns the path of the system's Chromium or Chrome, or of Playwright's own."""
    named = filter(None, map(shutil.which, _NAMES))
    others = (path for path in (*_ON_MACOS, playwright.chromium.executable_path) if Path(path).exists())
    return next(named, None) or next(others, None)


@asynccontextmanager
async def started_browser(flags: Sequence[str] = (), chromium: Chromium | None = None) -> AsyncIterator[Browser]:
    """Starts a browser without the caller's environment or home. Raises NoBrowser.

    flags: further ones, such as to accept the certificates of a test's websites. chromium: by default, the system's.

    The system's has its sandbox, unless the caller is root, for whom Chromium has none.
    """
    own = chromium or Chromium("", (), {})
    async with async_playwright() as playwright:
        path = own.path or find_chromium(playwright)
        if path is None:
            command = "apt-get install chromium" if sys.platform == "linux" else ""
            theirs = f"{sys.executable} -m playwright install chromium"
            commands = " or ".join(filter(None, (command, theirs)))
            raise NoBrowser(f"Chromium isn't installed. Install it with: {commands}")
        with tempfile.TemporaryDirectory(prefix="assent-audit-", ignore_cleanup_errors=True) as home:
            environment: dict[str, str | float | bool] = {it: os.environ[it] for it in _KEPT if it in os.environ}
            try:
                browser = await playwright.chromium.launch(
                    executable_path=path,
                    args=[*_FLAGS, *own.flags, *flags],
                    chromium_sandbox=chromium is None and os.geteuid() != 0,
                    env={**environment, **own.environment, "HOME": home, "TMPDIR": home},
                    proxy={"server": _NOWHERE},
                    timeout=60_000,
                )
            except Error as error:
                raise NoBrowser(f"{path} doesn't start: {str(error).strip().splitlines()[0]}") from error
            try:
                yield browser
            finally:
                await browser.close()
