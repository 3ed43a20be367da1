"""A repository that tests scan repeatedly."""

from typing import Any

import pytest

from controlplane.code_host.items import RepositoryItem
from controlplane.findings.items import InboxItem, Status
from tests.functional.scan_execution.repeated_scans import Audit, Files
from tests.support.sqs import FakeSqs
from tests.support.world import Company, World

# The files of a full scan, or with the access of another one; or the decision of a person.
type Step = Files | tuple[Files, Any] | Status


class Story:
    """Follows one finding through scans and decisions."""

    def __init__(self, audit: Audit) -> None:
        self._audit = audit
        self.statuses: list[Status] = []
        self.items: list[InboxItem] = []

    def __call__(self, *steps: Step, title: str = "Google Analytics") -> InboxItem:
        """Takes the steps. Keeps the finding's item after each, and returns the last one."""
        for step in steps:
            if isinstance(step, str):
                self._audit.decide(step, title)
            else:
                self.scan = self._audit.scan(*(step if isinstance(step, tuple) else (step,)))
            self.items.append(self._audit.item(title))
            self.statuses.append(self.items[-1].status)
        return self.items[-1]


@pytest.fixture
def company(world: World) -> Company:
    return world.company()


@pytest.fixture
def repository(company: Company, world: World) -> RepositoryItem:
    return world.connected_repository(company)


@pytest.fixture
def audit(repository: RepositoryItem, sqs: FakeSqs, now: Any) -> Audit:
    return Audit(repository, sqs, now.advance)


@pytest.fixture
def story(audit: Audit) -> Story:
    return Story(audit)
