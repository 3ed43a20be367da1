"""`assent-ops github`, and the code host checks of `repository connect`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.core.ids import RepositoryId
from controlplane.github import app_auth, client
from controlplane.store import repositories
from local.github.faults import Fault
from local.github.setup import DEMO_BRANCH, DEMO_NAME, DEMO_OWNER, installation_id
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
    def test_says_whom_we_sign_as_and_what_the_app_asks_for(self, ops: Ops, code_host: GitHub):
        assert ops("github", "check").document == {
            "appId": 1,
            "name": "assent-local",
            "url": f"{code_host.url}/apps/assent-local",
            "permissions": ["contents read", "issues write", "metadata read"],
        }

    def test_of_a_repository_says_through_which_installation_it_is_seen(self, ops: Ops, code_host: GitHub):
        found = ops("github", "check", DEMO).document
        assert found["installation"] == installation_id(DEMO_OWNER)
        assert (found["repository"], found["defaultBranch"]) == (DEMO, DEMO_BRANCH)
        assert (found["archived"], found["issues"]) == (False, True)

    def test_writes_nothing_anywhere(self, ops: Ops, code_host: GitHub):
        ops("github", "check", DEMO)
        assert table_dump() == []
        assert {exchange.path for exchange in code_host.exchanges if exchange.method == "POST"} == {
            f"/app/installations/{installation_id(DEMO_OWNER)}/access_tokens"
        }

    def test_exit_code_3_where_the_app_is_not_installed(self, ops: Ops, code_host: GitHub):
        outcome = ops("github", "check", "demo-shop/unknown")
        assert outcome.exit_code == 3
        assert "isn't installed" in outcome.error["message"]

    @pytest.mark.parametrize("permission", ["contents", "issues"])
    def test_exit_code_1_where_the_installation_withholds_a_permission(
        self, permission: str, ops: Ops, code_host: GitHub
    ):
        code_host.stand_in.faults.withheld[installation_id(DEMO_OWNER)] = {permission}
        outcome = ops("github", "check", DEMO)
        assert outcome.exit_code == 1
        assert "contents read, metadata read, issues write" in outcome.error["message"]

    def test_exit_code_1_where_the_app_does_not_ask_for_one(self, ops: Ops, code_host: GitHub):
        content = {"id": 1, "name": "Reader", "html_url": "https://x.example", "permissions": {"issues": "read"}}
        code_host.stand_in.faults.add("GET /app", Fault(200, content=content))
        outcome = ops("github", "check")
        assert outcome.exit_code == 1
        assert "contents read, metadata read, issues write" in outcome.error["message"]

    @pytest.mark.parametrize(
        ("settings", "said"),
        [
            ({"github_app_id": None}, "GithubAppId"),
            ({"github_app_private_key_file": None}, "GITHUB_APP_SECRET_ARN"),
            ({"github_app_private_key_file": "/nowhere/key.pem"}, "cannot be read"),
            ({"github_app_private_key_file": "/dev/null"}, "PEM"),
            ({"github_app_id": "2"}, "are of two"),
        ],
    )
    def test_exit_code_1_says_what_is_wrong_with_id_or_key(
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
    def test_exit_code_1_where_github_does_not_answer(self, fault: Fault, said: str, ops: Ops, code_host: GitHub):
        code_host.stand_in.faults.add("GET /app", fault)
        outcome = ops("github", "check")
        assert outcome.exit_code == 1
        assert said in outcome.error["message"]

    def test_exit_code_2_for_no_name_of_a_repository(self, ops: Ops):
        assert ops("github", "check", "shop").exit_code == 2


class TestConnect:
    def test_finds_the_installation_and_takes_the_rest_from_the_code_host(
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

    def test_what_is_said_goes_before_what_the_code_host_says(self, ops: Ops, world: World, code_host: GitHub):
        options = ("--default-branch", "trunk", "--visibility", "internal", "--url", "https://code.example/x")
        made = ops("repository", "connect", world.company().slug, DEMO, *options).document
        assert (made["defaultBranch"], made["visibility"]) == ("trunk", "internal")
        assert made["url"] == "https://code.example/x"

    def test_with_an_installation_nobody_is_asked(self, ops: Ops, world: World, code_host: GitHub):
        made = ops("repository", "connect", world.company().slug, "acme/shop", "--installation", "7").document
        assert (made["installation"], made["defaultBranch"], made["visibility"]) == (7, "main", "private")
        assert code_host.exchanges == []

    def test_exit_code_3_where_no_installation_sees_it_and_nothing_is_written(
        self, ops: Ops, world: World, code_host: GitHub
    ):
        slug = world.company().slug
        before = table_dump()
        assert ops("repository", "connect", slug, "demo-shop/unknown").exit_code == 3
        assert table_dump() == before

    def test_exit_code_3_for_no_organization_asks_nobody(self, ops: Ops, code_host: GitHub):
        assert ops("repository", "connect", "nowhere", DEMO).exit_code == 3
        assert code_host.exchanges == []
