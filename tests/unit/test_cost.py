"""The cost of a million requests: the arithmetic, its inputs, and the document that shows it."""

import pytest

from benchmarks import cost
from benchmarks.cost import Operation
from local.template import load_template

PRICES = {
    "gatewayMillionRequests": 3.5,
    "lambdaGbSecondArm": 0.00001,
    "lambdaMillionRequests": 0.2,
    "tableMillionWrites": 0.5,
    "tableMillionReads": 0.25,
    "tracesMillion": 5.0,
    "queueMillionRequests": 0.4,
    "logsGb": 0.5,
    "transferGb": 0.1,
}
GB = 1024**3


@pytest.fixture
def operation() -> Operation:
    return Operation("GET", "/x", 2, 3.0, 1.0, cpu_ms=1.0, cold_cpu_ms=100.0, log_bytes=600, answer_bytes=1300)


class TestArithmetic:
    def test_a_warm_request_is_billed_for_cpu_time_and_round_trips(self, operation: Operation):
        assert cost.duration_ms(operation) == 10  # 1 ms at 1024 of 1769 MB is 1.73, two trips are 8, and it rounds up

    def test_a_cold_start_is_billed_too(self, operation: Operation):
        assert cost.cold_ms(operation) == 181  # 172.75 and 8

    def test_every_part_of_a_million_requests_is_billed(self, operation: Operation):
        priced = cost.cost(operation, PRICES)
        assert priced.gateway == 3.5
        mean_seconds = (10 * 0.995 + 181 * 0.005) / 1000
        assert priced.functions == pytest.approx(mean_seconds * 1_000_000 * 0.00001 + 0.2)
        assert priced.table == pytest.approx(1 * 0.5 + 3 * 0.25)
        assert priced.logs == pytest.approx((600 + 700) * 1_000_000 / GB * 0.5)
        assert priced.traces == pytest.approx(0.25)
        assert priced.transfer == pytest.approx((1300 + 700) * 1_000_000 / GB * 0.1)
        parts = (priced.gateway, priced.functions, priced.table, priced.logs, priced.traces, priced.transfer)
        assert priced.total == pytest.approx(sum(parts))

    def test_a_mix_of_equal_parts_costs_what_each_costs(self, operation: Operation):
        equals = [
            Operation(*route, *(getattr(operation, name) for name in list(Operation.__dataclass_fields__)[2:]))
            for route in cost.MIX
        ]
        assert cost.mix(equals, PRICES).total == pytest.approx(cost.cost(operation, PRICES).total)


class TestInputs:
    def test_the_shares_of_the_mix_add_up(self):
        assert sum(cost.MIX.values()) == pytest.approx(1)

    def test_everything_in_the_mix_was_measured(self):
        _, _, operations = cost.load()
        assert {(one.method, one.path) for one in operations} == set(cost.MIX)

    def test_the_memory_is_the_templates(self):
        assert load_template()["Globals"]["Function"]["MemorySize"] == cost.MEMORY_MB

    def test_prices_have_a_date_and_a_source_and_are_complete_for_every_region(self):
        prices, _, _ = cost.load()
        assert prices["asOf"]
        assert all(it["page"].startswith("https://aws.amazon.com/") for it in prices["sources"].values())
        (names,) = {frozenset(region) for region in prices["regions"].values()}
        sourced = [name for it in prices["sources"].values() for name in it["prices"]]
        assert sorted(sourced) == sorted([*names, *prices["volumes"]])
        assert names >= set(PRICES)
        assert all(price > 0 for region in prices["regions"].values() for price in region.values())

    @pytest.mark.parametrize(("path", "detailed"), [("/*", 2), ("/~1health", 1)])
    def test_fixed_costs_are_counted_in_the_template(self, path: str, detailed: int):
        template = {
            "Resources": {
                "Api": {
                    "Type": "AWS::Serverless::Api",
                    "Properties": {"MethodSettings": [{"ResourcePath": path, "MetricsEnabled": True}]},
                },
                "F": {
                    "Type": "AWS::Serverless::Function",
                    "Properties": {"Events": {"A": {"Type": "Api"}, "B": {"Type": "Api"}}},
                },
                "Q": {"Type": "AWS::Lambda::EventSourceMapping"},
                "A1": {"Type": "AWS::CloudWatch::Alarm", "Properties": {"MetricName": "Errors"}},
                "A2": {
                    "Type": "AWS::CloudWatch::Alarm",
                    "Properties": {"Metrics": [{"Expression": "a/b"}, {"MetricStat": {}}, {"MetricStat": {}}]},
                },
                "A3": {"Type": "AWS::CloudWatch::Alarm", "Condition": "HasBalancer", "Properties": {}},
                "S": {"Type": "AWS::SecretsManager::Secret"},
            }
        }
        prices = PRICES | {"alarmMonth": 0.1, "dashboardMonth": 3.0, "metricMonth": 0.3, "secretMonth": 0.4}
        assert cost.month(template, prices) == pytest.approx(
            {
                "alarms": 0.3,
                "dashboards": 0.0,
                "metrics of the service": 5 * 0.3,
                "metrics of the gateway, by route": 5 * detailed * 0.3,
                "secrets": 0.4,
                "polls of the queues": 0.648 * 0.4,
                "the sweep": 43_200
                * (
                    cost.SWEEP_SECONDS * 0.00001
                    + 0.2 / 1_000_000
                    + cost.SWEEP_READ_UNITS * PRICES["tableMillionReads"] / 1_000_000
                ),
            }
        )

    def test_a_minute_of_scanning_is_billed_by_the_scans_memory(self):
        template = {"Resources": {"ScanExecutionFunction": {"Properties": {"MemorySize": 2048}}}}
        assert cost.scan_minute(template, PRICES) == pytest.approx(60 * 2 * 0.00001)


class TestDocument:
    def test_the_document_shows_the_scripts_output(self):
        text = cost.DOCUMENT.read_text()
        assert cost.in_document(text) == text, "run `make cost`"

    def test_a_document_without_a_place_for_it_is_refused(self):
        with pytest.raises(LookupError):
            cost.in_document("# Operations\n")
