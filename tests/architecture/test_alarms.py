"""The condition of each alarm: its thresholds are written here once more, so that none changes by accident."""

import re
from typing import Any

import pytest

from tests.support.template import resources

ALARMS = {name: it["Properties"] for name, it in resources("AWS::CloudWatch::Alarm").items()}
AGE, DEAD_LETTERS = "Maximum ApproximateAgeOfOldestMessage", "Maximum ApproximateNumberOfMessagesVisible"
THREE_OF_FIVE_MINUTES, FIVE_MINUTES = "3 of 5 x 60 s", "5 of 5 x 60 s"
WORKERS = "ScanPreparation|ScanExecution|IssueCreation|FindingIntake|GithubEvents|Notifications|Emails"
# By name: what is measured, the bound that it exceeds, in how many of the last periods, and what that means. Missing
# data are no alarm, except of the sweep (test_template_watch).
CONDITIONS = {
    "ServerErrors": ("Average 5XXError", "> 0.01", THREE_OF_FIVE_MINUTES, "more than 1% of the requests fail"),
    "Health": ("Sum 5XXError", "> 0", "2 of 3 x 60 s", "the table isn't reachable twice in three minutes"),
    "Concurrency": ("Sum Throttles", "> 0", THREE_OF_FIVE_MINUTES, "invocations are rejected"),
    "GatewayThrottled": ("Sum GatewayThrottled", "> 0", THREE_OF_FIVE_MINUTES, "the gateway rejects callers"),
    "Latency": ("p95 Latency", "> 1000", "3 of 3 x 300 s", "one request in twenty takes over a second (in ms)"),
    "TableLatency": ("Average SuccessfulRequestLatency", "> 50", FIVE_MINUTES, "ten times the usual milliseconds"),
    "TableReadsThrottled": ("Sum ReadThrottleEvents", "> 0", THREE_OF_FIVE_MINUTES, "the table rejects reads"),
    r"(Table|\w+Index)Throttled": ("Sum WriteThrottleEvents", "> 0", THREE_OF_FIVE_MINUTES, "writes are rejected"),
    "ScanDuration": ("Maximum Duration", "> 378000", "1 of 1 x 300 s", "90% of the timeout of 7 minutes (in ms)"),
    rf"({WORKERS})DeadLetters": (DEAD_LETTERS, "> 0", "1 of 1 x 300 s", "a message failed permanently"),
    "ScanPreparationAge": (AGE, "> 180", FIVE_MINUTES, "longer than one delivery, of six times 30 s"),
    "ScanExecutionAge": (AGE, "> 2520", FIVE_MINUTES, "longer than one delivery, of six times 7 minutes"),
    "IssueCreationAge": (AGE, "> 900", FIVE_MINUTES, "longer than the search of 10 minutes for an issue"),
    "(FindingIntake|Notifications)Age": (AGE, "> 900", FIVE_MINUTES, "longer than all retries, which end after 425 s"),
    "EmailsAge": (AGE, "> 900", FIVE_MINUTES, "longer than four retries of two minutes each"),
    "Email(Sent|Bounced|Complained)Delivery": ("Sum FailedInvocations", "> 0", "1 of 1 x 300 s", "a report is lost"),
    "GithubEventsAge": (AGE, "> 3600", FIVE_MINUTES, "longer than a rate limit of GitHub lasts"),
    "Sweeper": ("Maximum Errors", "> 0", FIVE_MINUTES, "five sweeps in a row fail"),
    "SweeperEntries": ("Sum FailedEntries", "> 0", "3 of 3 x 300 s", "entries fail for a quarter of an hour"),
    "SweeperMissing": ("Sum Invocations", "< 1", "2 of 2 x 300 s", "no sweep for ten minutes"),
    rf"({WORKERS})Errors": ("Sum Errors", "> 0", "2 of 5 x 60 s", "invocations fail again and again"),
    # A function that doesn't start has errors and no answers. Without calls, the quotient is missing.
    r"(?!Server)\w+Errors": (
        "100 * (FILL(errors, 0) + FILL(answers, 0)) / calls",
        "> 1",
        "2 of 3 x 60 s",
        "more than 1% of a function's requests fail; one bad minute is no alarm",
    ),
}
COMPARISONS = {"GreaterThanThreshold": ">", "LessThanThreshold": "<"}


def condition_of(alarm: dict[str, Any]) -> tuple[str, str, str]:
    measured = f"{alarm.get('ExtendedStatistic') or alarm.get('Statistic')} {alarm.get('MetricName')}"
    period = alarm.get("Period")
    if "Metrics" in alarm:
        (measured,) = [it["Expression"] for it in alarm["Metrics"] if "Expression" in it]
        (period,) = {it["MetricStat"]["Period"] for it in alarm["Metrics"] if "MetricStat" in it}
    periods = alarm["EvaluationPeriods"]
    bound = f"{COMPARISONS[alarm['ComparisonOperator']]} {alarm['Threshold']}"
    return measured, bound, f"{alarm.get('DatapointsToAlarm', periods)} of {periods} x {period} s"


@pytest.mark.parametrize("name", ALARMS)
def test_the_condition_of_an_alarm_is_the_documented_one(name: str):
    documented, *_ = (it for pattern, it in CONDITIONS.items() if re.fullmatch(f"{pattern}Alarm", name))
    assert condition_of(ALARMS[name]) == documented[:3]


@pytest.mark.parametrize("name", [name for name, it in ALARMS.items() if "Metrics" in it])
def test_the_failed_requests_of_a_function_are_its_crashes_and_5xx_responses(name: str):
    sums = {it["Id"]: it["MetricStat"] for it in ALARMS[name]["Metrics"] if "MetricStat" in it}
    assert {it: (stat["Stat"], stat["Metric"]["MetricName"]) for it, stat in sums.items()} == {
        "errors": ("Sum", "Errors"),
        "answers": ("Sum", "ServerErrors"),
        "calls": ("Sum", "Invocations"),
    }
