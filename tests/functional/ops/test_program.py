"""`assent-ops` as a whole: the table it uses, its prompts, its output streams, and its exit codes."""

import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from controlplane.platform.table.table import table
from ops import target
from ops.output import Refused, confirm
from ops.target import Options
from tests.support.each import each
from tests.support.missing import is_missing

SCRIPT = Path(__file__).parents[3] / "scripts" / "assent-ops"
SHOW = ("user", "show", "ada@example.com")


class TestHelp:
    def test_help_lists_exit_codes_and_command_groups_and_needs_no_table(self, run_without_table, monkeypatch):
        monkeypatch.delenv("TABLE_NAME")
        shown = run_without_table("--help")
        assert run_without_table() == shown
        for text in ("Exit codes: 0 done", "No command lists all users", "--stack NAME", "--endpoint-url", "--json"):
            assert text in shown.stdout
        groups = re.findall(r"^  ([a-z][a-z-]+) ", shown.stdout.partition("Commands:")[2], re.MULTILINE)
        assert {"user", "plan", "dead-letters", "signing-key", "table"} < {*groups}
        for group in groups:
            names = run_without_table(group).stdout.partition("Commands:")[2]
            for name in re.findall(r"^  ([a-z][a-z-]+) ", names, re.MULTILINE):
                assert f"assent-ops {group} {name} " in run_without_table(group, name, "--help").stdout

    def test_the_script_runs_from_any_folder_and_through_a_link(self, tmp_path):
        link = tmp_path / "assent-ops"
        link.symlink_to(SCRIPT)
        if not (SCRIPT.parents[1] / ".venv/bin/python").exists():
            is_missing("runs in the project's own environment only")
        done = subprocess.run([link, "--help"], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "Exit codes" in done.stdout


class TestTable:
    def test_exits_2_unless_one_table_is_selected(self, run_without_table, monkeypatch):
        monkeypatch.delenv("TABLE_NAME")
        outcome = run_without_table(*SHOW, "--json")
        assert outcome.exit_code == 2
        assert "--stack" in outcome.error["message"]
        assert run_without_table(*SHOW, "--table", "one", "--stack", "two").exit_code == 2

    def test_the_table_can_come_from_the_environment(self, run_without_table, world, monkeypatch):
        company = world.company()
        monkeypatch.setenv("TABLE_NAME", table.name)
        assert run_without_table("organization", "show", company.slug, "--json").document["slug"] == company.slug

    def test_wrong_settings_are_named_without_their_values(self, run_without_table):
        code = "from ops.target import connect, Options; connect(Options(table='assent'))"
        root = SCRIPT.parents[1]
        paths = os.pathsep.join(str(root / name) for name in ("", "layers/shared", "functions"))
        environment = {"PYTHONPATH": paths, "AUDIT_LOG_RETENTION_DAYS": "canary"}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
        )
        assert done.stderr.splitlines()[-1].endswith("settings are invalid: AUDIT_LOG_RETENTION_DAYS.")
        assert "canary" not in done.stderr

    def test_a_missing_table_fails_with_one_line(self, run_without_table):
        outcome = run_without_table(*SHOW, "--table", "nowhere")
        assert (outcome.exit_code, outcome.stdout, outcome.stderr.count("\n")) == (1, "", 1)
        assert outcome.stderr.startswith("Error: AWS rejected the call: ")


class TestStack:
    def test_a_stack_option_finds_the_table_the_brand_and_the_code_host(self, stack, monkeypatch):
        monkeypatch.delenv("LOG_LEVEL", raising=False)
        target.connect(Options(stack="shop", endpoint_url=stack.endpoint))
        assert table.name == os.environ["TABLE_NAME"] == "shop-Table-1"
        assert os.environ["SERVICE_BRAND"] == "consentful"
        assert (os.environ["GITHUB_APP_ID"], os.environ["GITHUB_APP_SECRET_ARN"]) == ("77", "arn:key")
        assert os.environ["LOG_LEVEL"] == "CRITICAL"  # keeps the layer's log off stdout

    def test_a_stack_option_finds_the_table_that_replaced_the_stacks_own(self, stack):
        stack.parameters["TableName"] = "restored"
        target.connect(Options(stack="shop", endpoint_url=stack.endpoint))
        assert table.name == os.environ["TABLE_NAME"] == "restored"

    def test_a_stack_option_finds_queues_and_says_which_it_lacks(self, stack):
        target.connect(Options(stack="shop", endpoint_url=stack.endpoint))
        assert target.find_resource("WorkQueue", "UNSET") == "shop-WorkQueue-1"
        with pytest.raises(Refused, match="The stack shop has no Nothing"):
            target.find_resource("Nothing", "UNSET")

    def test_a_stack_option_exits_3_for_an_unknown_stack(self, run_without_table, stack):
        outcome = run_without_table(*SHOW, "--stack", "nowhere", "--endpoint-url", stack.endpoint, "--json")
        assert outcome.exit_code == 3
        assert outcome.error["code"] == "NOT_FOUND"


class TestLocal:
    @pytest.fixture
    def state(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
        monkeypatch.setattr(target, "LOCAL_STATE", tmp_path / "stack.json")
        return target.LOCAL_STATE

    @pytest.mark.usefixtures("state")
    def test_local_says_how_to_start_a_missing_stack(self, run_without_table):
        outcome = run_without_table(*SHOW, "--local", "--json")
        assert outcome.exit_code == 1
        assert "make run" in outcome.error["message"]

    def test_local_never_reaches_a_remote_table(self, run_without_table, state, monkeypatch):
        # nothing listens on that port
        state.write_text(
            '{"ministack_port": 1, "started": 1, "code_host": {"GITHUB_API_URL": "http://127.0.0.1:2/api/v3"}}'
        )
        monkeypatch.setenv("AWS_PROFILE", "production")
        monkeypatch.setenv("AWS_ENDPOINT_URL", "https://dynamodb.example.com")
        outcome = run_without_table(*SHOW, "--local", "--json")
        assert outcome.exit_code == 1
        assert "127.0.0.1:1/" in outcome.error["message"]
        assert "make run" in outcome.error["message"]
        assert os.environ.get("GITHUB_API_URL") is None
        assert {name for name in os.environ if name.startswith("AWS_")} == {
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_DEFAULT_REGION",
        }

    @pytest.mark.parametrize("option", ["--region", "--endpoint-url"])
    def test_local_has_a_region_and_an_endpoint_of_its_own(self, run_without_table, option):
        assert run_without_table(*SHOW, "--local", option, "there").exit_code == 2


class TestOutput:
    def test_records_and_tables_are_text_without_control_characters(self, ops_text, world):
        person = world.person("ada@example.com", "[red]Ada[/red]\x1b]0;owned\x07")
        company = world.company(owner=person)
        lines = ops_text(*SHOW).stdout.splitlines()
        assert r"name                 [red]Ada[/red]\u001b]0;owned\u0007" in lines
        assert "image                -" in lines
        assert "identities           -" in lines
        assert lines[-4:-2] == ["", "organizations"]
        assert lines[-2:] == [
            f"organizationId        slug{' ' * (len(company.slug) - 4)}  name  role",
            f"{company.organization_id}  {company.slug}  Acme  owner",
        ]

    def test_an_empty_list_is_none(self, ops_text, world):
        assert ops_text("key", "list", world.company().slug).stdout == "None.\n"

    def test_errors_are_sentences_on_stderr(self, ops_text):
        outcome = ops_text(*SHOW)
        assert (outcome.exit_code, outcome.stdout) == (3, "")
        assert outcome.stderr == "Error: There is no user ada@example.com.\n"


class TestPrompt:
    """On a terminal, destructive commands ask for confirmation."""

    @pytest.fixture
    def typed(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
        """Replaces stdin with a terminal. Yields a function that types a line into it."""
        controller, terminal = pty.openpty()
        with os.fdopen(terminal) as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            yield lambda line: os.write(controller, f"{line}\n".encode()) and None
        os.close(controller)

    @pytest.mark.parametrize("answer", ["y", "Y", " yes "])
    def test_answering_yes_continues(self, typed, answer, capsys):
        typed(answer)
        confirm("Delete it?", yes=False)
        asked = capsys.readouterr()
        assert (asked.out, asked.err) == ("", "Delete it? [y/N] ")

    @each("answer", ["", "n", "no", "yess", "\x04"])
    def test_any_other_answer_changes_nothing(self, typed, answer):
        typed(answer)
        with pytest.raises(Refused) as refusal:
            confirm("Delete it?", yes=False)
        assert refusal.value.exit_code == 1
