"""Requirements of routes on API keys."""

from controlplane.access.access import Requires, Resource
from controlplane.platform.core.ids import ProjectId
from controlplane.platform.table import keys
from tests.support.each import each

ITEM = Resource("projectId", ProjectId, keys.project, dict)
ITEM_OF_A_PROJECT = ITEM._replace(project_of=str)


@each(
    ("requires", "expected"),
    [
        (Requires(), True),
        (Requires(scope="projects.read"), True),
        (Requires(scope="vendors.write"), False),
        (Requires(scope="vendors.write", or_scope="projects.read"), True),
        (Requires(user_token=True), False),
        (Requires(scope="projects.read", user_token=True), False),
    ],
)
def test_a_route_accepts_keys_if_they_can_have_a_scope_of_it(requires: Requires, expected: bool):
    assert requires.accepts_keys is expected


@each(
    ("requires", "expected"),
    [
        (Requires(), False),
        (Requires(projects="filtered"), True),
        (Requires(projects="untouched"), True),
        (Requires(resource=ITEM), False),
        (Requires(resource=ITEM_OF_A_PROJECT), True),
    ],
)
def test_a_route_keeps_to_projects_if_it_says_so_or_its_resource_is_of_one(requires: Requires, expected: bool):
    assert requires.keeps_to_projects is expected
