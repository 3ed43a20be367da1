"""The guides of /docs, word by word: their commands, and what the analysis says about their code."""

import json
import re
import shlex
from itertools import pairwise
from pathlib import Path

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
    def test_the_scopes_allow_the_tools_that_the_guide_names_and_more_offer_the_tools_that_decide(self, connect):
        words = shlex.split(assent("assistants")[0])
        assert words[:3] == ["login", "--profile", "assistant"]
        reading = [after for word, after in pairwise(words) if word == "--scope"]
        assert connect(reading).tools().keys() == READING
        text = text_of("assistants")
        assert {*re.findall(r"`(\w+)`", text)} >= READING
        scopes = re.findall(r"\b[a-z-]+\.(?:read|write)\b", text)
        assert {*reading} < {*scopes}
        assert connect(scopes).tools().keys() == READING | CHANGING - {"decide_vendor"}

    @pytest.mark.parametrize("name", ["read-only", "with-a-key", "without-an-account"])
    def test_a_configuration_starts_the_server(self, name, threads, office, world, monkeypatch):
        served = []
        monkeypatch.setattr("openassent_cli.mcp_server.serve", lambda server: served.append(Assistant.of(server)))
        settings = json.loads(files_of("assistants")[name])["mcpServers"]["assent"]
        assert settings["command"] == "assent"
        if variables := settings.get("env", {}):
            assert variables["ASSENT_BASE_URL"] == BASE_URL
            variables = {"ASSENT_BASE_URL": ADDRESS, "ASSENT_API_KEY": world.key(office.company)}
        if name == "read-only":
            Shell().sign_in(office.company.owner.token, "assistant")
        ended = run(shlex.join(settings["args"]), **variables)
        assert (ended.code, ended.stdout) == (Exit.DONE, "")
        most = {"scan_folder"} if name == "without-an-account" else READING
        assert {"scan_folder"} <= served[0].tools().keys() <= most
