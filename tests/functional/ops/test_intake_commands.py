"""`assent-ops intake`."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.functional.finding_intake.conftest import advisory, detection
from tests.functional.ops.conftest import Ops, Queue
from tests.functional.projects.builders import make_project
from tests.support.each import each
from tests.support.world import World


@pytest.fixture
def queue(make_queue: Callable[[str], Queue]) -> Queue:
    return make_queue("FINDING_INTAKE_QUEUE_URL")


def test_sends_one_message_or_a_list_from_a_file_or_stdin(ops: Ops, queue: Queue, world: World, tmp_path: Path):
    company = world.company()
    messages = [advisory(company), detection(make_project(company))]
    file = tmp_path / "messages.json"
    file.write_text(json.dumps(messages))
    sent = ops("intake", "send", str(file)).document
    assert [{**message, **it} for message, it in zip(messages, sent, strict=True)] == sent
    assert sorted(queue.bodies()) == sorted(map(json.dumps, sent))
    assert ops("intake", "send", "-", text=json.dumps(messages[0])).document == sent[:1]
    assert len(queue.bodies()) == 3


@each(
    ("text", "said"),
    [
        ("", "isn't valid JSON"),
        ("{", "isn't valid JSON"),
        ("[1]", "Message 1"),
        ("{}", "kind"),
        ('{"kind":"x"}', "kind"),
        ('[{"kind":"advisory","version":1}]', "organizationId: Field required"),
    ],
)
def test_refuses_malformed_messages(ops: Ops, queue: Queue, text: str, said: str):
    outcome = ops("intake", "send", "-", text=text)
    assert outcome.exit_code == 1
    assert said in outcome.error["message"]
    assert queue.bodies() == []


def test_sends_nothing_if_one_message_is_malformed_or_no_text(ops: Ops, queue: Queue, world: World, tmp_path: Path):
    good = advisory(world.company())
    outcome = ops("intake", "send", "-", text=json.dumps([good, {**good, "title": ""}]))
    assert outcome.exit_code == 1
    assert "Message 2 is malformed. title: " in outcome.error["message"]
    (tmp_path / "binary").write_bytes(b"\xff")
    assert "UTF-8" in ops("intake", "send", str(tmp_path / "binary")).error["message"]
    assert queue.bodies() == []


def test_exits_2_without_a_queue(ops: Ops, world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("FINDING_INTAKE_QUEUE_URL", raising=False)
    outcome = ops("intake", "send", "-", text=json.dumps(advisory(world.company())))
    assert outcome.exit_code == 2
    assert "FINDING_INTAKE_QUEUE_URL" in outcome.error["message"]
