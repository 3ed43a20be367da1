"""The stand-in behind a socket. Every request and response of the tests is checked against GitHub's description."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.github import setup
from tests.support.github import GitHub, github, request_violations, response_violations


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
