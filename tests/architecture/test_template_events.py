"""events/ has a real event for each API function, and one for each message type of a worker."""

import json
import re
from pathlib import Path
from typing import Any

from controlplane.audits import reports
from controlplane.findings import intake
from controlplane.notify import mail_messages
from controlplane.platform.queues.messages import MAX_RECEIVES, Message
from tests.support.operations import operations
from tests.support.template import Route, api_functions, functions

EVENTS: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text()) for path in (Path(__file__).parents[2] / "events").glob("*.json")
}
GROUPS = {Path(functions()[name]["Properties"]["CodeUri"]).name for name in api_functions()}
WORKERS = {Path(it["Properties"]["CodeUri"]).name for it in functions().values()} - GROUPS
# The route of each event, by the event's name, which is the group and the operation.
ROUTES = {
    f"{it.group}_{re.sub(r'([A-Z])', r'_\1', it.route.operation_id).lower()}": Route(it.method, it.path)
    for it in operations()
}


def owner_of(stem: str, names: set[str]) -> str | None:
    return next((name for name in names if stem.startswith(f"{name}_")), None)


OF_WORKERS = {stem for stem in EVENTS if owner_of(stem, WORKERS)}


def test_each_function_of_the_api_has_an_event_that_the_gateway_sends_for_its_route():
    assert sorted(str(owner_of(stem, GROUPS)) for stem in EVENTS.keys() - OF_WORKERS) == sorted(GROUPS)
    for stem in EVENTS.keys() - OF_WORKERS:
        event, route, context = EVENTS[stem], ROUTES[stem], EVENTS[stem]["requestContext"]
        assert (event["httpMethod"], event["resource"]) == (route.method, route.path), stem
        assert (context["httpMethod"], context["resourcePath"]) == (route.method, route.path), stem
        assert event["path"] == route.path.format(**event["pathParameters"] or {}), stem
        assert event["multiValueHeaders"] == {header: [value] for header, value in event["headers"].items()}, stem
        assert event["isBase64Encoded"] is False, stem
        assert context["requestId"], stem


def test_each_kind_of_message_has_an_event_in_the_form_that_sqs_sends():
    records = [record for stem in OF_WORKERS for record in EVENTS[stem].get("Records", [])]
    assert sorted(json.loads(record["body"])["kind"] for record in records) == sorted(
        message.model_fields["kind"].default
        for message in Message.__subclasses__()
        if message.__module__ in {Message.__module__, mail_messages.__name__, intake.__name__, reports.__name__}
    )
    assert {owner_of(stem, WORKERS) for stem in OF_WORKERS} == WORKERS
    for record in records:
        assert (record["eventSource"], json.loads(record["body"])["version"]) == ("aws:sqs", 1)
        assert 1 <= int(record["attributes"]["ApproximateReceiveCount"]) <= MAX_RECEIVES
        assert record["messageId"]
        assert record["receiptHandle"]
