"""The Chromium of the service's layer, where the kernel refuses what Lambda refuses."""

import asyncio
import platform
import sys
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.async_api import Browser

from openassent_audit import audit_website
from openassent_audit.browser import Chromium, started_browser
from openassent_audit.packed import unpack
from scripts import artifacts
from tests.audits.internet import internet
from tests.audits.sites import SITES
from tests.audits.test_website_audits import QUICK
from tests.support.missing import is_missing

# Installs a filter of system calls (seccomp), and becomes Chromium. The filter refuses, with EPERM, prctl, ptrace, and
# unshare (157, 101, and 272 on x86_64), and allows others.
AS_ON_LAMBDA = """#!{python}
import ctypes, os, struct, sys
library = ctypes.CDLL(None, use_errno=True)
refused = [(0x15, 3, 0, 157), (0x15, 2, 0, 101), (0x15, 1, 0, 272)]
steps = [(0x20, 0, 0, 0), *refused, (6, 0, 0, 0x7FFF0000), (6, 0, 0, 0x50001)]
program = b"".join(struct.pack("HBBI", *it) for it in steps)
buffer = ctypes.create_string_buffer(program)
described = struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(buffer))
assert library.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS, which others than root need for this
assert library.prctl(22, 2, described, 0, 0) == 0  # PR_SET_SECCOMP
assert library.prctl(4, 0, 0, 0, 0) == -1
os.execv({chromium!r}, [{chromium!r}, *sys.argv[1:]])
"""


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Chromium:
    """Unpacks Chromium as the function does, and returns one for which these calls fail."""
    if sys.platform != "linux" or platform.machine() != artifacts.BROWSER_ARCHITECTURE:
        pytest.skip("the browser is for another processor")
    folder = tmp_path_factory.mktemp("packed")
    if not artifacts.CHROMIUM.is_dir():
        is_missing("not installed: @sparticuz/chromium")
    for name in artifacts.CHROMIUM_FILES:
        (folder / name).symlink_to(artifacts.CHROMIUM / name)
    found = unpack(folder / "chromium", folder)
    assert found
    assert unpack(folder / "chromium", folder) == found
    started = folder / "as-on-lambda"
    started.write_text(AS_ON_LAMBDA.format(python=sys.executable, chromium=found.path))
    started.chmod(0o755)
    return replace(found, path=str(started))


def test_a_layer_without_chromium_uses_that_of_the_machine(tmp_path: Path):
    assert unpack(tmp_path / "chromium", tmp_path / "missing") is None


@pytest.mark.parametrize("name", ["own-right", "own-ignores-refusal"])
def test_it_audits_websites(chromium: Chromium, tmp_path: Path, name: str):
    def start() -> AbstractAsyncContextManager[Browser]:
        return started_browser(["--ignore-certificate-errors"], chromium)

    async def audit():
        async with internet({f"{name}.test": SITES[name]}, tmp_path) as there:
            return await audit_website(f"https://{name}.test/", limits=QUICK, network=there.network, start=start)

    made = asyncio.run(audit())
    assert made.outcome == SITES[name].expected, made.reason
    assert [visit.choice for visit in made.visits] == ["untouched", "refused", "accepted"]
    assert made.picture.startswith(b"\xff\xd8")
