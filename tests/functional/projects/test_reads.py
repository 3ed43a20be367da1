"""GET /v1/projects, one of them, and its consent, with the field names of both API generations."""

from controlplane.platform.core.ids import ProjectId
from controlplane.platform.core.regions import parse_regions
from controlplane.platform.core.settings import settings
from controlplane.projects import store as projects
from tests.functional.projects.builders import without_consent
from tests.functional.projects.conftest import OLDER, Organization


def test_a_project_is_listed_as_one_is_shown_in_the_older_shape(acme):
    project = acme.project("example.com", "shop.example.com")
    (listed,) = acme.call("GET").data
    shown = acme.get(project).data
    assert listed == {name: shown[name] for name in (*OLDER, "products")}
    assert listed["products"]["consent"]["trustedOrigins"] == ["example.com", "shop.example.com"]


def test_the_newest_is_first_and_a_cursor_outlives_its_project(acme, now):
    for number in range(3):
        acme.project(name=f"Shop {number}")
        now.advance(1)
    first = acme.call("GET", "?limit=1")
    cursor = first.body["pagination"]["nextCursor"]
    projects.delete_project(projects.get_project(ProjectId.stored(first.data[0]["projectId"])))
    rest = acme.call("GET", f"?cursor={cursor}").data
    assert [it["projectName"] for it in (*first.data, *rest)] == ["Shop 2", "Shop 1", "Shop 0"]


def test_only_the_requested_organization_is_listed(acme, api, world):
    other = Organization(api, world, owner=acme.owner)
    for found, project in ((acme, acme.project()), (other, other.project())):
        for by in (None, acme.owner):
            listed = found.call("GET", f"?organizationId={found.id}", by).data
            assert [entry["projectId"] for entry in listed] == [project.project_id]


def test_a_project_has_the_fields_of_both_generations(acme):
    project = acme.project()
    consent = {"trustedOrigins": ["example.com"], "branding": "assent"}
    backend = f"https://api.assent.test/v1/consent-instances/{project.consent.instance_id}"
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
            "backendUrl": backend,
            "dashboardUrl": f"{acme.pages}/shop/consent",
            "version": project.version,
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
                "backendURL": backend,
                "dashboardURL": f"{acme.pages}/shop/consent",
                "backendVersion": project.version,
            }
        },
        "region": "eu-central",
        "createdAt": "2026-03-04T05:06:07.000Z",
    }
    assert acme.get(project, "/consent").data == shown["products"]["consent"]


def test_without_consent_it_is_null_in_both_generations_and_does_not_exist_by_itself(acme):
    project = without_consent(acme.project())
    shown = acme.get(project).data
    assert (shown["consent"], shown["products"]) == (None, {"consent": None})
    assert acme.call("GET").data[0]["products"] == {"consent": None}
    reply = acme.get(project, "/consent")
    assert (reply.code, "consent" in reply.error["message"]) == ("NOT_FOUND", True)


def test_the_backend_follows_the_projects_region_and_this_deployment_serves_a_region_without_a_runtime(
    acme, monkeypatch
):
    project = acme.project()
    own = acme.get(project).data["consent"]["backendUrl"]
    foreign = f"https://consent.assent.test/eu/{project.consent.instance_id}"
    for regions, address in (
        ("us-east|Virginia|https://us.assent.test;eu-central|Frankfurt|https://consent.assent.test/eu/", foreign),
        ("us-east|Virginia|https://us.assent.test;eu-central|Frankfurt", own),
        ("us-east|Virginia|https://us.assent.test", own),  # no longer offered
    ):
        monkeypatch.setitem(settings.__dict__, "regions", parse_regions(regions))
        shown = acme.get(project).data
        assert (shown["consent"]["backendUrl"], shown["products"]["consent"]["backendURL"]) == (address, address)
        assert shown["region"] == "eu-central"


def test_the_consent_instance_keeps_its_name_and_slug(acme):
    project = acme.project()
    acme.update(project, projectName="Market")
    older = acme.get(project).data["products"]["consent"]
    assert (older["instanceName"], older["instanceSlug"]) == ("Shop", "shop")
    assert older["dashboardURL"].endswith("/projects/market/consent")
    assert acme.call("GET", f"/{project.consent.instance_id}").code == "NOT_FOUND"
