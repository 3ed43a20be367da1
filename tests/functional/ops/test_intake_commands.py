"""`assent-ops intake`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.session import Session

from tests.functional.finding_intake.conftest import advisory, detection
from tests.functional.ops.conftest import Ops
from tests.functional.projects.builders import make_project
from tests.support.each import each
from tests.support.world import World


class Queue:
    """A separate queue for each test."""

    def __init__(self, client: Any, url: str) -> None:
        self._client = client
        self._url = url

    @property
    def messages(self) -> list[dict[str, Any]]:
        answer = self._client.receive_message(QueueUrl=self._url, MaxNumberOfMessages=10, VisibilityTimeout=0)
        return [json.loads(message["Body"]) for message in answer.get("Messages", [])]


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Iterator[Queue]:
    client = Session().create_client("sqs", region_name="eu-central-1")
    url = client.create_queue(QueueName="intake")["QueueUrl"]
    monkeypatch.setenv("FINDING_INTAKE_QUEUE_URL", url)
    yield Queue(client, url)
    client.delete_queue(QueueUrl=url)


class TestDetection:
    def test_a_detection_is_sent_in_the_intakes_format(self, ops: Ops, queue: Queue, world: World):
        project = make_project(world.company())
        words = ("--name", "Segment", "--domain", "cdn.segment.com", "--category", "analytics", "--before-consent")
        pages = ("--seen-on", "https://shop.example.com/a?b=c", "--seen-on", "https://shop.example.com/d")
        sent = ops("intake", "detection", project.project_id, "segment", *words, *pages).document
        assert sent == {
            "version": 1,
            "kind": "runtime-vendor-detection",
            "projectId": project.project_id,
            "vendorId": "segment",
            "name": "Segment",
            "domain": "cdn.segment.com",
            "category": "analytics",
            "beforeConsent": True,
            "seenOn": ["https://shop.example.com/a", "https://shop.example.com/d"],
            "observedAt": "2026-03-04T05:06:07Z",
        }
        assert queue.messages == [sent]

    @each(
        ("vendor", "words", "named"),
        [
            ("Seg ment", ("--domain", "a.com"), "vendorId"),
            ("segment", ("--domain", "https://a.com"), "domain"),
            ("segment", ("--domain", "a.com", "--at", "yesterday"), "observedAt"),
            ("segment", ("--domain", "a.com", "--seen-on", "ftp://a.com"), "seenOn"),
        ],
    )
    def test_a_malformed_detection_is_refused_with_its_path_and_not_sent(
        self, vendor: str, words: tuple[str, ...], named: str, ops: Ops, queue: Queue
    ):
        project_id = f"prj_{'0' * 34}"
        outcome = ops("intake", "detection", project_id, vendor, "--name", "N", *words)
        assert outcome.exit_code == 1
        assert named in outcome.error["message"]
        assert queue.messages == []


class TestAdvisory:
    def test_an_advisory_is_sent_to_an_organization_by_slug(self, ops: Ops, queue: Queue, world: World):
        company = world.company()
        words = ("--title", "T", "--priority", "P1", "--reference", "https://a.example/?q=1")
        sent = ops("intake", "advisory", company.slug, "ADV-1", *words, "--at", "2026-03-04T06:00:00+01:00").document
        assert sent == {
            "version": 1,
            "kind": "advisory",
            "organizationId": company.organization_id,
            "advisoryId": "ADV-1",
            "title": "T",
            "priority": "P1",
            "references": ["https://a.example/?q=1"],
            "publishedAt": "2026-03-04T06:00:00+01:00",
        }
        assert queue.messages == [sent]

    def test_an_advisory_exits_3_for_an_unknown_organization(self, ops: Ops, queue: Queue):
        assert ops("intake", "advisory", "unknown", "ADV-1", "--title", "T").exit_code == 3

    def test_an_advisory_exits_1_for_another_organizations_project(self, ops: Ops, queue: Queue, world: World):
        foreign = make_project(world.company())
        words = ("--title", "T", "--project", foreign.project_id)
        assert ops("intake", "advisory", world.company().slug, "ADV-1", *words).exit_code == 1
        assert queue.messages == []


class TestSend:
    def test_intake_send_reads_one_message_or_a_list_from_a_file_or_stdin(
        self, ops: Ops, queue: Queue, world: World, tmp_path: Path
    ):
        company = world.company()
        messages = [advisory(company), detection(make_project(company))]
        file = tmp_path / "messages.json"
        file.write_text(json.dumps(messages))
        assert len(ops("intake", "send", str(file)).document) == 2
        assert len(ops("intake", "send", "-", input=json.dumps(messages[0])).document) == 1
        assert sorted(message["kind"] for message in queue.messages) == [
            "advisory",
            "advisory",
            "runtime-vendor-detection",
        ]

    @each("text", ["", "{", "[1]", "{}", '{"kind":"x"}', '[{"kind":"advisory","version":1}]'])
    def test_intake_send_refuses_malformed_messages(self, ops: Ops, queue: Queue, text: str):
        outcome = ops("intake", "send", "-", input=text)
        assert outcome.exit_code == 1
        assert outcome.error["message"]
        assert queue.messages == []

    def test_intake_send_sends_nothing_if_one_message_is_malformed(self, ops: Ops, queue: Queue, world: World):
        good = advisory(world.company())
        outcome = ops("intake", "send", "-", input=json.dumps([good, {**good, "title": ""}]))
        assert outcome.exit_code == 1
        assert "Message 2" in outcome.error["message"]
        assert queue.messages == []

    def test_intake_send_exits_2_without_a_queue(self, ops: Ops, world: World, monkeypatch):
        monkeypatch.delenv("FINDING_INTAKE_QUEUE_URL", raising=False)
        outcome = ops("intake", "send", "-", input=json.dumps(advisory(world.company())))
        assert outcome.exit_code == 2
        assert "FINDING_INTAKE_QUEUE_URL" in outcome.error["message"]
