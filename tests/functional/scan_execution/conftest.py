"""A repository that tests scan repeatedly."""

from typing import Any

import pytest

from controlplane.code_host.items import RepositoryItem
from tests.support.repeated_scans import Audit
from tests.support.sqs import FakeSqs
from tests.support.world import Company, World


@pytest.fixture
def company(world: World) -> Company:
    return world.company()


@pytest.fixture
def repository(company: Company, world: World) -> RepositoryItem:
    return world.connected_repository(company)


@pytest.fixture
def audit(repository: RepositoryItem, sqs: FakeSqs, now: Any) -> Audit:
    return Audit(repository, sqs, now.advance)
