"""The filters of the inbox's page."""

from collections.abc import Mapping
from typing import NamedTuple, cast, get_args
from urllib.parse import urlencode

from controlplane.findings.items import Source, Status
from controlplane.findings.lists import Wanted
from controlplane.platform.core.priorities import Priority

STATUSES: tuple[Status, ...] = get_args(Status)
PRIORITIES, SOURCES = get_args(Priority), get_args(Source)
# The value of the status filter that selects all.
ALL = "all"
_TEXT_LENGTH = 200
# The parameters of the query, which have the names of the filters of any list of findings.
_TEXTS = ("priority", "source", "project_id", "repository_name", "vendor", "assignee", "text")


class Filters(NamedTuple):
    """The filters of a list of findings. status: one of the statuses, or `all`."""

    status: str = "open"
    wanted: Wanted = Wanted()

    @classmethod
    def read(cls, parameters: Mapping[str, str]) -> "Filters":
        """Returns the filters of a query. An unknown status, priority, or source doesn't limit the list."""
        given = {name: parameters.get(name, "").strip()[:_TEXT_LENGTH] for name in _TEXTS}
        for name, known in (("priority", PRIORITIES), ("source", SOURCES)):
            if given[name] not in known:
                given[name] = ""
        status = parameters.get("status", "")
        return cls(status if status in {*STATUSES, ALL} else "open", Wanted(**given))

    @property
    def known_status(self) -> Status | None:
        return None if self.status == ALL else cast("Status", self.status)

    @property
    def is_narrow(self) -> bool:
        """True if anything but the status limits the list."""
        return self.wanted != Wanted()

    @property
    def pairs(self) -> dict[str, str]:
        """The parameters of the query, without those that have their default."""
        texts = {name: getattr(self.wanted, name) for name in _TEXTS}
        return {name: value for name, value in {"status": self.status, **texts}.items() if value not in {"", "open"}}

    def query(self, **changes: str) -> str:
        """Returns the filters as a query, with changes, or an empty text if all are the defaults."""
        wanted = {name: value for name, value in {**self.pairs, **changes}.items() if value}
        if wanted.get("status") == "open":
            del wanted["status"]
        return f"?{urlencode(wanted)}" if wanted else ""
