"""Deletions, concurrent with any other action on the deleted item, leave nothing, wherever a process dies."""

from collections.abc import Callable
from typing import Any

import pytest

from controlplane.core import ids
from controlplane.core.ids import ProjectId
from controlplane.store import (
    api_keys,
    default_organizations,
    deletions,
    inbox,
    invitations,
    invitees,
    keys,
    leases,
    organizations,
    projects,
    publications,
    repositories,
    users,
)
from controlplane.store.keys import Key
from controlplane.store.organizations import UnknownOrganization
from controlplane.store.project_items import Address
from controlplane.store.repository_items import HostedRepository
from controlplane.store.scans import execution, findings, history
from controlplane.store.scans.progress import Coverage
from ops import members as operator
from tests.races.stage import Stage
from tests.races.yields import beyond_queries, only_writes
from tests.support.audits import history_of, lease_of, make_issue, make_scan
from tests.support.cleanup import clean_up, finish_deletions
from tests.support.faults import Case, Kind, Trial
from tests.support.invariants import Items
from tests.support.outcomes import Outcome
from tests.support.populated_organization import PopulatedOrganization, id_part, populate_organization
from tests.support.schedules import Race
from tests.support.world import Company, World

pytestmark = pytest.mark.races

# The items of a deleted organization that are kept: see docs/decisions/0040.
KEPT = ("SLUG#", "LEDGER#", "FEEDBACKQUOTA#", "SCANWATCH", "OUTBOX#")

type Act = Callable[[World, Company], Callable[[], Any]]


def left_of(items: Items, organization_id: str) -> list[Key]:
    part = id_part(organization_id)
    return [
        key
        for key, item in items.items()
        if part in str(item) and not (key.sk if key.pk.startswith("ORG#") else key.pk).startswith(KEPT)
    ]


def creates_a_key(world: World, company: Company) -> Callable[[], Any]:
    return lambda: api_keys.create_key(company.organization_id, "deploy", company.owner.user_id, "test")


def creates_a_project(world: World, company: Company) -> Callable[[], Any]:
    addresses = [Address("a.example", "domain")]
    return lambda: projects.create_project(
        company.organization_id, "Shop", region="eu-central", addresses=addresses, branding="assent"
    )


def connects_a_repository(world: World, company: Company) -> Callable[[], Any]:
    hosted = HostedRepository(
        installation_id=1,
        owner="acme",
        name="shop",
        html_url="https://code.example/acme/shop",
        default_branch="main",
        visibility="private",
    )
    return lambda: repositories.connect_repository(company.organization_id, hosted)


def adds_a_member(world: World, company: Company) -> Callable[[], Any]:
    organization = organizations.find_organization(company.organization_id)
    profile = users.find_user(world.person().user_id)
    assert organization is not None
    assert profile is not None
    return lambda: operator.add_member(organization, profile.user_id, "admin")


def invites(world: World, company: Company) -> Callable[[], Any]:
    return lambda: world.invitation(company, "ada@example.com")


def accepts(world: World, company: Company) -> Callable[[], Any]:
    invited = users.find_user(world.person("grace@example.com").user_id)
    assert invited is not None
    made = world.invitation(company, "grace@example.com", "owner")
    return lambda: invitees.accept_invitation(made.invitation_id, invited.user_id)


def makes_it_the_default(world: World, company: Company) -> Callable[[], Any]:
    return lambda: default_organizations.save(company.owner.user_id, company.organization_id)


def deletes_it_too(world: World, company: Company) -> Callable[[], Any]:
    return lambda: deletions.delete_organization(company.organization_id, company.owner.user_id)


CREATING_NOTHING = (makes_it_the_default, deletes_it_too)
REFUSALS = (
    UnknownOrganization,
    default_organizations.NotMember,
    invitations.RoleLost,
    invitees.InvitationGone,
    invitees.InvitationVoid,
    deletions.NotOwner,
)


@pytest.mark.parametrize(
    "act",
    [
        creates_a_key,
        creates_a_project,
        connects_a_repository,
        adds_a_member,
        invites,
        accepts,
        makes_it_the_default,
        deletes_it_too,
    ],
    ids=lambda act: act.__name__,
)
def test_nothing_is_created_in_a_deleted_organization(stage: Stage, act: Act) -> None:
    def scenario(world: World) -> Race:
        company = world.company()
        other = act(world, company)

        def check(outcomes: list[Outcome]) -> None:
            deletion, late = outcomes
            refused = isinstance(deletion.error, UnknownOrganization) and late.error is None
            assert deletion.error is None or (refused and act is deletes_it_too)
            if late.error is not None and not isinstance(late.error, REFUSALS):
                # A transaction that failed only because of the organization.
                assert getattr(late.error, "leg", None) == "organization", late.error
            writes = [number for number, call in stage.ran.steps if call.operation == "TransactWriteItems"]
            if late.error is None and act not in CREATING_NOTHING:
                assert writes.index(1) < writes.index(0)
            finish_deletions()
            assert left_of(stage.check_invariants(), company.organization_id) == []

        return Race([lambda: deletions.delete_organization(company.organization_id), other], check)

    stage.race(scenario)


class Running:
    """A running scan that is about to publish its findings."""

    def __init__(self, world: World) -> None:
        self.company = world.company()
        repository = world.connected_repository(self.company)
        self.scan = make_scan(repository, status="running")
        self.issue = make_issue(1)

    def publishes(self) -> None:
        """Runs the last stage of scan_execution."""
        lease = lease_of(self.scan)
        history.put_history(lease, [history_of(self.scan, self.issue)])
        findings.put_findings(self.scan.scan_id, lease.attempt, [self.issue])
        publications.publish_findings([findings.as_discovery(self.scan, self.issue)])
        execution.complete_scan(self.scan, lease, 1, 1, Coverage(1, 1, {}))

    def deletes_project(self) -> None:
        projects.delete_project(projects.get_project(ProjectId.stored(self.scan.project_id)))
        clean_up()

    def deletes_repository(self) -> None:
        repositories.disconnect_repository(self.scan.repository_id)
        clean_up()

    def deletes_organization(self) -> None:
        deletions.delete_organization(self.company.organization_id)
        clean_up()


@pytest.mark.parametrize("deletes", ["deletes_project", "deletes_repository", "deletes_organization"])
def test_a_scan_during_a_deletion_writes_nothing_that_remains(stage: Stage, deletes: str) -> None:
    def scenario(world: World) -> Race:
        running = Running(world)

        def check(outcomes: list[Outcome]) -> None:
            outcomes[0].get()
            assert outcomes[1].error is None or isinstance(outcomes[1].error, leases.LeaseLost)
            finish_deletions()
            items = stage.check_invariants()
            kinds = {(key.sk if key.pk.startswith("ORG#") else key.pk).partition("#")[0] for key in items}
            assert not kinds & {"SCAN", "SCANREQ", "INBOX", "DELETIONS"}
            assert ("REPO" in kinds) is (deletes == "deletes_project")

        return Race([getattr(running, deletes), running.publishes], check)

    stage.race(scenario)


def test_a_concurrent_change_doesnt_restore_a_deleted_inbox_item(stage: Stage) -> None:
    def scenario(world: World) -> Race:
        running = Running(world)
        found = publications.publish_finding(findings.as_discovery(running.scan, running.issue))
        user_id = running.company.owner.user_id

        def dismisses() -> None:
            inbox.change_status(found, "dismissed", found.version, user_id, None)

        def check(outcomes: list[Outcome]) -> None:
            outcomes[0].get()
            assert outcomes[1].error is None or isinstance(outcomes[1].error, inbox.UnknownItem)
            with pytest.raises(inbox.UnknownItem):
                inbox.get_item(found.item_id)

        return Race([running.deletes_project, dismisses], check)

    stage.race(scenario)


def test_two_concurrent_sweeps_finish_a_deletion(stage: Stage) -> None:
    def scenario(world: World) -> Race:
        running = Running(world)
        projects.delete_project(projects.get_project(ProjectId.stored(running.scan.project_id)))

        def check(outcomes: list[Outcome]) -> None:
            for outcome in outcomes:
                outcome.get()
            finish_deletions()
            assert not any(key.sk.startswith((keys.SCAN_PREFIX, "SCANREQ#")) for key in stage.check_invariants())

        return Race([clean_up, clean_up], check)

    stage.race(scenario, yields_at=only_writes)


def test_an_organizations_deletion_interrupted_anywhere_is_decided_once(stage: Stage) -> None:
    def scenario(world: World) -> Trial:
        company = world.company()
        world.key(company)

        def check(case: Case) -> None:
            assert case.second.error is None or isinstance(case.second.error, UnknownOrganization)
            finish_deletions()
            assert left_of(stage.check_invariants(), company.organization_id) == []

        return Trial(lambda: deletions.delete_organization(company.organization_id), check)

    assert stage.faults(scenario) > 20


@pytest.mark.parametrize("what", ["project", "repository", "organization"])
def test_a_sweep_interrupted_anywhere_is_finished_by_the_next(stage: Stage, what: str) -> None:
    def scenario(world: World) -> Trial:
        populated = populate_organization(world)
        _delete(what, populated)

        def check(case: Case) -> None:
            case.second.get()
            finish_deletions()
            items = stage.check_invariants()
            assert not any(key.pk.startswith("DELETIONS") for key in items)
            gone = {
                "project": populated.project.project_id,
                "repository": populated.repository.repository_id,
                "organization": id_part(populated.company.organization_id),
            }[what]
            # The history of a repository's findings names a deleted project until the next scan of the repository.
            kept = ("AUDITRUN#", *KEPT, *([keys.finding_history_pk("rep_")] if what == "project" else []))
            # What remains of a part is in its organization's audit log, which is deleted with the organization.
            kept = kept if what == "organization" else (*kept, keys.LOG_PREFIX)
            assert [
                key
                for key, item in items.items()
                if gone in str(item) and not (key.sk if key.pk.startswith("ORG#") else key.pk).startswith(kept)
            ] == []

        return Trial(clean_up, check)

    kinds = frozenset({Kind.CRASH})
    assert stage.faults(scenario, kinds=kinds, breaks=beyond_queries) > 10


def _delete(what: str, populated: PopulatedOrganization) -> None:
    if what == "project":
        projects.delete_project(populated.project)
    elif what == "repository":
        repositories.disconnect_repository(populated.repository.repository_id)
    else:
        deletions.delete_organization(populated.company.organization_id)


def test_an_organizations_ids_lead_to_its_items() -> None:
    organization_id = ids.new_root(ids.ORGANIZATION)
    assert id_part(organization_id) in ProjectId.of(organization_id, ids.new_local())
