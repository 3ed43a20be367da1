"""A message of an organization that holds its share of a queue's workers goes back to the queue, whatever its kind."""

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from controlplane.platform.core.settings import settings
from controlplane.platform.queues import messages, shares
from controlplane.platform.queues.messages import Queue
from controlplane.platform.table import keys
from controlplane.platform.table.table import Put, table
from local.template import load_template
from tests.support.each import each
from tests.support.sqs import SqsMessage
from tests.support.table import PREPARED
from tests.support.template import resources

EVENTS = Path(__file__).parents[2] / "events"
# Those two don't hold shares: SQS alone shares them out, and the worker of audits has no table.
UNSHARED = {Queue.FINDING_INTAKE, Queue.AUDIT_REPORTS, Queue.WEBSITE_AUDITS}
SHARED = {queue.value.replace("-", "_"): queue for queue in Queue if queue not in UNSHARED}
# They are about an email or a person.
OF_NO_ORGANIZATION = {"emails_mail_report", "emails_send_leak_notice"}
MESSAGES = {
    path.stem: queue
    for folder, queue in SHARED.items()
    for path in EVENTS.glob(f"{folder}_*.json")
    if path.stem not in OF_NO_ORGANIZATION
}


@pytest.mark.parametrize("stem", MESSAGES)
def test_a_message_waits_with_all_of_its_receives(stem, sqs, now, monkeypatch):
    queue = MESSAGES[stem]
    monkeypatch.setitem(settings.__dict__, "worker_concurrency", 2)
    (record,) = json.loads((EVENTS / f"{stem}.json").read_text())["Records"]
    content: dict[str, Any] = json.loads(record["body"])
    organization_id = messages.organization_of(content) or "org_" + "0" * 16
    if number := content.get("installationId"):
        table.put(Put({**keys.installation(number)._asdict(), "organizationId": organization_id}), PREPARED)
    shares._acquire(organization_id, queue.value, 1, 30, 1)
    letter = SqsMessage(queue.url, record["body"], now(), receives=4)
    sqs.letters.append(letter)
    handler = importlib.import_module(f"{queue.value.replace('-', '_')}.app").handler
    sqs.deliver(letter, handler, queue.dead_letters_url)
    (waiting,) = sqs.letters
    assert (waiting.queue_url, json.loads(waiting.body), waiting.receives) == (queue.url, content, 0)
    assert now() < waiting.visible_at <= now() + 10
    assert waiting.group == str(number or organization_id)


@each("name", resources("AWS::Lambda::EventSourceMapping"))
def test_each_worker_that_shares_knows_how_many_there_are(name):
    mapping = load_template()["Resources"][name]["Properties"]
    function = load_template()["Resources"][mapping["FunctionName"]["Ref"].removesuffix(".Alias")]["Properties"]
    variables = function["Environment"]["Variables"]
    expected = mapping["ScalingConfig"]["MaximumConcurrency"] if Path(function["CodeUri"]).name in SHARED else None
    assert variables.get("WORKER_CONCURRENCY") == expected
