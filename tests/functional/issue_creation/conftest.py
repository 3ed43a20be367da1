"""The endpoint, the queue, the worker, and the code host, connected as deployed. Only the clock is fake."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import pytest

from controlplane.code_host.items import RepositoryItem
from controlplane.findings import inbox, issue_attempts
from controlplane.findings.items import GithubIssue, InboxItem
from controlplane.platform.core import clock
from controlplane.platform.queues.messages import Queue
from issue_creation.app import handler
from tests.support.api import Api, Reply
from tests.support.issue_host import HostedIssue, IssueHost
from tests.support.sqs import FakeSqs
from tests.support.world import Company, World, table_dump

QUEUE, DEAD_LETTERS = Queue.ISSUE_CREATION.url, Queue.ISSUE_CREATION.dead_letters_url
PENDING = {"status": "creation_pending"}


@dataclass
class Opening:
    """A code finding whose issue is requested. While the endpoint waits, its worker runs, unless `idle` is set."""

    api: Api
    company: Company
    repository: RepositoryItem
    item: InboxItem
    host: IssueHost
    sqs: FakeSqs
    advance: Callable[[float], None]
    world: World
    idle: bool = False
    pauses: list[float] = field(default_factory=list)

    @property
    def path(self) -> str:
        return f"/v1/inbox/{self.item.item_id}/github-issue"

    def post(self, token: str | None = None) -> Reply:
        return self.api.post(self.path, token or self.company.owner.token)

    def link(self, existing: int | str) -> Reply:
        return self.api.post(self.path, self.company.owner.token, json_body={"existingIssue": existing})

    def finding(self) -> InboxItem:
        """Returns another finding in the repository, which is the one that is asked about from now on."""
        identity = (f"{len(table_dump())}",)
        self.item = self.world.finding(self.company, self.repository, identity=identity)
        return self.item

    def exists(self, number: int, kind: type[HostedIssue] = HostedIssue, *, is_pull_request: bool = False) -> str:
        """Adds an issue that a maintainer opened to the repository, and returns its URL."""
        name = f"{self.repository.owner}/{self.repository.name}"
        issue = kind(number, "An issue", "", clock.now(), clock.now(), is_pull_request)
        self.host.issues.setdefault(name, []).append(issue)
        return f"https://github.com/{name}/issues/{number}"

    @property
    def created(self) -> tuple[int, int]:
        """Returns how many issues there are, and how many requests to create one were sent."""
        return len(self.issues), self.host.count("create")

    @property
    def attempt(self) -> issue_attempts.AttemptItem | None:
        found = issue_attempts.find_progress(self.item.item_id)
        return found and found.attempt

    @property
    def recorded(self) -> GithubIssue | None:
        """Returns the issue that the item has."""
        return inbox.get_item(self.item.item_id).github_issue

    @property
    def issues(self) -> list[HostedIssue]:
        return self.host.of(self.repository.owner, self.repository.name)

    def work(self) -> None:
        """Makes the worker process every message that is due."""
        for letter in self.sqs.due(QUEUE):
            self.sqs.deliver(letter, handler, DEAD_LETTERS)

    def work_until_quiet(self) -> None:
        """Advances the clock and processes messages until no retries are left."""
        while (moment := self.sqs.next_at(QUEUE)) is not None:
            self.advance(max(0.0, moment - clock.now()))
            self.work()

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.advance(seconds)
        if not self.idle:
            self.work()


@pytest.fixture
def opening(api: Api, world: World, now: Any, sqs: FakeSqs, host: IssueHost) -> Iterator[Opening]:
    company = world.company()
    repository = world.connected_repository(company)
    item = world.finding(company, repository)
    made = Opening(api, company, repository, item, host, sqs, now.advance, world)
    with mock.patch.object(clock, "pause", made.pause):
        yield made
