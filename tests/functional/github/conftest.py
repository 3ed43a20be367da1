"""The stand-in behind a socket. Whatever it is asked and answers in any test here is held against GitHub's description."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.github import GitHub, github


@pytest.fixture
def code_host(tmp_path: Path) -> Iterator[GitHub]:
    with github(tmp_path) as served:
        yield served
