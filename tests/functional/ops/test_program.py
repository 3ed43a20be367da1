"""`assent-ops` as a whole: the table it uses, its prompts, its output streams, and its exit codes."""

import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar
from urllib.parse import parse_qs

import pytest

from controlplane.store.table import table
from ops import target
from ops.errors import Refused
from ops.output import confirm
from ops.target import Options
from tests.functional.ops.conftest import Ops
from tests.support.each import each
from tests.support.missing import is_missing
from tests.support.world import World

SCRIPT = Path(__file__).parents[3] / "scripts" / "assent-ops"
GROUPS = (
    "user",
    "token",
    "organization",
    "member",
    "plan",
    "credits",
    "top-up",
    "key",
    "audit",
    "repository",
    "github",
    "dead-letters",
)


class TestHelp:
    def test_help_lists_exit_codes_and_command_groups(self, run_without_table: Ops):
        shown = run_without_table("--help")
        assert shown.exit_code == 0
        assert "Exit codes: 0 done" in shown.stdout
        assert all(group in shown.stdout for group in GROUPS)

    def test_help_says_that_no_command_lists_everything(self, run_without_table: Ops):
        assert "No command lists all users" in run_without_table("--help").stdout

    @pytest.mark.parametrize("group", GROUPS)
    def test_help_needs_no_table(self, run_without_table: Ops, monkeypatch: pytest.MonkeyPatch, group: str):
        monkeypatch.delenv("TABLE_NAME")
        shown = run_without_table(group, "--help")
        assert shown.exit_code == 0
        for name in re.findall(r"│ ([a-z][a-z-]+) ", shown.stdout):
            assert "--json" in run_without_table(group, name, "--help").stdout

    def test_help_imports_neither_the_store_nor_botocore(self):
        code = (
            "import sys, ops.cli; sys.exit(any(n in sys.modules for n in ('botocore', 'fastapi', 'pydantic', 'rich')))"
        )
        root = SCRIPT.parents[1]
        paths = os.pathsep.join(str(root / name) for name in ("", "layers/shared", "functions"))
        assert subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": paths}, check=False).returncode == 0


class TestTable:
    def test_exits_2_without_a_table(self, run_without_table: Ops, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.delenv("TABLE_NAME")
        outcome = run_without_table("organization", "show", "acme", "--json")
        assert outcome.exit_code == 2
        assert "--stack" in outcome.error["message"]

    def test_the_table_can_come_from_the_environment(
        self, run_without_table: Ops, world: World, monkeypatch: pytest.MonkeyPatch
    ):
        company = world.company()
        monkeypatch.setenv("TABLE_NAME", table.name)
        assert run_without_table("organization", "show", company.slug, "--json").document["slug"] == company.slug

    def test_the_table_option_works_before_and_after_the_command(self, run_without_table: Ops, world: World):
        company, name = world.company(), table.name
        for words in (
            ("--table", name, "--json", "organization", "show", company.slug),
            ("organization", "show", company.slug, "--table", name, "--json"),
        ):
            assert run_without_table(*words).document["slug"] == company.slug

    def test_exits_2_if_the_table_is_named_in_two_ways(self, run_without_table: Ops):
        assert run_without_table("user", "show", "a@b.example", "--table", "one", "--stack", "two").exit_code == 2

    def test_a_missing_table_fails_with_one_line(self, run_without_table: Ops):
        outcome = run_without_table("user", "show", "a@b.example", "--table", "nowhere")
        assert outcome.exit_code == 1
        assert not outcome.stdout
        assert outcome.stderr.startswith("Error: AWS rejected the call: ")
        assert outcome.stderr.count("\n") == 1


class CloudFormation(BaseHTTPRequestHandler):
    """The two CloudFormation responses that the tests need, for a stack named shop."""

    ANSWERS: ClassVar = {
        "DescribeStacks": "<Stacks><member><StackName>shop</StackName><Parameters><member><ParameterKey>ServiceBrand"
        "</ParameterKey><ParameterValue>consentful</ParameterValue></member><member><ParameterKey>GithubAppId"
        "</ParameterKey><ParameterValue>77</ParameterValue></member></Parameters><Outputs><member><OutputKey>"
        "GithubAppKeyArn</OutputKey><OutputValue>arn:key</OutputValue></member></Outputs></member></Stacks>",
        "DescribeStackResource": "<StackResourceDetail><PhysicalResourceId>shop-Table-1</PhysicalResourceId>"
        "</StackResourceDetail>",
    }
    UNKNOWN = (
        "<ErrorResponse><Error><Code>ValidationError</Code><Message>no such stack</Message></Error></ErrorResponse>"
    )

    def do_POST(self):
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        action = form["Action"][0]
        known = form["StackName"] == ["shop"]
        answer = f"<{action}Response><{action}Result>{self.ANSWERS[action]}</{action}Result></{action}Response>"
        body = (answer if known else self.UNKNOWN).encode()
        self.send_response(200 if known else 400)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object):
        """Disables logging."""


class TestStack:
    @pytest.fixture
    def endpoint(self) -> Iterator[str]:
        with HTTPServer(("127.0.0.1", 0), CloudFormation) as server:
            thread = Thread(target=server.serve_forever)
            thread.start()
            yield f"http://127.0.0.1:{server.server_port}"
            server.shutdown()
            thread.join()

    def test_a_stack_option_finds_the_table_and_the_secret_brand(self, endpoint: str):
        target.connect(Options(stack="shop", endpoint_url=endpoint))
        assert table.name == os.environ["TABLE_NAME"] == "shop-Table-1"
        assert os.environ["SERVICE_BRAND"] == "consentful"

    def test_a_stack_option_finds_the_table_that_replaced_the_stacks_own(
        self, endpoint: str, monkeypatch: pytest.MonkeyPatch
    ):
        named = "<member><ParameterKey>TableName</ParameterKey><ParameterValue>restored</ParameterValue></member>"
        answer = CloudFormation.ANSWERS["DescribeStacks"].replace("</Parameters>", f"{named}</Parameters>")
        monkeypatch.setitem(CloudFormation.ANSWERS, "DescribeStacks", answer)
        target.connect(Options(stack="shop", endpoint_url=endpoint))
        assert table.name == os.environ["TABLE_NAME"] == "restored"

    def test_a_stack_option_keeps_the_layers_log_off_stdout(self, endpoint: str, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.delenv("LOG_LEVEL", raising=False)
        target.connect(Options(stack="shop", endpoint_url=endpoint))
        assert os.environ["LOG_LEVEL"] == "CRITICAL"

    def test_a_stack_option_finds_the_code_host(self, endpoint: str):
        target.connect(Options(stack="shop", endpoint_url=endpoint))
        assert (os.environ["GITHUB_APP_ID"], os.environ["GITHUB_APP_SECRET_ARN"]) == ("77", "arn:key")

    def test_a_stack_option_exits_3_for_an_unknown_stack(self, run_without_table: Ops, endpoint: str):
        options = ("--stack", "nowhere", "--endpoint-url", endpoint, "--json")
        outcome = run_without_table("user", "show", "ada@example.com", *options)
        assert outcome.exit_code == 3
        assert outcome.error["code"] == "NOT_FOUND"


class TestLocal:
    def test_local_says_how_to_start_a_missing_stack(
        self, run_without_table: Ops, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ):
        monkeypatch.setattr(target, "LOCAL_STATE", tmp_path / "stack.json")
        outcome = run_without_table("user", "show", "ada@example.com", "--local", "--json")
        assert outcome.exit_code == 1
        assert "make run" in outcome.error["message"]

    def test_local_never_reaches_a_remote_table(
        self, run_without_table: Ops, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ):
        state = tmp_path / "stack.json"
        # nothing listens on that port
        state.write_text('{"ministack_port": 1, "code_host": {"GITHUB_API_URL": "http://127.0.0.1:2/api/v3"}}')
        monkeypatch.setattr(target, "LOCAL_STATE", state)
        monkeypatch.setenv("AWS_PROFILE", "production")
        monkeypatch.setenv("AWS_ENDPOINT_URL", "https://dynamodb.example.com")
        outcome = run_without_table("user", "show", "ada@example.com", "--local", "--json")
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
    def test_local_finds_the_running_stack(self, run_without_table: Ops, option: str):
        assert run_without_table("user", "show", "ada@example.com", "--local", option, "there").exit_code == 2


class TestJson:
    @each("words", [("user", "nope"), ("nope",), ("user", "create"), ("user", "show", "a@b.example", "--nope")])
    def test_wrong_usage_is_reported_as_json(self, ops: Ops, words: tuple[str, ...]):
        outcome = ops(*words)
        assert outcome.exit_code == 2
        assert outcome.error["code"] == "USAGE"

    def test_errors_are_sentences_on_stderr(self, ops_text: Ops):
        outcome = ops_text("user", "show", "unknown@example.com")
        assert (outcome.exit_code, outcome.stdout) == (3, "")
        assert outcome.stderr == "Error: There is no user unknown@example.com.\n"


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
    def test_answering_yes_continues(
        self, typed: Callable[[str], None], answer: str, capsys: pytest.CaptureFixture[str]
    ):
        typed(answer)
        confirm("Delete it?", yes=False)
        asked = capsys.readouterr()
        assert (asked.out, asked.err) == ("", "Delete it? [y/N] ")

    @each("answer", ["", "n", "no", "yess", "\x04"])
    def test_any_other_answer_changes_nothing(self, typed: Callable[[str], None], answer: str):
        typed(answer)
        with pytest.raises(Refused) as refusal:
            confirm("Delete it?", yes=False)
        assert refusal.value.exit_code == 1


class TestScript:
    def test_the_script_runs_from_any_folder_and_through_a_link(self, tmp_path: Path):
        link = tmp_path / "assent-ops"
        link.symlink_to(SCRIPT)
        if not (SCRIPT.parents[1] / ".venv/bin/python").exists():
            is_missing("runs in the project's own environment only")
        done = subprocess.run([link, "--help"], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "Exit codes" in done.stdout
