"""Every goal of docs/performance.md with its bound, and the verdict on a measured figure.

The bounds are defined only here. A figure without a bound is only printed.
"""

from __future__ import annotations

from dataclasses import dataclass

TITLES = {
    "1": "cold start: init and first answer",
    "2": "modules of the built package without valid bytecode",
    "3": "warm request with database calls, log line and metric included",
    "4": "warm list of 50 items of about 600 B",
    "5": "warm request without a database",
    "6": "sequential round trips",
    "7": "capacity units",
    "8": "built package, layer included",
    "9": "modules of other functions that a cold start loads",
}

COLD_NAIVE, COLD_FLOOR = 0.45, 1.05
# It loads its templates' library, which no peer does.
COLD_DASHBOARD_NAIVE = 0.50
REQUEST_FLOOR, REQUEST_NAIVE = 0.38, 0.25
# Without a socket, what every candidate does the same way is left out.
SOCKETLESS_FLOOR, SOCKETLESS_NAIVE = 0.45, 0.27
LIST_FLOOR, LIST_NAIVE = 0.33, 0.23
NO_DATABASE_NAIVE = 0.28
# A web session is a user token. Requests without a credential are counted by address, as those of a key are by key.
READ_TRIPS = {"api key": 2, "user token": 3, "session": 3, None: 2}
WRITE_EXTRA_TRIPS = 1
VERIFICATION_WRITE_UNITS, VERIFICATION_READ_UNITS = 1, 0
# A write is a transaction with its entry in the audit log: 2 units for each.
READ_BY_ID_UNITS, LIST_READ_UNITS, WRITE_UNITS = 1, 4, 4
UNPACKED_NAIVE, ZIPPED_NAIVE = 0.45, 0.35


@dataclass(frozen=True)
class Figure:
    """One measured value of a goal; `bound` is its maximum, or None if it is only informative."""

    goal: str
    subject: str
    measured: float
    unit: str
    bound: float | None = None
    note: str = ""

    @property
    def verdict(self) -> str:
        if self.bound is None:
            return ""
        return "ok" if self.measured <= self.bound + 1e-9 else "miss"
