"""The whole way against the GitHub stand-in, over HTTP: endpoint, queue, worker, code host, and back."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controlplane import clock
from controlplane.github import client
from controlplane.queues import Queue
from controlplane.store import issue_attempts
from issue_creation.app import handler
from local.github.setup import DEMO_NAME, DEMO_OWNER, installation_id
from tests.support.api import Api
from tests.support.github import GitHub, github
from tests.support.mailbox import Mailbox, address
from tests.support.world import World

CREATE = "POST /repos/{owner}/{repo}/issues"


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHub]:
    with github(tmp_path) as served:
        served.configure(monkeypatch)
        yield served
    client._app.cache_clear()


def test_an_issue_is_opened_once_and_says_where(
    api: Api, world: World, now: Any, stand_in: GitHub, monkeypatch: pytest.MonkeyPatch
):
    mailbox = Mailbox()
    mailbox.install(monkeypatch)
    queue, dead_letters = address(Queue.ISSUE_CREATION), address(Queue.ISSUE_CREATION, "dead_letters")

    async def pause(seconds: float) -> None:
        now.advance(seconds)
        for letter in mailbox.due(queue):
            mailbox.deliver(letter, handler, dead_letters)

    monkeypatch.setattr(clock, "pause", pause)
    company = world.company()
    repository = world.connected_repository(
        company, owner=DEMO_OWNER, name=DEMO_NAME, installation_id=installation_id(DEMO_OWNER)
    )
    item = world.finding(company, repository)
    path = f"/v1/inbox/{item.item_id}/github-issue"

    first = api.post(path, company.owner.token)
    assert first.status == 201, first.text
    assert api.post(path, company.owner.token).data == first.data
    (sent,) = stand_in.sent(CREATE)
    assert sent.body["title"] == f"{item.title} in index.html"
    assert str(item.evidence[0].url) in sent.body["body"]
    (made,) = stand_in.stand_in.issues.list(DEMO_OWNER, DEMO_NAME)
    assert made.number == first.data["githubIssue"]["number"]
    assert issue_attempts.list_attempts().attempts == []
