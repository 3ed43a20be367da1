"""Requests that fail: a message that says what to do, and the documented exit code."""

import json
from pathlib import Path

import pytest
import typer
from rich.console import Console

from cli.tests.support.script import ADDRESS
from openassent import ApiError
from openassent_cli import credentials, profiles
from openassent_cli.exits import Exit
from openassent_cli.failures import ending, problem_of
from openassent_cli.problems import Problem
from openassent_cli.profiles import Profile
from tests.functional.command_line.cases import CASES
from tests.functional.command_line.conftest import Shell
from tests.functional.command_line.office import Office
from tests.functional.sdk.conftest import Gateway
from tests.support.api import Api
from tests.support.audits import make_scan
from tests.support.each import each
from tests.support.world import World


@pytest.fixture
def names(office: Office, world: World) -> dict[str, str]:
    """Returns the office's names, with two keys called twice and a failed scan."""
    for _ in range(2):
        world.key(office.company, "twice")
    failed = make_scan(world.connected_repository(office.company), status="failed")
    return {**office.names, "failed": failed.scan_id}


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("project show nope", Exit.NOT_FOUND, "There is no project nope.\n`assent project list` lists them.\n"),
        ("project show prj_nope", Exit.NOT_FOUND, "See https://api.assent.test/docs/errors#NOT_FOUND\nRequest "),
        ("org use nope", Exit.NOT_FOUND, "There is no org nope.\n`assent org list` lists them.\n"),
        ("project list --org nope", Exit.NOT_FOUND, "There is no org nope."),
        ("member remove nope@example.com --yes", Exit.NOT_FOUND, "`assent member list` lists them.\n"),
        ("scan list --repo acme/nope", Exit.NOT_FOUND, "`assent repo list` lists them.\n"),
        ("inbox accept nope", Exit.NOT_FOUND, "There is no such resource."),
        ("profile use nope", Exit.NOT_FOUND, "Run `assent login --profile nope`.\n"),
        ("project show shop --profile nope", Exit.SIGN_IN, "There is no profile nope.\nRun `assent login`"),
        ("project update shop", Exit.USAGE, "Give an option, such as --name.\n"),
        ("project list --limit 0", Exit.USAGE, ""),
        ("project list --limit x", Exit.USAGE, ""),
        ("key create CI --expires-in 1y", Exit.USAGE, "'1y' isn't a duration."),
        ("key delete twice --yes", Exit.USAGE, "Error: Several keys are called twice.\nUse the ID.\n"),
        ("inbox list --status closed", Exit.USAGE, "status: must be 'open', 'accepted', 'dismissed' or 'resolved'"),
        ("whoami --base-url http://example.com", Exit.USAGE, "Use an https URL."),
        ("scan unlock {scan}", Exit.CONFLICT, "All findings of this scan are readable already."),
        ("scan unlock {failed} --yes", Exit.CONFLICT, "failed. Only a completed scan can be unlocked.\n"),
        ("org create Acme --slug {org}", Exit.CONFLICT, "\nSuggestions: {org}-"),
        ("project create '' --region moon", Exit.USAGE, "\nCorrect each problem, then send the request again.\n"),
        ("key create '' --scope x", Exit.USAGE, "\nscopes.0: Must be"),
        (
            "api GET /v1/projects/prj_nope",
            Exit.NOT_FOUND,
            "See https://api.assent.test/docs/errors#NOT_FOUND\nRequest ",
        ),
        ("api PATCH /v1/projects/{project} -f branding=x", Exit.USAGE, "Error: branding: unknown field\n"),
        ("api GET https://elsewhere.test/v1/me", Exit.USAGE, "The path must begin with one slash"),
        ("api GET //elsewhere.test/v1/me", Exit.USAGE, "The path must begin with one slash"),
        ("api POST /v1/projects --paginate", Exit.USAGE, "Only lists have pages.\nLeave out --paginate.\n"),
        ("api GET /v1/me --paginate", Exit.USAGE, "The response isn't a list.\nLeave out --paginate.\n"),
        ("api POST /v1/projects -f name", Exit.USAGE, "name isn't a field.\nWrite it as name=value.\n"),
        ("api POST /v1/projects --input /dev/null", Exit.USAGE, "/dev/null has no JSON object.\n"),
        ("api GET /v1/organizations/{{org}}", Exit.USAGE, "Give --org, or run `assent org use`.\n"),
        ("member set-role ada@example.com member", Exit.REFUSED, "owner"),
    ],
)
def test_a_failure_says_what_to_do(line: str, code: Exit, message: str, shell: Shell, names: dict[str, str]):
    ended = shell.run(line.format(**names))
    assert (ended.code, ended.stdout) == (code, "")
    assert message.format(**names) in ended.stderr


def test_a_scan_that_failed_isnt_shown_as_locked(shell: Shell, names: dict[str, str]):
    assert "locked" not in shell.run(f"scan show {names['failed']}").stderr


def test_a_status_has_an_exit_code():
    codes = {
        Exit.USAGE: (400, 422), Exit.SIGN_IN: (401,), Exit.REFUSED: (402, 403), Exit.NOT_FOUND: (404,),
        Exit.CONFLICT: (409, 412), Exit.TRY_LATER: (429, 503), Exit.FAILED: (500,),
    }  # fmt: skip
    for code, statuses in codes.items():
        assert {problem_of(ApiError("", status=status)).code for status in statuses} == {code}


def test_what_a_failure_says_cant_control_the_terminal(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(typer.Exit), ending(Console()):
        raise Problem("There is no a\x1b[2J.", "Try b\x1b[2J.")
    assert capsys.readouterr().out == "Error: There is no a\ufffd[2J.\nTry b\ufffd[2J.\n"


def test_a_field_that_was_ignored_is_a_warning_beside_the_result(shell: Shell, names: dict[str, str]):
    ended = shell.run("api PATCH /v1/projects/{project} -f name=Market -f descripton=x".format(**names))
    assert (ended.code, json.loads(ended.stdout)["projectName"]) == (0, "Market")
    assert ended.stderr == "Warning: descripton: Unknown field. Did you mean description?\n"


@pytest.mark.usefixtures("office")
def test_a_failure_names_its_request(shell: Shell, api: Api):
    ended = shell.run("project show prj_nope")
    assert ended.stderr.endswith(f"\nRequest {api.replies[-1].headers['x-request-id']}\n")


@pytest.mark.parametrize("line", [case.line for case in CASES if case.line.endswith(" --yes")])
def test_what_is_lost_needs_a_confirmation(line: str, shell: Shell, office: Office, gateway: Gateway):
    ended = shell.run(line.removesuffix(" --yes").format(**office.names))
    assert (ended.code, ended.stderr) == (Exit.USAGE, "Error: This needs a confirmation.\nGive --yes.\n")
    assert {request.method for request in gateway.requests} <= {"GET"}


class TestWithoutSignIn:
    @pytest.mark.parametrize("has_profile", [True, False])
    def test_commands_say_how_to_sign_in(self, has_profile: bool, gateway: Gateway):
        if has_profile:
            profiles.save("default", Profile(ADDRESS))
        ended = Shell().run("project list")
        assert (ended.code, gateway.requests) == (Exit.SIGN_IN, [])
        assert ended.stderr == "Error: You aren't signed in.\nRun `assent login`, or set ASSENT_API_KEY.\n"

    def test_a_revoked_sign_in_is_forgotten(self, shell: Shell):
        shell.sign_in("assent_at_revoked", refresh_token="assent_rt_revoked")
        ended = shell.run("project list")
        assert ended.code == Exit.SIGN_IN
        assert ended.stderr.startswith("Error: Your sign-in has expired, or it was revoked.\n")
        assert credentials.store().load("default") is None


class TestAnotherService:
    ELSEWHERE = "https://elsewhere.test"

    @each("line", ["whoami", "ci", "mcp"])
    def test_never_gets_the_profiles_tokens(self, line: str, shell: Shell, gateway: Gateway):
        ended = shell.run(f"{line} --base-url {self.ELSEWHERE}")
        assert (ended.code, gateway.requests) == (Exit.SIGN_IN, [])
        assert ended.stderr == (
            f"Error: The profile default is signed in to {ADDRESS}, not to {self.ELSEWHERE}.\n"
            f"Sign in there with another profile: `assent login --profile NAME --base-url {self.ELSEWHERE}`.\n"
        )

    def test_is_none_if_the_address_is_the_profiles(self, shell: Shell):
        assert shell.run(f"whoami --base-url {ADDRESS}/").code == Exit.DONE

    def test_gets_an_api_key_without_the_profiles_organization(self, shell: Shell, office: Office, world: World):
        profiles.save("default", Profile(self.ELSEWHERE, office.names["second"]))
        key = world.key(office.company)
        assert shell.run("project list", ASSENT_API_KEY=key, ASSENT_BASE_URL=ADDRESS).code == Exit.DONE


def test_an_api_key_replaces_the_profile_unless_that_is_asked_for(shell: Shell, office: Office, world: World):
    key = world.key(office.company)
    shown = shell.run("whoami", ASSENT_API_KEY=key, ASSENT_BASE_URL=ADDRESS).stdout
    assert ("API key:\tkey_" in shown, "User:" in shown) == (True, False)
    shown = shell.run("whoami --profile default", ASSENT_API_KEY=key).stdout
    assert f"User:\t{office.company.owner.user_id}" in shown
    ended = shell.run("scan list", ASSENT_API_KEY=key)
    assert (ended.code, "API keys don't have every scope." in ended.stderr) == (Exit.REFUSED, True)


def test_an_api_key_needs_the_address_of_the_service(gateway: Gateway):
    ended = Shell().run("whoami", ASSENT_API_KEY="assent_x")
    assert (ended.code, "Set ASSENT_BASE_URL" in ended.stderr) == (Exit.USAGE, True)


def test_a_lost_connection_has_its_own_code(shell: Shell, gateway: Gateway):
    gateway.losing = 100
    ended = shell.run("project list")
    assert ended.code == Exit.NO_CONNECTION
    assert "Check the address" in ended.stderr


def test_a_folder_that_cant_be_written_is_named(shell: Shell, tmp_path: Path):
    (tmp_path / "file").touch()
    ended = shell.run("project list", ASSENT_CONFIG_DIR=str(tmp_path / "file"))
    assert ended.code == Exit.FAILED
    assert ended.stderr == f"Error: {tmp_path / 'file'}: File exists\n"
