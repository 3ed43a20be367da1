"""`assent-ops github`, and the code host checks of `repository connect`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.code_host.github import app_auth, client
from local.github.setup import DEMO_BRANCH, DEMO_NAME, DEMO_OWNER, installation_id
from local.github.stand_in import PERMISSIONS
from tests.support.github import GitHub, github
from tests.support.github_faults import Fault
from tests.support.world import table_dump

DEMO = f"{DEMO_OWNER}/{DEMO_NAME}"
READS = {"issues": "read", "metadata": "read", "contents": "read", "pull_requests": "read"}


def app_with(permissions: dict[str, str], events: list[str]) -> Fault:
    """Returns GitHub's answer about an App with these permissions and events."""
    content = {"id": 1, "name": "Other", "html_url": "https://x.example", "permissions": permissions, "events": events}
    return Fault(200, content=content)


@pytest.fixture
def code_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHub]:
    with github(tmp_path / "github") as served:
        served.configure(monkeypatch)
        yield served
    client.get_transport.cache_clear()


def change(monkeypatch: pytest.MonkeyPatch, **settings: str | None) -> None:
    """Overrides settings of the stand-in."""
    for module in (client, app_auth):
        monkeypatch.setattr(module, "settings", module.settings.model_copy(update=settings))
    client.get_transport.cache_clear()


class TestCheck:
    def test_shows_the_app_and_the_installation_that_sees_a_repository(self, ops, code_host):
        app = {
            "appId": 1,
            "name": "assent-local",
            "url": f"{code_host.url}/apps/assent-local",
            "permissions": ["checks write", "contents read", "issues write", "metadata read", "pull_requests write"],
            "events": ["check_run", "issues", "pull_request", "push", "repository"],
        }
        assert ops("github", "check").document == app
        assert ops("github", "check", DEMO).document == {
            **app,
            "installation": installation_id(DEMO_OWNER),
            "repository": DEMO,
            "defaultBranch": DEMO_BRANCH,
            "archived": False,
            "issues": True,
        }
        assert table_dump() == []
        assert {exchange.path for exchange in code_host.exchanges if exchange.method == "POST"} == {
            f"/app/installations/{installation_id(DEMO_OWNER)}/access_tokens"
        }

    def test_exits_3_if_the_app_is_not_installed(self, ops, code_host):
        outcome = ops("github", "check", "demo-shop/unknown")
        assert outcome.exit_code == 3
        assert "isn't installed" in outcome.error["message"]

    @pytest.mark.parametrize(
        ("withheld", "named"),
        [
            ({"contents"}, "grant contents read."),
            ({"checks", "pull_requests"}, "grant pull_requests write, checks write."),
        ],
    )
    def test_names_the_permissions_that_the_installation_lacks(self, withheld, named, ops, code_host):
        code_host.stand_in.faults.withheld[installation_id(DEMO_OWNER)] = withheld
        outcome = ops("github", "check", DEMO)
        assert outcome.exit_code == 1
        assert named in outcome.error["message"]

    @pytest.mark.parametrize(
        ("settings", "said"),
        [
            ({"github_app_id": None}, "GithubAppId"),
            ({"github_app_private_key_file": None}, "GITHUB_APP_SECRET_ARN"),
            ({"github_app_private_key_file": "/nowhere/key.pem"}, "can't be read"),
            ({"github_app_private_key_file": "/dev/null"}, "PEM"),
            ({"github_app_id": "2"}, "different Apps"),
        ],
    )
    def test_names_the_problem_of_the_id_or_key(self, settings, said, ops, code_host, monkeypatch):
        change(monkeypatch, **settings)
        outcome = ops("github", "check")
        assert outcome.exit_code == 1
        assert said in outcome.error["message"]

    @pytest.mark.parametrize(
        ("fault", "said"),
        [
            (app_with(READS, []), "doesn't request issues write, pull_requests write, checks write."),
            (app_with(PERMISSIONS, ["push", "issues", "repository"]), "isn't subscribed to check_run, pull_request."),
            (Fault(503, {"Retry-After": "600"}), "Try again later"),
            (Fault(403, {"Retry-After": "77"}, {"message": "You have exceeded a secondary rate limit."}), "in 77 s"),
            (Fault(418), "418"),
        ],
    )
    def test_names_what_the_app_lacks_or_why_github_gave_no_answer(self, fault, said, ops, code_host):
        code_host.stand_in.faults.add("GET /app", fault)
        outcome = ops("github", "check")
        assert outcome.exit_code == 1
        assert said in outcome.error["message"]


class TestConnect:
    def test_finds_the_installation_the_default_branch_and_the_visibility(self, ops, world, code_host):
        company = world.company()
        made = ops("repository", "connect", company.slug, DEMO).document
        assert made["installation"] == installation_id(DEMO_OWNER)
        assert made["url"] == f"{code_host.url}/{DEMO}"
        assert (made["defaultBranch"], made["visibility"]) == (DEMO_BRANCH, "private")
        before = table_dump()
        assert ops("repository", "connect", company.slug, "demo-shop/unknown").exit_code == 3
        assert table_dump() == before

    def test_asks_no_code_host_with_an_installation_or_for_an_unknown_organization(self, ops, world, code_host):
        ops("repository", "connect", world.company().slug, "acme/shop", "--installation", "7")
        ops("repository", "connect", "nowhere", DEMO)
        assert code_host.exchanges == []
