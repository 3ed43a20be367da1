"""Round trips and capacity units of every route, with an API key and with a user token, counted on the wire."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks import goals
from benchmarks.bench import Bench
from benchmarks.events import rest_event
from benchmarks.goals import Figure
from benchmarks.recording import Recording, record
from benchmarks.report import table
from benchmarks.routes import EXTERNAL, PAGES, PUBLIC, REQUESTS, VARIANTS, Request
from benchmarks.wire import Recorder
from benchmarks.world import World

CREDENTIALS = ("api key", "user token")
PROJECT = "/v1/projects/{projectId}"


@dataclass(frozen=True)
class Counted:
    """One route with one credential: None if it is public, "session" for a page."""

    method: str
    resource: str
    variant: str
    credential: str | None
    recording: Recording

    @property
    def label(self) -> str:
        return f"{self.method} {self.resource}" + (f" ({self.variant})" if self.variant else "")

    @property
    def bound(self) -> int:
        """Returns the goal's number of sequential round trips."""
        extra = 0 if self.method == "GET" else goals.WRITE_EXTRA_TRIPS
        return goals.READ_TRIPS[self.credential] + extra


def count_all(bench: Bench) -> tuple[list[Counted], list[str]]:
    """Returns the counts of every route, and the template's routes that have no request."""
    with bench.recorded_world() as (world, recorder, _, _):
        served = [route for function in bench.functions.values() for route in function.routes]
        wanted = [(route, "", REQUESTS[route]) for route in served if route in REQUESTS]
        wanted += [(route, name, make) for name, (route, make) in VARIANTS.items() if route in served]
        counted = [
            Counted(*route, variant, credential, _count(world, recorder, route, credential, make))
            for route, variant, make in wanted
            for credential in _credentials(route[1])
        ]
    missing = [route for route in served if route not in REQUESTS and route not in EXTERNAL]
    return counted, [f"{method} {resource}" for method, resource in missing]


def _credentials(resource: str) -> tuple[str | None, ...]:
    if resource in PUBLIC:
        return (None,)
    return ("session",) if resource in PAGES else CREDENTIALS


def _count(
    world: World,
    recorder: Recorder,
    route: tuple[str, str],
    credential: str | None,
    make: Callable[[World], Request],
) -> Recording:
    """Counts two equivalent requests, because the first one of a minute has an additional write."""
    events = []
    for _ in range(2):
        request = make(world)
        user_token = request.pop("user_token", world.token)
        token = {"api key": world.api_key, "user token": user_token}.get(credential or "")
        events.append(rest_event(*route, token=token, **request))
    return record(" ".join(route), world.workers[world.routes[route]], recorder, events)


def measure(bench: Bench) -> tuple[list[Figure], str]:
    """Figures of goals 6 and 7, and the table of all routes."""
    counted, unmeasured = count_all(bench)
    figures = _trip_figures(counted)
    figures += _unit_figures(counted)
    rows = [
        (
            one.label,
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
    if unmeasured:
        details += "\nnot measured, because benchmarks/routes.py has no request for: " + ", ".join(unmeasured)
    return figures, details


def _trip_figures(counted: list[Counted]) -> list[Figure]:
    """Returns the worst route of each kind, and every route that exceeds its bound."""
    kinds: dict[tuple[str, str], list[Counted]] = {}
    for one in counted:
        if one.credential is None:
            kinds.setdefault(("public", "read" if one.method == "GET" else "write"), []).append(one)
        elif one.recording.status == 403:
            kinds.setdefault((one.credential, "verified, counted, refused"), []).append(one)
        else:
            kinds.setdefault((one.credential, "read" if one.method == "GET" else "write"), []).append(one)
    figures = []
    for (credential, kind), members in kinds.items():
        bound = 1 if kind.startswith("verified") else members[0].bound
        worst = max(members, key=lambda one: one.recording.trips)
        over = [one for one in members if one.recording.trips > bound]
        subject = f"{kind}, {credential}"
        figures.append(
            Figure("6", subject, worst.recording.trips, "trips", bound, f"{len(members)} routes, most: {worst.label}")
        )
        figures += [
            Figure("6", f"  {one.label}, {credential}", one.recording.trips, "trips", bound)
            for one in over
            if one != worst
        ]
    return figures


def _unit_figures(counted: list[Counted]) -> list[Figure]:
    """Returns the request's units without those of its first call, which authenticates."""
    by_route = {(one.method, one.resource, one.variant, one.credential): one.recording for one in counted}
    figures = []
    if (me := by_route.get(("GET", "/v1/me", "", "api key"))) and me.calls:
        first = me.calls[0]
        figures += [
            Figure("7", "verification", first.write_units, "WCU", goals.VERIFICATION_WRITE_UNITS),
            Figure("7", "verification", first.read_units, "RCU", goals.VERIFICATION_READ_UNITS),
        ]
    wanted = (
        ("read by ID", ("GET", PROJECT), "RCU", goals.READ_BY_ID_UNITS),
        ("list of 50", ("GET", "/v1/projects"), "RCU", goals.LIST_READ_UNITS),
        ("write without an index", ("PATCH", PROJECT), "WCU", goals.WRITE_UNITS),
    )
    for subject, route, unit, bound in wanted:
        recording = by_route.get((*route, "", "api key"))
        if recording is None:
            continue
        rest = recording.calls[1:]
        units = sum(call.read_units if unit == "RCU" else call.write_units for call in rest)
        figures.append(Figure("7", subject, units, unit, bound, " ".join(route)))
    return figures
