from typing import Any

import pytest

from tests.support.engines import Engine, engine, engine_table

__all__ = ["engine", "engine_table"]


@pytest.fixture
def client(engine: Engine) -> Any:
    return engine.client
