"""The stand-in's pages for pull requests, which send webhooks that our endpoint accepts."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
import urllib3

from controlplane.code_host import signed_requests as received
from controlplane.platform.core.settings import settings
from controlplane.platform.queues.messages import Queue
from local.github import setup
from local.github.webhooks import Webhooks
from tests.support.api import Api
from tests.support.github import GitHub, github, webhook_violations
from tests.support.page import Page
from tests.support.sqs import FakeSqs

PAGE = "/demo-shop/storefront"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class Person:
    """A person at the pages. `deliver` passes the webhooks that were sent to our endpoint."""

    def __init__(self, served: GitHub, api: Api, sqs: FakeSqs, sent: list[tuple[bytes, dict[str, str]]]) -> None:
        self.stand_in, self._url, self._api, self._sqs, self._sent = served.stand_in, served.url, api, sqs, sent

    def read(self, path: str) -> tuple[int, str]:
        reply = urllib3.request("GET", self._url + path)
        return reply.status, reply.data.decode()

    def press(self, path: str, label: str, /, **entered: str) -> str:
        """Presses the page's button with this label, and returns the page that follows."""
        page = Page(self.read(path)[1])
        _, action, fields = page.send(page.control(label), entered)
        reply = urllib3.request("POST", action, body=urlencode(fields), headers=FORM)
        assert reply.status == 200
        return reply.data.decode()

    def forge(self, path: str, /, **fields: str) -> int:
        """Returns the status of a request that no page sends."""
        return urllib3.request("POST", self._url + path, body=urlencode(fields), headers=FORM).status

    def deliver(self) -> list[tuple[str, int | None]]:
        """Returns the events that reached the worker, with what they are about. Each is delivered twice."""
        for body, headers in self._sent:
            accepted = [self._api.post("/v1/github/webhooks", raw_body=body, headers=headers).data for _ in range(2)]
            assert accepted == [{"accepted": True}, {"accepted": False}]
        sent = [json.loads(letter.body) for letter in self._sqs.at(Queue.GITHUB_EVENTS.url)]
        return [(it["event"], it["subject"]) for it in sent]


@pytest.fixture
def person(prepared: Path, tmp_path: Path, api: Api, sqs: FakeSqs, monkeypatch: pytest.MonkeyPatch) -> Iterator[Person]:
    root = tmp_path / "github"
    shutil.copytree(prepared, root)
    configured = type(settings)(table_name="any", github_webhook_secret=setup.webhook_secret(root))
    monkeypatch.setattr(received, "settings", configured)
    sent: list[tuple[bytes, dict[str, str]]] = []
    monkeypatch.setattr(Webhooks, "_post", lambda _, body, headers: sent.append((body, headers)))
    with github(root, webhooks_url="http://127.0.0.1:9") as served:
        yield Person(served, api, sqs, sent)
    for body, headers in sent:
        assert webhook_violations(headers["X-GitHub-Event"], body) == []


def head_of(person: Person, number: int = 1) -> str:
    found = person.stand_in.repositories.find("demo-shop", "storefront")
    commit = found.find_commit(f"refs/pull/{number}/head") if found else None
    assert commit is not None
    return commit.sha


def test_a_pull_request_is_opened_pushed_to_closed_and_reopened(person):
    page = person.press(f"{PAGE}/pulls", "Open", Title="A <b>change</b>")
    assert "#1 A &lt;b&gt;change&lt;/b&gt;" in page
    assert "None yet" in page
    head = head_of(person)
    person.press(f"{PAGE}/pull/1", "Push", Content="<i>")
    assert head_of(person) != head
    assert "Reopen" in person.press(f"{PAGE}/pull/1", "Close")
    assert "Close" in person.press(f"{PAGE}/pull/1", "Reopen")
    assert person.deliver() == [("pull_request", 1)] * 4
    assert "#1 A &lt;b&gt;change&lt;/b&gt;" in person.read(f"{PAGE}/pulls")[1]


def test_a_push_an_issue_and_a_check_run_are_sent_too(person):
    person.press(f"{PAGE}/pulls", "Push", File="new.html")
    person.stand_in.create_issue("demo-shop", "storefront", "A finding", "Text", [])
    assert "Reopen" in person.press(f"{PAGE}/issues/1", "Close")
    person.press(f"{PAGE}/pulls", "Open", Title="A change")
    with person.stand_in.reviews.change("demo-shop", "storefront") as reviews:
        reviews.put_check_run(None, {"name": "assent", "head_sha": head_of(person, 2)})
        reviews.add_comment(2, "Seen <!-- marker --> text")
    person.press(f"{PAGE}/pull/2", "Run again")
    assert person.deliver() == [("push", None), ("issues", 1), ("pull_request", 2), ("check_run", 1)]
    assert "marker" not in person.read(f"{PAGE}/pull/2")[1]
