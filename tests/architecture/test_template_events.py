"""events/ has a real event for each API function, and one for each message type of a worker."""

import json
import re
from pathlib import Path
from typing import Any

from controlplane.queues import mail_messages
from controlplane.queues.messages import MAX_RECEIVES, Message
from finding_intake import messages
from tests.support.each import each
from tests.support.operations import operations
from tests.support.template import Route, api_functions, functions

EVENTS = Path(__file__).parents[2] / "events"


def expected() -> dict[str, Route]:
    """Returns the route of each event, by the event's name."""
    return {
        f"{it.group}_{re.sub(r'([A-Z])', r'_\1', it.route.operation_id).lower()}": Route(it.method, it.path)
        for it in operations()
    }


def read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((EVENTS / f"{name}.json").read_text(encoding="utf-8"))
    return content


def workers() -> set[str]:
    """Returns the folder names of the functions that no route calls."""
    return {
        Path(function["Properties"]["CodeUri"]).name
        for name, function in functions().items()
        if name not in api_functions()
    }


def of_worker(stem: str) -> str | None:
    """Returns the worker that an event is for, or None."""
    return next((worker for worker in workers() if stem.startswith(f"{worker}_")), None)


def of_routes() -> set[str]:
    """Returns the events that aren't for a worker."""
    return {path.stem for path in EVENTS.glob("*.json") if of_worker(path.stem) is None}


def test_each_function_of_the_api_has_one():
    groups = [Path(function["Properties"]["CodeUri"]).name for function in api_functions().values()]
    assert sorted(group for group in groups for stem in of_routes() if stem.startswith(f"{group}_")) == sorted(groups)


def test_each_event_is_named_after_an_operation():
    assert of_routes() <= set(expected())


def test_each_worker_has_one_for_each_message():
    records = [record for path in EVENTS.glob("*.json") for record in read(path.stem).get("Records", [])]
    assert sorted(json.loads(record["body"])["kind"] for record in records) == sorted(
        message.model_fields["kind"].default
        for message in Message.__subclasses__()
        if message.__module__ in {Message.__module__, mail_messages.__name__, messages.__name__}
    )
    assert {of_worker(path.stem) for path in EVENTS.glob("*.json")} - {None} == workers()


@each("stem", sorted(path.stem for path in EVENTS.glob("*.json") if of_worker(path.stem)))
def test_a_message_event_is_what_a_queue_sends(stem: str):
    for record in read(stem).get("Records", []):
        assert record["eventSource"] == "aws:sqs"
        assert json.loads(record["body"])["version"] == 1
        assert 1 <= int(record["attributes"]["ApproximateReceiveCount"]) <= MAX_RECEIVES
        assert record["messageId"]
        assert record["receiptHandle"]


@each("name", sorted(of_routes()))
def test_a_request_event_is_what_the_gateway_sends_for_its_route(name: str):
    event, route = read(name), expected()[name]
    assert (event["httpMethod"], event["resource"]) == (route.method, route.path)
    context = event["requestContext"]
    assert (context["httpMethod"], context["resourcePath"]) == (route.method, route.path)
    assert event["path"] == route.path.format(**event["pathParameters"] or {})
    assert event["multiValueHeaders"] == {header: [value] for header, value in event["headers"].items()}
    assert event["isBase64Encoded"] is False
    assert context["requestId"]
