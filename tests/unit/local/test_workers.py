"""Local schedules: those of the template, at their rates, whatever the outcome of a call."""

from typing import Any

import pytest

from local.template import load_template
from local.workers import call_once, schedules


def schedules_of(expression: str) -> dict[str, int]:
    event = {"Type": "Schedule", "Properties": {"Schedule": expression}}
    properties = {"CodeUri": "functions/sweeper", "Events": {"Sweep": event, "Get": {"Type": "Api"}}}
    function = {"Type": "AWS::Serverless::Function", "Properties": properties}
    return schedules({"Resources": {"A": function, "B": {"Type": "X"}}})


def test_schedules_are_those_of_the_template_in_seconds():
    assert schedules(load_template()) == {"sweeper": 60}
    for rate, seconds in {"1 minute": 60, "5 minutes": 300, "2 hours": 7_200, "1 day": 86_400}.items():
        assert schedules_of(f"rate({rate})") == {"sweeper": seconds}
    with pytest.raises(ValueError, match="cron"):
        schedules_of("cron(0 12 * * ? *)")


def test_a_failing_call_is_logged_and_stops_nothing(caplog):
    def broken(event: dict[str, Any], context: Any) -> None:
        raise RuntimeError(event["detail-type"])

    call_once(broken)
    assert "a scheduled function failed" in caplog.text
