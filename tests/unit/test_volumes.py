"""The monthly cost at constant rates: volume prices apply to each part, and the table matches the document."""

import pytest

from benchmarks import volumes
from benchmarks.cost import load, mix
from tests.support.each import each

PRICES, _, OPERATIONS = load()
REGION = {**PRICES["regions"]["us-east-1"], **PRICES["volumes"]}
MEAN = mix(OPERATIONS, REGION)


class TestTiers:
    @each(("amount", "price"), [(0, 0), (5, 10), (10, 20), (15, 25), (100, 65), (300, 165)])
    def test_each_part_has_the_price_of_its_tier(self, amount: float, price: float):
        assert volumes.tiered(amount, [(10, 2.0), (50, 1.0), (None, 0.1)]) == pytest.approx(
            price if amount <= 15 else 20 + 40 + (amount - 50) * 0.1
        )

    def test_the_gateway_at_a_thousand_requests_per_second(self):
        # 2,628 million: 333 at 3.50, 667 at 2.80, and 1,628 at 2.38.
        assert volumes.month(1_000, MEAN, 7_400, REGION).charges.gateway == pytest.approx(6_907.74, abs=0.01)


class TestMonth:
    def test_a_low_rate_has_the_prices_of_the_first_tier(self):
        it = volumes.month(10, MEAN, volumes.answer_bytes(OPERATIONS), REGION)
        assert it.charges.total == pytest.approx(MEAN.total * 26.28, rel=0.001)

    def test_the_balancer_is_billed_by_the_bytes_that_it_passes_on(self):
        # 27.16 GB an hour are 67.9 units; two addresses and four metrics of alarms are extra.
        expected = 730 * (0.0225 + 67.90 * 0.008 + 2 * 0.005) + 0.4
        assert volumes.balancer(1_000, 7_400, REGION) == pytest.approx(expected, rel=0.001)
        assert volumes.standing(REGION) == pytest.approx(730 * 0.0325 + 0.4)

    def test_small_responses_are_billed_by_their_connections_and_at_least_one_unit(self):
        assert volumes.balancer(1_000, 100, REGION) == pytest.approx(volumes.standing(REGION) + 730 * 40 * 0.008)
        assert volumes.balancer(1, 100, REGION) == pytest.approx(volumes.standing(REGION) + 730 * 0.008)

    def test_rules_are_billed_beyond_the_tenth(self, monkeypatch: pytest.MonkeyPatch):
        assert [volumes.billed_rules(path) for path in ("/v1/projects", "/v1/feedback", "/health")] == [0, 0, 0]
        assert volumes.billed_rules("/v1/me/sessions") == 1
        assert volumes.billed_rules("/sign-in") == 4
        monkeypatch.setattr(volumes, "MIX", {("GET", "/sign-in"): 1.0})
        monkeypatch.setattr(volumes, "CONNECTIONS_PER_UNIT", 1_000)
        # 40,000 rules a second, and bytes as good as free.
        prices = {**REGION, "balancerGbPerUnit": 100}
        assert volumes.balancer(10_000, 1, prices) == pytest.approx(volumes.standing(REGION) + 730 * 40 * 0.008)

    def test_low_cost_replaces_the_gateway_and_leaves_out_traces_and_platform_lines(self):
        it = volumes.month(1_000, MEAN, 7_400, REGION)
        assert it.low.gateway == volumes.balancer(1_000, 7_400, REGION)
        assert it.low.traces == 0
        # 2,628 million times 700 bytes, at 0.50 per GB.
        assert it.charges.logs - it.low.logs == pytest.approx(2_628_000_000 * 700 / 1024**3 * 0.5)
        same = ("functions", "table", "transfer")
        assert [getattr(it.low, name) for name in same] == [getattr(it.charges, name) for name in same]

    def test_low_cost_halves_the_cost_from_some_rate_on(self):
        months = [volumes.month(rate, MEAN, volumes.answer_bytes(OPERATIONS), REGION) for rate in volumes.RATES]
        assert [it.low.total / it.charges.total < 0.5 for it in months] == [False, True, True]
        assert months[0].low.total < months[0].charges.total * 0.6
        assert months[1].per_million(months[1].low) == pytest.approx(months[1].low.total / 2_628)

    def test_a_key_is_used_once_in_each_period_by_each_function(self):
        resources = {
            "F": {
                "Type": "AWS::Serverless::Function",
                "Properties": {
                    "Policies": [
                        {
                            "Statement": [
                                {"Action": ["sqs:SendMessage"], "Resource": {"Ref": "Q"}},
                                {"Action": ["sqs:SendMessage"], "Resource": [{"Ref": "Q"}, {"Ref": "R"}]},
                                {"Action": ["dynamodb:Query"], "Resource": {"Ref": "T"}},
                            ]
                        }
                    ]
                },
            },
            "G": {"Type": "AWS::Serverless::Function", "Properties": {}},
            "M": {"Type": "AWS::Lambda::EventSourceMapping"},
        }
        # 8,760 periods; two requests for each of three sending rights, and one for each receiver.
        assert volumes.key_requests({"Resources": resources}, 10) == {
            "table": 8_760 * 2,
            "queues": 8_760 * (2 * 3 + 1),
            "variables": 10 * 2_628_000 * 0.005,
        }

    def test_people_beyond_the_free_ones_are_billed_by_the_pools_tier(self):
        header, _, *rows = volumes.render_people(PRICES["volumes"]["signInTiers"])
        assert header == "| people | LITE | ESSENTIALS |"
        # 40,000 people at 0.0055 and at 0.015.
        assert "| 50,000 | 220 | 600 |" in rows
