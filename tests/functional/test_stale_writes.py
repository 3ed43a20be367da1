"""A write that was decided on a state that has changed since is refused, and changes nothing.

Each case reads, and returns the write, the write of another caller that comes first, and the error. The other write
changes only what one condition compares.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from controlplane.core import clock
from controlplane.core.ids import InvitationId, ProjectId, RepositoryId, ScanRequestId
from controlplane.store import (
    api_keys,
    billing,
    detections,
    device,
    identities,
    invitations,
    key_changes,
    keys,
    leases,
    members,
    organizations,
    outbox,
    projects,
    pull_requests,
    resends,
    users,
    vendors,
    webhook_deliveries,
    webhooks,
)
from controlplane.store.api_key_items import ApiKeyItem
from controlplane.store.identities import IdentityItem, Subject
from controlplane.store.invitation_items import InvitationItem
from controlplane.store.leases import Lease, LeaseLost
from controlplane.store.organizations import Membership, UnknownOrganization
from controlplane.store.project_items import ProjectItem
from controlplane.store.pull_requests import PullRequestItem
from controlplane.store.retry import WriteConflict
from controlplane.store.scans import execution, failures, history, recovery, requests
from controlplane.store.scans.items import STAGES, RequestItem, ScanItem
from controlplane.store.table import Check, ConditionFailed, Delete, Leg, LegFailed, Put, Update, table
from tests.functional.device_auth.devices import get_request, request_code
from tests.functional.projects.builders import make_project
from tests.support.api import Api
from tests.support.audits import end_scan, history_of, lease_of, make_issue, make_request, make_scan
from tests.support.code_host import SHA
from tests.support.endpoints import FAILED, begin, delivered, endpoint
from tests.support.populated_organization import OBSERVED_AT, detection
from tests.support.table import PREPARED
from tests.support.world import World, get_profile, table_dump

type Act = Callable[[], Any]
type Case = tuple[Act, Act, type[Exception]]

ORGANIZATION = "org_0000000000000000"
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


def member_with_another_role_who_is_removed(world: World) -> Case:
    company = world.company()
    member = members.get_member(company.organization_id, world.member(company).user_id)
    owner = company.owner.user_id
    return (
        lambda: members.delete_member(member, owner, "owner"),
        lambda: members.change_role(member, "admin", owner, "owner"),
        WriteConflict,
    )


def member_with_another_role_who_owns_too_many(world: World) -> Case:
    company = world.company()
    member = members.get_member(company.organization_id, world.member(company).user_id)
    owner = company.owner.user_id
    return (
        lambda: members.change_role(member, "owner", owner, "owner", limit=0),
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

    return lambda: webhook_deliveries._give_up(delivery, "disabled"), lambda: earlier(begin(delivery)), WriteConflict


def delivery_that_is_being_attempted(world: World) -> Case:
    return _delivery(world, lambda _: None)


def delivery_that_was_attempted(world: World) -> Case:
    return _delivery(world, lambda begun: webhook_deliveries.finish_attempt(begun, FAILED, lambda _: None))


def delivery_that_was_given_up(world: World) -> Case:
    delivery = delivered(world.company())

    def give_up() -> None:
        webhook_deliveries._give_up(delivery, "expired")

    return give_up, give_up, WriteConflict


def _taken(world: World, earlier: Callable[[webhook_deliveries.Begun], Any]) -> Case:
    """Takes a delivery for an attempt."""
    delivery = delivered(world.company())
    webhook = webhooks.get_webhook(delivery.webhook_id)
    begun = webhook_deliveries.Begun(webhook, delivery, "{}", 0, int(clock.now()) + 60)
    return lambda: webhook_deliveries._take(begun, int(clock.now())), lambda: earlier(begun), WriteConflict


def delivery_that_was_given_up_before_it_is_taken(world: World) -> Case:
    return _taken(world, lambda begun: webhook_deliveries._give_up(begun.delivery, "expired"))


def delivery_that_was_attempted_before_it_is_taken(world: World) -> Case:
    return _taken(world, lambda begun: webhook_deliveries.finish_attempt(begin(begun.delivery), FAILED, lambda _: None))


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


def api_key_that_was_deleted(world: World) -> Case:
    company = world.company()
    owner = company.owner.user_id
    read = api_keys.create_key(company.organization_id, "deploy", owner, "test").item
    write = key_changes._change(read, replace(read, name="stale"))
    return (
        lambda: table.update(write, PREPARED),
        lambda: key_changes.delete_key(read.key_id, admin_id=owner),
        ConditionFailed,
    )


def api_key_on_a_former_plan(world: World) -> Case:
    company = world.company()
    read = organizations.get_organization(company.organization_id)
    return (
        lambda: api_keys.create_key(read.organization_id, "deploy", company.owner.user_id, "test", known=read),
        lambda: billing.change_plan(read.organization_id, "free"),
        api_keys.PlanHasNoApiAccess,
    )


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


def identity_of_a_deleted_account(world: World) -> Case:
    """Replaces an identity from before lists of them existed, so that only the account can be missing."""
    user_id = world.person().user_id
    table.transact({"identity": identities._put(IDENTITY, user_id)}, PREPARED)
    identity = identities.find_identity(IDENTITY)
    assert identity is not None
    return (
        lambda: identities.replace(identity, "grace"),
        lambda: table.delete(Delete(keys.user(user_id)), PREPARED),
        WriteConflict,
    )


def identity_that_another_account_has_taken(world: World) -> Case:
    taken = identities._put(Subject(IDENTITY.issuer, "grace"), "usr_other")
    write, _, _ = _identity(world, lambda it: lambda: identities.replace(it, "grace"), _give_away)
    return write, lambda: table.transact({"identity": taken}, PREPARED), identities.IdentityTaken


def account_with_another_identity(world: World) -> Case:
    return _identity(world, _erase, _list_another)


def list_with_another_identity(world: World) -> Case:
    return _identity(world, _unlist, _list_another)


class Refused(Exception):
    """A write that returns whether it happened didn't."""


def _scan(
    world: World,
    write: Callable[[ScanItem, Lease], Any],
    earlier: Callable[[ScanItem], Any] = failures.cancel_superseded,
    error: type[Exception] = LeaseLost,
) -> Case:
    """Writes to a scan as its worker does."""
    scan = make_scan(world.connected_repository(world.company()), status="running")
    lease = lease_of(scan)
    return lambda: write(scan, lease), lambda: earlier(scan), error


def stage_of_a_canceled_scan(world: World) -> Case:
    return _scan(world, lambda _, lease: execution.report_stage(lease, STAGES[0], "completed"))


def history_of_a_canceled_scan(world: World) -> Case:
    return _scan(world, lambda scan, lease: history.put_history(lease, [history_of(scan, make_issue())]))


def completed_scan_that_is_acquired(world: World) -> Case:
    def complete(scan: ScanItem) -> None:
        lease = lease_of(scan)
        end_scan(scan)
        leases.release(lease)

    return _scan(world, lambda scan, _: execution.acquire_scan(scan.scan_id, 420), complete, leases.Finished)


def completed_scan_that_is_retried(world: World) -> Case:
    def retry(scan: ScanItem, _: Lease) -> None:
        if not recovery._retry(scan, outbox.new_entry("scan-execution", {})):
            raise Refused

    return _scan(world, retry, end_scan, Refused)


def failed_scan_that_is_completed(world: World) -> Case:
    def fail(scan: ScanItem) -> None:
        table.update(Update(scan.key, "SET #status = :failed", None, {"failed": "failed"}), PREPARED)

    return _scan(world, lambda scan, _: end_scan(scan), fail)


def _start(world: World, change: Callable[[RequestItem], Update]) -> Case:
    """Starts the scan of a request."""
    repository = world.connected_repository(world.company())
    lease, request = requests.acquire_request(make_request(repository), 30)
    scan_id = requests.new_scan_id(repository.organization_id)
    target = requests.Target(repository, repository.links[0], "main", SHA)
    message = outbox.new_entry("scan-execution", {})
    return (
        lambda: requests.start_scan(request, lease, scan_id, target, access="free-preview", message=message),
        lambda: table.update(change(request), PREPARED),
        LeaseLost,
    )


def failed_request_whose_scan_is_started(world: World) -> Case:
    return _start(world, lambda it: Update(it.key, "SET #status = :failed", None, {"failed": "failed"}))


def freed_repository_whose_scan_is_started(world: World) -> Case:
    return _start(world, lambda it: failures.free_repository(it.repository_id, it.request_id))


def repository_with_another_preview(world: World) -> Case:
    def use(request: RequestItem) -> Update:
        return Update(
            keys.repository(*request.repository_id.location), "SET #previewUsed = :true", None, {"true": True}
        )

    return _start(world, use)


def _pull_request(earlier: ScanRequestId | None, later: ScanRequestId | None) -> Case:
    """Checks that the scan of a pull request is still the one that was read."""
    item = PullRequestItem(
        repository_id=RepositoryId.of(ORGANIZATION, "r1"),
        project_id=ProjectId.of(ORGANIZATION, "p1"),
        number=12,
        head_sha="1f0c",
        request_id=earlier,
    )
    table.put(Put(item.to_item()), PREPARED)
    same = Check(item.key, *pull_requests._as_read(item))
    changed = replace(item, request_id=later)
    return (
        lambda: table.transact({"pullRequest": same}, PREPARED),
        lambda: table.put(Put(changed.to_item()), PREPARED),
        LegFailed,
    )


def pull_request_whose_scan_was_requested(_: World) -> Case:
    return _pull_request(None, ScanRequestId.of(ORGANIZATION, "q1"))


def pull_request_whose_scan_was_requested_again(_: World) -> Case:
    return _pull_request(ScanRequestId.of(ORGANIZATION, "q1"), ScanRequestId.of(ORGANIZATION, "q2"))


def endpoint_of_a_deleted_organization(world: World) -> Case:
    company = world.company()
    organization = keys.organization(company.organization_id)
    return lambda: endpoint(company), lambda: table.delete(Delete(organization), PREPARED), UnknownOrganization


def slot_that_another_delivery_has(world: World) -> Case:
    def take(begun: webhook_deliveries.Begun) -> None:
        taken = Update(begun.webhook.key, "SET #slot0 = :until", None, {"until": int(clock.now()) + 1})
        table.update(taken, PREPARED)

    return _taken(world, take)


def _invitation(world: World, earlier: Callable[[InvitationItem, Mapping[str, Leg]], Any]) -> Case:
    """Sends an invitation again."""
    owner = world.company().owner
    body = {"email": "grace@example.com", "role": "member"}
    invitation_id = InvitationId.stored(Api().post("/v1/invitations", owner.token, json_body=body).data["id"])
    read = invitations.find_invitation(invitation_id)
    assert read is not None
    legs = resends._legs(owner.user_id, read, resends._renew(read, resends.ResendLimits(9, 9)))
    return lambda: table.transact(legs, PREPARED), lambda: earlier(read, legs), LegFailed


def invitation_that_was_deleted(world: World) -> Case:
    return _invitation(world, lambda read, _: table.delete(Delete(read.key), PREPARED))


def invitation_that_was_sent_again(world: World) -> Case:
    return _invitation(world, lambda _, legs: table.transact({"invitation": legs["invitation"]}, PREPARED))


def _joining(world: World, role: organizations.Role, change: str) -> Case:
    """Makes a person a member of another person's organization."""
    company, user_id = world.company(), world.person().user_id
    joined = Membership(organization_id=company.organization_id, slug=company.slug, name="Acme", role=role)
    legs = organizations.join(joined, organizations.get_account(user_id), 3).legs
    other = Update(keys.user(user_id), change, None, {"other": "other"})
    return lambda: table.transact(legs, PREPARED), lambda: table.update(other, PREPARED), LegFailed


def member_with_another_address(world: World) -> Case:
    return _joining(world, "member", "SET #email = :other")


def member_with_another_default(world: World) -> Case:
    return _joining(world, "member", "SET #savedOrganizationId = :other")


def owner_with_another_address(world: World) -> Case:
    return _joining(world, "owner", "SET #email = :other")


def owner_with_another_default(world: World) -> Case:
    return _joining(world, "owner", "SET #savedOrganizationId = :other")


@dataclass
class Vendor:
    """A vendor of a project."""

    project: ProjectItem
    decided_by: str

    @property
    def key(self) -> keys.Key:
        return keys.vendor(*self.project.project_id.location, "segment")

    def detect(self, at: str = OBSERVED_AT) -> None:
        detections.record_detection(replace(detection(self.project.project_id), observed_at=at))

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


def vendor_that_was_deleted(world: World) -> Case:
    def detect_as_before(vendor: Vendor) -> None:
        """Leaves the vendor as a release that didn't count detections stored it."""
        vendor.detect()
        table.update(Update(vendor.key, "REMOVE #revision"), PREPARED)

    return _vendor(world, detect_as_before, lambda it: table.delete(Delete(it.key), PREPARED))


def _detection(world: World, first: Callable[[Vendor], Any], earlier: Callable[[Vendor], Any]) -> Case:
    """Stores a detection of a vendor. first: what was done before it was read."""
    company = world.company()
    vendor = Vendor(make_project(company), company.owner.user_id)
    first(vendor)
    read = vendors.find_vendor(vendor.project.project_id, "segment")
    write = detections._if_unchanged(vendor.key, read, {"domain": "stale.example"})
    return lambda: table.update(write, PREPARED), lambda: earlier(vendor), ConditionFailed


def detected_vendor_that_was_decided_on(world: World) -> Case:
    return _detection(world, Vendor.detect, Vendor.approve)


def detected_vendor_that_was_decided_on_again(world: World) -> Case:
    return _detection(world, lambda it: (it.detect(), it.ignore()), Vendor.approve)


CASES = [
    member_with_another_role,
    member_with_another_role_who_is_removed,
    member_with_another_role_who_owns_too_many,
    account_with_another_address,
    project_of_a_deleted_organization,
    delivery_that_is_being_attempted,
    delivery_that_was_attempted,
    delivery_that_was_given_up,
    delivery_that_was_given_up_before_it_is_taken,
    delivery_that_was_attempted_before_it_is_taken,
    device_request_that_was_denied,
    api_key_that_was_changed_again,
    api_key_that_was_deleted,
    api_key_on_a_former_plan,
    identity_of_another_account_that_is_erased,
    identity_of_another_account_that_is_replaced,
    identity_of_another_account_that_is_moved,
    identity_of_a_deleted_account,
    identity_that_another_account_has_taken,
    account_with_another_identity,
    list_with_another_identity,
    stage_of_a_canceled_scan,
    history_of_a_canceled_scan,
    completed_scan_that_is_acquired,
    completed_scan_that_is_retried,
    failed_scan_that_is_completed,
    failed_request_whose_scan_is_started,
    freed_repository_whose_scan_is_started,
    repository_with_another_preview,
    pull_request_whose_scan_was_requested,
    pull_request_whose_scan_was_requested_again,
    endpoint_of_a_deleted_organization,
    slot_that_another_delivery_has,
    invitation_that_was_deleted,
    invitation_that_was_sent_again,
    member_with_another_address,
    member_with_another_default,
    owner_with_another_address,
    owner_with_another_default,
    vendor_that_was_decided_on,
    vendor_that_was_decided_on_again,
    vendor_that_was_detected,
    vendor_that_was_detected_again,
    vendor_that_was_deleted,
    detected_vendor_that_was_decided_on,
    detected_vendor_that_was_decided_on_again,
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_an_outdated_write_is_refused_and_changes_nothing(case: Callable[[World], Case], world: World):
    write, earlier, error = case(world)
    earlier()
    before = table_dump()
    with pytest.raises(error):
        write()
    assert table_dump() == before


def test_only_the_account_that_has_an_identity_lists_it(world: World):
    user_id = "usr_" + "0" * 16
    table.transact({"identity": identities._put(IDENTITY, user_id)}, PREPARED)
    another = world.person().user_id
    before = table_dump()
    for not_listing in (user_id, another):
        identities.record(IDENTITY, not_listing)
    identity = identities.find_identity(IDENTITY)
    assert identity is not None
    assert not identities.record_if_missing(identity)
    assert table_dump() == before
