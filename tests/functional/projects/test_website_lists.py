"""The two lists of a project's addresses: `websites`, and `trustedOrigins`, which lists the consent entries alone.

A website is a consent entry, or audited, or both. Clients of the older generation know only `trustedOrigins`, and those
of the current one only `websites`.
"""

from dataclasses import replace

import pytest

from controlplane.projects.changes import ProjectChange, update_project
from controlplane.projects.items import Address, ProjectItem
from tests.functional.projects.builders import add_audits, stored
from tests.functional.projects.conftest import Organization, nothing_written, reread
from tests.support.each import each

A, B, C, D = "a.example.com", "b.example.com", "c.example.com", "d.example.com"
LISTS = {
    "trustedOrigins": lambda *origins: {"consent": {"trustedOrigins": origins}},
    "websites": lambda *origins: {"websites": origins},
}
both_lists = each("listing", LISTS.values(), ids=LISTS)


def origins_of(project: ProjectItem) -> list[str]:
    return [website.origin for website in reread(project).websites]


def entries_of(project: ProjectItem) -> list[str]:
    return reread(project).trusted_origins


def audited_only(acme: Organization) -> ProjectItem:
    """Returns a project with the consent entry A, and B, which is audited and not an entry."""
    project = acme.project(A, B)
    add_audits(project, position=1)
    assert acme.trust(project, A).status == 200
    return reread(project)


def test_every_response_lists_the_consent_entries_alone(acme):
    project = acme.project(A, B)
    add_audits(project, position=1)
    changed, shown = acme.trust(project, A).data, acme.get(project).data
    assert [changed] == acme.call("GET").data
    assert changed["products"]["consent"] == shown["products"]["consent"] == acme.get(project, "/consent").data
    assert shown["products"]["consent"]["trustedOrigins"] == shown["consent"]["trustedOrigins"] == [A]
    assert [(it["id"], it["origin"], it["audited"]) for it in shown["websites"]] == [
        (project.websites[0].website_id, A, False),
        (project.websites[1].website_id, B, True),
    ]


def test_entries_are_replaced_in_order_and_an_audited_website_stays_with_its_id_at_its_position(acme):
    project = acme.project(A, B, C)
    add_audits(project, position=0)
    project = reread(project)
    assert acme.trust(project, D, f"https://{C.upper()}/").status == 200
    first, *others = reread(project).websites
    assert first == project.websites[0]._replace(trusted=False)
    assert ([website.origin for website in others], others[1]) == ([D, C], project.websites[2])
    assert entries_of(project) == [D, C]
    assert [website["primary"] for website in acme.get(project).data["websites"]] == [True, False, False]


@both_lists
def test_sending_back_what_was_read_changes_nothing(listing, acme):
    project = acme.project(A, B, C, D)
    for position in (1, 3):
        add_audits(project, position)
    acme.trust(project, A, C)
    before = reread(project)
    read = entries_of(project) if "consent" in listing() else origins_of(project)
    assert acme.update(project, **listing(*read)).status == 200
    assert replace(reread(project), version=before.version) == before


@pytest.mark.parametrize("listing", LISTS.values(), ids=LISTS)
def test_no_audit_is_deleted(listing, acme):
    project = acme.project(*(f"s{number}.example.com" for number in range(9)))
    for position in range(8):
        add_audits(project, position, 5)
    *audited, last = reread(project).websites
    before = stored("AUDIT")
    reply = acme.update(project, projectName="B", **listing("s8.example.com"))
    assert (reply.status, len(before), stored("AUDIT") == before) == (200, 40, True)
    assert reread(project).websites == (*(website._replace(trusted=False) for website in audited), last)
    assert reply.data["products"]["consent"]["trustedOrigins"] == ["s8.example.com"]


@both_lists
def test_only_admins_and_keys_remove_an_entry_even_if_it_is_audited(listing, acme):
    project, member = acme.project(A, B, C), acme.member()
    add_audits(project, position=1)
    for left, omitted, named in (([A, B, D], [2], C), ([A, D], [1, 2], f"{B} (and 1 more)")):
        with nothing_written():
            reply = acme.update(project, member, description="not written", **listing(*left))
        assert (reply.status, reply.code) == (403, "FORBIDDEN")
        assert reply.error["message"] == f"This list omits {named}. Only an admin or owner can remove a website."
        websites = [{"id": project.websites[it].website_id, "origin": project.websites[it].origin} for it in omitted]
        assert reply.error["details"] == {
            "reason": "removes_websites",
            "requiredRole": "admin",
            "role": "member",
            "websites": websites,
        }
    assert acme.update(project, **listing(A, B)).status == 200
    assert acme.update(project, acme.member("admin"), **listing(B)).status == 200
    assert origins_of(project) == entries_of(project) == [B]


@both_lists
def test_a_member_may_add_and_reorder_and_omit_a_website_that_stays_as_it_is(listing, acme):
    project, member = acme.project(A, B), acme.member()
    assert acme.update(project, member, **listing(B, C, A)).status == 200
    assert origins_of(project) == entries_of(project) == [B, C, A]
    project = audited_only(acme)
    assert acme.update(project, member, **listing(A, C)).status == 200
    assert (origins_of(project), entries_of(project)) == ([A, B, C], [A, C])


@both_lists
def test_audited_websites_that_stay_count_toward_the_limit(listing, acme):
    project = audited_only(acme)
    others = [f"s{number}.example.com" for number in range(49)]
    with nothing_written():
        reply = acme.update(project, **listing(A, *others))
    assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")
    assert [problem["code"] for problem in reply.error["details"]] == ["too_many_websites"]
    assert acme.update(project, **listing(A, *others[1:])).status == 200


@each(
    ("fields", "origins", "entries"),
    [
        ({"websites": [B, C, A]}, [B, C, A], [C, A]),  # a listed website that is only audited doesn't become an entry
        ({"websites": [B]}, [B], [B]),  # unless it is the only one
        ({"consent": {"trustedOrigins": [A, B]}}, [A, B], [A, B]),
    ],
)
def test_an_audited_website_becomes_an_entry_only_if_it_is_listed_as_one(fields, origins, entries, acme):
    project = audited_only(acme)
    assert acme.update(project, **fields).data["products"]["consent"]["trustedOrigins"] == entries
    assert origins_of(project) == origins
    assert reread(project).websites[origins.index(B)] == project.websites[1]._replace(trusted=B in entries)


def test_a_website_that_is_only_audited_is_deleted_with_its_audits_and_the_last_entry_kept(acme):
    project = audited_only(acme)
    with nothing_written():
        reply = acme.delete_website(project, position=0)
    assert (reply.code, reply.error["details"]) == ("CONFLICT", {"reason": "last_trusted_website"})
    reply = acme.delete_website(project, position=1)
    assert reply.data == {"websiteId": project.websites[1].website_id, "deletedAudits": 1}
    assert (origins_of(project), stored("AUDIT")) == ([A], [])
    added: ProjectChange = {"added_websites": [Address(B, "domain")]}
    project = audited_only(acme)
    assert update_project(project, added, may_remove_websites=False).trusted_origins == [A, B]
