"""Deletions, concurrent with any other action on the deleted item, leave nothing, wherever a process dies."""

from collections.abc import Callable
from typing import Any

import pytest

from controlplane.api_keys import store as api_keys
from controlplane.code_host import repositories
from controlplane.erasure import deletions
from controlplane.findings import conversations, inbox, publications
from controlplane.findings.items import InboxItem
from controlplane.organizations import invitations, invitees
from controlplane.organizations import store as organizations
from controlplane.organizations.store import UnknownOrganization
from controlplane.platform.core.ids import ProjectId
from controlplane.platform.table import keys, leases
from controlplane.platform.table.table import LegFailed
from controlplane.projects import store as projects
from controlplane.projects.items import Address
from controlplane.scans import execution, findings, history
from controlplane.scans.items import Coverage
from ops import members as operator
from tests.races.faults import Kind
from tests.races.stage import faults, race
from tests.races.yields import beyond_queries, only_writes
from tests.support.audits import history_of, lease_of, make_issue, make_scan
from tests.support.cleanup import clean_up, finish_deletions
from tests.support.invariants import Items
from tests.support.populated_organization import id_part, populate_organization
from tests.support.world import Company, World, publish_finding

# The items of a deleted organization that are kept: see docs/decisions/0040.
KEPT = ("SLUG#", "LEDGER#", "FEEDBACKQUOTA#", "SCANWATCH", "OUTBOX#")


def kind_of(key: keys.Key) -> str:
    return key.sk if key.pk.startswith("ORG#") else key.pk


def left_of(items: Items, part: str, kept: tuple[str, ...] = KEPT) -> list[keys.Key]:
    """Returns the items that contain this part of an ID, without those that may."""
    return [key for key, item in items.items() if part in str(item) and not kind_of(key).startswith(kept)]


class Acts:
    """The acts of others in an organization while it is deleted. Each method returns one."""

    def __init__(self, world: World, company: Company) -> None:
        self.world, self.company, self.id = world, company, company.organization_id

    def creates_a_key(self) -> Callable[[], Any]:
        return lambda: api_keys.create_key(self.id, "deploy", self.company.owner.user_id, "test")

    def creates_a_project(self) -> Callable[[], Any]:
        addresses = [Address("a.example", "domain")]
        return lambda: projects.create_project(self.id, "Shop", region="eu", addresses=addresses, branding="assent")

    def connects_a_repository(self) -> Callable[[], Any]:
        return lambda: self.world.connected_repository(self.company, linked=False, name="shop")

    def adds_a_member(self) -> Callable[[], Any]:
        organization: Any = organizations.find_organization(self.id)
        user_id = self.world.person().user_id
        return lambda: operator.add_member(organization, user_id, "admin")

    def invites(self) -> Callable[[], Any]:
        return lambda: self.world.invitation(self.company, "ada@example.com")

    def accepts(self) -> Callable[[], Any]:
        user_id = self.world.person("grace@example.com").user_id
        made = self.world.invitation(self.company, "grace@example.com", "owner")
        return lambda: invitees.accept_invitation(made.invitation_id, user_id)

    def makes_it_the_default(self) -> Callable[[], Any]:
        return lambda: organizations.save_default(self.company.owner.user_id, self.id)

    def deletes_it_too(self) -> Callable[[], Any]:
        return lambda: deletions.delete_organization(self.id, self.company.owner.user_id)


CREATING = ["creates_a_key", "creates_a_project", "connects_a_repository", "adds_a_member", "invites", "accepts"]
REFUSALS = (
    UnknownOrganization,
    organizations.NotMember,
    invitations.RoleLost,
    invitees.InvitationGone,
    invitees.InvitationVoid,
    deletions.NotOwner,
    LegFailed,
)


@pytest.mark.parametrize("act", [*CREATING, "makes_it_the_default", "deletes_it_too"])
@race(*REFUSALS)
def test_nothing_is_created_in_a_deleted_organization(world, stage, act):
    company = world.company()
    other = getattr(Acts(world, company), act)()
    deletion, late = yield [lambda: deletions.delete_organization(company.organization_id), other]
    if isinstance(deletion, Exception):
        assert (act, type(deletion), isinstance(late, Exception)) == ("deletes_it_too", UnknownOrganization, False)
    if isinstance(late, LegFailed):
        # A transaction that failed only because of the organization.
        assert late.leg == "organization"
    elif act in CREATING and not isinstance(late, Exception):
        writes = [number for number, call in stage.ran.steps if call.operation == "TransactWriteItems"]
        assert writes.index(1) < writes.index(0)
    finish_deletions()
    assert left_of(stage.check_invariants(), id_part(company.organization_id)) == []


class Running:
    """A running scan that is about to publish its findings."""

    def __init__(self, world: World) -> None:
        self.company = world.company()
        self.scan = make_scan(world.connected_repository(self.company), status="running")
        self.issue = make_issue(1)
        self.discovery = findings.as_discovery(self.scan, self.issue)

    def publish(self) -> None:
        """Runs the last stage of scan_execution."""
        lease = lease_of(self.scan)
        history.put_history(lease, [history_of(self.scan, self.issue)])
        findings.put_findings(self.scan.scan_id, lease.attempt, [self.issue])
        publications.publish_findings([self.discovery])
        execution.complete_scan(self.scan, lease, 1, 1, Coverage(1, 1, {}))

    def delete(self, what: str) -> None:
        if what == "project":
            projects.delete_project(projects.get_project(ProjectId.stored(self.scan.project_id)))
        elif what == "repository":
            repositories.disconnect_repository(self.scan.repository_id)
        else:
            deletions.delete_organization(self.company.organization_id)

    def delete_completely(self, what: str) -> None:
        self.delete(what)
        clean_up()


@pytest.mark.parametrize("what", ["project", "repository", "organization"])
@race(leases.LeaseLost)
def test_a_scan_during_a_deletion_writes_nothing_that_remains(world, stage, what):
    running = Running(world)
    deleted, _ = yield [lambda: running.delete_completely(what), running.publish]
    assert deleted is None
    finish_deletions()
    kinds = {kind_of(key).partition("#")[0] for key in stage.check_invariants()}
    assert not kinds & {"SCAN", "SCANREQ", "INBOX", "DELETIONS"}
    assert ("REPO" in kinds) is (what == "project")


CHANGES: dict[str, Callable[[InboxItem, str], object]] = {
    "status": lambda found, user_id: inbox.change_status(found, "dismissed", found.version, user_id, None),
    "comment": lambda found, user_id: conversations.add_comment(found, "A late comment", user_id, {}),
}


@pytest.mark.parametrize("what", ["project", "organization"])
@pytest.mark.parametrize("change", CHANGES)
@race(inbox.UnknownItem, conversations.UnknownComment)
def test_a_concurrent_change_doesnt_restore_a_deleted_inbox_item(world, stage, change, what):
    running = Running(world)
    found = publish_finding(running.discovery)
    user_id = running.company.owner.user_id
    deleted, _ = yield [lambda: running.delete_completely(what), lambda: CHANGES[change](found, user_id)]
    assert deleted is None
    finish_deletions()
    assert left_of(stage.check_invariants(), "A late comment") == []
    with pytest.raises(inbox.UnknownItem):
        inbox.get_item(found.item_id)


@race(yields_at=only_writes)
def test_two_concurrent_sweeps_finish_a_deletion(world, stage):
    running = Running(world)
    running.delete("project")
    yield [clean_up, clean_up]
    finish_deletions()
    assert not any(key.sk.startswith((keys.SCAN_PREFIX, "SCANREQ#")) for key in stage.check_invariants())


@faults()
def test_an_organizations_deletion_interrupted_anywhere_is_decided_once(world, stage):
    company = world.company()
    world.key(company)
    case = yield lambda: deletions.delete_organization(company.organization_id)
    assert case.second.error is None or isinstance(case.second.error, UnknownOrganization)
    finish_deletions()
    assert left_of(stage.check_invariants(), id_part(company.organization_id)) == []


@pytest.mark.parametrize("what", ["project", "repository", "organization"])
@faults(kinds=frozenset({Kind.CRASH}), breaks=beyond_queries)
def test_a_sweep_interrupted_anywhere_is_finished_by_the_next(world, stage, what):
    populated = populate_organization(world)
    if what == "project":
        projects.delete_project(populated.project)
        # The history of a repository's findings names a deleted project until the next scan of the repository. What
        # remains of a part is in its organization's audit log, which is deleted with the organization.
        gone, kept = populated.project.project_id, (keys.finding_history_pk("rep_"), keys.LOG_PREFIX)
    elif what == "repository":
        repositories.disconnect_repository(populated.repository.repository_id)
        gone, kept = populated.repository.repository_id, (keys.LOG_PREFIX,)
    else:
        deletions.delete_organization(populated.company.organization_id)
        gone, kept = id_part(populated.company.organization_id), ()
    case = yield clean_up
    case.second.get()
    finish_deletions()
    items = stage.check_invariants()
    assert not any(key.pk.startswith("DELETIONS") for key in items)
    assert left_of(items, gone, (*KEPT, *kept)) == []


@faults(breaks=beyond_queries)
def test_under_every_fault_the_next_sweep_removes_what_is_left_of_a_project(world, stage):
    running = Running(world)
    running.delete("project")
    case = yield finish_deletions
    case.second.get()
    left = [kind_of(key) for key in stage.check_invariants() if kind_of(key).startswith(("DELETIONS", "SCAN#"))]
    assert left == []
