"""The whole path against the GitHub stand-in over HTTP: endpoint, queue, worker, code host, and back."""

from unittest import mock

import pytest

from controlplane.code_host.github import client
from controlplane.platform.core import clock
from local.github.setup import DEMO_NAME, DEMO_OWNER, installation_id
from tests.functional.issue_creation.conftest import PENDING, Opening
from tests.support.github import github
from tests.support.github_faults import Fault
from tests.support.issue_host import IssueHost

CREATE = "POST /repos/{owner}/{repo}/issues"


@pytest.fixture
def served(tmp_path, monkeypatch):
    with github(tmp_path) as stand_in:
        stand_in.configure(monkeypatch)
        yield stand_in
    client.get_transport.cache_clear()


@pytest.fixture
def opening(served, api, world, now, sqs):
    company, installation = world.company(), installation_id(DEMO_OWNER)
    repository = world.connected_repository(company, owner=DEMO_OWNER, name=DEMO_NAME, installation_id=installation)
    item = world.finding(company, repository)
    made = Opening(api, company, repository, item, IssueHost(), sqs, now.advance, world)
    with mock.patch.object(clock, "pause", made.pause):
        yield made


def test_an_issue_is_opened_once_and_its_url_returned(opening, served):
    first = opening.post()
    assert first.status == 201, first.text
    assert opening.post().data == first.data
    (sent,) = served.sent(CREATE)
    assert sent.body["title"] == f"{opening.item.title} in index.html"
    assert str(opening.item.evidence[0].url) in sent.body["body"]
    (made,) = served.stand_in.issues.list(DEMO_OWNER, DEMO_NAME)
    assert made.number == first.data["githubIssue"]["number"]


def test_an_issue_whose_response_was_lost_is_found_once_listed(opening, served):
    served.stand_in.faults.add(CREATE, Fault(takes_effect=True))
    served.stand_in.faults.list_lag_seconds = 60
    assert opening.post().error["details"] == PENDING
    opening.work_until_quiet()
    assert opening.post().status == 201
    assert len(served.stand_in.issues.list(DEMO_OWNER, DEMO_NAME)) == len(served.sent(CREATE)) == 1
