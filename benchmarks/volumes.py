"""Computes what a month costs at constant rates of the mix, with AWS's volume prices: with the default parameters, as
configured for low cost, and what a key of your own adds.

`make cost` writes the tables into docs/operations.md. The prices are in prices.json.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

from benchmarks.cost import (
    COLD_SHARE,
    HEADER_BYTES,
    MIX,
    PLATFORM_LOG_BYTES,
    Cost,
    Operation,
    filled,
    markdown_table,
)

RATES = (10, 1_000, 10_000)
PEOPLE = (10_000, 50_000, 200_000)
HOURS_A_MONTH = 730
SECONDS_A_MONTH = HOURS_A_MONTH * 3600
_MILLION, _GB = 1_000_000, 1024**3
# What the second table has in place of the defaults.
LOW_COST = "`BalancerVpc`, `PlatformLogs=failures`, and `TracedShare=0`"
# An availability zone of the load balancer has a public address. AWS requires two zones.
BALANCER_ZONES = 2
BALANCER_ALARM_METRICS = 4
# One of the units that a load balancer is billed for: new connections per second, and evaluated rules per second, of
# which the first ten of a request are free. Bytes are in the prices, because targets differ in them.
CONNECTIONS_PER_UNIT, RULES_PER_UNIT, FREE_RULES = 25, 1_000, 10
# SQS and DynamoDB keep a data key for so long, for each principal.
KEY_REUSE_SECONDS = 300

# A volume price: up to this amount (None: without end), for this price each.
type Tiers = list[tuple[float | None, float]]


@dataclass(frozen=True)
class Month:
    """US dollars of a month at one rate, with the default parameters and with LOW_COST.

    In the second, the load balancer is in the gateway's place.
    """

    rate: int
    charges: Cost
    low: Cost

    def per_million(self, of: Cost) -> float:
        """Returns that part of the month's dollars that a million requests cost."""
        return of.total / _millions(self.rate)


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


def billed_rules(path: str) -> int:
    """Returns how many of the load balancer's rules are billed for a request: those that it passes beyond the tenth."""
    from local.balancer import template_rules  # noqa: PLC0415 (the arithmetic needs no settings)

    passed = next(number for number, rule in enumerate(template_rules(), 1) if rule.matches(path))
    return max(passed - FREE_RULES, 0)


def balancer(rate: int, size: float, prices: Mapping[str, Any]) -> float:
    """Returns the cost of a month of the load balancer, with its alarms.

    size: of a response with its headers. Every request has a connection of its own, which is the most that is billed.
    """
    gb_an_hour = rate * (size + HEADER_BYTES) * 3600 / _GB
    rules = rate * sum(share * billed_rules(path) for (_, path), share in MIX.items())
    units = max(1, gb_an_hour / prices["balancerGbPerUnit"], rate / CONNECTIONS_PER_UNIT, rules / RULES_PER_UNIT)
    return float(standing(prices) + HOURS_A_MONTH * units * prices["balancerUnitHour"])


def standing(prices: Mapping[str, Any]) -> float:
    """Returns the cost of a month of the load balancer without any request."""
    an_hour = prices["balancerHour"] + BALANCER_ZONES * prices["publicAddressHour"]
    return float(HOURS_A_MONTH * an_hour + BALANCER_ALARM_METRICS * prices["alarmMonth"])


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
    platform_logs = PLATFORM_LOG_BYTES * rate * SECONDS_A_MONTH / _GB * prices["logsGb"]
    low = replace(charges, gateway=balancer(rate, size, prices), logs=charges.logs - platform_logs, traces=0)
    return Month(rate, charges, low)


def key_requests(template: Mapping[str, Any], rate: int) -> dict[str, float]:
    """Returns the most requests to KMS in a month, with a key of your own: by what is encrypted.

    The formula for queues is SQS's ("Estimating AWS KMS costs"): in each period, two requests of each function that
    sends to a queue, and one of each that receives from it. For the table, DynamoDB keeps the key for each caller, and
    Lambda decrypts the variables of each environment that starts.
    """
    functions = [it for it in template["Resources"].values() if it["Type"] == "AWS::Serverless::Function"]
    statements = [
        statement
        for function in functions
        for policy in function["Properties"].get("Policies", ())
        for statement in policy["Statement"]
        if "sqs:SendMessage" in statement["Action"]
    ]
    senders = sum(len(it["Resource"]) if isinstance(it["Resource"], list) else 1 for it in statements)
    receivers = sum(it["Type"] == "AWS::Lambda::EventSourceMapping" for it in template["Resources"].values())
    periods = SECONDS_A_MONTH / KEY_REUSE_SECONDS
    return {
        "table": periods * len(functions),
        "queues": periods * (2 * senders + receivers),
        "variables": rate * SECONDS_A_MONTH * COLD_SHARE,
    }


def render(
    mean: Cost, operations: list[Operation], prices: Mapping[str, Any], region: str, template: Mapping[str, Any]
) -> Iterator[str]:
    """Yields the lines of the tables and their explanations."""
    months = [month(rate, mean, answer_bytes(operations), prices) for rate in RATES]
    yield f"US dollars per month in {region} at a constant rate of the mix, with AWS's volume prices:"
    yield ""
    yield from _of_month("gateway", [(it, it.charges) for it in months])
    yield ""
    yield f"The same as configured for low cost, with {LOW_COST}:"
    yield ""
    yield from _of_month("load balancer", [(it, it.low) for it in months])
    yield ""
    shares = ", ".join(f"{it.low.total / it.charges.total:.0%} at {it.rate:,}" for it in months)
    yield from filled(
        f"That is {shares} requests per second. The load balancer is billed for the largest of bytes, connections, "
        "and rules: here bytes, even if every request has a connection of its own, and the mix passes no more than "
        f"{FREE_RULES} rules. {standing(prices):.2f} of it is due without any request: its hours, {BALANCER_ZONES} "
        "public addresses, and its alarms. Compression isn't taken into account, neither the gateway's nor that of the "
        "functions."
    )
    yield ""
    yield "With `KmsKeyArn`, the key and requests to it add, in US dollars per month:"
    yield ""
    rows = []
    for it in months:
        requests = key_requests(template, it.rate)
        parts = [prices["keyMonth"], *(count / _MILLION * prices["keyMillionRequests"] for count in requests.values())]
        cells = [f"{part:,.2f}" for part in parts]
        rows.append([f"{it.rate:,}", *cells, f"**{sum(parts):,.2f}**", f"{sum(parts) / _millions(it.rate):.2f}"])
    header = ["requests per second", "key", "table", "queues", "variables", "**total**", "per million"]
    yield from markdown_table(header, rows)
    yield ""
    yield from filled(
        f"SQS and DynamoDB use a data key for {KEY_REUSE_SECONDS // 60} minutes for each function, so these are the "
        "most that all functions together cause. Lambda decrypts a function's variables at each of the "
        f"{COLD_SHARE:.1%} cold starts. Without `KmsKeyArn`, the table's requests are to AWS's key, and queues and "
        "variables cause none."
    )


def _of_month(front: str, rows: list[tuple[Month, Cost]]) -> Iterator[str]:
    parts = ["functions", "table", "logs", "traces", "transfer"]
    cells = [
        [
            f"{it.rate:,}",
            *(f"{part:,.0f}" for part in asdict(cost).values()),
            f"**{cost.total:,.0f}**",
            f"{it.per_million(cost):.2f}",
        ]
        for it, cost in rows
    ]
    yield from markdown_table(["requests per second", front, *parts, "**total**", "per million"], cells)


def render_people(tiers: Mapping[str, Tiers]) -> Iterator[str]:
    """Yields the lines of the table of what the user pool costs, by its feature plan."""
    rows = [[f"{people:,}", *(f"{tiered(people, prices):,.0f}" for prices in tiers.values())] for people in PEOPLE]
    yield from markdown_table(["people", *tiers], rows)
