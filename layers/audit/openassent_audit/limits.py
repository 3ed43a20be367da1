"""Limits of one audit. They bound the cost of a page that never ends, not what an ordinary page does."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of an audit; those of traffic are per visit.

    pages: how many pages a visit opens, the first one included.
    settle_seconds: how long a page may run before its state is read. It is fixed: a page that polls is never idle.
    banner_seconds: how long to wait for a banner that can be answered.
    page_seconds: how long a page may take to answer. visit_seconds: how long a visit may take.
    bytes: how much the website and its third parties may send.
    """

    pages: int = 5
    settle_seconds: float = 5
    banner_seconds: float = 5
    page_seconds: float = 30
    visit_seconds: float = 150
    requests: int = 3_000
    connections: int = 1_000
    bytes: int = 100_000_000
