from typing import Any
from uuid import uuid4

import pytest

from tests.support.moto import MotoClient
from tests.support.table import create_table


@pytest.fixture(scope="session")
def client() -> Any:
    return MotoClient()


@pytest.fixture
def engine_table(client: Any) -> str:
    """Creates an empty table and returns its name."""
    name = f"races-{uuid4().hex}"
    create_table(client, name)
    return name
