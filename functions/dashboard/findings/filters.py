"""The filters of the inbox's page."""

from collections.abc import Mapping
from typing import NamedTuple, cast, get_args
from urllib.parse import urlencode

from controlplane.findings.items import Source, Status
from controlplane.findings.lists import Sort, Wanted
from controlplane.platform.core.priorities import Priority
from dashboard.findings.groups import GROUPINGS

STATUSES: tuple[Status, ...] = get_args(Status)
PRIORITIES, SOURCES, SORTS = get_args(Priority), get_args(Source), get_args(Sort)
# The value of the status filter that selects all.
ALL = "all"
_TEXT_LENGTH = 200
_DEFAULTS = {"status": "open", "sort": "priority"}
# The parameters of the query, which have the names of the filters of any list of findings.
_TEXTS = ("priority", "source", "project_id", "repository_name", "vendor", "assignee", "text")


class Filters(NamedTuple):
    """The filters of a list of findings, its order, and how it is grouped, if it is.

    status: one of the statuses, or `all`.
    """

    status: str = "open"
    wanted: Wanted = Wanted()
    sort: Sort = "priority"
    group: str = ""

    @classmethod
    def read(cls, parameters: Mapping[str, str]) -> "Filters":
        """Returns the filters of a query. An unknown status, priority, or source doesn't limit the list."""
        given = {name: parameters.get(name, "").strip()[:_TEXT_LENGTH] for name in _TEXTS}
        for name, known in (("priority", PRIORITIES), ("source", SOURCES)):
            if given[name] not in known:
                given[name] = ""
        status, sort, group = (parameters.get(name, "") for name in ("status", "sort", "group"))
        return cls(
            status if status in {*STATUSES, ALL} else "open",
            Wanted(**given),
            cast("Sort", sort) if sort in SORTS else "priority",
            group if group in GROUPINGS else "",
        )

    @property
    def known_status(self) -> Status | None:
        return None if self.status == ALL else cast("Status", self.status)

    def wanted_by(self, user_id: str) -> Wanted:
        """Returns the filters of the person: the assignee `me` is their ID."""
        return self.wanted._replace(assignee=user_id) if self.wanted.assignee == "me" else self.wanted

    @property
    def is_narrow(self) -> bool:
        """True if anything but the status limits the list."""
        return self.wanted != Wanted()

    @property
    def pairs(self) -> dict[str, str]:
        """The parameters of the query, without those that have their default."""
        texts = {name: getattr(self.wanted, name) for name in _TEXTS}
        given = {"status": self.status, "sort": self.sort, "group": self.group, **texts}
        return {name: value for name, value in given.items() if value != _DEFAULTS.get(name, "")}

    def query(self, **changes: str) -> str:
        """Returns the filters as a query, with changes, or an empty text if all are the defaults."""
        wanted = {name: value for name, value in {**self.pairs, **changes}.items() if value}
        if wanted.get("status") == "open":
            del wanted["status"]
        return f"?{urlencode(wanted)}" if wanted else ""
