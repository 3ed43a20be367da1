"""Local schedules: those of the template, at their rates, whatever the outcome of a call."""

from typing import Any

import pytest

from local.template import load_template
from local.workers import call_once, schedules


def template_of(expression: str) -> dict[str, Any]:
    event = {"Type": "Schedule", "Properties": {"Schedule": expression}}
    properties = {"CodeUri": "functions/sweeper", "Events": {"Sweep": event, "Get": {"Type": "Api"}}}
    return {"Resources": {"A": {"Type": "AWS::Serverless::Function", "Properties": properties}, "B": {"Type": "X"}}}


def test_schedules_are_those_of_the_template():
    assert schedules(load_template()) == {"sweeper": 60}


@pytest.mark.parametrize(
    ("expression", "seconds"),
    [("rate(1 minute)", 60), ("rate(5 minutes)", 300), ("rate(2 hours)", 7200), ("rate(1 day)", 86_400)],
)
def test_a_rate_is_parsed_into_seconds(expression: str, seconds: int):
    assert schedules(template_of(expression)) == {"sweeper": seconds}


def test_an_invalid_rate_is_reported_and_not_skipped():
    with pytest.raises(ValueError, match="cron"):
        schedules(template_of("cron(0 12 * * ? *)"))


def test_a_failing_call_is_logged_and_stops_nothing(caplog: pytest.LogCaptureFixture):
    def broken(event: dict[str, Any], context: Any) -> None:
        raise RuntimeError(event["detail-type"])

    call_once(broken)
    assert "a scheduled function failed" in caplog.text
