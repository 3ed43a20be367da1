"""Writes about findings and vendors."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from controlplane.findings import intake, publications, vendors
from controlplane.findings.items import Discovery, Evidence
from controlplane.findings.vendors import VendorItem
from controlplane.platform.table import keys
from controlplane.platform.table.retry import WriteConflict
from controlplane.platform.table.table import ConditionFailed, Delete, Update, table
from controlplane.projects.items import ProjectItem
from tests.functional.projects.builders import make_project
from tests.functional.stale_writes.cases import Case, Make, cases, check_refused
from tests.support.populated_organization import OBSERVED_AT, detection
from tests.support.published import publish_finding
from tests.support.table import PREPARED
from tests.support.world import World


def finding_that_was_published(world: World) -> Case:
    found = world.discovery(world.company())
    write = publications.publish_leg(found, None)
    return lambda: publications._write(write), lambda: publish_finding(found), WriteConflict


def _observed(world: World, write: Callable[[Discovery, Any], Any], earlier: Callable[[Discovery], Any]) -> Case:
    """Observes a finding again, which changes nothing that lists show."""
    found = world.discovery(world.company())
    publish_finding(found)
    key = keys.inbox_item(*found.item_id.location)
    again = found._replace(observed_at="2026-03-04T06:00:00.000Z", evidence=(Evidence("A page"),))
    leg = write(again, table.get(key))
    return lambda: publications._write(leg), lambda: earlier(again), WriteConflict


def finding_that_was_observed_later(world: World) -> Case:
    later = "2026-03-04T07:00:00.000Z"
    return _observed(world, publications.publish_leg, lambda it: publish_finding(it._replace(observed_at=later)))


def finding_that_was_deleted(world: World) -> Case:
    def delete(found: Discovery) -> None:
        table.delete(Delete(keys.inbox_item(*found.item_id.location)), PREPARED)

    return _observed(world, publications.evidence_leg, delete)


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

    def approve(self) -> None:
        vendors.decide_vendor(self.project, "segment", "approved", self.decided_by)

    def ignore(self) -> None:
        vendors.decide_vendor(self.project, "segment", "ignored", self.decided_by)


def _seen(
    world: World,
    first: Callable[[Vendor], Any],
    earlier: Callable[[Vendor], Any],
    write: Callable[[Vendor, VendorItem | None], Update],
) -> Case:
    """Writes a vendor. first: what was done before it was read."""
    company = world.company()
    vendor = Vendor(make_project(company), company.owner.user_id)
    first(vendor)
    leg = write(vendor, vendors.find_vendor(vendor.project.project_id, "segment"))
    return lambda: table.update(leg, PREPARED), lambda: earlier(vendor), ConditionFailed


def _vendor(world: World, first: Callable[[Vendor], Any], earlier: Callable[[Vendor], Any]) -> Case:
    """Decides on a vendor."""
    return _seen(
        world, first, earlier, lambda it, read: vendors._decision(it.project, "segment", "ignored", it.decided_by, read)
    )


def vendor_that_was_decided_on(world: World) -> Case:
    return _vendor(world, Vendor.detect, Vendor.approve)


def vendor_that_was_decided_on_again(world: World) -> Case:
    return _vendor(world, lambda it: (it.detect(), it.ignore()), Vendor.approve)


def vendor_that_was_detected(world: World) -> Case:
    return _vendor(world, lambda _: None, Vendor.detect)


def vendor_that_was_detected_again(world: World) -> Case:
    return _vendor(world, Vendor.detect, lambda it: it.detect("2026-03-04T05:05:00.000Z"))


def vendor_that_was_deleted(world: World) -> Case:
    return _vendor(world, Vendor.detect, lambda it: table.delete(Delete(it.key), PREPARED))


def _detection(world: World, first: Callable[[Vendor], Any], earlier: Callable[[Vendor], Any]) -> Case:
    """Stores a detection of a vendor."""
    return _seen(
        world,
        first,
        earlier,
        lambda it, read: intake._if_unchanged(it.key, read, {"domain": "stale.example"}),
    )


def detected_vendor_that_was_decided_on(world: World) -> Case:
    return _detection(world, Vendor.detect, Vendor.approve)


def detected_vendor_that_was_decided_on_again(world: World) -> Case:
    return _detection(world, lambda it: (it.detect(), it.ignore()), Vendor.approve)


def detected_vendor_that_was_detected_again(world: World) -> Case:
    return _detection(world, Vendor.detect, lambda it: it.detect("2026-03-04T05:05:00.000Z"))


@pytest.mark.parametrize("make", cases(globals()), ids=lambda make: make.__name__)
def test_an_outdated_write_is_refused_and_changes_nothing(make: Make, world: World):
    check_refused(make, world)
