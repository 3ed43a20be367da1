"""The worker of GitHub's events, with the stand-in that it asks, and a repository that is connected to it."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from controlplane.code_host import repositories
from controlplane.code_host.github import client
from controlplane.code_host.items import Link, RepositoryItem
from controlplane.platform.core import clock
from controlplane.platform.queues import messages
from controlplane.platform.queues.messages import HostEvent, HostEventName, Queue
from github_events.app import handler
from local.github.repositories import stable_id
from local.github.setup import DEMO_NAME, DEMO_OWNER, installation_id
from scan_execution.app import handler as execute
from scan_preparation.app import handler as prepare
from tests.functional.github.conftest import code_host, prepared
from tests.functional.projects.builders import make_project
from tests.support.github import POLICY, GitHub
from tests.support.lagging import settle
from tests.support.sqs import FakeSqs
from tests.support.world import Company, World, hosted_repository

__all__ = ["code_host", "prepared"]

INSTALLATION = installation_id(DEMO_OWNER)
DEMO = (DEMO_OWNER, DEMO_NAME)
HOSTED_ID = stable_id(f"{DEMO_OWNER}/{DEMO_NAME}")


@pytest.fixture
def company(world: World) -> Company:
    return world.company()


@pytest.fixture(autouse=True)
def _configured(code_host: GitHub, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    code_host.configure(monkeypatch)
    monkeypatch.setattr(client, "RetryPolicy", lambda: POLICY)
    yield
    client.get_transport.cache_clear()


HANDLERS = {
    Queue.GITHUB_EVENTS: handler,
    Queue.SCAN_PREPARATION: prepare,
    Queue.SCAN_EXECUTION: execute,
}


class Events:
    """Sends events to the worker, and delivers its messages."""

    def __init__(self, sqs: FakeSqs) -> None:
        self.sqs = sqs

    def send(self, event: HostEventName, subject: int | None = None, ref: str | None = None) -> None:
        message = HostEvent(
            event=event,
            installation_id=INSTALLATION,
            hosted_id=HOSTED_ID,
            subject=subject,
            ref=ref,
            until=int(clock.now()) + 86_400,
        )
        messages.send(Queue.GITHUB_EVENTS.value, message.model_dump(by_alias=True))

    def work(self, *queues: Queue) -> None:
        """Delivers what is due in these queues, and what follows from it, until nothing is. By default, in one."""
        while due := [(queue, it) for queue in queues or (Queue.GITHUB_EVENTS,) for it in self.sqs.due(queue.url)]:
            for queue, letter in due:
                self.sqs.deliver(letter, HANDLERS[queue], queue.dead_letters_url)

    def scan(self) -> None:
        """Delivers what is due in all queues, until nothing is."""
        self.work(*HANDLERS)

    def take(self, event: HostEventName, subject: int | None = None, ref: str | None = None) -> None:
        self.send(event, subject, ref)
        self.work()


@pytest.fixture
def events(sqs: FakeSqs) -> Events:
    return Events(sqs)


def connect(company: Company, **changes: object) -> RepositoryItem:
    """Connects the stand-in's demo repository and links a project, as `Link` with these changes."""
    hosted = hosted_repository(DEMO_NAME, DEMO_OWNER, hosted_id=HOSTED_ID, installation_id=INSTALLATION)
    repository = repositories.connect_repository(company.organization_id, hosted)
    link = Link(make_project(company).project_id, None, None, False)._replace(**changes)
    linked = repositories.link_project(repository.repository_id, link)
    settle()  # the index by installation may miss a repository of the last second
    return linked


@pytest.fixture
def repository(company: Company) -> RepositoryItem:
    return connect(company)


@pytest.fixture
def reviewed(company: Company) -> RepositoryItem:
    """Returns a repository whose pull requests are scanned."""
    return connect(company, pull_request_scans_enabled=True)


def read(repository: RepositoryItem) -> RepositoryItem:
    return repositories.get_repository(repository.repository_id)


def by_name(repository: RepositoryItem) -> RepositoryItem:
    """Returns the repository as the operator connects it."""
    return replace(repository, hosted_id=None)
