"""PATCH /v1/projects/{projectId}, and the branding, which is served as the plan allows."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from controlplane.billing import store as billing
from controlplane.projects import store as projects
from controlplane.projects.changes import MAX_FORMER
from controlplane.projects.items import ProjectItem
from tests.functional.projects.builders import add_audits, stored, without_consent
from tests.functional.projects.conftest import INVALID, Organization, nothing_written, reread
from tests.support.each import each
from tests.support.world import Person


def slugs() -> set[str]:
    return {item["sk"]["S"].removeprefix("PSLUG#") for item in stored("PSLUG#")}


def test_all_fields_can_change_in_one_request_and_the_list_shows_them(acme):
    project = acme.project()
    changed = acme.update(
        project,
        projectName="Market",
        description="A market",
        websites=["market.example.com"],
        consent={"branding": "openassent"},
    )
    assert (changed.status, [changed.data]) == (200, acme.call("GET").data)
    names = ("projectName", "projectSlug", "description")
    assert [changed.data[name] for name in names] == ["Market", "market", "A market"]
    consent = changed.data["products"]["consent"]
    assert (consent["trustedOrigins"], consent["branding"]) == (["market.example.com"], "openassent")


@pytest.mark.parametrize(
    ("fields", "changes"),
    [
        *(({"description": text}, {"description": text}) for text in ("x" * 512, "", "🛒" * 512, None)),
        ({"consent": {"branding": "none"}}, {}),
        ({"projectName": "SHOP!"}, {"name": "SHOP!"}),
    ],
)
def test_omitted_fields_are_unchanged(fields, changes, acme):
    project = acme.project("example.com", "localhost")
    acme.update(project, **fields)
    consent = project.consent._replace(branding=fields.get("consent", {}).get("branding", "assent"))
    assert reread(project) == replace(project, version=reread(project).version, consent=consent, **changes)
    assert slugs() == {"shop"}


def test_a_former_slug_is_free_for_others_and_given_again_to_a_project_renamed_back(acme):
    project = acme.project()
    for name in ("Market", "Shop", "Market", "Shop"):
        assert acme.update(project, projectName=name).data["projectSlug"] == name.lower()
    assert reread(project).former_slugs == ("market",)
    acme.update(project, projectName="Market")
    assert acme.project(name="Shop").slug == "shop"
    other = acme.project(name="Other")
    slug = acme.update(other, projectName="Market").data["projectSlug"]
    assert slug.startswith("market-")
    assert slugs() == {"market", "shop", "other", slug}
    assert acme.update(other, projectName="Market").data["projectSlug"] == slug


def test_the_latest_ten_former_slugs_are_kept(acme):
    project = acme.project(name="Name 0")
    for number in range(1, MAX_FORMER + 3):
        acme.update(project, projectName=f"Name {number}")
    former = [f"name-{number}" for number in range(2, MAX_FORMER + 2)]
    assert (len(former), [*reread(project).former_slugs]) == (10, former)
    assert slugs() == {*former, f"name-{MAX_FORMER + 2}"}


def test_dropping_a_former_slug_leaves_another_project_that_has_claimed_it(acme):
    project = acme.project(name="Name 0")
    acme.update(project, projectName="Name 1")
    claimed = acme.project(name="Name 0")
    for number in range(2, MAX_FORMER + 3):
        assert acme.update(project, projectName=f"Name {number}").status == 200
    assert len(reread(project).former_slugs) == MAX_FORMER
    assert projects.get_project_by_slug(acme.id, "name-0")[0] == claimed


def test_remaining_websites_keep_their_ids_and_audits_in_the_new_order(acme):
    project = acme.project("a.example.com", "b.example.com")
    (audit_id,) = add_audits(project)
    changed = acme.update(project, websites=["b.example.com", "new.example.com", "https://A.example.com/"]).data
    origins = ["b.example.com", "new.example.com", "a.example.com"]
    after = reread(project).websites
    assert changed["products"]["consent"]["trustedOrigins"] == [website.origin for website in after] == origins
    assert [after[2].website_id, after[0].website_id] == [website.website_id for website in project.websites]
    assert after[2].audits == (audit_id,)


@each(
    ("fields", "path"),
    [
        ({}, []),
        ({"slug": "mine"}, ["slug"]),
        ({"consent": {}}, []),
        ({"projectName": "x" * 101}, ["projectName"]),
        *INVALID,
        ({"consent": {"trustedOrigins": []}}, ["consent", "trustedOrigins"]),
    ],
)
def test_an_invalid_field_is_named_and_nothing_is_written(fields, path, acme):
    project = acme.project()
    with nothing_written():
        reply = acme.update(project, **fields)
    assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")
    assert [problem["path"] for problem in reply.error["details"]] == [path]


def test_removing_the_branding_needs_a_plan_at_the_time_of_the_write(acme):
    project = acme.project()
    for plan in ("starter", "free"):
        billing.change_plan(acme.id, plan)
        with nothing_written():
            reply = acme.update(project, acme.owner, projectName="Market", consent={"branding": "none"})
        assert (reply.status, reply.code) == (402, "PLAN_REQUIRED")
        assert acme.update(project, acme.owner, consent={"branding": "openassent"}).status == 200


def test_an_invalid_body_and_origin_are_reported_before_an_unknown_project(acme, api, world):
    project, stranger = acme.project(), Organization(api, world)
    assert stranger.update(project).code == "INVALID_PAYLOAD"
    assert stranger.update(project, websites=["example.com"]).code == "NOT_FOUND"
    for fields, path in (
        ({"websites": ["example.com", "com"]}, ["websites", "1"]),
        ({"consent": {"trustedOrigins": ["data:text"]}}, ["consent", "trustedOrigins", "0"]),
    ):
        for organization in (acme, stranger):
            with nothing_written():
                reply = organization.update(project, description="not written", **fields)
            assert (reply.code, reply.error["details"][0]["path"]) == ("INVALID_ORIGIN", path)


@each("consent", [{"branding": "assent"}, {"trustedOrigins": ["example.com"]}])
def test_a_project_without_consent_has_none_to_change(consent, acme):
    project = without_consent(acme.project())
    with nothing_written():
        assert acme.update(project, consent=consent).code == "NOT_FOUND"


@pytest.fixture
def project(acme):
    return acme.project(branding="none")


def brandings(document: Any) -> Iterator[str]:
    """Yields every `branding` in a response."""
    if isinstance(document, dict):
        for name, value in document.items():
            yield from [value] if name == "branding" else brandings(value)
    elif isinstance(document, list):
        for entry in document:
            yield from brandings(entry)


def served(acme: Organization, project: ProjectItem, plan: str, by: Person | None) -> set[str]:
    """Returns the brandings in the responses of every operation that returns an existing project, on the plan."""
    billing.change_plan(acme.id, plan)
    replies = [
        acme.get(project, by=by),
        acme.get(project, "/consent", by),
        acme.call("GET", by=by),
        acme.call("GET", f"?organizationId={acme.id}", by),
        acme.update(project, by, description="Changed"),
    ]
    found = [set(brandings(reply.data)) for reply in replies]
    assert all(found)
    return set().union(*found)


def test_none_is_served_as_the_services_branding_and_returns_with_the_plan(acme, project):
    for by in (None, acme.owner):
        for plan, branding in (("pro", "none"), ("starter", "assent"), ("enterprise", "none")):
            assert served(acme, project, plan, by) == {branding}
            assert reread(project).consent == project.consent
    other = acme.project(name="Other", branding="openassent")
    acme.delete(project)
    assert served(acme, other, "free", acme.owner) == {"openassent"}


def test_stored_branding_none_survives_other_changes_and_is_replaced_by_a_sent_branding(acme, project):
    billing.change_plan(acme.id, "starter")
    for fields in ({"projectName": "Market"}, {"consent": {"trustedOrigins": ["example.com", "b.example.com"]}}):
        reply = acme.update(project, **fields)
        assert (reply.status, {*brandings(reply.data)}) == (200, {"assent"})
    assert reread(project).consent == project.consent
    assert acme.update(project, consent={"branding": "none"}).code == "PLAN_REQUIRED"
    assert acme.update(project, consent={"branding": "assent"}).status == 200
    assert served(acme, project, "pro", None) == {"assent"}
