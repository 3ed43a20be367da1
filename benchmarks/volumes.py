"""Computes what a month costs at constant rates of the mix, with AWS's volume prices and with cheaper alternatives.

`make cost` writes the table into docs/operations.md. The prices are in prices.json.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from benchmarks.cost import HEADER_BYTES, MIX, TRACED_SHARE, Cost, Operation

RATES = (10, 1_000, 10_000)
PEOPLE = (10_000, 50_000, 200_000)
HOURS_A_MONTH = 730
SECONDS_A_MONTH = HOURS_A_MONTH * 3600
_MILLION, _GB = 1_000_000, 1024**3
# The share of requests that the alternative traces, and the log lines of Lambda that it doesn't write.
ALTERNATIVE_TRACED_SHARE = 0.005
LAMBDA_LOG_BYTES = 400

# A volume price: up to this amount (None: without end), for this price each.
type Tiers = list[tuple[float | None, float]]


@dataclass(frozen=True)
class Month:
    """US dollars of a month at one rate."""

    rate: int
    charges: Cost
    # What is saved by an ALB instead of the gateway, by fewer traces, and by fewer log lines.
    balancer: float
    fewer_traces: float
    fewer_logs: float

    @property
    def saved(self) -> float:
        return self.balancer + self.fewer_traces + self.fewer_logs

    def per_million(self, dollars: float) -> float:
        """Returns that part of the month's dollars that a million requests cost."""
        return dollars / _millions(self.rate)


def _millions(rate: int) -> float:
    return rate * SECONDS_A_MONTH / _MILLION


def tiered(amount: float, tiers: Tiers) -> float:
    """Returns the price of the amount, of which each part has the price of its tier."""
    bounds = [0.0, *(float("inf") if end is None else end for end, _ in tiers)]
    parts = zip(pairwise(bounds), tiers, strict=True)
    return sum(max(0.0, min(amount, end) - start) * price for (start, end), (_, price) in parts)


def answer_bytes(operations: list[Operation]) -> float:
    """Returns the mean size of a response, with its headers."""
    return sum(MIX[one.method, one.path] * (one.answer_bytes + HEADER_BYTES) for one in operations)


def month(rate: int, mean: Cost, size: float, prices: Mapping[str, Any]) -> Month:
    """Returns the cost of a month with that many requests per second. mean: of a million requests of the mix."""
    millions = _millions(rate)
    charges = Cost(
        gateway=tiered(millions, prices["gatewayTiers"]),
        functions=mean.functions * millions,
        table=mean.table * millions,
        logs=mean.logs * millions,
        traces=mean.traces * millions,
        transfer=tiered(rate * SECONDS_A_MONTH * size / _GB, prices["transferTiers"]),
    )
    gb_an_hour = rate * size * 3600 / _GB
    units = max(gb_an_hour / prices["balancerGbPerUnit"], 1)
    balancer = HOURS_A_MONTH * (prices["balancerHour"] + units * prices["balancerUnitHour"])
    return Month(
        rate,
        charges,
        balancer=charges.gateway - balancer,
        fewer_traces=charges.traces * (1 - ALTERNATIVE_TRACED_SHARE / TRACED_SHARE),
        fewer_logs=LAMBDA_LOG_BYTES * rate * SECONDS_A_MONTH / _GB * prices["logsGb"],
    )


def render(mean: Cost, operations: list[Operation], prices: Mapping[str, Any], region: str) -> Iterator[str]:
    """Yields the lines of the table and its explanation."""
    months = [month(rate, mean, answer_bytes(operations), prices) for rate in RATES]
    yield f"US dollars per month in {region} at a constant rate of the mix, with AWS's volume prices:"
    yield ""
    yield "| requests per second | gateway | functions | table | logs | traces | transfer | **total** | per million |"
    yield "|:--|" + "--:|" * 8
    for it in months:
        total = it.charges.total
        cells = " | ".join(f"{part:,.0f}" for part in asdict(it.charges).values())
        yield f"| {it.rate:,} | {cells} | **{total:,.0f}** | {it.per_million(total):.2f} |"
    yield ""
    yield "What alternatives would save of it. `TracedShare=0.005` is the second; the others aren't built:"
    yield ""
    header = "ALB instead of the gateway | 0.5% traced | no START, END, REPORT | **rest** | per million"
    yield f"| requests per second | {header} |"
    yield "|:--|" + "--:|" * 5
    for it in months:
        rest = it.charges.total - it.saved
        cells = " | ".join(f"{part:,.0f}" for part in (it.balancer, it.fewer_traces, it.fewer_logs))
        yield f"| {it.rate:,} | {cells} | **{rest:,.0f}** | {it.per_million(rest):.2f} |"


def render_people(tiers: Mapping[str, Tiers]) -> Iterator[str]:
    """Yields the lines of the table of what the user pool costs, by its feature plan."""
    yield f"| people | {' | '.join(tiers)} |"
    yield f"|:--|{'--:|' * len(tiers)}"
    for people in PEOPLE:
        yield f"| {people:,} | {' | '.join(f'{tiered(people, prices):,.0f}' for prices in tiers.values())} |"
