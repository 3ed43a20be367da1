"""Output: pages and limits, several profiles and organizations, and names that try to control the terminal."""

import re

import pytest

from controlplane.code_host import repositories
from controlplane.platform.core.ids import ScanRequestId
from controlplane.projects import store as projects
from openassent_cli import credentials, profiles
from tests.support.audits import make_scan, stored_repository
from tests.support.world import Company

HOSTILE = "[red]x[/red]\x1b[2J\u202e"


def add_projects(company: Company, count: int, name: str = "Extra") -> None:
    for number in range(count):
        projects.create_project(
            company.organization_id, f"{name} {number}", region="eu-central", addresses=[], branding="assent"
        )


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

    def test_that_are_empty_say_what_to_do(self, shell, office):
        ended = shell.run("project list --org {second}".format(**office.names))
        assert (ended.stdout, ended.stderr) == ("", "There are no projects. Create one with `assent project create`.\n")
        assert shell.run("project list --json --org {second}".format(**office.names)).json == []

    def test_have_a_header_in_a_terminal_only(self, shell, office):
        shown = shell.run("project list", terminal=True, NO_COLOR="1").stdout
        assert re.sub(r"\x1b\[\d*m", "", shown).split("\n")[0].split() == ["SLUG", "NAME", "DESCRIPTION", "ID"]
        assert office.names["project"] in shown


class TestNames:
    @pytest.fixture
    def hostile(self, shell, office, world) -> Company:
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


def test_an_organization_is_chosen_for_one_command(shell, office):
    assert shell.run("project list").stdout != shell.run("project list --org {second}".format(**office.names)).stdout


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
