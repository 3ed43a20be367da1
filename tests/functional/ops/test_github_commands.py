"""`assent-ops github`, and the code host checks of `repository connect`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.core.ids import RepositoryId
from controlplane.github import app_auth, client
from controlplane.store import repositories
from local.github.faults import Fault
from local.github.setup import DEMO_BRANCH, DEMO_NAME, DEMO_OWNER, installation_id
from local.github.stand_in import PERMISSIONS
from tests.functional.ops.conftest import Ops
from tests.support.github import GitHub, github
from tests.support.world import World, table_dump

DEMO = f"{DEMO_OWNER}/{DEMO_NAME}"


@pytest.fixture
def code_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHub]:
    with github(tmp_path / "github") as served:
        served.configure(monkeypatch)
        yield served
    client._app.cache_clear()


def change(monkeypatch: pytest.MonkeyPatch, **settings: str | None) -> None:
    """Overrides settings of the stand-in."""
    for module in (client, app_auth):
        monkeypatch.setattr(module, "settings", module.settings.model_copy(update=settings))
    client._app.cache_clear()


class TestCheck:
    def test_github_check_shows_the_app_and_its_permissions(self, ops: Ops, code_host: GitHub):
        assert ops("github", "check").document == {
            "appId": 1,
            "name": "assent-local",
            "url": f"{code_host.url}/apps/assent-local",
            "permissions": ["checks write", "contents read", "issues write", "metadata read", "pull_requests read"],
            "events": ["check_run", "issues", "pull_request", "push", "repository"],
        }

    def test_github_check_shows_the_installation_that_sees_a_repository(self, ops: Ops, code_host: GitHub):
        found = ops("github", "check", DEMO).document
        assert found["installation"] == installation_id(DEMO_OWNER)
        assert (found["repository"], found["defaultBranch"]) == (DEMO, DEMO_BRANCH)
        assert (found["archived"], found["issues"]) == (False, True)

    def test_github_check_writes_nothing(self, ops: Ops, code_host: GitHub):
        ops("github", "check", DEMO)
        assert table_dump() == []
        assert {exchange.path for exchange in code_host.exchanges if exchange.method == "POST"} == {
            f"/app/installations/{installation_id(DEMO_OWNER)}/access_tokens"
        }

    def test_github_check_exits_3_if_the_app_is_not_installed(self, ops: Ops, code_host: GitHub):
        outcome = ops("github", "check", "demo-shop/unknown")
        assert outcome.exit_code == 3
        assert "isn't installed" in outcome.error["message"]

    def test_github_check_exits_1_and_names_the_permissions_that_the_installation_lacks(self, ops: Ops, code_host):
        for withheld, named in (
            ({"contents"}, "grant contents read."),
            ({"checks", "pull_requests"}, "grant pull_requests read, checks write."),
        ):
            client._app.cache_clear()
            code_host.stand_in.faults.withheld[installation_id(DEMO_OWNER)] = withheld
            outcome = ops("github", "check", DEMO)
            assert outcome.exit_code == 1
            assert named in outcome.error["message"]

    def test_github_check_exits_1_if_the_app_doesnt_request_a_permission(self, ops: Ops, code_host: GitHub):
        granted = {"issues": "read", "metadata": "read", "contents": "read", "pull_requests": "read"}
        content = {"id": 1, "name": "Reader", "html_url": "https://x.example", "permissions": granted, "events": []}
        code_host.stand_in.faults.add("GET /app", Fault(200, content=content))
        outcome = ops("github", "check")
        assert outcome.exit_code == 1
        assert "doesn't request issues write, checks write." in outcome.error["message"]

    def test_github_check_exits_1_if_the_webhook_lacks_an_event(self, ops: Ops, code_host: GitHub):
        content = {
            "id": 1,
            "name": "Deaf",
            "html_url": "https://x.example",
            "permissions": PERMISSIONS,
            "events": ["push", "issues", "repository"],
        }
        code_host.stand_in.faults.add("GET /app", Fault(200, content=content))
        outcome = ops("github", "check")
        assert outcome.exit_code == 1
        assert "isn't subscribed to check_run, pull_request." in outcome.error["message"]

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
    def test_github_check_exits_1_with_the_problem_of_the_id_or_key(
        self, settings: dict, said: str, ops: Ops, code_host: GitHub, monkeypatch: pytest.MonkeyPatch
    ):
        change(monkeypatch, **settings)
        outcome = ops("github", "check")
        assert outcome.exit_code == 1
        assert said in outcome.error["message"]

    @pytest.mark.parametrize(
        ("fault", "said"),
        [
            (Fault(503, {"Retry-After": "600"}), "Try again later"),
            (Fault(403, {"Retry-After": "77"}, {"message": "You have exceeded a secondary rate limit."}), "in 77 s"),
            (Fault(418), "418"),
        ],
    )
    def test_github_check_exits_1_if_github_is_unreachable(self, fault: Fault, said: str, ops: Ops, code_host: GitHub):
        code_host.stand_in.faults.add("GET /app", fault)
        outcome = ops("github", "check")
        assert outcome.exit_code == 1
        assert said in outcome.error["message"]

    def test_github_check_exits_2_for_an_invalid_repository_name(self, ops: Ops):
        assert ops("github", "check", "shop").exit_code == 2


class TestConnect:
    def test_repository_connect_finds_the_installation_and_the_default_branch(
        self, ops: Ops, world: World, code_host: GitHub
    ):
        made = ops("repository", "connect", world.company().slug, DEMO).document
        assert made["installation"] == installation_id(DEMO_OWNER)
        assert made["url"] == f"{code_host.url}/{DEMO}"
        assert (made["defaultBranch"], made["visibility"]) == (DEMO_BRANCH, "private")
        assert (
            repositories.get_repository(RepositoryId.stored(made["repositoryId"])).installation_id
            == made["installation"]
        )

    def test_repository_connect_prefers_options_over_the_code_host(self, ops: Ops, world: World, code_host: GitHub):
        options = ("--default-branch", "trunk", "--visibility", "internal", "--url", "https://code.example/x")
        made = ops("repository", "connect", world.company().slug, DEMO, *options).document
        assert (made["defaultBranch"], made["visibility"]) == ("trunk", "internal")
        assert made["url"] == "https://code.example/x"

    def test_repository_connect_with_an_installation_asks_no_code_host(self, ops: Ops, world: World, code_host: GitHub):
        made = ops("repository", "connect", world.company().slug, "acme/shop", "--installation", "7").document
        assert (made["installation"], made["defaultBranch"], made["visibility"]) == (7, "main", "private")
        assert code_host.exchanges == []

    def test_repository_connect_exits_3_without_an_installation_and_writes_nothing(
        self, ops: Ops, world: World, code_host: GitHub
    ):
        slug = world.company().slug
        before = table_dump()
        assert ops("repository", "connect", slug, "demo-shop/unknown").exit_code == 3
        assert table_dump() == before

    def test_repository_connect_for_an_unknown_organization_asks_no_code_host(self, ops: Ops, code_host: GitHub):
        assert ops("repository", "connect", "nowhere", DEMO).exit_code == 3
        assert code_host.exchanges == []
