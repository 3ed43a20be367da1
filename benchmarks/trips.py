"""Round trips and capacity units of the measured requests, with each credential, counted on the wire."""

from __future__ import annotations

from typing import NamedTuple

from benchmarks import goals
from benchmarks.bench import Bench
from benchmarks.goals import Figure
from benchmarks.measured import COUNTED, PROJECT, Measured
from benchmarks.process import Recording, record
from benchmarks.report import table


class Counted(NamedTuple):
    """One request with one credential: None if it is public, "session" for a page."""

    request: Measured
    credential: str | None
    recording: Recording

    @property
    def kind(self) -> str:
        return "read" if self.request.method == "GET" else "write"

    @property
    def bound(self) -> int:
        """Returns the goal's number of sequential round trips."""
        extra = goals.WRITE_EXTRA_TRIPS if self.kind == "write" else 0
        return 1 if self.is_refused else goals.READ_TRIPS[self.credential] + extra

    @property
    def is_refused(self) -> bool:
        return self.recording.status == 403

    @property
    def subject(self) -> str:
        return f"{'verified, counted, refused' if self.is_refused else self.kind}, {self.credential or 'public'}"


def count_all(bench: Bench) -> list[Counted]:
    """Counts every request with each credential."""
    with bench.recorded_world() as (world, recorder, address, _):
        return [
            Counted(
                request,
                credential,
                record(
                    request.label,
                    bench.our_target(request.group, address),
                    recorder,
                    request.two_events(world, credential),
                ),
            )
            for request in COUNTED
            if request.group in bench.functions
            for credential in request.credentials
        ]


def measure(bench: Bench) -> tuple[list[Figure], str]:
    """Figures of goals 6 and 7, and the table of all requests."""
    counted = count_all(bench)
    rows = [
        (
            one.request.label,
            one.credential or "none",
            one.recording.status,
            one.recording.trips,
            one.recording.read_units,
            one.recording.write_units,
            " ".join(call.operation for call in one.recording.calls),
        )
        for one in counted
    ]
    details = table(rows, ("route", "credential", "status", "trips", "RCU", "WCU", "calls"))
    return [*_trip_figures(counted), *_unit_figures(counted)], details


def _trip_figures(counted: list[Counted]) -> list[Figure]:
    """Returns the worst request of each kind, and every other one that exceeds its bound."""
    by_subject: dict[str, list[Counted]] = {}
    for one in counted:
        by_subject.setdefault(one.subject, []).append(one)
    figures: list[Figure] = []
    for subject, members in by_subject.items():
        worst = max(members, key=lambda one: one.recording.trips)
        shown = [worst, *(one for one in members if one.recording.trips > one.bound and one is not worst)]
        figures += [Figure("6", subject, it.recording.trips, "trips", it.bound, it.request.label) for it in shown]
    return figures


def _unit_figures(counted: list[Counted]) -> list[Figure]:
    """Returns the request's units without those of its first call, which authenticates."""
    by_route = {one.request.label: one.recording for one in counted if one.credential == "api key"}
    first = by_route["GET /v1/me"].calls[0]
    figures = [
        Figure("7", "verification", first.write_units, "WCU", goals.VERIFICATION_WRITE_UNITS),
        Figure("7", "verification", first.read_units, "RCU", goals.VERIFICATION_READ_UNITS),
    ]
    wanted = (
        ("read by ID", f"GET {PROJECT}", "RCU", goals.READ_BY_ID_UNITS),
        ("list of 50", "GET /v1/projects", "RCU", goals.LIST_READ_UNITS),
        ("write without an index", f"PATCH {PROJECT}", "WCU", goals.WRITE_UNITS),
    )
    for subject, route, unit, bound in wanted:
        units = sum(call.read_units if unit == "RCU" else call.write_units for call in by_route[route].calls[1:])
        figures.append(Figure("7", subject, units, unit, bound, route))
    return figures
