"""The two lists of a project's addresses: `websites`, and `trustedOrigins`, which lists the consent entries alone.

A website is a consent entry, or audited, or both. Clients of the older generation know only `trustedOrigins`, and those
of the current one only `websites`.
"""

from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

from controlplane.store.project_changes import ProjectChange, update_project
from controlplane.store.project_items import Address, ProjectItem
from controlplane.store.projects import get_project
from tests.functional.projects.builders import add_audits, create, make_project, stored, uncounted, without_consent
from tests.support.api import Api, Reply
from tests.support.world import Company, World

A, B, C, D = "a.example.com", "b.example.com", "c.example.com", "d.example.com"
LISTS = [lambda *origins: {"consent": {"trustedOrigins": origins}}, lambda *origins: {"websites": origins}]
BOTH_LISTS = pytest.mark.parametrize("listing", LISTS, ids=["trustedOrigins", "websites"])


def update(api: Api, token: str, project: ProjectItem, **fields: Any) -> Reply:
    return api.patch(f"/v1/projects/{project.project_id}", token, json_body=fields)


def trust(api: Api, token: str, project: ProjectItem, *origins: str) -> Reply:
    return update(api, token, project, consent={"trustedOrigins": origins})


def delete(api: Api, token: str, project: ProjectItem, position: int) -> Reply:
    return api.delete(f"/v1/projects/{project.project_id}/websites/{project.websites[position].website_id}", token)


def origins_of(project: ProjectItem) -> list[str]:
    return [website.origin for website in get_project(project.project_id).websites]


def entries_of(project: ProjectItem) -> list[str]:
    return get_project(project.project_id).trusted_origins


def audited_only(api: Api, company: Company) -> ProjectItem:
    """Returns a project with the consent entry A, and B, which is audited and not an entry."""
    project = make_project(company, origins=[A, B])
    add_audits(project, position=1)
    assert trust(api, company.owner.token, project, A).status == 200
    return get_project(project.project_id)


class TestTrustedOrigins:
    def test_every_response_lists_the_consent_entries_alone(self, api: Api, world: World):
        company = world.company()
        key = world.key(company)
        project = make_project(company, origins=[A, B])
        add_audits(project, position=1)
        changed = trust(api, key, project, A).data
        path = f"/v1/projects/{project.project_id}"
        shown = api.get(path, key).data
        assert changed == api.get("/v1/projects", key).data[0]
        assert changed["products"]["consent"] == shown["products"]["consent"] == api.get(f"{path}/consent", key).data
        assert shown["products"]["consent"]["trustedOrigins"] == shown["consent"]["trustedOrigins"] == [A]
        assert [(it["id"], it["origin"], it["audited"]) for it in shown["websites"]] == [
            (project.websites[0].website_id, A, False),
            (project.websites[1].website_id, B, True),
        ]

    @pytest.mark.parametrize("shape", ["current", "older"])
    def test_the_websites_of_a_new_project_are_consent_entries(self, shape: str, api: Api, world: World):
        company = world.company()
        older = {"organizationId": company.organization_id, "trustedOrigins": [A, B]}
        reply = create(api, world.key(company), **(older if shape == "older" else {"websites": [A, B]}))
        consent = reply.data["products"]["consent"] if shape == "older" else reply.data["consent"]
        assert consent["trustedOrigins"] == [A, B]

    def test_the_entries_are_replaced_in_order_and_remaining_ones_keep_their_ids(self, api: Api, world: World):
        company = world.company()
        project = make_project(company, origins=[A, B])
        changed = trust(api, world.key(company), project, C, f"https://{A.upper()}/").data
        assert changed["products"]["consent"]["trustedOrigins"] == origins_of(project) == [C, A]
        assert get_project(project.project_id).websites[1] == project.websites[0]

    def test_an_audited_website_stays_at_its_position_with_its_id(self, api: Api, world: World):
        company = world.company()
        key = world.key(company)
        project = make_project(company, origins=[A, B, C])
        add_audits(project, position=0)
        project = get_project(project.project_id)
        assert trust(api, key, project, C, D).status == 200
        first, *others = get_project(project.project_id).websites
        assert first == replace(project.websites[0], trusted=False)
        assert [website.origin for website in others] == [C, D]
        primary = [it["primary"] for it in api.get(f"/v1/projects/{project.project_id}", key).data["websites"]]
        assert primary == [True, False, False]

    def test_an_audited_website_can_become_an_entry_again(self, api: Api, world: World):
        company = world.company()
        project = audited_only(api, company)
        assert trust(api, world.key(company), project, A, B).status == 200
        assert get_project(project.project_id).websites == tuple(replace(it, trusted=True) for it in project.websites)

    def test_a_website_that_is_neither_entry_nor_audited_disappears(self, api: Api, world: World):
        company = world.company()
        project = make_project(company, origins=[A, B])
        trust(api, world.key(company), project, A)
        assert origins_of(project) == [A]


@BOTH_LISTS
class TestBothLists:
    def test_sending_back_what_was_read_changes_nothing(self, listing: Any, api: Api, world: World):
        company = world.company()
        project = make_project(company, origins=[A, B, C, D])
        for position in (1, 3):
            add_audits(project, position)
        trust(api, company.owner.token, project, A, C)
        before = get_project(project.project_id)
        read = entries_of(project) if "consent" in listing() else origins_of(project)
        assert update(api, world.key(company), project, **listing(*read)).status == 200
        assert replace(get_project(project.project_id), version=before.version) == before

    def test_no_audit_is_deleted(self, listing: Any, api: Api, world: World):
        company = world.company()
        project = make_project(company, origins=[f"s{number}.example.com" for number in range(9)])
        for position in range(8):
            add_audits(project, position, 5)
        *audited, last = get_project(project.project_id).websites
        before = stored("AUDIT")
        assert len(before) == 80
        reply = update(api, world.key(company), project, projectName="B", **listing("s8.example.com"))
        assert reply.status == 200
        assert stored("AUDIT") == before
        kept = (replace(website, trusted=False) for website in audited)
        assert get_project(project.project_id).websites == (*kept, last)
        assert reply.data["products"]["consent"]["trustedOrigins"] == ["s8.example.com"]

    def test_a_member_may_not_remove_an_entry_even_if_it_is_audited(self, listing: Any, api: Api, world: World):
        company = world.company()
        project = make_project(company, origins=[A, B, C])
        add_audits(project, position=1)
        token = world.member(company).token
        before = uncounted()
        reply = update(api, token, project, description="not written", **listing(A, D))
        assert (reply.status, reply.code) == (403, "FORBIDDEN")
        assert (
            reply.error["message"] == f"This list omits {B} (and 1 more). Only an admin or owner can remove a website."
        )
        omitted = [{"id": it.website_id, "origin": it.origin} for it in project.websites[1:]]
        assert reply.error["details"] == {"reason": "removes_websites", "websites": omitted}
        assert uncounted() == before

    def test_a_member_may_add_and_reorder(self, listing: Any, api: Api, world: World):
        company = world.company()
        project = make_project(company, origins=[A, B])
        assert update(api, world.member(company).token, project, **listing(B, C, A)).status == 200
        assert origins_of(project) == entries_of(project) == [B, C, A]

    def test_a_member_may_omit_a_website_that_stays_as_it_is(self, listing: Any, api: Api, world: World):
        company = world.company()
        project = audited_only(api, company)
        assert update(api, world.member(company).token, project, **listing(A, C)).status == 200
        assert (origins_of(project), entries_of(project)) == ([A, B, C], [A, C])

    def test_an_organizations_key_may_remove_websites(self, listing: Any, api: Api, world: World):
        company = world.company()
        project = make_project(company, origins=[A, B])
        assert update(api, world.key(company), project, **listing(B)).status == 200
        assert origins_of(project) == [B]

    def test_audited_websites_that_stay_count_toward_the_limit(self, listing: Any, api: Api, world: World):
        company = world.company()
        project = audited_only(api, company)
        key = world.key(company)
        others = [f"s{number}.example.com" for number in range(49)]
        before = uncounted()
        reply = update(api, key, project, **listing(A, *others))
        assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")
        assert [problem["code"] for problem in reply.error["details"]] == ["too_many_websites"]
        assert uncounted() == before
        assert update(api, key, project, **listing(A, *others[1:])).status == 200


class TestWebsites:
    def test_a_listed_website_that_is_only_audited_does_not_become_an_entry(self, api: Api, world: World):
        company = world.company()
        project = audited_only(api, company)
        changed = update(api, world.key(company), project, websites=[B, C, A]).data
        assert changed["products"]["consent"]["trustedOrigins"] == [C, A]
        assert origins_of(project) == [B, C, A]

    def test_an_added_website_that_is_only_audited_becomes_an_entry(self, api: Api, world: World):
        project = audited_only(api, world.company())
        added: ProjectChange = {"added_websites": [Address(B, "domain")]}
        assert update_project(project, added, may_remove_websites=False).trusted_origins == [A, B]

    def test_the_only_listed_website_becomes_an_entry(self, api: Api, world: World):
        company = world.company()
        project = audited_only(api, company)
        assert update(api, world.key(company), project, websites=[B]).status == 200
        assert get_project(project.project_id).websites == (replace(project.websites[1], trusted=True),)


class TestDeletion:
    def test_the_last_entry_is_kept_although_another_website_is_audited(self, api: Api, world: World):
        company = world.company()
        project = audited_only(api, company)
        key = world.key(company)
        before = uncounted()
        reply = delete(api, key, project, position=0)
        assert (reply.code, reply.error["details"]) == ("CONFLICT", {"reason": "last_trusted_website"})
        assert uncounted() == before

    def test_a_website_that_is_only_audited_is_deleted_with_its_audits(self, api: Api, world: World):
        company = world.company()
        project = audited_only(api, company)
        key = world.key(company)
        reply = delete(api, key, project, position=1)
        assert reply.data == {"websiteId": project.websites[1].website_id, "deletedAudits": 1}
        assert (origins_of(project), stored("AUDIT")) == ([A], [])

    def test_without_consent_the_last_audited_website_is_deleted(self, api: Api, world: World):
        company = world.company()
        project = audited_only(api, company)
        key = world.key(company)
        without_consent(project)
        assert [delete(api, key, project, position).status for position in (0, 1)] == [200, 200]
        assert (origins_of(project), stored("AUDIT")) == ([], [])


class OlderClient:
    """A client that knows only `trustedOrigins`. It reads the list, then adds an origin to what it read."""

    def __init__(self, api: Api, token: str, project: ProjectItem) -> None:
        self.api, self.token, self.project = api, token, project
        self.known: list[str] = []

    def read(self) -> None:
        path = f"/v1/projects/{self.project.project_id}/consent"
        self.known = self.api.get(path, self.token).data["trustedOrigins"]

    def add(self, origin: str) -> Reply:
        return trust(self.api, self.token, self.project, *self.known, origin)

    def remove(self, origin: str) -> Reply:
        return trust(self.api, self.token, self.project, *(it for it in self.known if it != origin))


class CurrentClient(OlderClient):
    """A client that knows only `websites`."""

    def read(self) -> None:
        websites = self.api.get(f"/v1/projects/{self.project.project_id}", self.token).data["websites"]
        self.known = [website["origin"] for website in websites]

    def add(self, origin: str) -> Reply:
        return update(self.api, self.token, self.project, websites=[*self.known, origin])


class TestBothGenerations:
    """The project starts with the entry A, the audited entry B, and C, which is audited and not an entry."""

    @pytest.fixture
    def company(self, world: World) -> Company:
        return world.company()

    @pytest.fixture
    def project(self, api: Api, company: Company) -> ProjectItem:
        project = make_project(company, origins=[A, B, C])
        for position in (1, 2):
            add_audits(project, position)
        trust(api, company.owner.token, project, A, B)
        return get_project(project.project_id)

    def check_unharmed(self, project: ProjectItem) -> None:
        """Checks that both clients still find what they had, with its order, IDs, and audits."""
        assert get_project(project.project_id).websites[:3] == project.websites
        assert len(stored("AUDIT#")) == len(stored("AUDITSCHEDULE#")) == 2

    def test_in_every_order_of_their_requests_nothing_of_the_other_is_harmed(
        self, api: Api, company: Company, project: ProjectItem
    ):
        older = OlderClient(api, company.owner.token, project)
        current = CurrentClient(api, company.owner.token, project)
        acts = {
            "or": older.read,
            "ow": lambda: older.add(D),
            "cr": current.read,
            "cw": lambda: current.add("*.org.test"),
        }
        for order in permutations(acts):
            if order.index("or") > order.index("ow") or order.index("cr") > order.index("cw"):
                continue
            for name in order:
                acts[name]()
            self.check_unharmed(project)
            added = origins_of(project)[3:]
            if order.index("ow") < order.index("cr") or order.index("cw") < order.index("or"):
                assert sorted(added) == ["*.org.test", D]
            else:  # both lists are based on the same state: the later one wins, as with two clients of one generation
                assert added == (["*.org.test"] if order[-1] == "cw" else [D])
            assert trust(api, company.owner.token, project, A, B).status == 200

    def test_a_members_outdated_list_is_refused_instead_of_removing_the_others_website(
        self, api: Api, world: World, company: Company, project: ProjectItem
    ):
        token = world.member(company).token
        clients = [OlderClient(api, token, project), CurrentClient(api, token, project)]
        for one, other in (clients, reversed(clients)):
            one.read()
            other.read()
            added = f"s{len(origins_of(project))}.example.com"
            assert other.add(added).status == 200
            reply = one.add(D)
            assert reply.code == "FORBIDDEN"
            assert [website["origin"] for website in reply.error["details"]["websites"]] == [added]
            self.check_unharmed(project)
            assert origins_of(project)[-1] == added

    def test_they_work_on_one_project_in_turn(self, api: Api, company: Company, project: ProjectItem):
        older = OlderClient(api, company.owner.token, project)
        current = CurrentClient(api, company.owner.token, project)
        current.read()
        assert current.add(D).status == 200
        older.read()
        assert older.known == [A, B, D]
        assert older.remove(B).data["products"]["consent"]["trustedOrigins"] == [A, D]
        current.read()
        assert current.known == [A, B, C, D]  # B is audited: it stays
        reply = current.add("localhost")
        assert reply.data["products"]["consent"]["trustedOrigins"] == [A, D, "localhost"]  # and is no entry again
        current.read()
        assert delete(api, company.owner.token, project, position=1).data["deletedAudits"] == 1
        older.read()
        assert older.add(B).status == 200
        kept = get_project(project.project_id)
        assert [it.origin for it in kept.websites] == [A, C, D, "localhost", B]
        assert (kept.websites[1], kept.websites[4].audits) == (project.websites[2], ())
