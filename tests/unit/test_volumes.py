"""The monthly cost at constant rates: volume prices apply to each part, and the table matches the document."""

import pytest

from benchmarks import volumes
from benchmarks.cost import Cost, load, mix
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

    def test_the_balancer_is_billed_by_the_bytes_that_it_returns(self):
        nothing = Cost(0, 0, 0, 0, 0, 0)
        it = volumes.month(1_000, nothing, 7_400, REGION)
        # 24.81 GB an hour are 62.03 units.
        assert it.charges.gateway - it.balancer == pytest.approx(730 * (0.0225 + 62.03 * 0.008), rel=0.001)
        assert (it.fewer_traces, it.charges.functions) == (0, 0)

    def test_half_of_the_cost_can_be_saved_at_a_thousand_requests_per_second(self):
        it = volumes.month(1_000, MEAN, volumes.answer_bytes(OPERATIONS), REGION)
        assert 0.4 < it.saved / it.charges.total < 0.6

    def test_people_beyond_the_free_ones_are_billed_by_the_pools_tier(self):
        header, _, *rows = volumes.render_people(PRICES["volumes"]["signInTiers"])
        assert header == "| people | LITE | ESSENTIALS |"
        # 40,000 people at 0.0055 and at 0.015.
        assert "| 50,000 | 220 | 600 |" in rows
