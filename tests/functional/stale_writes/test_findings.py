"""Writes about findings and vendors."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from controlplane.findings import code_uses, intake, publications, vendors
from controlplane.findings.discoveries import Discovery
from controlplane.findings.items import CodeUse, Evidence
from controlplane.findings.vendors import VendorItem
from controlplane.platform.table import keys
from controlplane.platform.table.retry import WriteConflict
from controlplane.platform.table.table import ConditionFailed, LegFailed, Update, table
from controlplane.projects.changes import vendors_leg
from controlplane.projects.items import ProjectItem
from tests.functional.projects.builders import make_project
from tests.functional.stale_writes.cases import (
    Case,
    Make,
    check_refused,
    deletes,
    transacts,
    updates,
)
from tests.support.populated_organization import OBSERVED_AT, detection
from tests.support.world import World, publish_finding


def _published(world: World) -> Case:
    found = world.discovery(world.company())
    write = publications.publish_leg(found, None)
    return lambda: publications._write(write), lambda: publish_finding(found), WriteConflict


def _observed(world: World, write: Callable[[Discovery, Any], Any], earlier: Callable[[Discovery], Any]) -> Case:
    """Observes a finding again, which changes nothing that lists show."""
    found = world.discovery(world.company())
    publish_finding(found)
    again = found._replace(observed_at="2026-03-04T06:00:00.000Z", evidence=(Evidence("A page"),))
    leg = write(again, table.get(keys.inbox_item(*found.item_id.location)))
    return lambda: publications._write(leg), lambda: earlier(again), WriteConflict


def _observe_later(found: Discovery) -> None:
    publish_finding(found._replace(observed_at="2026-03-04T07:00:00.000Z"))


@dataclass
class Vendor:
    """A vendor of a project."""

    project: ProjectItem
    decided_by: str

    @property
    def key(self) -> keys.Key:
        return keys.vendor(*self.project.project_id.location, "segment")

    def detect(self, at: str = OBSERVED_AT) -> None:
        intake.record_detection(detection(self.project.project_id, observedAt=at))

    def detect_earlier(self) -> None:
        self.detect("2026-03-04T05:05:00.000Z")

    def approve(self) -> None:
        vendors.decide_vendor(self.project, "segment", "approved", self.decided_by)

    def use(self, repository_id: str) -> None:
        updates(_use(self, vendors.find_vendor(self.project.project_id, "segment"), repository_id))()

    def detect_and_use(self) -> None:
        self.detect()
        self.use("rep_1")

    def detect_and_ignore(self) -> None:
        self.detect()
        vendors.decide_vendor(self.project, "segment", "ignored", self.decided_by)


def _decide(vendor: Vendor, read: VendorItem | None) -> Update:
    return vendors._decision(vendor.project, "segment", "ignored", vendor.decided_by, read)


def _detect(vendor: Vendor, read: VendorItem | None) -> Update:
    return intake._if_unchanged(vendor.key, read, {"domain": "stale.example"})


def _use(vendor: Vendor, read: VendorItem | None, repository_id: str = "rep_3") -> Update:
    assert read is not None
    use = CodeUse(repository_id, "shop", "scn_1", OBSERVED_AT, "https://github.com/acme/shop/tree/1f0c")
    return code_uses._leg(read, use, read)


def _project(world: World) -> Case:
    """Changes a vendor without changing what its project lists."""
    project = make_project(world.company())
    return transacts(project=vendors_leg(project, project)), deletes(project.key), LegFailed


def _vendor(
    write: Callable[[Vendor, VendorItem | None], Update],
    first: Callable[[Vendor], Any],
    earlier: Callable[[Vendor], Any],
) -> Make:
    """Writes a vendor. first: what was done before it was read."""

    def make(world: World) -> Case:
        company = world.company()
        vendor = Vendor(make_project(company), company.owner.user_id)
        first(vendor)
        leg = write(vendor, vendors.find_vendor(vendor.project.project_id, "segment"))
        return updates(leg), lambda: earlier(vendor), ConditionFailed

    return make


CASES: dict[str, Make] = {
    "finding that was published": _published,
    "finding that was observed later": lambda it: _observed(it, publications.publish_leg, _observe_later),
    "finding that was deleted": lambda it: _observed(
        it, publications.evidence_leg, lambda found: deletes(keys.inbox_item(*found.item_id.location))()
    ),
    "decision on a vendor that was decided on": _vendor(_decide, Vendor.detect, Vendor.approve),
    "decision on a vendor that was decided on again": _vendor(_decide, Vendor.detect_and_ignore, Vendor.approve),
    "decision on a vendor that was detected": _vendor(_decide, lambda _: None, Vendor.detect),
    "decision on a vendor that was detected again": _vendor(_decide, Vendor.detect, Vendor.detect_earlier),
    "decision on a vendor that was deleted": _vendor(_decide, Vendor.detect, lambda it: deletes(it.key)()),
    "detection of a vendor that was detected first": _vendor(_detect, lambda _: None, Vendor.detect),
    "detection of a vendor that was only decided on": _vendor(_detect, Vendor.approve, Vendor.detect),
    "first use of a vendor in code": _vendor(_use, Vendor.detect, lambda it: it.use("rep_2")),
    "another use of a vendor in code": _vendor(_use, Vendor.detect_and_use, lambda it: it.use("rep_2")),
    "vendor of a deleted project": _project,
    "detection of a vendor that was decided on": _vendor(_detect, Vendor.detect, Vendor.approve),
    "detection of a vendor that was decided on again": _vendor(_detect, Vendor.detect_and_ignore, Vendor.approve),
    "detection of a vendor that was detected again": _vendor(_detect, Vendor.detect, Vendor.detect_earlier),
}


@pytest.mark.parametrize("name", CASES)
def test_an_outdated_write_is_refused_and_changes_nothing(name, world):
    check_refused(CASES[name], world)
