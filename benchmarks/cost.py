"""Computes what a million requests cost on AWS: `python -m benchmarks.cost` writes it into docs/operations.md.

Three inputs, each defined once: prices.json (dated list prices), cost.json (what `--measure` found on the wire and on
this machine), and the assumptions below. Everything else is arithmetic, and tests check it and the document.
"""

from __future__ import annotations

# ruff: noqa: PLC0415 (measuring loads every function; arithmetic needs none)
import argparse
import json
import math
import os
import re
import statistics
import tempfile
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.machine import ROOT, cores
from controlplane.store import keys

if TYPE_CHECKING:
    from benchmarks.bench import Bench
    from benchmarks.recording import Recording

PRICES = Path(__file__).with_name("prices.json")
MEASURED = Path(__file__).with_name("cost.json")
DOCUMENT = ROOT / "docs" / "operations.md"
_BEGIN, _END = "<!-- written by make cost -->\n", "<!-- end of what make cost writes -->\n"
_MILLION = 1_000_000
_GB = 1024**3

# Assumptions, not measurements.
MEMORY_MB = 1024
# Lambda gives a function one whole processor at this size, and a share of it at smaller sizes.
WHOLE_PROCESSOR_MB = 1769
# A round trip from a function to a table in the same region.
TABLE_TRIP_MS = 4.0
COLD_SHARE = 0.005
# The log lines that Lambda writes for each call (START, END, and REPORT), and the gateway's line.
LAMBDA_LOG_BYTES, GATEWAY_LOG_BYTES = 400, 300
PLATFORM_LOG_BYTES = LAMBDA_LOG_BYTES + GATEWAY_LOG_BYTES
# X-Ray's default rule: the first request of each second, and 5% of the others.
TRACED_SHARE = 0.05
# The approximate size of a response's headers.
HEADER_BYTES = 700
# A mapping keeps five long polls of 20 s open, regardless of the load.
POLLS_A_MONTH = 5 * 3 * 60 * 24 * 30
# The sweep runs every minute and finds nothing: it reads each step's position, consistently, and queries each of
# its partitions once, eventually consistent.
SWEEPS_A_MONTH = 60 * 24 * 30
SWEEP_STEPS = 4
SWEEP_QUERIES = len(keys.OUTBOX_PKS) + len(keys.SCAN_WATCH_PKS) + len(keys.DELETIONS_PKS) + 1
SWEEP_READ_UNITS = SWEEP_STEPS + 0.5 * SWEEP_QUERIES
SWEEP_SECONDS = (SWEEP_STEPS + SWEEP_QUERIES) * TABLE_TRIP_MS / 1000

# A typical client's mix of operations, which reads far more than it writes.
MIX: dict[tuple[str, str], float] = {
    ("GET", "/v1/projects/{projectId}"): 0.25,
    ("GET", "/v1/projects/{projectId}/consent"): 0.15,
    ("GET", "/v1/inbox"): 0.12,
    ("GET", "/v1/projects"): 0.10,
    ("GET", "/v1/me"): 0.10,
    ("GET", "/v1/inbox/{itemId}"): 0.05,
    ("GET", "/v1/code-audit/scans"): 0.05,
    ("GET", "/v1/code-audit/scans/{scanId}"): 0.05,
    ("PATCH", "/v1/inbox/{itemId}"): 0.03,
    ("PATCH", "/v1/projects/{projectId}"): 0.03,
    ("GET", "/v1/billing"): 0.03,
    ("GET", "/v1/regions"): 0.02,
    ("POST", "/v1/projects"): 0.01,
    ("POST", "/v1/feedback"): 0.01,
}
_BATCH, _ROUNDS, _WARM_UP = 40, 7, 80


@dataclass(frozen=True)
class Operation:
    """One operation as measured: per request, warm, with an API key if it accepts one, otherwise a user token."""

    method: str
    path: str
    trips: int
    read_units: float
    write_units: float
    cpu_ms: float
    cold_cpu_ms: float
    log_bytes: int
    answer_bytes: int

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"


@dataclass(frozen=True)
class Cost:
    """US dollars per million requests, by AWS charge."""

    gateway: float
    functions: float
    table: float
    logs: float
    traces: float
    transfer: float

    @property
    def total(self) -> float:
        return math.fsum(asdict(self).values())


def duration_ms(operation: Operation) -> int:
    """Estimates what Lambda bills for a warm request: processor time at the function's share, and the table's trips.

    A core of the machine that measured is taken for one of Lambda's.
    """
    return math.ceil(operation.cpu_ms * WHOLE_PROCESSOR_MB / MEMORY_MB + operation.trips * TABLE_TRIP_MS)


def cold_ms(operation: Operation) -> int:
    """Returns the same for a request that starts its function, whose start is billed as well."""
    return math.ceil(operation.cold_cpu_ms * WHOLE_PROCESSOR_MB / MEMORY_MB + operation.trips * TABLE_TRIP_MS)


def cost(operation: Operation, prices: Mapping[str, float]) -> Cost:
    """Dollars per million requests of the operation, at a region's prices."""
    mean_ms = duration_ms(operation) * (1 - COLD_SHARE) + cold_ms(operation) * COLD_SHARE
    gb_seconds = mean_ms / 1000 * MEMORY_MB / 1024 * _MILLION
    return Cost(
        gateway=prices["gatewayMillionRequests"],
        functions=gb_seconds * prices["lambdaGbSecondArm"] + prices["lambdaMillionRequests"],
        table=operation.write_units * prices["tableMillionWrites"] + operation.read_units * prices["tableMillionReads"],
        logs=(operation.log_bytes + PLATFORM_LOG_BYTES) * _MILLION / _GB * prices["logsGb"],
        traces=TRACED_SHARE * prices["tracesMillion"],
        transfer=(operation.answer_bytes + HEADER_BYTES) * _MILLION / _GB * prices["transferGb"],
    )


def mix(operations: Iterable[Operation], prices: Mapping[str, float]) -> Cost:
    """Returns the mean of the operations, weighted by their shares."""
    priced = {(one.method, one.path): cost(one, prices) for one in operations}
    fields = Cost.__dataclass_fields__
    return Cost(**{name: sum(share * getattr(priced[route], name) for route, share in MIX.items()) for name in fields})


def month(template: Mapping[str, Any], prices: Mapping[str, float]) -> dict[str, float]:
    """Returns the maximum monthly cost without any request. A metric costs only while something reports it."""
    types = [resource["Type"] for resource in template["Resources"].values()]
    functions = [it for it in template["Resources"].values() if it["Type"] == "AWS::Serverless::Function"]
    events = [event for function in functions for event in function["Properties"].get("Events", {}).values()]
    routes = sum(event["Type"] == "Api" for event in events)
    settings = template["Resources"]["Api"]["Properties"].get("MethodSettings", [])
    detailed = [setting["ResourcePath"] for setting in settings if setting.get("MetricsEnabled")]
    # Requests and server errors of each function; messages, failed ones and dead letters of each worker.
    own = 2 * sum(any(e["Type"] == "Api" for e in f["Properties"].get("Events", {}).values()) for f in functions)
    own += 3 * types.count("AWS::Lambda::EventSourceMapping")
    return {
        "alarms": sum(map(_paid_metrics, template["Resources"].values())) * prices["alarmMonth"],
        "dashboards": types.count("AWS::CloudWatch::Dashboard") * prices["dashboardMonth"],
        "metrics of the service": own * prices["metricMonth"],
        # Count, latency twice, and errors of both kinds, for each method that was called.
        "metrics of the gateway, by route": 5 * (routes if "/*" in detailed else len(detailed)) * prices["metricMonth"],
        "secrets": sum(map(_is_paid_secret, template["Resources"].values())) * prices["secretMonth"],
        "polls of the queues": types.count("AWS::Lambda::EventSourceMapping")
        * POLLS_A_MONTH
        / _MILLION
        * prices["queueMillionRequests"],
        "the sweep": SWEEPS_A_MONTH
        * (
            SWEEP_SECONDS * MEMORY_MB / 1024 * prices["lambdaGbSecondArm"]
            + prices["lambdaMillionRequests"] / _MILLION
            + SWEEP_READ_UNITS * prices["tableMillionReads"] / _MILLION
        ),
    }


def _is_paid_secret(resource: Mapping[str, Any]) -> bool:
    """Returns whether the resource is a secret that a deployment with the default parameters has."""
    return resource["Type"] == "AWS::SecretsManager::Secret" and "Condition" not in resource


def _paid_metrics(resource: Mapping[str, Any]) -> int:
    """Returns the number of metrics that an alarm is billed for. Those of a load balancer are part of its cost."""
    if resource["Type"] != "AWS::CloudWatch::Alarm" or resource.get("Condition") == "HasBalancer":
        return 0
    return sum("MetricStat" in metric for metric in resource["Properties"].get("Metrics", [])) or 1


def scan_minute(template: Mapping[str, Any], prices: Mapping[str, float]) -> float:
    """Returns the cost of a minute of a scan, which is billed by its length."""
    memory_gb = template["Resources"]["ScanExecutionFunction"]["Properties"]["MemorySize"] / 1024
    return float(60 * memory_gb * prices["lambdaGbSecondArm"])


def load() -> tuple[dict[str, Any], dict[str, Any], list[Operation]]:
    """Returns (prices, measurement metadata, operations)."""
    measured = json.loads(MEASURED.read_text())
    return json.loads(PRICES.read_text()), measured, [Operation(**one) for one in measured["operations"]]


def render() -> str:
    """Renders the section of the document from the files alone."""
    from benchmarks import volumes  # it imports this module

    prices, measured, operations = load()
    regions: dict[str, Mapping[str, float]] = prices["regions"]
    first, *others = regions
    header = ["operation", "ms", "WRU", "RRU", "gateway", "functions", "table", "logs", "traces", "transfer", *regions]
    rows = [
        [f"`{one.name}`", str(duration_ms(one)), _units(one.write_units), _units(one.read_units)]
        + _dollars(cost(one, regions[first]))
        + [_money(cost(one, regions[region]).total) for region in others]
        for one in operations
    ]
    mean = mix(operations, regions[first])
    rows.append(
        ["**the mix**", "", "", "", *_dollars(mean)]
        + [f"**{_money(mix(operations, regions[region]).total)}**" for region in others]
    )
    template = _template()
    standing = {region: month(template, regions[region]) for region in regions}
    names = list(standing[first])
    fixed = [[name, *(_money(standing[region][name]) for region in regions)] for name in names]
    fixed.append(["**a month**", *(f"**{_money(sum(standing[region].values()))}**" for region in regions)])
    shares = ", ".join(f"{share:.0%} `{method} {path}`" for (method, path), share in MIX.items())
    sources = [[name, ", ".join(it["prices"]), it["page"]] for name, it in prices["sources"].items()]
    return "\n".join(
        [
            f"US dollars per million requests: by what they are paid for in {first}, then the total in {others[0]}.",
            "",
            *markdown_table(header, rows),
            "",
            *filled(f"The mix is {shares}."),
            "",
            *volumes.render(mean, operations, {**regions[first], **prices["volumes"]}, first, template),
            "",
            "Cognito, per month, by the number of people who sign in during it (`SignInTier`):",
            "",
            *volumes.render_people(prices["volumes"]["signInTiers"]),
            "",
            "The maximum monthly cost without any request:",
            "",
            *markdown_table(["", *regions], fixed),
            "",
            *filled(
                f"A minute of scanning costs {scan_minute(template, regions[first]):.4f}, and a GB in the table "
                f"{_money(regions[first]['tableGbMonth'] + regions[first]['tableRecoveryGbMonth'])} a month with its "
                f"point-in-time recovery ({first})."
            ),
            "",
            *filled(
                f"Prices are AWS's list prices as known in {prices['asOf']}, in `benchmarks/prices.json`. They were "
                "not fetched when this was written: check them on the page of each group. The free tier, taxes and "
                "discounts are left out, and the gateway's prices by route count only while a route is called."
            ),
            "",
            *markdown_table(["group", "prices", "page"], sources, "--"),
            "",
            *filled(
                f"Measured on {measured['measuredOn']}: units were counted on the wire, and processor time is that of "
                "a warm request on the machine that measured. Lambda's time is an estimate: processor time at a share "
                f"of {MEMORY_MB}/{WHOLE_PROCESSOR_MB} of a core, a core there taken for one of Lambda's, "
                f"{TABLE_TRIP_MS:.0f} ms for each round trip to the table, and {COLD_SHARE:.1%} of the requests "
                "starting their function. Replace it by what the REPORT lines say as soon as there are some."
            ),
            "",
        ]
    )


def in_document(text: str) -> str:
    """Inserts the section into the document. Raises LookupError if the document has no markers for it."""
    before, begin, rest = text.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise LookupError(f"{DOCUMENT.name} has no place for the costs")
    return f"{before}{begin}\n{render()}\n{end}{after}"


def measure() -> dict[str, Any]:
    """Counts and times every operation of the mix; what cost.json holds."""
    from benchmarks.bench import Bench

    os.sched_setaffinity(0, cores()[0])
    with tempfile.TemporaryDirectory(prefix="cost-") as folder:
        bench = Bench.prepare(Path(folder))
        recordings = _record(bench)
        with bench.replaying(list(recordings.values()), tls=False) as address:
            operations = [
                _measure_one(bench, route, recording, f"{address}/{recording.name}", Path(folder))
                for route, recording in recordings.items()
            ]
    return {
        "measuredOn": datetime.now(UTC).date().isoformat(),
        "package": bench.ours.origin,
        "operations": [asdict(operation) for operation in operations],
    }


def _record(bench: Bench) -> dict[tuple[str, str], Recording]:
    from benchmarks.events import rest_event
    from benchmarks.recording import record
    from benchmarks.routes import PUBLIC, REQUESTS

    with bench.recorded_world() as (world, recorder, _, _):
        found = {}
        for number, route in enumerate(MIX):
            worker = world.workers[world.routes[route]]
            # With a user token if the operation doesn't accept API keys.
            for token in (None,) if route[1] in PUBLIC else (world.api_key, world.token):
                made = [REQUESTS[route](world) for _ in range(2)]
                # The first request of a minute opens the credential's new window. The cheaper, common case counts.
                events = [rest_event(*route, token=token, **_without_token(request)) for request in made]
                found[route] = record(f"cost-{number}", worker, recorder, events)
                if found[route].status < 300:
                    break
    return found


def _without_token(request: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in request.items() if name != "user_token"}


def _measure_one(bench: Bench, route: tuple[str, str], recording: Recording, address: str, folder: Path) -> Operation:
    from benchmarks.process import Worker

    group = next(name for name, function in bench.functions.items() if route in function.routes)
    log = folder / "log"
    target = bench.our_target(group, address).with_environment(LOG_LEVEL="INFO", BENCHMARK_OUTPUT=str(log))
    cold, logged = [], 0
    for _ in range(_ROUNDS):
        log.write_text("")
        with Worker(target, recording.event) as worker:
            worker.expect(recording.status)
            cold.append(worker.report["cpu_ns"] / 1e6)
            logged = len(log.read_bytes())
    with Worker(target.with_environment(BENCHMARK_OUTPUT=os.devnull), recording.event) as worker:
        worker.run(_WARM_UP)
        warm = [worker.run(_BATCH)[1] / 1e3 for _ in range(_ROUNDS)]
    return Operation(
        *route,
        trips=recording.trips,
        read_units=recording.read_units,
        write_units=recording.write_units,
        cpu_ms=round(statistics.median(warm), 2),
        cold_cpu_ms=round(statistics.median(cold)),
        log_bytes=logged,
        answer_bytes=len(recording.answer.get("body") or ""),
    )


def _template() -> dict[str, Any]:
    from local.template import load_template

    return load_template()


def _dollars(of: Cost) -> list[str]:
    total = of.total
    return [*(_money(value) for value in asdict(of).values()), f"**{_money(total)}**"]


def _money(value: float) -> str:
    return f"{value:.2f}"


def _units(value: float) -> str:
    return f"{value:g}"


def filled(text: str) -> list[str]:
    """Returns the lines of a paragraph."""
    return textwrap.wrap(text, 120, break_long_words=False, break_on_hyphens=False)


def markdown_table(header: list[str], rows: list[list[str]], alignment: str = "--:") -> Iterator[str]:
    """Yields the lines of a table. alignment: of all columns but the first."""
    yield "| " + " | ".join(header) + " |"
    yield "|:--|" + f"{alignment}|" * (len(header) - 1)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cost", description=__doc__)
    parser.add_argument("--measure", action="store_true", help="measure again first, into cost.json")
    options = parser.parse_args()
    if options.measure:
        MEASURED.write_text(json.dumps(measure(), indent=1) + "\n")
    DOCUMENT.write_text(in_document(DOCUMENT.read_text()))
    print(re.sub(r"[*`]", "", render()))


if __name__ == "__main__":
    main()
