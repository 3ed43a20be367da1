"""Causes of a scan: a person, a push, a schedule, or a pull request."""

from typing import Literal, NamedTuple

Trigger = Literal["manual", "push", "scheduled", "pull_request"]


class Cause(NamedTuple):
    """The cause of a scan. retry_until: until when an automatic scan is started again, in Unix seconds."""

    trigger: Trigger = "manual"
    pull_request_number: int | None = None
    retry_until: int | None = None

    @property
    def is_manual(self) -> bool:
        return self.trigger == "manual"

    @property
    def subject(self) -> str:
        """Returns the key of the queue's entry: a newer scan with the same subject replaces an older one."""
        number = self.pull_request_number
        return "PRODUCTION" if number is None else f"PULL{number:010d}"


MANUAL = Cause()


class Comparison(NamedTuple):
    """A scan's findings compared with those of the last completed scan of the production branch before it.

    base_scan_id: None if there is no scan to compare with. fixed: the fingerprints of the first fixed findings.
    new_count: None for a pull request's scan, which only has new findings.
    """

    base_scan_id: str | None
    fixed_count: int = 0
    fixed: tuple[str, ...] = ()
    new_count: int | None = None
