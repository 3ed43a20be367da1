"""GET /v1/projects: an organization's projects, page by page."""

from controlplane.platform.core.ids import ProjectId
from controlplane.projects import store as projects
from tests.functional.conftest import FakeClock
from tests.functional.projects.conftest import OLDER, Organization
from tests.support.api import Api
from tests.support.each import each
from tests.support.recorded import recorded_calls
from tests.support.world import World


def test_a_project_is_listed_as_one_is_shown_in_the_older_shape(acme: Organization):
    project = acme.project("example.com", "shop.example.com")
    (listed,) = acme.call("GET").data
    shown = acme.get(project).data
    assert listed == {name: shown[name] for name in (*OLDER, "products")}
    assert listed["products"]["consent"]["trustedOrigins"] == ["example.com", "shop.example.com"]


@each("limit", [1, 2, 6, 7, 8])
def test_pages_have_every_project_once_newest_first(limit: int, api: Api, world: World, now: FakeClock):
    acme = Organization(api, world)
    for number in range(7):
        acme.project(name=f"Shop {number}")
        now.advance(1)
    seen, cursor = [], ""
    while True:
        reply = acme.call("GET", f"?limit={limit}{cursor}")
        assert len(reply.data) <= limit
        seen += [project["projectName"] for project in reply.data]
        if not reply.body["pagination"]["hasMore"]:
            break
        cursor = f"&cursor={reply.body['pagination']['nextCursor']}"
    assert seen == [f"Shop {number}" for number in reversed(range(7))]


def test_a_cursor_outlives_its_project_and_is_refused_in_another_organization(
    acme: Organization, api: Api, world: World
):
    for number in range(3):
        acme.project(name=f"Shop {number}")
    first = acme.call("GET", "?limit=1")
    cursor = first.body["pagination"]["nextCursor"]
    projects.delete_project(projects.get_project(ProjectId.stored(first.data[0]["projectId"])))
    assert len(acme.call("GET", f"?cursor={cursor}").data) == 2
    assert Organization(api, world).call("GET", f"?cursor={cursor}").code == "INVALID_PAYLOAD"


def test_only_the_requested_organization_is_listed(acme: Organization, api: Api, world: World):
    other = Organization(api, world, owner=acme.owner)
    for found, project in ((acme, acme.project()), (other, other.project())):
        listed = acme.call("GET", f"?organizationId={found.id}", acme.owner).data
        assert [entry["projectId"] for entry in listed] == [project.project_id]


def test_a_key_makes_two_table_calls_and_a_user_four(acme: Organization):
    acme.project()
    for by, expected in ((None, 2), (acme.owner, 4)):
        acme.call("GET", by=by)
        with recorded_calls() as calls:
            acme.call("GET", f"?organizationId={acme.id}", by)
        assert len(calls) == expected
