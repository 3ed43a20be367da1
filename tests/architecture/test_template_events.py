"""events/ holds one real proxy event for each route of the template, under the name of its function and operation."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.template import Route, resources

EVENTS = Path(__file__).parents[2] / "events"


def expected() -> dict[str, Route]:
    """The route of each event, by the event's name."""
    found = {}
    for function in resources("AWS::Serverless::Function").values():
        group = Path(function["Properties"]["CodeUri"]).name
        for operation, event in function["Properties"]["Events"].items():
            name = re.sub(r"(?<!^)([A-Z])", r"_\1", operation).lower()
            found[f"{group}_{name}"] = Route(event["Properties"]["Method"], event["Properties"]["Path"])
    return found


def read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((EVENTS / f"{name}.json").read_text(encoding="utf-8"))
    return content


def test_there_is_one_for_each_route_and_none_more():
    assert {path.stem for path in EVENTS.glob("*.json")} == set(expected())


@pytest.mark.parametrize("name", expected())
def test_it_is_what_the_gateway_sends_for_its_route(name: str):
    event, route = read(name), expected()[name]
    assert (event["httpMethod"], event["resource"]) == (route.method, route.path)
    context = event["requestContext"]
    assert (context["httpMethod"], context["resourcePath"]) == (route.method, route.path)
    assert event["path"] == route.path.format(**event["pathParameters"] or {})
    assert event["multiValueHeaders"] == {header: [value] for header, value in event["headers"].items()}
    assert event["isBase64Encoded"] is False
    assert context["requestId"]
