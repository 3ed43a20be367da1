"""GET /v1/projects/{projectId}, and its consent: one project, with the field names of both API generations."""

import pytest

from controlplane.platform.core.settings import settings
from tests.functional.projects.builders import add_audits, without_consent
from tests.functional.projects.conftest import Organization
from tests.support.api import Api
from tests.support.recorded import recorded_calls
from tests.support.world import World


def test_a_project_has_the_fields_of_both_generations(acme: Organization):
    project = acme.project()
    consent = {"trustedOrigins": ["example.com"], "branding": "assent"}
    shown = acme.get(project).data
    assert shown == {
        "id": project.project_id,
        "slug": "shop",
        "name": "Shop",
        "description": None,
        "organizationId": acme.id,
        "organizationSlug": acme.company.slug,
        "dashboardUrl": f"{acme.pages}/shop",
        "websites": [
            {
                "id": project.websites[0].website_id,
                "origin": "example.com",
                "kind": "domain",
                "primary": True,
                "audited": False,
            }
        ],
        "consent": {
            **consent,
            "backendUrl": None,
            "dashboardUrl": f"{acme.pages}/shop/consent",
            "version": "2.0.0",
        },
        "projectId": project.project_id,
        "projectSlug": "shop",
        "projectName": "Shop",
        "dashboardURL": f"{acme.pages}/shop",
        "products": {
            "consent": {
                **consent,
                "instanceId": "ins_" + project.project_id.removeprefix("prj_"),
                "instanceSlug": "shop",
                "instanceName": "Shop",
                "backendURL": None,
                "dashboardURL": f"{acme.pages}/shop/consent",
                "backendVersion": "2.0.0",
            }
        },
        "region": "eu-central",
        "createdAt": "2026-03-04T05:06:07.000Z",
    }
    assert acme.get(project, "/consent").data == shown["products"]["consent"]


def test_an_audited_website_is_marked(acme: Organization):
    project = acme.project("example.com", "shop.example.com")
    add_audits(project, position=1)
    assert [website["audited"] for website in acme.get(project).data["websites"]] == [False, True]


def test_without_consent_it_is_null_in_both_generations_and_does_not_exist_by_itself(acme: Organization):
    project = without_consent(acme.project())
    shown = acme.get(project).data
    assert (shown["consent"], shown["products"]) == (None, {"consent": None})
    assert acme.call("GET").data[0]["products"] == {"consent": None}
    reply = acme.get(project, "/consent")
    assert (reply.code, "consent" in reply.error["message"]) == ("NOT_FOUND", True)


def test_the_consent_instance_keeps_its_name_and_slug_when_the_project_is_renamed(acme: Organization):
    project = acme.project()
    acme.update(project, projectName="Market")
    consent = acme.get(project, "/consent").data
    assert (consent["instanceName"], consent["instanceSlug"]) == ("Shop", "shop")
    assert consent["dashboardURL"].endswith("/projects/market/consent")


def test_url_and_version_of_the_consent_runtime_are_the_configured_ones(
    acme: Organization, monkeypatch: pytest.MonkeyPatch
):
    project = acme.project()
    monkeypatch.setitem(settings.__dict__, "consent_runtime_base_url", "https://consent.assent.test")
    monkeypatch.setitem(settings.__dict__, "consent_runtime_version", "2.1.0")
    shown = acme.get(project).data
    current, older = shown["consent"], shown["products"]["consent"]
    address = "https://consent.assent.test/ins_" + project.project_id.removeprefix("prj_")
    assert (current["backendUrl"], current["version"]) == (address, "2.1.0")
    assert (older["backendURL"], older["backendVersion"]) == (address, "2.1.0")


def test_a_member_of_several_organizations_reads_it_in_two_calls_until_they_leave(acme: Organization, world: World):
    person, project = acme.member(), acme.project()
    world.member(world.company(), person=person)
    for by in (person, None):
        acme.get(project, by=by)
        with recorded_calls() as calls:
            assert acme.get(project, by=by).status == 200
        assert len(calls) == 2
    world.leave(acme.company, person)
    assert acme.get(project, by=person).code == "NOT_FOUND"


def test_another_organizations_project_looks_like_an_unknown_one(acme: Organization, api: Api, world: World):
    project = acme.project()
    stranger = Organization(api, world)
    unknown = project.project_id[:-1] + ("0" if project.project_id[-1] != "0" else "1")
    for by in (None, stranger.owner):
        foreign = stranger.get(project, by=by)
        assert (foreign.status, foreign.text) == (404, stranger.call("GET", f"/{unknown}", by).text)


def test_a_consent_instance_id_is_not_a_project_id(acme: Organization):
    consent = acme.project().consent
    assert consent is not None
    assert acme.call("GET", f"/{consent.instance_id}").code == "NOT_FOUND"
