"""The guides of /docs, word by word: their commands, and what the analysis says about their code."""

import json
import re
import shlex
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cli.tests.support.script import ADDRESS
from cli.tests.support.shell import run, run_git
from openassent_cli.problems import Exit
from scripts.openapi.texts import BASE_URL
from tests.functional.command_line.conftest import Shell
from tests.functional.command_line.test_mcp import CHANGING, READING, Assistant, connect
from tests.support.each import each
from tests.support.guides import commands_of, files_of, text_of, write
from tests.support.sarif import check_sarif

__all__ = ["connect"]  # a fixture

WAITING = 'type="text/plain" data-category="analytics" '
WAITING_IN_NUXT = "          type: 'text/plain',\n          'data-category': 'analytics',\n"
# The file with the tracker of each part of the guide.
PARTS = {
    "plain HTML": "index.html",
    "Next.js": "app/layout.tsx",
    "Nuxt": "nuxt.config.ts",
    "Astro": "src/layouts/Layout.astro",
}


def assent(guide: str) -> list[str]:
    """Returns the guide's commands of assent, without its name. The others install something."""
    found = commands_of(guide)
    assert all(line.startswith(("assent ", "pip install ", "pipx install ", "npm install ")) for line in found)
    return [line.removeprefix("assent ") for line in found if line.startswith("assent ")]


@each("tracker", PARTS.values())
def test_the_code_of_the_guide_to_consent_has_no_findings_and_would_have_some_without_it(tracker, tmp_path):
    files = files_of("consent")
    others = {name for name in PARTS.values() if name != tracker}
    mine = {name: text for name, text in files.items() if name not in others}
    folder = tmp_path / Path(tracker).stem
    write(mine, folder)
    (line,) = assent("consent")
    line = f"{line.removesuffix(' .')} {folder} --json"
    assert run(line).json["findings"] == []
    without = mine[tracker].replace(WAITING, "").replace(WAITING_IN_NUXT, "")
    assert without != mine[tracker]
    (folder / tracker).write_text(without)
    assert [it["location"]["path"] for it in run(line).json["findings"]] == [tracker]


class TestPullRequests:
    def test_the_commands_link_the_repository_and_start_a_scan(self, shell, office):
        login, *others = assent("pull-requests")[:-1]
        assert login == "login"
        shown = [shell.run(line) for line in others]
        assert [it.code for it in shown] == [Exit.DONE] * len(others), shown
        assert "acme/shop" in shown[0].stdout
        (link,) = [
            link
            for repository in shell.run("repo list --json").json
            for link in repository["projects"]
            if repository["name"] == "shop"
        ]
        assert (link["pullRequestScansEnabled"], link["scanOnPush"]) == (True, True)

    def test_the_step_of_a_pipeline_fails_for_a_new_tracker(self, tmp_path, monkeypatch):
        for variable in ("GITHUB_HEAD_REF", "GITHUB_BASE_REF", "CI_MERGE_REQUEST_IID", "CHANGE_ID"):
            monkeypatch.delenv(variable, raising=False)
        monkeypatch.chdir(tmp_path)
        line = assent("pull-requests")[-1]
        run_git(tmp_path, "init", "-q")
        run_git(tmp_path, "commit", "-qm", "first", "--allow-empty")
        run_git(tmp_path, "checkout", "-qb", "change")
        page = files_of("consent")["index.html"].replace(WAITING, "")
        write({"index.html": page}, tmp_path)
        run_git(tmp_path, "add", "index.html")
        run_git(tmp_path, "commit", "-qm", "second")
        assert run(line).code == Exit.FINDINGS
        assert f"fails with code {Exit.FINDINGS:d} if" in text_of("pull-requests")
        check_sarif(json.loads((tmp_path / "assent.sarif").read_text()))
        # What the last part says.
        tag = next(it for it in page.splitlines() if "googletagmanager" in it)
        (comment,) = [it for it in text_of("pull-requests").splitlines() if it.startswith("<!-- assent-ignore")]
        write({"index.html": page.replace(tag, f"{comment}\n{tag}")}, tmp_path)
        assert run(line).code == Exit.DONE


class TestAssistants:
    @pytest.fixture
    def start(self, threads, office, world, monkeypatch):
        """Starts the server as the guide's configuration says, and returns the names of its tools."""

        def start(name: str, scopes: Sequence[str] = ()) -> set[str]:
            served: list[Any] = []

            def serve(server: Any) -> None:
                served.append({*Assistant.of(server).tools()})

            monkeypatch.setattr("openassent_cli.mcp_server.serve", serve)
            settings = json.loads(files_of("assistants")[name])["mcpServers"]["assent"]
            assert settings["command"] == "assent"
            variables = settings.get("env", {})
            if variables:
                assert variables["ASSENT_BASE_URL"] == BASE_URL
                variables = {"ASSENT_BASE_URL": ADDRESS, "ASSENT_API_KEY": world.key(office.company)}
            if scopes:
                Shell().sign_in(world.token(office.company.owner.user_id, [*scopes]), "assistant")
            ended = run(shlex.join(settings["args"]), **variables)
            assert ended.code == Exit.DONE, ended.stderr
            return served[0]  # type: ignore[no-any-return]

        return start

    def test_the_profile_has_the_scopes_for_the_tools_that_the_guide_names(self, start):
        words = shlex.split(assent("assistants")[0])
        scopes = [after for word, after in pairwise(words) if word == "--scope"]
        assert words[:3] == ["login", "--profile", "assistant"]
        assert start("read-only", scopes) == READING
        assert {*re.findall(r"`(\w+)`", text_of("assistants"))} >= READING

    def test_more_scopes_offer_the_tools_that_decide(self, connect):
        words = shlex.split(assent("assistants")[0])
        scopes = [*re.findall(r"\b[a-z-]+\.(?:read|write)\b", text_of("assistants"))]
        assert {it for it in words if it.endswith(".read")} < {*scopes}
        assert connect(scopes).tools().keys() == READING | CHANGING - {"decide_vendor"}

    def test_a_key_needs_no_profile(self, start):
        assert start("with-a-key") <= READING

    def test_without_an_account_a_folder_can_be_scanned(self, start):
        assert start("without-an-account") == {"scan_folder"}
