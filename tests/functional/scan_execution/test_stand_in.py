"""The whole path against the GitHub stand-in over HTTP: endpoint, queues, both workers, and the inventory of a scan."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.code_host.github import client
from controlplane.platform.queues.messages import Queue
from local.github.setup import DEMO_NAME, DEMO_OWNER, installation_id
from scan_execution.app import handler as execute
from scan_preparation.app import handler as prepare
from tests.support.api import Api
from tests.support.github import GitHub, github
from tests.support.sqs import FakeSqs
from tests.support.world import World


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHub]:
    with github(tmp_path) as served:
        served.configure(monkeypatch)
        yield served
    client.get_transport.cache_clear()


def test_a_client_that_polls_sees_the_inventory_of_the_demo_repository(
    stand_in: GitHub, api: Api, world: World, sqs: FakeSqs
):
    company = world.company()
    repository = world.connected_repository(
        company, owner=DEMO_OWNER, name=DEMO_NAME, installation_id=installation_id(DEMO_OWNER)
    )
    token = company.owner.token
    started = api.post("/v1/code-audit/scans", token, json_body={"repositoryId": repository.repository_id}).data
    (letter,) = sqs.at(Queue.SCAN_PREPARATION.url)
    sqs.deliver(letter, prepare, Queue.SCAN_PREPARATION.dead_letters_url)
    request = f"/v1/code-audit/scan-requests/{started['preparationId']}?repositoryId={repository.repository_id}"
    path = f"/v1/code-audit/scans/{api.get(request, token).data['scan']['id']}"
    queued = api.get(path, token).data
    assert (queued["status"], queued["progress"]["completedStages"], queued["inventory"]) == ("queued", 0, None)
    (letter,) = sqs.at(Queue.SCAN_EXECUTION.url)
    sqs.deliver(letter, execute, Queue.SCAN_EXECUTION.dead_letters_url)
    scan = api.get(path, token).data
    assert (scan["status"], scan["access"], scan["progress"]["completedStages"]) == ("completed", "free-preview", 4)
    inventory = scan["inventory"]
    assert inventory["files"] == scan["coverage"]["files"]
    assert [it["name"] for it in inventory["languages"]] == ["JavaScript", "HTML"]
    assert {it["id"]: it["version"] for it in inventory["frameworks"]} == {
        "express": "^4.18.2", "react": "^18.2.0", "vite": "^5.0.0",
    }  # fmt: skip
    assert [it["id"] for it in inventory["packageManagers"]] == ["npm"]
    assert [(it["id"], it["packages"][0]["version"], it["loadingFiles"]) for it in inventory["vendors"]] == [
        ("vanilla-cookieconsent", "^2.7.2", None), ("mixpanel", "^2.47.0", None),
    ]  # fmt: skip
