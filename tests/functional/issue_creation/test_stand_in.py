"""The whole path against the GitHub stand-in over HTTP: endpoint, queue, worker, code host, and back."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controlplane.core import clock
from controlplane.github import client
from controlplane.queues.messages import Queue
from controlplane.store import issue_attempts
from issue_creation.app import handler
from local.github.faults import Fault
from local.github.setup import DEMO_NAME, DEMO_OWNER, installation_id
from tests.support.api import Api, Reply
from tests.support.github import GitHub, github
from tests.support.sqs import FakeSqs
from tests.support.world import World

CREATE = "POST /repos/{owner}/{repo}/issues"


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHub]:
    with github(tmp_path) as served:
        served.configure(monkeypatch)
        yield served
    client._app.cache_clear()


class IssueRequest:
    """A code finding of the demo repository. `post` requests its issue, and the worker runs while that waits."""

    def __init__(self, api: Api, world: World, now: Any, sqs: FakeSqs, monkeypatch: pytest.MonkeyPatch) -> None:
        self._api, self._now, self._sqs = api, now, sqs
        monkeypatch.setattr(clock, "pause", self._pause)
        self._company = world.company()
        repository = world.connected_repository(
            self._company, owner=DEMO_OWNER, name=DEMO_NAME, installation_id=installation_id(DEMO_OWNER)
        )
        self.item = world.finding(self._company, repository)

    def post(self) -> Reply:
        return self._api.post(f"/v1/inbox/{self.item.item_id}/github-issue", self._company.owner.token)

    def pass_time(self, seconds: float) -> None:
        """Advances the clock and delivers what is due."""
        self._now.advance(seconds)
        for letter in self._sqs.due(Queue.ISSUE_CREATION.url):
            self._sqs.deliver(letter, handler, Queue.ISSUE_CREATION.dead_letters_url)

    async def _pause(self, seconds: float) -> None:
        self.pass_time(seconds)


@pytest.fixture
def issue_request(  # noqa: PLR0917 (pytest hands them over by name)
    api: Api, world: World, now: Any, stand_in: GitHub, sqs: FakeSqs, monkeypatch: pytest.MonkeyPatch
) -> IssueRequest:
    return IssueRequest(api, world, now, sqs, monkeypatch)


def test_an_issue_is_opened_once_and_its_url_returned(issue_request: IssueRequest, stand_in: GitHub):
    first = issue_request.post()
    assert first.status == 201, first.text
    assert issue_request.post().data == first.data
    (sent,) = stand_in.sent(CREATE)
    assert sent.body["title"] == f"{issue_request.item.title} in index.html"
    assert str(issue_request.item.evidence[0].url) in sent.body["body"]
    (made,) = stand_in.stand_in.issues.list(DEMO_OWNER, DEMO_NAME)
    assert made.number == first.data["githubIssue"]["number"]
    assert issue_attempts.list_attempts().attempts == []


def test_an_issue_whose_response_was_lost_is_found_once_listed(issue_request: IssueRequest, stand_in: GitHub):
    stand_in.stand_in.faults.add(CREATE, Fault(takes_effect=True))
    stand_in.stand_in.faults.list_lag_seconds = 60
    assert issue_request.post().error["details"] == {"status": "creation_pending"}
    for _ in range(5):
        issue_request.pass_time(30)
    assert issue_request.post().status == 201
    assert len(stand_in.stand_in.issues.list(DEMO_OWNER, DEMO_NAME)) == len(stand_in.sent(CREATE)) == 1


def test_a_repository_with_issues_disabled_says_so(issue_request: IssueRequest, stand_in: GitHub):
    stand_in.stand_in.faults.without_issues.add(f"{DEMO_OWNER}/{DEMO_NAME}")
    assert issue_request.post().error["details"] == {"status": "creation_refused", "reason": "issues_disabled"}


def test_a_suspended_installation_must_be_connected_again(issue_request: IssueRequest, stand_in: GitHub):
    stand_in.stand_in.faults.suspended.add(installation_id(DEMO_OWNER))
    assert issue_request.post().code == "REPOSITORY_NOT_LINKED"
