"""Groups of the inbox's page: the findings of a rule, about a vendor, or in a file."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from controlplane.findings import inbox
from controlplane.findings.items import InboxItem
from controlplane.scans.rules import known_rule

_SOURCES = {"advisory": "Advisories", "runtime": "Websites", "code-audit": "Code"}


class FindingGroup(NamedTuple):
    """Findings of a page that belong together, in the order of the page."""

    name: str
    items: list[InboxItem]

    @property
    def priority(self) -> str | None:
        """The most urgent priority of the findings."""
        return min((item.priority for item in self.items if item.priority), default=None)

    @property
    def chosen(self) -> str:
        """The value of the field that selects all of the findings: their IDs and versions."""
        return " ".join(f"{item.item_id}={item.version}" for item in self.items)


def _rule_of(item: InboxItem) -> str:
    return known_rule(item.rule_id).title if item.rule_id else _SOURCES[item.source]


def _vendor_of(item: InboxItem) -> str:
    vendor = item.runtime_vendor
    return vendor.vendor_id if vendor else ", ".join(item.vendor_ids) or "No vendor"


def _file_of(item: InboxItem) -> str:
    return f"{item.repository_name}/{item.path}" if item.path else "No file"


GROUPINGS: Mapping[str, Callable[[InboxItem], str]] = {"rule": _rule_of, "vendor": _vendor_of, "file": _file_of}


def group_findings(items: Sequence[InboxItem], grouping: str) -> list[FindingGroup]:
    """Returns the items of a list in groups, each at the place of its first item.

    Takes a round trip for items of lists, which have no rules and vendors. Those that were deleted are left out.
    """
    whole = inbox.find_items(item.item_id for item in items)
    groups: dict[str, FindingGroup] = {}
    for item in (whole[it.item_id] for it in items if it.item_id in whole):
        name = GROUPINGS[grouping](item)
        groups.setdefault(name, FindingGroup(name, [])).items.append(item)
    return list(groups.values())
