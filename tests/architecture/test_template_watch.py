"""Alarms and dashboard: the dashboard shows every alarm and metric, and refers only to metrics that exist."""

import json
import re
from typing import Any

import pytest
from pydantic import TypeAdapter

from controlplane.core import observability
from controlplane.core.observability import count_limited, count_request
from controlplane.queues.messages import MAX_RECEIVES, Message, Queue
from controlplane.queues.worker import create_worker
from local.template import load_template
from sweeper import app as sweeper
from sweeper import service as sweeps
from tests.support.each import each
from tests.support.logs import captured_logs
from tests.support.sqs import FakeSqs
from tests.support.template import api_functions, functions, resources

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
OWN = "${AWS::StackName}"
ALARMS = resources("AWS::CloudWatch::Alarm")
FUNCTIONS = functions()
LIVE = [name for name, alarm in ALARMS.items() if "Condition" not in alarm]
WORK_QUEUES = [name for name, it in resources("AWS::SQS::Queue").items() if "RedrivePolicy" in it["Properties"]]
INDEXES = [it["IndexName"] for it in resources("AWS::DynamoDB::Table")["Table"]["Properties"]["GlobalSecondaryIndexes"]]
DEAD_LETTERS = [name for name in resources("AWS::SQS::Queue") if name not in WORK_QUEUES]

type Series = tuple[str, str, frozenset[tuple[str, str]]]


def dashboard() -> list[dict[str, Any]]:
    body, _ = resources("AWS::CloudWatch::Dashboard")["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"]
    widgets: list[dict[str, Any]] = json.loads(body)["widgets"]
    return widgets


def drawn() -> list[Series]:
    """Returns every series on the dashboard: namespace, metric, and dimensions. `.` repeats the previous value."""
    found = []
    for widget in dashboard():
        before: list[str] = []
        for row in widget["properties"].get("metrics", []):
            cells = [cell for cell in row if isinstance(cell, str)]
            cells = [before[place] if cell == "." else cell for place, cell in enumerate(cells)]
            found.append((cells[0], cells[1], frozenset(zip(cells[2::2], cells[3::2], strict=True))))
            before = cells
    return found


def _text(value: Any) -> str:
    """Returns a value of an alarm in the dashboard's format."""
    match value:
        case {"Ref": name}:
            return f"${{{name}}}"
        case {"Fn::GetAtt": [name, attribute]}:
            return f"${{{name}.{attribute}}}"
        case {"Fn::Sub": text}:
            return str(text)
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
    lines: list[str] = []
    with pytest.MonkeyPatch.context() as patched, captured_logs() as log:
        patched.setattr(observability.metrics.provider, "service", "any")
        patched.setattr("controlplane.queues.messages.sender._client", FakeSqs())
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
        for logical_id, function in FUNCTIONS.items():
            service = function["Properties"]["Environment"]["Variables"]["POWERTOOLS_SERVICE_NAME"]
            shown = {
                metric
                for namespace, metric, dimensions in drawn()
                if dimensions & {("FunctionName", f"${{{logical_id}}}"), ("service", service)}
            }
            assert {"Errors", "Duration"} <= shown, logical_id
            if logical_id in api_functions():
                assert {"Requests", "ServerErrors", "RateLimited"} <= shown, logical_id
            else:
                assert {"Messages", "FailedMessages", "DeadLetters"} <= shown or "Invocations" in shown, logical_id

    @each("name", WORK_QUEUES)
    def test_the_dashboard_shows_every_queues_size_and_age(self, name: str):
        for metric in ("ApproximateNumberOfMessagesVisible", "ApproximateAgeOfOldestMessage"):
            assert ("AWS/SQS", metric, frozenset({("QueueName", f"${{{name}.QueueName}}")})) in drawn()

    @each("name", DEAD_LETTERS)
    def test_the_dashboard_shows_every_dead_letter_queue(self, name: str):
        here = frozenset({("QueueName", f"${{{name}.QueueName}}")})
        assert ("AWS/SQS", "ApproximateNumberOfMessagesVisible", here) in drawn()

    def test_the_dashboard_shows_the_tables_latency_units_and_throttling(self):
        shown = {metric for _, metric, dimensions in drawn() if ("TableName", "${TableInUse}") in dimensions}
        assert shown == {metric for namespace, metric, _ in PUBLISHED if namespace == "AWS/DynamoDB"}

    @each("index", INDEXES)
    def test_the_dashboard_shows_every_indexs_throttling(self, index: str):
        here = frozenset({("TableName", "${TableInUse}"), ("GlobalSecondaryIndexName", index)})
        assert {metric for _, metric, at in drawn() if at == here} == {"ReadThrottleEvents", "WriteThrottleEvents"}

    def test_the_dashboard_lists_every_permanent_alarm(self):
        (listed,) = [widget["properties"]["alarms"] for widget in dashboard() if widget["type"] == "alarm"]
        assert sorted(listed) == sorted(f"${{{name}.Arn}}" for name in LIVE)

    def test_the_dashboard_reads_the_logs_of_every_function_with_rate_limits(self):
        _, variables = resources("AWS::CloudWatch::Dashboard")["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"]
        groups = {it["Properties"]["LoggingConfig"]["LogGroup"]["Ref"] for it in api_functions().values()}
        separator, sources = variables["Logs"]["Fn::Join"]
        assert separator == " | "
        assert sorted(source["Fn::Sub"] for source in sources) == sorted(f"SOURCE '${{{name}}}'" for name in groups)

    def test_the_dashboard_queries_existing_log_fields(self):
        gateway = resources("AWS::Serverless::Api")["Api"]["Properties"]["AccessLogSetting"]["Format"]
        request = {"requestId", "operation", "method", "status", "principal", "caller", "organizationId", "message"}
        for widget in dashboard():
            query = widget["properties"].get("query", "")
            grouped = re.findall(r"\bby ([a-zA-Z, ]+)", query)
            names = {name.strip() for group in grouped for name in group.split(",")}
            known = set(json.loads(gateway)) if "GatewayLogGroup" in query else request
            assert names <= known, query

    def test_the_dashboard_names_existing_resources(self):
        # SAM gives the schedule's rule this name.
        known = {
            *load_template()["Resources"],
            *load_template()["Parameters"],
            "SweeperFunctionSweep",
            "Logs",
            "TableInUse",
        }
        body, _ = resources("AWS::CloudWatch::Dashboard")["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"]
        named = {name.partition(".")[0] for name in re.findall(r"\$\{([^}]+)\}", body)}
        assert named - known == {"AWS::Region", "AWS::StackName"}


class TestEveryMetric:
    def everything(self) -> list[Series]:
        return [*drawn(), *(series for name in ALARMS for series in watched(name))]

    def test_every_metric_is_published_with_these_dimensions(self, emitted: dict[str, list[set[str]]]):
        assert len(self.everything()) > 100
        for namespace, metric, dimensions in self.everything():
            by = frozenset(name for name, _ in dimensions)
            if namespace == OWN:
                assert by in emitted.get(metric, []), (metric, by)
            else:
                assert (namespace, metric, by) in PUBLISHED

    def test_every_metric_of_the_code_is_displayed(self, emitted: dict[str, list[set[str]]]):
        assert set(emitted) == {metric for namespace, metric, _ in self.everything() if namespace == OWN}

    def test_gateway_metrics_have_the_gateways_name(self):
        assert _text(resources("AWS::Serverless::Api")["Api"]["Properties"]["Name"]) == OWN

    def test_metrics_of_the_code_go_to_this_stacks_namespace(self):
        variables = load_template()["Globals"]["Function"]["Environment"]["Variables"]
        assert _text(variables["POWERTOOLS_METRICS_NAMESPACE"]) == OWN

    def test_no_metric_dimension_identifies_a_person_or_an_organization(self, emitted: dict[str, list[set[str]]]):
        assert {name for sets in emitted.values() for names in sets for name in names} == {"service", "caller"}


@each("name", ALARMS)
class TestEachAlarm:
    def test_each_alarm_has_a_description_and_an_action(self, name: str):
        properties = ALARMS[name]["Properties"]
        assert len(properties["AlarmDescription"].split()) > 5
        (told,) = properties["AlarmActions"]
        assert told == {"Fn::If": ["HasAlarmTopic", {"Ref": "AlarmTopicArn"}, {"Ref": "AlarmTopic"}]}

    def test_each_alarm_defines_missing_data(self, name: str):
        silent = "breaching" if name == "SweeperMissingAlarm" else "notBreaching"
        assert ALARMS[name]["Properties"]["TreatMissingData"] == silent

    def test_each_alarm_has_a_period_of_one_or_five_minutes(self, name: str):
        properties = ALARMS[name]["Properties"]
        stats = [it["MetricStat"] for it in properties.get("Metrics", []) if "MetricStat" in it] or [properties]
        assert {it["Period"] for it in stats} <= {60, 300}


class TestQuestions:
    """The conditions that the alarms detect, by metric."""

    def series(self) -> set[tuple[str, str]]:
        return {(namespace, metric) for name in LIVE for namespace, metric, _ in watched(name)}

    @each(
        ("question", "metric"),
        [
            ("is it up", ("AWS/ApiGateway", "5XXError")),
            ("is it up", ("AWS/Lambda", "Throttles")),
            ("is it slow", ("AWS/ApiGateway", "Latency")),
            ("is it slow", ("AWS/Lambda", "Duration")),
            ("is it slow", ("AWS/DynamoDB", "SuccessfulRequestLatency")),
            ("is it slow", ("AWS/DynamoDB", "ReadThrottleEvents")),
            ("is it slow", ("AWS/DynamoDB", "WriteThrottleEvents")),
            ("is it losing work", ("AWS/SQS", "ApproximateNumberOfMessagesVisible")),
            ("is it losing work", ("AWS/SQS", "ApproximateAgeOfOldestMessage")),
            ("is it losing work", ("AWS/Lambda", "Errors")),
            ("is it losing work", ("AWS/Lambda", "Invocations")),
            ("who is limited", (OWN, "GatewayThrottled")),
        ],
    )
    def test_the_questions_of_the_guide_have_an_alarm(self, question: str, metric: tuple[str, str]):
        assert metric in self.series()

    def test_throttled_writes_of_every_index_have_an_alarm_on_the_table_in_use(self):
        """The metric of the table doesn't count them, and they fail the table's writes."""
        table = {"Fn::If": ["AdoptsTable", {"Ref": "TableName"}, {"Ref": "Table"}]}
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

    def test_alarm_mail_goes_to_the_alarms_topic(self):
        subscription = resources("AWS::SNS::Subscription")["AlarmEmailSubscription"]
        (told,) = ALARMS["ServerErrorsAlarm"]["Properties"]["AlarmActions"]
        assert subscription["Properties"]["TopicArn"] == told
        assert subscription["Condition"] == "HasAlarmEmail"
        assert resources("AWS::SNS::Topic")["AlarmTopic"]["Condition"] == "OwnsAlarmTopic"
