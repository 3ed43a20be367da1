"""A write that was decided on a state that has changed since is refused, and changes nothing.

Each case reads, and returns the write, the write of another caller that comes first, and the error. The other write
changes only what one condition compares.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from controlplane.store import (
    api_keys,
    device,
    identities,
    key_changes,
    keys,
    members,
    projects,
    users,
    vendors,
    webhook_deliveries,
)
from controlplane.store.api_key_items import ApiKeyItem
from controlplane.store.identities import IdentityItem, Subject
from controlplane.store.project_items import ProjectItem
from controlplane.store.retry import WriteConflict
from controlplane.store.table import ConditionFailed, Delete, LegFailed, Update, table
from controlplane.store.webhook_items import Attempt
from tests.functional.device_auth.devices import get_request, request_code
from tests.functional.projects.builders import make_project
from tests.support.api import Api
from tests.support.endpoints import delivered
from tests.support.populated_organization import OBSERVED_AT, detection
from tests.support.table import PREPARED
from tests.support.world import World, get_profile, table_dump

type Act = Callable[[], Any]
type Case = tuple[Act, Act, type[Exception]]

FAILED = Attempt("2026-03-04T05:06:07.000Z", 500, "status", 1)
IDENTITY = Subject("https://issuer.example", "ada")


def member_with_another_role(world: World) -> Case:
    company = world.company()
    member = members.get_member(company.organization_id, world.member(company).user_id)
    owner = company.owner.user_id
    return (
        lambda: members.change_role(member, "owner", owner, "owner"),
        lambda: members.change_role(member, "admin", owner, "owner"),
        WriteConflict,
    )


def account_with_another_address(world: World) -> Case:
    profile = get_profile(world.person().user_id)
    return (
        lambda: users.change_address(profile, "stale@example.com"),
        lambda: users.change_address(profile, "other@example.com"),
        WriteConflict,
    )


def project_of_a_deleted_organization(world: World) -> Case:
    project = make_project(world.company())
    organization = keys.organization(project.project_id.organization_id)
    return (
        lambda: projects.delete_project(project),
        lambda: table.delete(Delete(organization), PREPARED),
        projects.UnknownProject,
    )


def _delivery(world: World, earlier: Callable[[webhook_deliveries.Begun], Any]) -> Case:
    delivery = delivered(world.company())

    def attempt() -> None:
        begun = webhook_deliveries.begin_attempt(delivery.webhook_id, delivery.event_id, 1)
        assert begun is not None
        earlier(begun)

    return lambda: webhook_deliveries._give_up(delivery, "disabled"), attempt, WriteConflict


def delivery_that_is_being_attempted(world: World) -> Case:
    return _delivery(world, lambda _: None)


def delivery_that_was_attempted(world: World) -> Case:
    return _delivery(world, lambda begun: webhook_deliveries.finish_attempt(begun, FAILED, lambda _: None))


def delivery_that_was_given_up(world: World) -> Case:
    delivery = delivered(world.company())

    def give_up() -> None:
        webhook_deliveries._give_up(delivery, "expired")

    return give_up, give_up, WriteConflict


def device_request_that_was_denied(_: World) -> Case:
    request = get_request(request_code(Api()).device_code)
    denial = Update(request.key, "SET #status = :denied", None, {"denied": "denied"})
    return lambda: device.note_poll(request), lambda: table.update(denial, PREPARED), WriteConflict


def api_key_that_was_changed_again(world: World) -> Case:
    company = world.company()
    owner = company.owner.user_id
    key_id = api_keys.create_key(company.organization_id, "deploy", owner, "test").item.key_id

    def rename(name: str) -> ApiKeyItem:
        return key_changes.update_key(key_id, lambda it: replace(it, name=name), admin_id=owner)

    read = rename("first")
    write = key_changes._change(read, replace(read, name="stale"))
    return lambda: table.update(write, PREPARED), lambda: rename("second"), ConditionFailed


def _identity(
    world: World,
    prepare: Callable[[IdentityItem], Act],
    earlier: Callable[[str], Update],
    error: type[Exception] = LegFailed,
) -> Case:
    """Changes an account with one identity."""
    user_id = world.person().user_id
    table.transact(identities.first_legs(IDENTITY, user_id), PREPARED)
    (identity,) = identities.list_identities(user_id)
    return prepare(identity), lambda: table.update(earlier(user_id), PREPARED), error


def _erase(identity: IdentityItem) -> Act:
    legs = identities.erasure(identity.user_id, identities.list_listings(identity.user_id))
    return lambda: table.transact(legs, PREPARED)


def _unlist(identity: IdentityItem) -> Act:
    leg = identities._list(IDENTITY, identity.user_id, [IDENTITY.digest], [])
    return lambda: table.transact({"issuer": leg}, PREPARED)


def _give_away(_: str) -> Update:
    return Update(IDENTITY.key, "SET #userId = :other", None, {"other": "usr_other"})


def _list_another(user_id: str) -> Update:
    change = "SET #identities = list_append(#identities, :others)"
    return Update(IDENTITY.issuer_key(user_id), change, None, {"others": ["another"]})


def identity_of_another_account_that_is_erased(world: World) -> Case:
    return _identity(world, _erase, _give_away)


def identity_of_another_account_that_is_replaced(world: World) -> Case:
    return _identity(world, lambda it: lambda: identities.replace(it, "grace"), _give_away, WriteConflict)


def identity_of_another_account_that_is_moved(world: World) -> Case:
    target = world.person().user_id
    return _identity(world, lambda it: lambda: identities.move(it, target), _give_away, WriteConflict)


def account_with_another_identity(world: World) -> Case:
    return _identity(world, _erase, _list_another)


def list_with_another_identity(world: World) -> Case:
    return _identity(world, _unlist, _list_another)


@dataclass
class Vendor:
    """A vendor of a project."""

    project: ProjectItem
    decided_by: str

    def detect(self, at: str = OBSERVED_AT) -> None:
        vendors.record_detection(replace(detection(self.project.project_id), observed_at=at))

    def approve(self) -> None:
        vendors.decide_vendor(self.project, "segment", "approved", self.decided_by)

    def ignore(self) -> None:
        vendors.decide_vendor(self.project, "segment", "ignored", self.decided_by)


def _vendor(world: World, first: Callable[[Vendor], Any], earlier: Callable[[Vendor], Any]) -> Case:
    """Decides on a vendor. first: what was done before it was read."""
    company = world.company()
    vendor = Vendor(make_project(company), company.owner.user_id)
    first(vendor)
    read = vendors.find_vendor(vendor.project.project_id, "segment")
    write = vendors._decision(vendor.project, "segment", "ignored", vendor.decided_by, read)
    return lambda: table.update(write, PREPARED), lambda: earlier(vendor), ConditionFailed


def vendor_that_was_decided_on(world: World) -> Case:
    return _vendor(world, Vendor.detect, Vendor.approve)


def vendor_that_was_decided_on_again(world: World) -> Case:
    return _vendor(world, lambda it: (it.detect(), it.ignore()), Vendor.approve)


def vendor_that_was_detected(world: World) -> Case:
    return _vendor(world, lambda _: None, Vendor.detect)


def vendor_that_was_detected_again(world: World) -> Case:
    return _vendor(world, Vendor.detect, lambda it: it.detect("2026-03-04T05:05:00.000Z"))


CASES = [
    member_with_another_role,
    account_with_another_address,
    project_of_a_deleted_organization,
    delivery_that_is_being_attempted,
    delivery_that_was_attempted,
    delivery_that_was_given_up,
    device_request_that_was_denied,
    api_key_that_was_changed_again,
    identity_of_another_account_that_is_erased,
    identity_of_another_account_that_is_replaced,
    identity_of_another_account_that_is_moved,
    account_with_another_identity,
    list_with_another_identity,
    vendor_that_was_decided_on,
    vendor_that_was_decided_on_again,
    vendor_that_was_detected,
    vendor_that_was_detected_again,
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_an_outdated_write_is_refused_and_changes_nothing(case: Callable[[World], Case], world: World):
    write, earlier, error = case(world)
    earlier()
    before = table_dump()
    with pytest.raises(error):
        write()
    assert table_dump() == before
