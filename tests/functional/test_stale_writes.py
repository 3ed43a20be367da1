"""A write that was decided on a state that has changed since is refused, and changes nothing.

Each case reads, and returns the write, the write of another caller that comes first, and the error. The other write
changes only what one condition compares.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from controlplane.core import clock
from controlplane.core.ids import InvitationId, ProjectId, RepositoryId, ScanId, ScanRequestId
from controlplane.store import (
    api_keys,
    billing,
    cleanup,
    deletions,
    detections,
    device,
    idempotency,
    identities,
    invitations,
    key_changes,
    keys,
    leases,
    mail_batches,
    mails,
    members,
    organizations,
    outbox,
    projects,
    publications,
    pull_requests,
    resends,
    users,
    vendors,
    webhook_deliveries,
    webhooks,
)
from controlplane.store.api_key_items import ApiKeyItem
from controlplane.store.identities import IdentityItem, Subject
from controlplane.store.inbox_items import Discovery, Evidence
from controlplane.store.invitation_items import InvitationItem
from controlplane.store.leases import Lease, LeaseLost
from controlplane.store.mails import MailId
from controlplane.store.organization_items import LedgerItem
from controlplane.store.organizations import Membership, UnknownOrganization
from controlplane.store.project_items import ProjectItem
from controlplane.store.pull_requests import PullRequestItem
from controlplane.store.repositories import ProjectGone, RepositoryItem, UnknownRepository
from controlplane.store.retry import WriteConflict
from controlplane.store.scans import (
    execution,
    failures,
    history,
    queue,
    reads,
    recovery,
    requests,
    resolutions,
    unlocks,
)
from controlplane.store.scans.causes import Cause
from controlplane.store.scans.items import STAGES, RequestItem, ScanItem
from controlplane.store.scans.queue import QueuedScan
from controlplane.store.table import Check, ConditionFailed, Delete, Leg, LegFailed, Put, Update, table
from tests.functional.device_auth.devices import get_request, request_code
from tests.functional.projects.builders import make_project
from tests.support.api import Api
from tests.support.audits import end_scan, history_of, lease_of, make_issue, make_request, make_scan
from tests.support.calls import before_the_transaction
from tests.support.code_host import SHA
from tests.support.endpoints import FAILED, begin, delivered, endpoint
from tests.support.populated_organization import OBSERVED_AT, detection
from tests.support.table import PREPARED
from tests.support.world import World, get_profile, table_dump

type Act = Callable[[], Any]
type Case = tuple[Act, Act, type[Exception]]

ORGANIZATION = "org_0000000000000000"
PULL_REQUEST = PullRequestItem(
    repository_id=RepositoryId.of(ORGANIZATION, "r1"),
    project_id=ProjectId.of(ORGANIZATION, "p1"),
    number=12,
    head_sha="1f0c",
)
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


def delivery_that_another_worker_has(world: World) -> Case:
    def lease(begun: webhook_deliveries.Begun) -> None:
        until = {"until": int(clock.now()) + 1}
        table.update(Update(begun.delivery.key, "SET #leaseUntil = :until", None, until), PREPARED)

    return _taken(world, lease)


def _finished(world: World, change: str, value: object) -> Case:
    """Records an attempt."""
    begun = begin(delivered(world.company()))

    def finish() -> None:
        if webhook_deliveries.finish_attempt(begun, FAILED, lambda _: None) is None:
            raise Refused

    other = Update(begun.delivery.key, change, None, {"value": value})
    return finish, lambda: table.update(other, PREPARED), Refused


def attempt_at_a_delivery_that_has_ended(world: World) -> Case:
    return _finished(world, "SET #status = :value", "failed")


def attempt_that_was_recorded(world: World) -> Case:
    return _finished(world, "SET #attempts = :value", 1)


def attempt_that_another_worker_makes(world: World) -> Case:
    return _finished(world, "SET #leaseUntil = :value", 1)


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


def _retry(scan: ScanItem, _: Lease) -> None:
    if not recovery._retry(scan, outbox.new_entry("scan-execution", {})):
        raise Refused


def completed_scan_that_is_retried(world: World) -> Case:
    return _scan(world, _retry, end_scan, Refused)


def abandoned_scan_that_its_worker_gives_back(world: World) -> Case:
    return _scan(world, _retry, lambda scan: leases.release(lease_of(scan)), Refused)


def waiting_scan_that_was_attempted_again(world: World) -> Case:
    scan_id = make_scan(world.connected_repository(world.company()), status="running").scan_id
    leases.release(lease_of(reads.get_scan(scan_id)))
    read = reads.get_scan(scan_id)

    def fail() -> None:
        if not failures.fail_abandoned(read):
            raise Refused

    return fail, lambda: leases.release(execution.acquire_scan(scan_id, 420)[0]), Refused


def failed_scan_that_is_completed(world: World) -> Case:
    def fail(scan: ScanItem) -> None:
        table.update(Update(scan.key, "SET #status = :failed", None, {"failed": "failed"}), PREPARED)

    return _scan(world, lambda scan, _: end_scan(scan), fail)


def _unlocked(world: World, change: str, value: object) -> Case:
    """Unlocks a scan."""
    company = world.company("free")
    world.credits(company, 100)
    scan = make_scan(world.connected_repository(company), issues=[make_issue(number) for number in range(1, 6)])

    def unlock() -> None:
        if unlocks.unlock_scan(scan, company.owner.user_id, outbox.new_entry("scan-execution", {})) == "already":
            raise Refused

    other = Update(scan.key, change, None, {"value": value})
    return unlock, lambda: table.update(other, PREPARED), Refused


def scan_of_a_disconnected_repository_that_is_completed(world: World) -> Case:
    def disconnect(scan: ScanItem) -> None:
        table.delete(Delete(keys.repository(*scan.repository_id.location)), PREPARED)

    return _scan(world, lambda scan, _: end_scan(scan), disconnect)


def _request(world: World, gone: Callable[[RepositoryItem], keys.Key], error: type[Exception]) -> Case:
    """Requests a scan of what another request deletes."""
    repository = world.connected_repository(world.company())
    return lambda: make_request(repository), lambda: table.delete(Delete(gone(repository)), PREPARED), error


def scan_of_a_deleted_project(world: World) -> Case:
    return _request(world, lambda it: keys.project(*it.links[0].project_id.location), ProjectGone)


def scan_of_a_disconnected_repository(world: World) -> Case:
    return _request(world, lambda it: keys.repository(*it.location), UnknownRepository)


def queued_scan_that_a_newer_one_replaced(_: World) -> Case:
    repository_id, project_id = PULL_REQUEST.repository_id, PULL_REQUEST.project_id
    queued = QueuedScan.of(repository_id, project_id, Cause("push"))
    queue.enqueue(queued)
    return (
        lambda: table.transact({"queued": queued.taken_leg()}, PREPARED),
        lambda: queue.enqueue(replace(queued, queued_at="2026-03-04T05:06:08.000Z")),
        LegFailed,
    )


def late_finding_that_is_found_again(world: World) -> Case:
    scan = make_scan(world.connected_repository(world.company()))
    read = replace(history_of(scan, make_issue()), gone=history.Absence(scan.scan_id, scan.created_at))
    table.put(Put(read.to_item()), PREPARED)
    same = resolutions._if_unchanged(read.key, read.gone)
    return (
        lambda: table.transact({"history": same}, PREPARED),
        lambda: table.put(Put(replace(read, gone=None).to_item()), PREPARED),
        LegFailed,
    )


def scan_that_was_unlocked(world: World) -> Case:
    return _unlocked(world, "SET #access = :value", "full")


def scan_with_another_price(world: World) -> Case:
    return _unlocked(world, "SET #unlockCredits = :value", 51)


def scan_that_is_no_longer_completed(world: World) -> Case:
    return _unlocked(world, "SET #status = :value", "failed")


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


def _pull_request(earlier: ScanRequestId | None, later: ScanRequestId | None, head_sha: str = "1f0c") -> Case:
    """Checks that the scan of a pull request is still the one that was read."""
    item = replace(PULL_REQUEST, request_id=earlier)
    table.put(Put(item.to_item()), PREPARED)
    same = Check(item.key, *pull_requests._as_read(item))
    changed = replace(item, request_id=later, head_sha=head_sha)
    return (
        lambda: table.transact({"pullRequest": same}, PREPARED),
        lambda: table.put(Put(changed.to_item()), PREPARED),
        LegFailed,
    )


def pull_request_with_another_commit(_: World) -> Case:
    return _pull_request(None, None, head_sha="2a1b")


def report_that_another_worker_makes(_: World) -> Case:
    """Records what was reported on a pull request, after the claim has expired."""
    table.put(Put({**PULL_REQUEST.to_item(), "claim": "mine"}), PREPARED)
    other = Update(PULL_REQUEST.key, "SET #claim = :claim", None, {"claim": "other"})
    return (
        lambda: pull_requests.record(PULL_REQUEST.key, "mine", comment="stale"),
        lambda: table.update(other, PREPARED),
        pull_requests.ClaimLost,
    )


def pull_request_whose_scan_was_requested(_: World) -> Case:
    return _pull_request(None, ScanRequestId.of(ORGANIZATION, "q1"))


def pull_request_whose_scan_was_requested_again(_: World) -> Case:
    return _pull_request(ScanRequestId.of(ORGANIZATION, "q1"), ScanRequestId.of(ORGANIZATION, "q2"))


def _deleted_pull_request(write: Act) -> Case:
    table.put(Put(PULL_REQUEST.to_item()), PREPARED)
    return write, lambda: table.delete(Delete(PULL_REQUEST.key), PREPARED), LegFailed


def closed_pull_request_that_was_deleted(_: World) -> Case:
    return _deleted_pull_request(lambda: pull_requests.close(PULL_REQUEST, outbox.new_entry("github-events", {})))


def requested_pull_request_that_was_deleted(_: World) -> Case:
    leg = pull_requests.requested_leg(PULL_REQUEST.key, ScanRequestId.of(ORGANIZATION, "q1"))
    return _deleted_pull_request(lambda: table.transact({"pullRequest": leg}, PREPARED))


def pull_request_whose_scan_was_requested_before_another_starts(_: World) -> Case:
    earlier, later = (ScanRequestId.of(ORGANIZATION, name) for name in ("q1", "q2"))
    table.put(Put(replace(PULL_REQUEST, request_id=earlier).to_item()), PREPARED)
    leg = pull_requests.started_leg(PULL_REQUEST.key, earlier, ScanId.of(ORGANIZATION, "s1"), "2a1b")
    return (
        lambda: table.transact({"pullRequest": leg}, PREPARED),
        lambda: table.update(pull_requests.requested_leg(PULL_REQUEST.key, later), PREPARED),
        LegFailed,
    )


def _idempotent(write: Callable[[keys.Key], Any], change: str, error: type[Exception] = ConditionFailed) -> Case:
    """Writes to the record of a request with an Idempotency-Key."""
    key = keys.idempotent_answer("digest")
    idempotency.begin_attempt(key, "mine", "payload")
    other = Update(key, f"SET {change} = :other", None, {"other": "other"})
    return lambda: write(key), lambda: table.update(other, PREPARED), error


def effect_of_a_request_that_another_attempt_makes(_: World) -> Case:
    def take_effect(key: keys.Key) -> None:
        table.transact({"key": idempotency.effect_leg(key, "mine")}, PREPARED)

    return _idempotent(take_effect, "#attempt", LegFailed)


def answer_to_a_request_that_another_attempt_makes(_: World) -> Case:
    return _idempotent(lambda key: idempotency.complete_attempt(key, "mine", "{}"), "#attempt")


def abandoned_request_that_another_attempt_makes(_: World) -> Case:
    return _idempotent(lambda key: idempotency.abandon_attempt(key, "mine"), "#attempt")


def abandoned_request_that_took_effect(_: World) -> Case:
    return _idempotent(lambda key: idempotency.abandon_attempt(key, "mine"), "#effective")


def repository_of_a_deleted_organization(world: World) -> Case:
    company = world.company()
    organization = keys.organization(company.organization_id)
    return (
        lambda: world.connected_repository(company, linked=False),
        lambda: table.delete(Delete(organization), PREPARED),
        LegFailed,
    )


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


def invitation_whose_sender_left(world: World) -> Case:
    def leave(read: InvitationItem, _: Mapping[str, Leg]) -> None:
        key = keys.membership(read.invited_by.id, read.invitation_id.organization_id)
        table.delete(Delete(key), PREPARED)

    return _invitation(world, leave)


def invitation_whose_address_was_invited_again(world: World) -> Case:
    def invite(read: InvitationItem, _: Mapping[str, Leg]) -> None:
        table.update(Update(read.lock_key, "SET #invitationId = :other", None, {"other": "inv_other"}), PREPARED)

    return _invitation(world, invite)


def _join(world: World, user_id: str, role: organizations.Role) -> Act:
    """Makes the person a member of another person's organization."""
    company = world.company()
    joined = Membership(organization_id=company.organization_id, slug=company.slug, name="Acme", role=role)
    legs = organizations.join(joined, organizations.get_account(user_id), 3).legs
    return lambda: table.transact(legs, PREPARED)


def _joining(world: World, role: organizations.Role, change: str) -> Case:
    user_id = world.person().user_id
    other = Update(keys.user(user_id), change, None, {"other": "other"})
    return _join(world, user_id, role), lambda: table.update(other, PREPARED), LegFailed


def member_who_left_the_only_organization(world: World) -> Case:
    company = world.company()
    user_id = world.member(company).user_id
    left = Delete(keys.membership(user_id, company.organization_id))
    return _join(world, user_id, "member"), lambda: table.delete(left, PREPARED), LegFailed


def member_who_joined_the_lost_default_again(world: World) -> Case:
    company = world.company()
    user_id = company.owner.user_id
    membership = table.delete(Delete(keys.membership(user_id, company.organization_id)), PREPARED)
    assert membership is not None
    return _join(world, user_id, "member"), lambda: table.put(Put(membership), PREPARED), LegFailed


def _give_address_away(email: str) -> None:
    table.update(Update(keys.user_email(email), "SET #userId = :other", None, {"other": "usr_other"}), PREPARED)


def account_whose_former_address_another_one_has(world: World) -> Case:
    profile = get_profile(world.person().user_id)
    return (
        lambda: users.change_address(profile, "stale@example.com"),
        lambda: _give_address_away(profile.email),
        WriteConflict,
    )


def account_whose_address_another_one_has_that_is_deleted(world: World) -> Case:
    profile = get_profile(world.person().user_id)
    return lambda: deletions.delete_account(profile, [], []), lambda: _give_address_away(profile.email), WriteConflict


def _deleting(world: World, changed: str, value: Any, *, owner: bool) -> Case:
    """Deletes an account, of one of the two owners of an organization or of a person without one."""
    company = world.company()
    world.member(company, "owner")
    user_id = company.owner.user_id if owner else world.person().user_id
    account = organizations.get_account(user_id)
    profile = account.profile
    assert profile is not None
    other = Update(keys.user(user_id), f"SET #{changed} = :other", None, {"other": value})
    return (
        lambda: deletions.delete_account(profile, account.memberships, []),
        lambda: table.update(other, PREPARED),
        WriteConflict,
    )


def owner_with_another_address_who_is_deleted(world: World) -> Case:
    return _deleting(world, "email", "other@example.com", owner=True)


def owner_of_another_organization_who_is_deleted(world: World) -> Case:
    return _deleting(world, "ownerships", 2, owner=True)


def person_with_another_address_who_is_deleted(world: World) -> Case:
    return _deleting(world, "email", "other@example.com", owner=False)


def person_who_became_an_owner_and_is_deleted(world: World) -> Case:
    return _deleting(world, "ownerships", 1, owner=False)


def scan_that_was_charged(_: World) -> Case:
    key = keys.ledger_of_scan(ORGANIZATION, "s1")
    charged = LedgerItem(key=key, kind="unlock", credits=-50, at=clock.timestamp()).leg

    def charge() -> None:
        table.transact({"ledger": charged}, PREPARED)

    return charge, charge, LegFailed


def deletion_that_another_sweep_finished(world: World) -> Case:
    project = make_project(world.company())
    projects.delete_project(project)
    deletion = deletions.DeletionItem.from_item(table.get(keys.deletion(project.project_id)) or {})

    def advance() -> None:
        if cleanup._store_position(deletion, {"step": 1, "after": "x", "final": False}) is None:
            raise Refused

    return advance, lambda: table.delete(Delete(deletion.key), PREPARED), Refused


def finding_that_was_published(world: World) -> Case:
    found = world.discovery(world.company())
    write = publications.publish_leg(found, None)
    return lambda: publications._write(write), lambda: publications.publish_finding(found), WriteConflict


def _observed(world: World, write: Callable[[Discovery, Any], Any], earlier: Callable[[Discovery], Any]) -> Case:
    """Observes a finding again, which changes nothing that lists show."""
    found = world.discovery(world.company())
    publications.publish_finding(found)
    key = keys.inbox_item(*found.item_id.location)
    again = found._replace(observed_at="2026-03-04T06:00:00.000Z", evidence=(Evidence("A page"),))
    leg = write(again, table.get(key))
    return lambda: publications._write(leg), lambda: earlier(again), WriteConflict


def finding_that_was_observed_later(world: World) -> Case:
    later = "2026-03-04T07:00:00.000Z"
    return _observed(
        world, publications.publish_leg, lambda it: publications.publish_finding(it._replace(observed_at=later))
    )


def finding_that_was_deleted(world: World) -> Case:
    def delete(found: Discovery) -> None:
        table.delete(Delete(keys.inbox_item(*found.item_id.location)), PREPARED)

    return _observed(world, publications.evidence_leg, delete)


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

    def detect_as_before(self) -> None:
        """Leaves the vendor as a release that didn't count detections stored it."""
        self.detect()
        table.update(Update(self.key, "REMOVE #revision"), PREPARED)

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
    return _vendor(world, Vendor.detect_as_before, lambda it: table.delete(Delete(it.key), PREPARED))


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


def detected_vendor_that_was_detected_again(world: World) -> Case:
    return _detection(world, Vendor.detect_as_before, lambda it: it.detect("2026-03-04T05:05:00.000Z"))


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
    delivery_that_another_worker_has,
    attempt_at_a_delivery_that_has_ended,
    attempt_that_was_recorded,
    attempt_that_another_worker_makes,
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
    abandoned_scan_that_its_worker_gives_back,
    waiting_scan_that_was_attempted_again,
    failed_scan_that_is_completed,
    scan_of_a_disconnected_repository_that_is_completed,
    scan_of_a_deleted_project,
    scan_of_a_disconnected_repository,
    queued_scan_that_a_newer_one_replaced,
    late_finding_that_is_found_again,
    scan_that_was_unlocked,
    scan_with_another_price,
    scan_that_is_no_longer_completed,
    failed_request_whose_scan_is_started,
    freed_repository_whose_scan_is_started,
    repository_with_another_preview,
    pull_request_with_another_commit,
    report_that_another_worker_makes,
    pull_request_whose_scan_was_requested,
    pull_request_whose_scan_was_requested_again,
    closed_pull_request_that_was_deleted,
    requested_pull_request_that_was_deleted,
    pull_request_whose_scan_was_requested_before_another_starts,
    effect_of_a_request_that_another_attempt_makes,
    answer_to_a_request_that_another_attempt_makes,
    abandoned_request_that_another_attempt_makes,
    abandoned_request_that_took_effect,
    repository_of_a_deleted_organization,
    endpoint_of_a_deleted_organization,
    slot_that_another_delivery_has,
    invitation_that_was_deleted,
    invitation_that_was_sent_again,
    invitation_whose_sender_left,
    invitation_whose_address_was_invited_again,
    member_with_another_address,
    member_with_another_default,
    owner_with_another_address,
    owner_with_another_default,
    member_who_left_the_only_organization,
    member_who_joined_the_lost_default_again,
    scan_that_was_charged,
    deletion_that_another_sweep_finished,
    account_whose_former_address_another_one_has,
    account_whose_address_another_one_has_that_is_deleted,
    owner_with_another_address_who_is_deleted,
    owner_of_another_organization_who_is_deleted,
    person_with_another_address_who_is_deleted,
    person_who_became_an_owner_and_is_deleted,
    finding_that_was_published,
    finding_that_was_observed_later,
    finding_that_was_deleted,
    vendor_that_was_decided_on,
    vendor_that_was_decided_on_again,
    vendor_that_was_detected,
    vendor_that_was_detected_again,
    vendor_that_was_deleted,
    detected_vendor_that_was_decided_on,
    detected_vendor_that_was_decided_on_again,
    detected_vendor_that_was_detected_again,
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


def test_what_became_of_an_email_is_recorded_once():
    mail_id = MailId("usr_1", "m1")

    def claim() -> None:
        mails.claim(mail_id, "ada@example.com", "digest", ORGANIZATION, {})

    claim()
    with pytest.raises(mails.Unsettled) as unsettled:
        claim()
    assert unsettled.value.seconds == 120
    for state in ("sent", "failed"):
        mails.settle(mail_id, state)
    with pytest.raises(mails.AlreadySent):
        claim()


def test_findings_of_events_at_the_same_time_are_in_one_email():
    def add(number: int) -> None:
        entry = outbox.new_entry("notifications", {})
        mail_batches.add_findings(ORGANIZATION, f"evt_{number}", [f"inb_{number}"], lambda *_: entry)

    add(1)
    with before_the_transaction(table.client, lambda: add(2)):
        add(3)
    batch = mail_batches.find_batch(ORGANIZATION, str(int(clock.now()) // mail_batches.WINDOW_SECONDS))
    assert batch == (3, ["inb_1", "inb_2", "inb_3"])
