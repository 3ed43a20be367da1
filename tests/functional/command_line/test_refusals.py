"""Output of commands, and requests that fail: a message that says what to do, and the documented exit code."""

import json
import re

import pytest
import typer

from cli.tests.support.script import ADDRESS
from controlplane.code_host import repositories
from controlplane.platform.core.ids import ScanRequestId
from openassent import ApiError
from openassent_cli import credentials, profiles
from openassent_cli.failures import ending, problem_of
from openassent_cli.problems import Exit, Problem
from openassent_cli.profiles import Profile
from tests.functional.command_line.cases import CASES
from tests.functional.command_line.conftest import Shell
from tests.functional.projects.builders import make_project
from tests.support.audits import make_scan, stored_repository
from tests.support.each import each
from tests.support.world import Company

HOSTILE = "[red]x[/red]\x1b[2J\u202e"


def add_projects(company: Company, count: int, name: str = "Extra") -> None:
    for number in range(count):
        make_project(company, f"{name} {number}", origins=())


class TestLists:
    def test_are_read_as_far_as_the_limit(self, shell, office, gateway):
        add_projects(office.company, 60)
        ended = shell.run("project list --limit 2")
        assert ended.stdout.count("\n") == 2
        assert ended.stderr == "Only the first 2 are shown. Use --limit to see more.\n"
        assert len(gateway.requests) == 1
        assert len(shell.run("project list -L 5 --json --quiet").json) == 5
        ended = shell.run("project list --limit 100")
        assert (ended.stdout.count("\n"), ended.stderr) == (61, "")

    def test_an_empty_list_says_what_to_do(self, shell, office):
        ended = shell.run("project list --org {second}".format(**office.names))
        assert (ended.stdout, ended.stderr) == ("", "There are no projects. Create one with `assent project create`.\n")
        assert shell.run("project list --json --org {second}".format(**office.names)).json == []

    def test_have_a_header_in_a_terminal_only(self, shell, office):
        shown = shell.run("project list", terminal=True, NO_COLOR="1").stdout
        assert re.sub(r"\x1b\[\d*m", "", shown).split("\n")[0].split() == ["SLUG", "NAME", "DESCRIPTION", "ID"]
        assert office.names["project"] in shown


class TestNames:
    @pytest.fixture
    def hostile(self, shell, office, world):
        company = world.company(owner=office.company.owner, name=HOSTILE)
        add_projects(company, 1, HOSTILE)
        profiles.choose_organization("default", company.organization_id)
        return company

    @pytest.mark.parametrize("terminal", [True, False])
    @pytest.mark.parametrize("line", ["org list", "org use {slug}", "project list"])
    def test_cant_control_the_terminal(self, line, terminal, shell, hostile):
        ended = shell.run(line.format(slug=hostile.slug), terminal=terminal, NO_COLOR="1")
        output = ended.stdout + ended.stderr
        assert "[red]x[/red]\ufffd[2J\ufffd" in output
        assert "\x1b[2J" not in output
        assert "\u202e" not in output
        assert HOSTILE in [it["organizationName"] for it in shell.run("org list --json").json]


def test_any_request_acts_in_the_chosen_organization_unless_it_names_another(shell, office, gateway):
    first, second = (it["organizationId"] for it in shell.run("org list --json").json)
    for line, expected in (
        (f"api GET /v1/billing --org {second}", second),
        (f"api GET /v1/members --paginate --org {second}", second),
        (f"api POST /v1/api-keys?dryRun=true -f name=CI --org {second}", second),
        (f"api GET /v1/billing?organizationId={first} --org {second}", first),
    ):
        shell.run(line)
        assert gateway.requests[-1].url.params["organizationId"] == expected, line


def test_an_argument_can_be_given_as_an_option(shell):
    for line in ("project create --name Kiosk --region eu-central", "website add kiosk.example.com --project kiosk"):
        assert shell.run(line).code == 0, line
    assert "kiosk.example.com" in shell.run("website list --project kiosk").stdout


@pytest.mark.parametrize(("status", "code", "said"), [("completed", 0, ""), ("failed", 1, "Too large.")])
def test_waiting_for_a_scan_tells_how_it_ended(  # noqa: PLR0917
    status, code, said, shell, office, monkeypatch
):
    (repository,) = (
        it for it in repositories.list_all_repositories(office.company.organization_id) if it.name == "shop"
    )

    def work(_: float) -> None:
        requested = ScanRequestId.stored(stored_repository(repository)["activeRequestId"])
        make_scan(repository, status=status, request_id=requested)

    monkeypatch.setattr("time.sleep", work)
    ended = shell.run("scan start acme/shop --wait")
    assert (ended.code, said in ended.stderr) == (code, True)
    assert f"\t{status}\n" in ended.stdout.lower()


def test_quiet_prints_results_only(shell):
    ended = shell.run("project create Kiosk --region eu-central --quiet")
    assert (ended.code, ended.stdout, ended.stderr) == (0, "", "")


def test_logout_revokes_and_forgets(shell, gateway):
    assert shell.run("logout").stderr == "You are signed out.\n"
    (revocation,) = gateway.requests
    assert (revocation.url.path, revocation.content) == ("/v1/auth/device/revoke", b'{"token":"unused"}')
    assert credentials.store().load("default") is None
    assert shell.run("whoami").code == 4
    assert profiles.all_profiles() == {}


@pytest.fixture
def names(office, world):
    """Returns the office's names, with two keys called twice and a failed scan."""
    for _ in range(2):
        world.key(office.company, "twice")
    failed = make_scan(world.connected_repository(office.company), status="failed")
    return {**office.names, "failed": failed.scan_id}


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("project show nope", Exit.NOT_FOUND, "There is no project nope.\n`assent project list` lists them.\n"),
        (
            "project show prj_nope",
            Exit.NOT_FOUND,
            "\nCheck the ID, and with `assent whoami` the organization.\nSee https://api.assent.test/docs/errors#NOT_F",
        ),
        ("org use nope", Exit.NOT_FOUND, "There is no organization nope.\n`assent org list` lists them.\n"),
        ("project list --org nope", Exit.NOT_FOUND, "There is no organization nope."),
        ("member remove nope@example.com --yes", Exit.NOT_FOUND, "`assent member list` lists them.\n"),
        ("scan list --repo acme/nope", Exit.NOT_FOUND, "`assent repo list` lists them.\n"),
        ("inbox accept nope", Exit.NOT_FOUND, "There is no such resource."),
        ("profile use nope", Exit.NOT_FOUND, "Run `assent login --profile nope`.\n"),
        (
            "project show shop --profile nope",
            Exit.SIGN_IN,
            "There is no profile nope.\nRun `assent login --profile nope`.\n",
        ),
        ("project update shop", Exit.USAGE, "Give an option, such as --name.\n"),
        ("project create --region moon", Exit.USAGE, "NAME is missing.\nGive it as an argument, or as --name.\n"),
        ("project create Shop --name Shop --region moon", Exit.USAGE, "The argument Shop is one too many.\n"),
        ("project list --limit 0", Exit.USAGE, ""),
        ("project list --limit x", Exit.USAGE, ""),
        ("key create CI --expires-in 1y", Exit.USAGE, "'1y' isn't a duration."),
        ("key delete twice --yes", Exit.USAGE, "Error: Several keys are called twice.\nUse the ID.\n"),
        ("inbox assign {item} nope@example.com", Exit.NOT_FOUND, "`assent member list` lists them.\n"),
        ("inbox assign {item}", Exit.USAGE, "Name a member, or use --none."),
        ("inbox list --status closed", Exit.USAGE, "status: must be 'open', 'accepted', 'dismissed' or 'resolved'"),
        ("whoami --base-url http://example.com", Exit.USAGE, "Use an https URL."),
        ("scan unlock {scan}", Exit.CONFLICT, "All findings of this scan are readable already."),
        ("scan unlock {failed} --yes", Exit.CONFLICT, "failed. Only a completed scan can be unlocked.\n"),
        ("org create Acme --slug {org}", Exit.CONFLICT, "\nSuggestions: {org}-"),
        ("project create '' --region moon", Exit.USAGE, "\nCorrect each problem, then run the command again.\n"),
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
def test_a_failure_says_what_to_do(line, code, message, shell, names):
    ended = shell.run(line.format(**names))
    assert (ended.code, ended.stdout) == (code, "")
    assert message.format(**names) in ended.stderr


def test_a_scan_that_failed_isnt_shown_as_locked(shell, names):
    assert "locked" not in shell.run(f"scan show {names['failed']}").stderr


def test_a_status_has_an_exit_code():
    codes = {
        Exit.USAGE: (400, 422), Exit.SIGN_IN: (401,), Exit.REFUSED: (402, 403), Exit.NOT_FOUND: (404,),
        Exit.CONFLICT: (409, 412), Exit.TRY_LATER: (429, 503), Exit.FAILED: (500,),
    }  # fmt: skip
    for code, statuses in codes.items():
        assert {problem_of(ApiError("", status=status)).code for status in statuses} == {code}


def test_what_a_failure_says_cant_control_the_terminal(capsys):
    with pytest.raises(typer.Exit), ending():
        raise Problem("There is no a\x1b[2J.", "Try b\x1b[2J.")
    assert capsys.readouterr().err == "Error: There is no a\ufffd[2J.\nTry b\ufffd[2J.\n"


def test_a_field_that_was_ignored_is_a_warning_beside_the_result(shell, names):
    ended = shell.run("api PATCH /v1/projects/{project} -f name=Market -f descripton=x".format(**names))
    assert (ended.code, json.loads(ended.stdout)["projectName"]) == (0, "Market")
    assert ended.stderr == "Warning: descripton: Unknown field. Did you mean description?\n"


@pytest.mark.usefixtures("office")
def test_a_failure_names_its_request(shell, api):
    ended = shell.run("project show prj_nope")
    assert ended.stderr.endswith(f"\nRequest {api.replies[-1].headers['x-request-id']}\n")


@pytest.mark.parametrize("line", [case.line for case in CASES if case.line.endswith(" --yes")])
def test_what_is_lost_needs_a_confirmation(line, shell, office, gateway):
    ended = shell.run(line.removesuffix(" --yes").format(**office.names))
    assert (ended.code, ended.stderr) == (Exit.USAGE, "Error: This needs a confirmation.\nGive --yes.\n")
    assert {request.method for request in gateway.requests} <= {"GET"}


class TestWithoutSignIn:
    @pytest.mark.parametrize("has_profile", [True, False])
    def test_commands_say_how_to_sign_in(self, has_profile, gateway):
        if has_profile:
            profiles.save("default", Profile(ADDRESS))
        ended = Shell().run("project list")
        assert (ended.code, gateway.requests) == (Exit.SIGN_IN, [])
        assert ended.stderr == "Error: You aren't signed in.\nRun `assent login`, or set ASSENT_API_KEY.\n"

    def test_a_revoked_sign_in_is_forgotten(self, shell):
        shell.sign_in("assent_at_revoked", refresh_token="assent_rt_revoked")
        ended = shell.run("project list")
        assert ended.code == Exit.SIGN_IN
        assert ended.stderr.startswith("Error: Your sign-in has expired, or it was revoked.\n")
        assert credentials.store().load("default") is None


class TestAnotherService:
    ELSEWHERE = "https://elsewhere.test"

    @each("line", ["whoami", "ci", "mcp"])
    def test_never_gets_the_profiles_tokens(self, line, shell, gateway):
        ended = shell.run(f"{line} --base-url {self.ELSEWHERE}")
        assert (ended.code, gateway.requests) == (Exit.SIGN_IN, [])
        assert ended.stderr == (
            f"Error: The profile default is signed in to {ADDRESS}, not to {self.ELSEWHERE}.\n"
            f"Sign in there with another profile: `assent login --profile NAME --base-url {self.ELSEWHERE}`.\n"
        )

    def test_is_none_if_the_address_is_the_profiles(self, shell):
        assert shell.run(f"whoami --base-url {ADDRESS}/").code == Exit.DONE

    def test_gets_an_api_key_without_the_profiles_organization(self, shell, office, world):
        profiles.save("default", Profile(self.ELSEWHERE, office.names["second"]))
        key = world.key(office.company)
        assert shell.run("project list", ASSENT_API_KEY=key, ASSENT_BASE_URL=ADDRESS).code == Exit.DONE


def test_an_api_key_replaces_the_profile_unless_that_is_asked_for(shell, office, world):
    key = world.key(office.company)
    shown = shell.run("whoami", ASSENT_API_KEY=key, ASSENT_BASE_URL=ADDRESS).stdout
    assert ("API key:\tkey_" in shown, "User:" in shown) == (True, False)
    shown = shell.run("whoami --profile default", ASSENT_API_KEY=key).stdout
    assert f"User:\t{office.company.owner.user_id}" in shown
    ended = shell.run("scan list", ASSENT_API_KEY=key)
    assert (ended.code, "API keys don't have every scope." in ended.stderr) == (Exit.REFUSED, True)


def test_an_api_key_needs_the_address_of_the_service(gateway):
    ended = Shell().run("whoami", ASSENT_API_KEY="assent_x")
    assert (ended.code, "Set ASSENT_BASE_URL" in ended.stderr) == (Exit.USAGE, True)


def test_a_lost_connection_has_its_own_code(shell, gateway):
    gateway.losing = 100
    ended = shell.run("project list")
    assert ended.code == Exit.NO_CONNECTION
    assert "Check the address" in ended.stderr


def test_a_creation_whose_responses_are_lost_happens_once(shell, gateway):
    gateway.losing = 2
    secret = shell.run("key create CI").stdout.strip()
    assert [it["name"] for it in shell.run("key list --json").json].count("CI") == 1
    assert shell.run("whoami", ASSENT_API_KEY=secret, ASSENT_BASE_URL=ADDRESS).code == Exit.DONE


def test_a_folder_that_cant_be_written_is_named(shell, tmp_path):
    (tmp_path / "file").touch()
    ended = shell.run("project list", ASSENT_CONFIG_DIR=str(tmp_path / "file"))
    assert ended.code == Exit.FAILED
    assert ended.stderr == f"Error: {tmp_path / 'file'}: File exists\n"
