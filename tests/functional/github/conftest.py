"""The stand-in behind a socket. Every request and response of the tests is checked against GitHub's description."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.github import setup
from local.github.setup import DEMO_NAME, DEMO_OWNER
from tests.support.github import GitHub, github, request_violations, response_violations

DEMO = (DEMO_OWNER, DEMO_NAME)
REPOSITORY = "GET /repos/{owner}/{repo}"
BRANCH = "GET /repos/{owner}/{repo}/branches/{branch}"
TARBALL = "GET /repos/{owner}/{repo}/tarball/{ref}"
CODELOAD = "GET /_codeload/{owner}/{repo}/legacy.tar.gz/{ref}"
LIST = "GET /repos/{owner}/{repo}/issues"
CREATE = "POST /repos/{owner}/{repo}/issues"
INSTALLATION = "GET /repos/{owner}/{repo}/installation"
TOKENS = "POST /app/installations/{installation_id}/access_tokens"


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with the App's key and the demo repository."""
    root = tmp_path_factory.mktemp("github")
    setup.prepare(root)
    return root


@pytest.fixture
def code_host(prepared: Path, tmp_path: Path) -> Iterator[GitHub]:
    root = tmp_path / "github"
    shutil.copytree(prepared, root)
    with github(root) as served:
        yield served
    for exchange in served.exchanges:
        assert request_violations(exchange) == []
        assert response_violations(exchange) == []


@pytest.fixture
def configured(code_host: GitHub, monkeypatch: pytest.MonkeyPatch) -> GitHub:
    """Returns the host that the settings name."""
    code_host.configure(monkeypatch)
    return code_host


def add_repository(code_host: GitHub, owner: str, name: str) -> None:
    code_host.stand_in.repositories.create(owner, name, setup.DEMO_FILES)


def rename(code_host: GitHub) -> None:
    """Gives the demo repository another name than `old-name`, which keeps leading to it."""
    code_host.stand_in.faults.renamed["demo-shop/old-name"] = "demo-shop/storefront"
