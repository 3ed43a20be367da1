"""Computes how far the service scales: which AWS limit is reached at how many organizations, requests, and scans.

`python -m benchmarks.scale` prints the table for a profile of organizations (see --help), and with --write puts it
into docs/performance.md, and the limits of each partition into docs/access-patterns.md. Four inputs, each defined once:
limits.json (AWS's published defaults, dated), cost.json (units and time of each operation, as measured), the table's
partitions below, and the assumptions below. Everything else is arithmetic. Nothing here calls AWS.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import cost
from benchmarks.machine import ROOT
from controlplane.store import shards

LIMITS = Path(__file__).with_name("limits.json")
PERFORMANCE = ROOT / "docs" / "performance.md"
ACCESS_PATTERNS = ROOT / "docs" / "access-patterns.md"
_BEGIN, _END = "<!-- written by make scale -->\n", "<!-- end of what make scale writes -->\n"
_DAY_SECONDS = 24 * 3600

# Assumptions. How long a scan keeps its workers, and its caller (who waits for it at most that long).
SCAN_SECONDS, PREPARATION_SECONDS, SCAN_START_SECONDS = 30, 2, 3
# Opening an issue keeps its worker and its caller.
ISSUE_SECONDS, ISSUE_START_SECONDS = 4, 4
# Traffic at the busiest time of a day, as a multiple of the day's mean.
PEAK = 4
# X-Ray's segments of one traced request: gateway, function, and the function's invocation.
SEGMENTS = 3
# A scan with six findings, all of them published, from the API to the inbox. A functional test measures it again.
SCAN_WRITE_UNITS, SCAN_READ_UNITS = 162.0, 22.0


@dataclass(frozen=True)
class Partition:
    """A kind of partition key, and what one operation on it costs there. `keys` is how many there are, if fixed."""

    kind: str
    one_for: str
    operation: str
    write_units: float
    read_units: float
    keys: int | None = None
    # The activity that counts toward the limit, in operations per event.
    events: tuple[tuple[str, float], ...] = ()

    def writes_per_second(self, limits: Mapping[str, float]) -> float:
        """Operations a second; those that write nothing are limited by what they read."""
        if not self.write_units:
            return self.reads_per_second(limits)
        return (self.keys or 1) * limits["partitionWriteUnitsPerSecond"] / self.write_units

    def reads_per_second(self, limits: Mapping[str, float]) -> float:
        return (self.keys or 1) * limits["partitionReadUnitsPerSecond"] / self.read_units


def partitions() -> list[Partition]:
    """Every kind of partition that `store/keys/` makes. A write in a transaction costs 2 units for each KB."""
    return [
        Partition("KH", "API key", "a request", 1, 1),
        Partition("TH", "user token or session", "a request", 1, 1),
        Partition("ORG", "organization", "creating a project (three items in a transaction)", 6, 1),
        Partition("AUDITLOG", "organization and month", "a change, of which each writes an entry", 4, 1),
        Partition("USER", "person", "changing a membership", 2, 1),
        Partition("SLUG", "slug of an organization", "creating the organization", 2, 1),
        Partition("CREDENTIALS", "person", "a sign-in, or a refresh", 2, 1),
        Partition("CREDENTIALINDEX", "backfill", "a page of the backfill", 1, 1),
        Partition("IDENTITYINDEX", "backfill", "a page of the backfill", 1, 1),
        Partition("ACCOUNTINDEX", "backfill", "a page of the backfill", 1, 1),
        Partition("BLOCKS", "person", "blocking an organization", 2, 1),
        Partition("EMAIL", "email address", "creating the account", 2, 1),
        Partition("IDENTITY", "identity at an issuer", "creating the account", 2, 1),
        Partition("INVITEE", "invited address", "inviting, and answering", 4, 1),
        Partition("MAILS", "person or invitation", "an email: claim, settle", 3, 1),
        Partition("MAILTO", "email address", "an invitation's email", 2, 1),
        Partition("DC", "device request", "a poll", 1, 1),
        Partition("UC", "user code", "looking at the request", 1, 1),
        Partition("FAMILY", "approved device", "a refresh", 2, 1),
        Partition("IP", "operation and address", "a request without a valid credential", 1, 1),
        Partition("RATE", "person or organization", "reserving a block of requests", 1, 1),
        Partition("REFUSALS", "organization or person", "recording why a request was refused", 1, 1),
        Partition("WAITSLOT", "slot of a waiting request", "a wait: take, release", 2, 1),
        Partition("TRIES", "person", "a user code", 2, 1),
        Partition("IDEMPOTENCY", "Idempotency-Key", "a creation: begin, take effect, keep the answer", 4, 1),
        Partition("GITHUBSTATE", "way to GitHub and back", "coming back", 1, 1),
        Partition("INSTALLATION", "installation of the GitHub App", "connecting a repository", 2, 1),
        Partition("SCAN", "scan", "storing a finding", 2, 1),
        Partition("REPO", "repository", "recording a new finding", 2, 1),
        Partition("DELIVERY", "webhook of GitHub", "a webhook", 2, 1),
        Partition("HOSTLIMIT", "installation of the GitHub App", "a rate limit of GitHub", 1, 1),
        Partition("FEEDBACKBY", "caller", "a report", 2, 1),
        Partition("FEEDBACKQUOTA", "caller", "a report", 2, 1),
        Partition("FEEDBACKTEXT", "long report", "storing its texts, 17 KB at most", 34, 5),
        Partition("SWEEP", "step of the sweep", "storing where it stopped", 1, 1),
        Partition("OUTBOX", "shard", "a message: put, delete", 3, 1, shards.OUTBOX, (("scan", 2), ("issue", 1))),
        Partition("SCANWATCH", "shard", "a scan: put, delete", 4, 1, shards.SCAN_WATCH, (("scan", 1),)),
        Partition("SCANQUEUE", "shard", "a scan that waits: put, delete", 4, 1, shards.SCAN_QUEUE, (("scan", 1),)),
        Partition("SCANSCHEDULE", "shard", "a scheduled scan: put, delete", 4, 1, shards.SCAN_SCHEDULE, (("scan", 1),)),
        Partition(
            "FEEDBACK", "shard of a day", "a report, without long texts", 2, 1, shards.FEEDBACK, (("report", 1),)
        ),
        Partition("FEEDBACKINTAKE", "copy", "a report, which reads it", 0, 1, shards.FEEDBACK_INTAKE, (("report", 1),)),
        Partition("INBOXINDEX", "backfill", "a page of the backfill", 1, 1),
        Partition("SCHEMA", "schema version", "a page of the migration", 1, 1),
        Partition("ISSUEINDEX", "backfill", "a page of the backfill", 1, 1),
        Partition("ISSUEATTEMPTS", "partition", "an issue", 6, 1, 1, (("issue", 1),)),
        Partition("DELETIONS", "shard", "a deletion", 3, 1, shards.DELETIONS, (("deletion", 1),)),
    ]


@dataclass(frozen=True)
class Profile:
    """The activity of one organization: requests in its busiest second, and everything else per day."""

    requests_per_second: float = 1
    scans: float = 4
    issues: float = 2
    reports: float = 0.1
    sign_ins: float = 5
    deletions: float = 0.05

    def rates(self) -> dict[str, float]:
        """Events of an organization in the busiest second."""
        daily = {
            "scan": self.scans,
            "issue": self.issues,
            "report": self.reports,
            "sign-in": self.sign_ins,
            "deletion": self.deletions,
        }
        return {
            "request": self.requests_per_second,
            **{event: count * PEAK / _DAY_SECONDS for event, count in daily.items()},
        }


@dataclass(frozen=True)
class Limit:
    """A limit in units per second, and the units that each event uses. `next_step` is what to raise or split."""

    name: str
    units_per_second: float
    units: Mapping[str, float]
    next_step: str

    def organizations(self, rates: Mapping[str, float]) -> float:
        """Returns the number of organizations that reach the limit."""
        each = math.fsum(rates[event] * units for event, units in self.units.items())
        return self.units_per_second / each if each else math.inf

    def alone(self, event: str) -> float | None:
        """Returns how many of these events per second reach the limit on their own; None if they don't use it."""
        units = self.units.get(event)
        return self.units_per_second / units if units else None


def _request() -> dict[str, float]:
    """Returns the mean request of the mix, as measured: read units, write units, and function seconds."""
    _, _, operations = cost.load()
    by_route = {(one.method, one.path): one for one in operations}
    found = {"read": 0.0, "write": 0.0, "seconds": 0.0}
    for route, share in cost.MIX.items():
        one = by_route[route]
        found["read"] += share * one.read_units
        found["write"] += share * one.write_units
        found["seconds"] += share * cost.duration_ms(one) / 1000
    return found


def limits_of(template: Mapping[str, Any], published: Mapping[str, float]) -> list[Limit]:
    """Returns every limit that applies to all organizations together."""
    request = _request()
    # AccountConcurrency is the account's quota. The stage admits ten requests per second for each execution.
    throttle = 10 * published["lambdaConcurrency"]
    workers = _workers(template)
    found = [
        Limit("API Gateway: requests of the account", published["gatewayRequestsPerSecond"], {"request": 1},
              "raise the quota; then cells"),
        Limit("Lambda: concurrent executions", published["lambdaConcurrency"],
              {"request": request["seconds"], "scan": SCAN_START_SECONDS + PREPARATION_SECONDS + SCAN_SECONDS,
               "issue": ISSUE_START_SECONDS + ISSUE_SECONDS},
              "raise the quota, then `ReservedConcurrency` for the API"),
        Limit("DynamoDB: write units of the table", published["tableWriteUnitsPerSecond"],
              {"request": request["write"], "scan": SCAN_WRITE_UNITS}, "raise the quota; then cells"),
        Limit("DynamoDB: write units of a new table", published["newTableWriteUnitsPerSecond"],
              {"request": request["write"], "scan": SCAN_WRITE_UNITS},
              "grows with the traffic; before a launch, set the table's warm throughput"),
        Limit("DynamoDB: read units of the table", published["tableReadUnitsPerSecond"],
              {"request": request["read"], "scan": SCAN_READ_UNITS}, "raise the quota; then cells"),
        Limit("Queue: executions of scans at once", workers["ScanExecutionFunction"], {"scan": SCAN_SECONDS},
              "AWS allows no more for a queue; then cells"),
        Limit("Queue: preparations of scans at once", workers["ScanPreparationFunction"],
              {"scan": PREPARATION_SECONDS}, "AWS allows no more for a queue; then cells"),
        Limit("Queue: issues opened at once", workers["IssueCreationFunction"], {"issue": ISSUE_SECONDS},
              "AWS allows no more for a queue; then cells"),
        Limit("Cognito: sign-ins", published["cognitoSignInsPerSecond"], {"sign-in": 1},
              "raise the quota, or use another issuer"),
        Limit("X-Ray: segments", published["xraySegmentsPerSecond"], {"request": SEGMENTS * cost.TRACED_SHARE},
              "raise the quota, or sample less"),
    ]  # fmt: skip
    found.append(
        Limit("Stage: throttle", throttle, {"request": 1}, "raise the quota of executions, and `AccountConcurrency`")
    )
    for partition in partitions():
        if partition.keys is not None:
            name = f"Partition `{partition.kind}` ({partition.keys} key{'s' if partition.keys > 1 else ''})"
            each = partition.write_units or partition.read_units
            units = {event: count * each for event, count in partition.events}
            capacity = partition.writes_per_second(published) * each
            found.append(Limit(name, capacity, units, "more shards; then cells"))
    return found


def _workers(template: Mapping[str, Any]) -> dict[str, float]:
    """Returns the highest concurrency that the parameters allow for each queue's function."""
    return {
        resource["Properties"]["FunctionName"]["Ref"].removesuffix(".Alias"): float(
            template["Parameters"][resource["Properties"]["ScalingConfig"]["MaximumConcurrency"]["Ref"]]["MaxValue"]
        )
        for resource in template["Resources"].values()
        if resource["Type"] == "AWS::Lambda::EventSourceMapping"
    }


def simulate(
    profile: Profile, template: Mapping[str, Any], published: Mapping[str, float]
) -> list[tuple[float, Limit]]:
    """Returns each limit with the number of organizations at which it is reached, lowest first."""
    rates = profile.rates()
    found = [(limit.organizations(rates), limit) for limit in limits_of(template, published)]
    return sorted(found, key=lambda pair: (pair[0], pair[1].name))


def load() -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns (the published limits, the template)."""
    from local.template import load_template  # noqa: PLC0415 (cost.py does so too)

    return json.loads(LIMITS.read_text()), load_template()


def render(profile: Profile = Profile()) -> str:
    """Renders the section of docs/performance.md."""
    published, template = load()
    rates = profile.rates()
    rows = []
    for organizations, limit in simulate(profile, template, published):
        alone = [(event, limit.alone(event)) for event in limit.units]
        rows.append(
            [
                limit.name,
                _number(limit.units_per_second),
                ", or ".join(f"{_number(rate)} {event}s/s" for event, rate in alone if rate is not None),
                _number(organizations),
                f"{_number(organizations * rates['request'])} and {_number(organizations * rates['scan'])}",
                limit.next_step,
            ]
        )
    header = ["limit", "units/s", "alone reached at", "organizations", "requests/s and scans/s then", "raise or split"]
    sources = ", ".join(f"[{name}]({address})" for name, address in published["sources"].items())
    profiled = (
        f"An organization of this profile makes {profile.requests_per_second:g} request a second at the busiest time. "
        f"A day has {profile.scans:g} scans, {profile.issues:g} issues, {profile.sign_ins:g} sign-ins, "
        f"{profile.reports:g} reports and {profile.deletions:g} deletions, {PEAK} times as many as the mean when it is "
        "busiest. `python -m benchmarks.scale --help` says how to compute with another profile."
    )
    origin = (
        f"The limits are AWS's defaults as known in {published['asOf']} ({sources}), in `benchmarks/limits.json`. They "
        "differ by region and account: look at Service Quotas. Units and time of a request are those of the mix of "
        "`make cost`; a scan with six findings takes "
        f"{SCAN_WRITE_UNITS:g} write and {SCAN_READ_UNITS:g} read units (a test measures it). That a scan runs for "
        f"{SCAN_SECONDS} s is an assumption."
    )
    return "\n".join([*cost.filled(profiled), "", *cost.markdown_table(header, rows), "", *cost.filled(origin)])


def render_partitions() -> str:
    """Renders the section of docs/access-patterns.md."""
    published, _ = load()
    rows = [
        [
            f"`{one.kind}`",
            one.one_for + (f", {one.keys} in all" if one.keys else ""),
            one.operation,
            f"{one.write_units:g}",
            _number(one.writes_per_second(published)),
            _number(one.reads_per_second(published)),
        ]
        for one in partitions()
    ]
    return "\n".join(
        cost.markdown_table(["partition", "one for each", "operation", "WCU", "operations/s", "reads/s"], rows)
    )


def _number(value: float) -> str:
    if math.isinf(value):
        return "never"
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def in_document(path: Path, section: str) -> str:
    """Inserts the section into the document. Raises LookupError if the document has no markers for it."""
    before, begin, rest = path.read_text().partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise LookupError(f"{path.name} has no place for the limits")
    return f"{before}{begin}\n{section}\n\n{end}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Show which limit is reached at how many organizations.")
    parser.add_argument("--write", action="store_true", help="write the documents instead")
    parser.add_argument(
        "--requests", type=float, default=1, help="requests/s of an organization, in the busiest second"
    )
    for name in ("scans", "issues", "reports", "sign-ins", "deletions"):
        default = getattr(Profile, name.replace("-", "_"))
        parser.add_argument(f"--{name}", type=float, default=default, help=f"{name} of an organization, a day")
    options = vars(parser.parse_args())
    if options.pop("write"):
        PERFORMANCE.write_text(in_document(PERFORMANCE, render()))
        ACCESS_PATTERNS.write_text(in_document(ACCESS_PATTERNS, render_partitions()))
        return
    print(render(Profile(requests_per_second=options.pop("requests"), **options)))


if __name__ == "__main__":
    main()
