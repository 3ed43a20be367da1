"""The command line as people have it: the installed wheel in a terminal, and Chromium for signing in."""

import json
import os
import re
import stat
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from email import message_from_string
from pathlib import Path

import anyio
import pexpect
import pytest
from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult, TextContent

from local.checkout import ROOT
from local.github import setup
from tests.browser.conftest import Stack, Visit

_INSTALLED = ROOT / ".tools/cli"
_SECONDS = 120
PAGE = '<script src="https://www.googletagmanager.com/gtag/js?id=G-ABCDEF1234"></script>'
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True)
class Terminal:
    """Runs the installed program, with a configuration of its own and nothing of this project's Python path."""

    stack: Stack
    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        return {
            "ASSENT_CONFIG_DIR": str(self.folder / "config"),
            "ASSENT_KEYRING": "off",
            "HOME": str(self.folder),
            "PATH": f"{_INSTALLED / 'bin'}:/usr/bin:/bin",
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
        }

    def open(self, *arguments: str) -> "pexpect.spawn[str]":
        """Runs a command in a pseudo-terminal."""
        return pexpect.spawn(
            "assent",
            list(arguments),
            env=self.environment,
            cwd=str(self.folder),
            encoding="utf-8",
            timeout=_SECONDS,
            dimensions=(40, 100),
        )

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Runs a command with pipes, as a script does."""
        return subprocess.run(
            ["assent", *arguments],
            check=False,
            env=self.environment | environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            stdin=subprocess.DEVNULL,
        )

    def json(self, *arguments: str) -> object:
        done = self.run(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def terminal(stack: Stack, tmp_path: Path) -> Terminal:
    return Terminal(stack, tmp_path)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with one page, which loads a tracker."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "index.html").write_text(f"<!doctype html>\n{PAGE}\n")
    return folder


@pytest.fixture
def signed_in(terminal: Terminal, visit: Callable[..., Visit]) -> Terminal:
    """A terminal whose owner has approved it on the real pages."""
    program = terminal.open("login", "--base-url", terminal.stack.base_url, "--no-browser")
    program.expect(r"Your code is \S*?([A-Z]{4}-[A-Z]{4})")
    code = program.match[1]
    person = visit()
    person.open(f"/device?user_code={code}")
    person.sign_in(terminal.stack.person())
    person.press("Continue")
    person.look("Approve this device?", "command-line-review")
    person.press("Approve")
    program.expect("You are signed in to")
    program.expect(pexpect.EOF)
    program.close()
    assert program.exitstatus == 0
    return terminal


def renew_in_parallel(signed_in: Terminal, kept: Path) -> None:
    """Runs ten commands at once after the access token has expired. None of them may revoke the others' tokens."""
    tokens = json.loads(kept.read_text())
    tokens["default"]["expires_at"] = 0
    kept.write_text(json.dumps(tokens))
    with ThreadPoolExecutor(10) as threads:
        done = list(threads.map(lambda _: signed_in.run("whoami", "--json"), range(10)))
    assert [it.returncode for it in done] == [0] * 10, [it.stderr for it in done]
    renewed = json.loads(kept.read_text())
    assert renewed["default"]["refresh_token"] != tokens["default"]["refresh_token"]
    assert signed_in.run("whoami").returncode == 0


class TestSignIn:
    def test_a_person_signs_in_works_and_signs_out(self, signed_in: Terminal):
        kept = signed_in.folder / "config" / "credentials.json"
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        me = signed_in.json("whoami")
        assert me["principal"]["type"] == "oauth"
        name = f"From a terminal {os.getpid()}"
        created = signed_in.json(
            "project", "create", name, "--region", "eu-central", "--website", "https://a.example.com"
        )
        assert name in signed_in.run("project", "list").stdout
        signed_in.json("website", "add", created["id"], "https://b.example.com")
        shown = signed_in.json("project", "show", created["slug"])
        assert [it["origin"] for it in shown["websites"]] == ["a.example.com", "b.example.com"]
        refused = signed_in.run("project", "delete", created["id"])
        assert (refused.returncode, refused.stdout) == (2, "")
        assert signed_in.run("project", "delete", created["id"], "--yes").returncode == 0
        assert signed_in.run("project", "show", created["id"]).returncode == 6
        renew_in_parallel(signed_in, kept)
        assert signed_in.run("logout").returncode == 0
        after = signed_in.run("project", "list")
        assert after.returncode == 4
        assert "assent login" in after.stderr
        assert "secret" not in kept.read_text()

    def test_a_scan_shows_its_progress_and_its_findings(self, signed_in: Terminal):
        program = signed_in.open("scan", "start", f"{setup.DEMO_OWNER}/{setup.DEMO_NAME}", "--wait")
        program.expect("Waiting|Fetching|Taking inventory|Analyzing|Publishing")
        program.expect(pexpect.EOF)
        program.close()
        assert program.exitstatus == 0
        assert "completed" in _ESCAPE.sub("", program.before)
        items = signed_in.json("inbox", "list", "--priority", "P1")
        shown = signed_in.run("inbox", "show", items[0]["id"])
        assert items[0]["title"] in shown.stdout
        assert "Fix: " in shown.stdout


class TestWithoutSignIn:
    def test_an_api_key_of_the_environment_is_used(self, terminal: Terminal):
        key = terminal.stack.credentials["apiKeys"][0]["key"]
        done = terminal.run("project", "list", ASSENT_API_KEY=key, ASSENT_BASE_URL=terminal.stack.base_url)
        assert done.returncode == 0, done.stderr
        refused = terminal.run("scan", "list", ASSENT_API_KEY=key, ASSENT_BASE_URL=terminal.stack.base_url)
        assert refused.returncode == 5
        assert key not in refused.stderr

    def test_an_assistant_scans_a_folder_over_standard_input_and_output(self, terminal: Terminal, site: Path):
        """With the client of the protocol's own package."""
        program = _INSTALLED / "bin" / "assent"
        parameters = StdioServerParameters(command=str(program), args=["mcp"], env=terminal.environment)

        async def scanned() -> tuple[list[str], CallToolResult]:
            async with Client(parameters) as client:
                tools = (await client.list_tools()).tools
                return [it.name for it in tools], await client.call_tool("scan_folder", {"folder": str(site)})

        # Playwright runs an event loop in this thread.
        with ThreadPoolExecutor(1) as another:
            names, result = another.submit(anyio.run, scanned).result()
        assert names == ["scan_folder"]
        (content,) = result.content
        assert isinstance(content, TextContent)
        assert json.loads(content.text)["findings"][0]["untrusted"]["title"].startswith("Google Analytics")

    def test_a_service_that_cant_be_reached_is_told(self, terminal: Terminal):
        done = terminal.run("project", "list", ASSENT_API_KEY="assent_x", ASSENT_BASE_URL="http://127.0.0.1:9")
        assert done.returncode == 9
        assert "Traceback" not in done.stderr

    @pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
    def test_completion_exists_for_each_shell(self, terminal: Terminal, shell: str):
        done = terminal.run("--show-completion", shell, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
        assert "assent" in done.stdout, done.stderr

    def test_the_wheel_itself_needs_what_the_sdk_needs(self):
        (metadata,) = _INSTALLED.glob("lib/*/site-packages/openassent-*.dist-info/METADATA")
        needed = message_from_string(metadata.read_text()).get_all("Requires-Dist")
        assert {re.split(r"[>=]", it)[0] for it in needed if "extra ==" not in it} == {"httpx", "pydantic"}
        # Not even in its extras, which would ask an index for it.
        assert [it for it in needed if it.startswith("openassent")] == []
        assert (metadata.parent / "licenses" / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()

    def test_the_manual_is_installed(self):
        page = (_INSTALLED / "share/man/man1/assent.1").read_text()
        assert ".SS assent scan local" in page
        assert page == (ROOT / "cli/man/assent.1").read_text()

    def test_a_local_scan_has_colors_only_in_a_terminal(self, terminal: Terminal, site: Path):
        program = terminal.open("scan", "local", str(site))
        program.expect(pexpect.EOF)
        program.close()
        assert program.before is not None
        assert "\x1b[" in program.before
        assert "Google Analytics" in program.before
        piped = terminal.run("scan", "local", str(site), "--fail-on", "P1")
        assert piped.returncode == 3
        assert "\x1b" not in piped.stdout
        assert PAGE in piped.stdout
