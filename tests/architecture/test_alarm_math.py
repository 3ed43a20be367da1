"""Every alarm on synthetic series: silence, everything fails, some fails, and one bad period."""

from typing import Any

import pytest

from tests.support.alarms import Series, calculate, is_alarm
from tests.support.each import each
from tests.support.template import resources

ALARMS = {name: it["Properties"] for name, it in resources("AWS::CloudWatch::Alarm").items()}
MATH = {name: it for name, it in ALARMS.items() if "Metrics" in it}
SIMPLE = {name: it for name, it in ALARMS.items() if name not in MATH and name != "SweeperMissingAlarm"}
MINUTES = 10
NONE: Series = [None] * MINUTES


def every_minute(value: float) -> Series:
    return [value] * MINUTES


def fails(properties: dict[str, Any], **series: Series) -> bool:
    """Returns whether an alarm of failed requests is in ALARM, given the series that its expression uses."""
    (math,) = [it for it in properties["Metrics"] if "Expression" in it]
    return is_alarm(properties, calculate(math["Expression"], series))


@each("name", MATH)
class TestFailedRequests:
    def test_silence_is_no_alarm(self, name: str):
        assert not fails(MATH[name], errors=NONE, answers=NONE, calls=NONE)

    def test_requests_that_succeed_are_no_alarm(self, name: str):
        assert not fails(MATH[name], errors=every_minute(0), answers=every_minute(0), calls=every_minute(500))
        assert not fails(MATH[name], errors=NONE, answers=NONE, calls=every_minute(1))

    def test_only_crashes_are_an_alarm(self, name: str):
        """A function that doesn't start counts no answers."""
        assert fails(MATH[name], errors=every_minute(500), answers=NONE, calls=every_minute(500))

    def test_only_5xx_responses_are_an_alarm(self, name: str):
        assert fails(MATH[name], errors=every_minute(0), answers=every_minute(500), calls=every_minute(500))

    def test_a_failing_canary_of_10_percent_is_an_alarm(self, name: str):
        assert fails(MATH[name], errors=every_minute(50), answers=NONE, calls=every_minute(500))

    def test_crashes_and_5xx_responses_add_up(self, name: str):
        assert not fails(MATH[name], errors=every_minute(3), answers=NONE, calls=every_minute(500))
        assert fails(MATH[name], errors=every_minute(3), answers=every_minute(3), calls=every_minute(500))

    def test_one_percent_is_no_alarm_and_more_is(self, name: str):
        assert not fails(MATH[name], errors=NONE, answers=every_minute(5), calls=every_minute(500))
        assert fails(MATH[name], errors=NONE, answers=every_minute(6), calls=every_minute(500))

    def test_one_bad_minute_is_no_alarm_and_two_of_three_are(self, name: str):
        bad: Series = [*NONE[1:], 1.0]
        assert not fails(MATH[name], errors=bad, answers=NONE, calls=every_minute(1))
        bad = [*NONE[3:], 1.0, None, 1.0]
        assert fails(MATH[name], errors=bad, answers=NONE, calls=every_minute(1))

    def test_the_alarm_ends_after_the_failures(self, name: str):
        over: Series = [*every_minute(500)[2:], 0.0, 0.0]
        assert not fails(MATH[name], errors=over, answers=NONE, calls=every_minute(500))


@each("name", SIMPLE)
class TestThresholds:
    def test_silence_is_no_alarm(self, name: str):
        assert not is_alarm(SIMPLE[name], NONE)

    def test_values_at_the_threshold_are_no_alarm(self, name: str):
        assert not is_alarm(SIMPLE[name], every_minute(SIMPLE[name]["Threshold"]))

    def test_values_above_the_threshold_are_an_alarm(self, name: str):
        assert is_alarm(SIMPLE[name], every_minute(SIMPLE[name]["Threshold"] + 0.001))

    def test_fewer_bad_periods_than_required_are_no_alarm(self, name: str):
        required = SIMPLE[name].get("DatapointsToAlarm", SIMPLE[name]["EvaluationPeriods"])
        bad: Series = [float(SIMPLE[name]["Threshold"] + 1)]
        assert not is_alarm(SIMPLE[name], NONE + bad * (required - 1))
        assert is_alarm(SIMPLE[name], NONE + bad * required)


class TestSweeperMissing:
    ALARM = ALARMS["SweeperMissingAlarm"]

    def test_a_sweep_per_minute_is_no_alarm(self):
        assert not is_alarm(self.ALARM, every_minute(5))

    def test_a_sweep_that_never_runs_is_an_alarm(self):
        assert is_alarm(self.ALARM, NONE)

    def test_a_gap_of_five_minutes_is_no_alarm_and_one_of_ten_is(self):
        assert not is_alarm(self.ALARM, [5, 5, None])
        assert is_alarm(self.ALARM, [5, None, None])


class TestMath:
    def test_an_expression_without_all_operands_has_no_value(self):
        assert calculate("a / b", {"a": [1, None, 1, 1], "b": [2, 2, None, 0]}) == [0.5, None, None, None]

    def test_an_unknown_function_is_an_error(self):
        with pytest.raises(ValueError, match="IF"):
            calculate("IF(a > 1, 1, 0)", {"a": [1]})
