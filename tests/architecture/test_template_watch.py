"""Alarms and dashboard: the conditions of alarms, and a dashboard that shows every alarm and only existing metrics."""

import json
import re
from typing import Any

import pytest
from pydantic import TypeAdapter

from controlplane.platform.core import observability
from controlplane.platform.core.observability import count_limited, count_request
from controlplane.platform.queues.messages import MAX_RECEIVES, Message, Queue, sender
from controlplane.platform.queues.worker import create_worker
from local.template import NESTED, load_template
from sweeper import app as sweeper
from sweeper import service as sweeps
from tests.support.each import each
from tests.support.logs import captured_logs
from tests.support.sqs import FakeSqs
from tests.support.template import api_functions, functions, resources, text_of

# The metrics that AWS publishes: namespace, dimensions, metrics.
AWS_METRICS = [
    ("AWS/ApiGateway", "ApiName Stage", "Count 4XXError 5XXError Latency"),
    ("AWS/ApiGateway", "ApiName Stage Method Resource", "Count 4XXError 5XXError Latency"),
    ("AWS/Lambda", "", "Throttles ConcurrentExecutions"),
    ("AWS/Lambda", "FunctionName", "Invocations Errors Duration"),
    ("AWS/Lambda", "FunctionName Resource", "Invocations Errors Duration"),
    ("AWS/DynamoDB", "TableName", "ConsumedReadCapacityUnits ConsumedWriteCapacityUnits"),
    ("AWS/DynamoDB", "TableName", "ReadThrottleEvents WriteThrottleEvents"),
    ("AWS/DynamoDB", "TableName GlobalSecondaryIndexName", "ReadThrottleEvents WriteThrottleEvents"),
    ("AWS/DynamoDB", "TableName Operation", "SuccessfulRequestLatency SystemErrors"),
    ("AWS/SQS", "QueueName", "ApproximateNumberOfMessagesVisible ApproximateAgeOfOldestMessage"),
    ("AWS/Events", "RuleName", "FailedInvocations"),
]
PUBLISHED = {
    (namespace, metric, frozenset(dimensions.split()))
    for namespace, dimensions, metrics in AWS_METRICS
    for metric in metrics.split()
}
OWN = "${Stack}"
ALARMS = resources("AWS::CloudWatch::Alarm")
FUNCTIONS = functions()
LOG_GROUPS = resources("AWS::Logs::LogGroup")
LIVE = [name for name, alarm in ALARMS.items() if "Condition" not in alarm]
WORK_QUEUES = [name for name, it in resources("AWS::SQS::Queue").items() if "RedrivePolicy" in it["Properties"]]
INDEXES = [it["IndexName"] for it in resources("AWS::DynamoDB::Table")["Table"]["Properties"]["GlobalSecondaryIndexes"]]
DEAD_LETTERS = [name for name in resources("AWS::SQS::Queue") if name not in WORK_QUEUES]

AGE, VISIBLE = "Maximum ApproximateAgeOfOldestMessage", "Maximum ApproximateNumberOfMessagesVisible"
THREE_OF_FIVE_MINUTES, FIVE_MINUTES = "3 of 5 x 60 s", "5 of 5 x 60 s"
WORKERS = "|".join(name.removesuffix("Queue") for name in WORK_QUEUES)
# The conditions of alarms are written here once more, so that none changes by accident. By name: the statistic, its
# bound, the number of the last periods that must exceed it, and the meaning.
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
    rf"({WORKERS})DeadLetters": (VISIBLE, "> 0", "1 of 1 x 300 s", "a message failed permanently"),
    "ScanPreparationAge": (AGE, "> 180", FIVE_MINUTES, "longer than one delivery, of six times 30 s"),
    "ScanExecutionAge": (AGE, "> 2520", FIVE_MINUTES, "longer than one delivery, of six times 7 minutes"),
    "IssueCreationAge": (AGE, "> 900", FIVE_MINUTES, "longer than the search of 10 minutes for an issue"),
    "(FindingIntake|Notifications)Age": (AGE, "> 900", FIVE_MINUTES, "longer than all retries, which end after 425 s"),
    "AuditReportsAge": (AGE, "> 900", FIVE_MINUTES, "longer than all retries, which end after 425 s"),
    "EmailsAge": (AGE, "> 900", FIVE_MINUTES, "longer than four retries of two minutes each"),
    "Email(Sent|Bounced|Complained)Delivery": ("Sum FailedInvocations", "> 0", "1 of 1 x 300 s", "a report is lost"),
    "WebsiteAuditsAge": (AGE, "> 3600", FIVE_MINUTES, "longer than one delivery, of six times 10 minutes"),
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

# How the dashboard searches: for whole names.
SEARCH = re.compile(
    r"SEARCH\('\{(?P<schema>\S+)\} (TableName=\"\$\{Table\}\" )?"
    r"MetricName=(?P<metrics>\"\w+\"|\(\"\w+\"( OR \"\w+\")+\))', '(Sum|Average)', 60\)"
)

type Series = tuple[str, str, frozenset[tuple[str, str]]]


def dashboard() -> list[dict[str, Any]]:
    body = resources("AWS::CloudWatch::Dashboard")["Dashboard"]["Properties"]["DashboardBody"]["Fn::ToJsonString"]
    widgets: list[dict[str, Any]] = body["widgets"]
    return widgets


def drawn() -> list[Series]:
    """Returns every series on the dashboard: namespace, metric, and dimensions. `.` repeats the previous value."""
    found = []
    for widget in dashboard():
        before: list[str] = []
        for row in widget["properties"].get("metrics", []):
            if "expression" in row[0]:
                continue
            cells = [_text(cell) for cell in row if isinstance(cell, str) or "Ref" in cell]
            cells = [before[place] if cell == "." else cell for place, cell in enumerate(cells)]
            found.append((cells[0], cells[1], frozenset(zip(cells[2::2], cells[3::2], strict=True))))
            before = cells
    return found


def searched() -> set[tuple[str, str, frozenset[str]]]:
    """Returns what the dashboard searches for, whatever the values: namespace, metric, and names of dimensions."""
    rows = [row for widget in dashboard() for row in widget["properties"].get("metrics", [])]
    found = set()
    for text in (text_of(row[0]["expression"]) for row in rows if "expression" in row[0]):
        parts = SEARCH.fullmatch(text)
        assert parts, text
        namespace, *by = parts["schema"].replace('"', "").split(",")
        found |= {(namespace, metric, frozenset(by)) for metric in re.findall(r'"(\w+)"', parts["metrics"])}
    return found


def _text(value: Any) -> str:
    """Returns a value of an alarm in the dashboard's format."""
    match value:
        case {"Ref": name}:
            return f"${{{name}}}"
        case {"Fn::GetAtt": [name, attribute]}:
            return f"${{{name}.{attribute}}}"
        case {"Fn::Sub": ["${Function}:live", {"Function": {"Ref": name}}]}:
            return f"${{{name}}}:live"
    return str(value)


def watched(name: str) -> list[Series]:
    """Returns the series that an alarm watches."""
    properties = ALARMS[name]["Properties"]
    stats = [it["MetricStat"]["Metric"] for it in properties.get("Metrics", []) if "MetricStat" in it] or [properties]
    return [
        (
            _text(it["Namespace"]),
            it["MetricName"],
            frozenset((entry["Name"], _text(entry["Value"])) for entry in it.get("Dimensions", [])),
        )
        for it in stats
    ]


@pytest.fixture(scope="module")
def emitted() -> dict[str, list[set[str]]]:
    """Returns the emitted metrics with their dimensions, from the output of a run in which everything fails."""
    observability.metrics.clear_metrics()  # another test may have added some outside of a handler
    lines: list[str] = []
    with pytest.MonkeyPatch.context() as patched, captured_logs() as log:
        patched.setattr(observability.metrics.provider, "service", "any")
        patched.setitem(vars(sender), "client", FakeSqs())
        patched.setattr("builtins.print", lambda text, **_: lines.append(text))
        count_request(failed=True)
        count_limited("pro")
        take_badly()
        sweep_badly(patched)
        lines += log.getvalue().splitlines()
    found: dict[str, list[set[str]]] = {}
    for line in map(json.loads, lines):
        for directive in line.get("_aws", {}).get("CloudWatchMetrics", []):
            for metric in directive["Metrics"]:
                found.setdefault(metric["Name"], []).extend(map(set, directive["Dimensions"]))
    for entry in resources("AWS::Logs::MetricFilter").values():
        for made in entry["Properties"]["MetricTransformations"]:
            assert _text(made["MetricNamespace"]) == OWN
            found[made["MetricName"]] = [set()]
    return found


def take_badly() -> None:
    """Processes a message that fails for the last time: counted, failed, and dead-lettered."""

    def fail(message: Message) -> None:
        raise ArithmeticError

    sqs = FakeSqs()
    sqs.send_message(QueueUrl=Queue.SCAN_EXECUTION.url, MessageBody='{"version":1}')
    (letter,) = sqs.letters
    letter.receives = MAX_RECEIVES
    handler = create_worker(Queue.SCAN_EXECUTION, TypeAdapter(Message), fail)
    assert handler({"Records": [letter.record]}, None) == {"batchItemFailures": []}


def sweep_badly(patched: pytest.MonkeyPatch) -> None:
    """Runs one sweep in which every step fails."""
    patched.setattr(sweeps, "STEPS", dict.fromkeys(sweeps.STEPS, lambda run: None))
    sweeper.handler({}, None)


class TestDashboard:
    def test_the_dashboard_shows_every_functions_invocations_errors_and_duration(self):
        for logical_id in FUNCTIONS:
            shown = {metric for _, metric, by in drawn() if ("FunctionName", f"${{{logical_id}}}") in by}
            assert {"Errors", "Duration"} <= shown, logical_id
        of_services = {
            metric for namespace, metric, by in searched() if (namespace, by) == (OWN, frozenset({"service"}))
        }
        # Of each function of the API, and of each worker.
        assert of_services == {"Requests", "ServerErrors", "RateLimited", "Messages", "FailedMessages", "DeadLetters"}

    def test_the_dashboard_shows_every_queue_and_the_table_with_its_indexes(self):
        size, age = "ApproximateNumberOfMessagesVisible", "ApproximateAgeOfOldestMessage"
        wanted = {(metric, name) for name in WORK_QUEUES for metric in (size, age)} | {
            (size, it) for it in DEAD_LETTERS
        }
        expected = {("AWS/SQS", metric, frozenset({("QueueName", f"${{{it}}}")})) for metric, it in wanted}
        assert expected <= {*drawn()}
        shown = {metric for _, metric, dimensions in drawn() if ("TableName", "${Table}") in dimensions}
        published = {metric for namespace, metric, _ in PUBLISHED if namespace == "AWS/DynamoDB"}
        assert shown == published - {"SuccessfulRequestLatency"}
        by_index = frozenset({"TableName", "GlobalSecondaryIndexName"})
        assert {(metric, by) for namespace, metric, by in searched() if namespace == "AWS/DynamoDB"} == {
            ("ReadThrottleEvents", by_index),
            ("WriteThrottleEvents", by_index),
            ("SuccessfulRequestLatency", frozenset({"TableName", "Operation"})),
        }

    def test_the_dashboard_lists_every_permanent_alarm(self):
        (listed,) = [widget["properties"]["alarms"] for widget in dashboard() if widget["type"] == "alarm"]
        assert sorted(it["Fn::GetAtt"] for it in listed) == sorted([name, "Arn"] for name in LIVE)

    def test_the_dashboard_reads_the_logs_of_every_function_with_rate_limits(self):
        names = {it["Properties"]["LoggingConfig"]["LogGroup"]["Ref"] for it in api_functions().values()}
        groups = [text_of(it["Properties"]["LogGroupName"]) for name, it in LOG_GROUPS.items() if name in names]
        expected = " | ".join(f"SOURCE '{it.replace('AWS::StackName', 'Stack')}'" for it in groups)
        texts = [text_of(query_of(widget)) for widget in dashboard()]
        assert [it for it in texts if it.startswith(f"{expected} | filter message = 'request'")]

    def test_the_dashboard_queries_existing_log_fields(self):
        gateway = resources("AWS::Serverless::Api")["Api"]["Properties"]["AccessLogSetting"]["Format"]
        request = {"requestId", "operation", "method", "status", "principal", "caller", "organizationId", "message"}
        for widget in dashboard():
            query = text_of(query_of(widget))
            grouped = re.findall(r"\bby ([a-zA-Z, ]+)", query)
            names = {name.strip() for group in grouped for name in group.split(",")}
            known = set(json.loads(gateway)) if "GatewayLogGroup" in query else request
            assert names <= known, query

    def test_the_nested_stack_gets_the_names_of_the_resources_that_its_parameters_are_named_after(self):
        given = load_template()["Resources"]["Observability"]["Properties"]["Parameters"]
        assert given.keys() == load_template(NESTED["Observability"])["Parameters"].keys()
        for name in given.keys() & resources("AWS::SQS::Queue").keys():
            assert given[name] == {"Fn::GetAtt": [name, "QueueName"]}
        for name in given.keys() & {*FUNCTIONS, "GatewayLogGroup"}:
            assert given[name] == {"Ref": name}
        for name in resources("AWS::Events::Rule"):
            assert given[name] == {"Fn::If": ["SendsEmail", {"Ref": name}, ""]}
        assert given["Stack"] == {"Ref": "AWS::StackName"}
        assert given["Table"] == {"Fn::If": ["AdoptsTable", {"Ref": "TableName"}, {"Ref": "Table"}]}
        assert given["RollsBack"] == {"Fn::If": ["IsGradual", "true", "false"]}


class TestEveryMetric:
    def everything(self) -> set[tuple[str, str, frozenset[str]]]:
        series = [*drawn(), *(it for name in ALARMS for it in watched(name))]
        return searched() | {(namespace, metric, frozenset(dict(by))) for namespace, metric, by in series}

    def test_every_metric_is_published_with_these_dimensions(self, emitted: dict[str, list[set[str]]]):
        assert len(drawn()) > 100
        for namespace, metric, by in self.everything():
            if namespace == OWN:
                assert by in emitted.get(metric, []), (metric, by)
            else:
                assert (namespace, metric, by) in PUBLISHED

    def test_every_metric_of_the_code_is_displayed(self, emitted: dict[str, list[set[str]]]):
        assert set(emitted) == {metric for namespace, metric, _ in self.everything() if namespace == OWN}

    def test_no_metric_dimension_identifies_a_person_or_an_organization(self, emitted: dict[str, list[set[str]]]):
        assert {name for sets in emitted.values() for names in sets for name in names} == {"service", "caller"}


def query_of(widget: dict[str, Any]) -> Any:
    """Returns the query of a log widget, in which other texts have their place."""
    match widget["properties"].get("query", ""):
        case {"Fn::Sub": [str(text), {"Logs": {"Fn::Sub": [str(logs), {"Of": of}]}}]}:
            return {"Fn::Sub": [text, {"Logs": logs.replace("${Of}", text_of(of))}]}
        case query:
            return query


def condition_of(alarm: dict[str, Any]) -> tuple[str, str, str]:
    measured = f"{alarm.get('ExtendedStatistic') or alarm.get('Statistic')} {alarm.get('MetricName')}"
    period = alarm.get("Period")
    if "Metrics" in alarm:
        (measured,) = [it["Expression"] for it in alarm["Metrics"] if "Expression" in it]
        (period,) = {it["MetricStat"]["Period"] for it in alarm["Metrics"] if "MetricStat" in it}
    periods = alarm["EvaluationPeriods"]
    bound = f"{COMPARISONS[alarm['ComparisonOperator']]} {alarm['Threshold']}"
    return measured, bound, f"{alarm.get('DatapointsToAlarm', periods)} of {periods} x {period} s"


@each("name", ALARMS)
def test_an_alarm_has_its_condition_a_description_and_a_rule_for_missing_data(name: str):
    declared = ALARMS[name]["Properties"]
    expected, *_ = (it for pattern, it in CONDITIONS.items() if re.fullmatch(f"{pattern}Alarm", name))
    assert condition_of(declared) == expected[:3]
    assert len(text_of(declared["AlarmDescription"]).split()) > 5
    assert declared["TreatMissingData"] == ("breaching" if name == "SweeperMissingAlarm" else "notBreaching")
    sums = {it["Id"]: it["MetricStat"] for it in declared.get("Metrics", []) if "MetricStat" in it}
    failed_requests = {("errors", "Sum", "Errors"), ("answers", "Sum", "ServerErrors"), ("calls", "Sum", "Invocations")}
    found = {(it, stat["Stat"], stat["Metric"]["MetricName"]) for it, stat in sums.items()}
    assert found == (failed_requests if "Metrics" in declared else set())


class TestAlarms:
    def test_every_condition_has_an_alarm(self):
        assert [it for it in CONDITIONS if not any(re.fullmatch(f"{it}Alarm", name) for name in ALARMS)] == []

    def test_throttled_writes_of_every_index_have_an_alarm_on_the_table_in_use(self):
        """The metric of the table doesn't count them, and they fail the table's writes."""
        table = {"Ref": "Table"}
        alarms = [it["Properties"] for it in ALARMS.values() if it["Properties"].get("Namespace") == "AWS/DynamoDB"]
        found = {
            (it["MetricName"], at.pop("GlobalSecondaryIndexName", None)): at
            for it in alarms
            if "Throttle" in it["MetricName"]
            for at in [{entry["Name"]: entry["Value"] for entry in it["Dimensions"]}]
        }
        everywhere = [("WriteThrottleEvents", index) for index in (None, *INDEXES)]
        assert found == {key: {"TableName": table} for key in [*everywhere, ("ReadThrottleEvents", None)]}

    @each("name", resources("AWS::Events::Rule"))
    def test_events_that_a_rule_cannot_deliver_are_kept_and_have_an_alarm(self, name: str):
        for target in resources("AWS::Events::Rule")[name]["Properties"]["Targets"]:
            assert target["DeadLetterConfig"]["Arn"]["Fn::GetAtt"][0] in DEAD_LETTERS
        here = ("AWS/Events", "FailedInvocations", frozenset({("RuleName", f"${{{name}}}")}))
        (alarm,) = [alarm for alarm in ALARMS if here in watched(alarm)]
        assert ALARMS[alarm]["Condition"] == resources("AWS::Events::Rule")[name]["Condition"]
