"""No operation shows or changes another project for a key with projectIds. The operations are those of the document."""

import json
import re
from typing import Any

import pytest

from controlplane.api_keys import store as api_keys
from controlplane.api_keys.items import KeyDraft, Restrictions
from controlplane.findings import intake
from controlplane.platform.core.scopes import API_KEY_SCOPES
from controlplane.projects import store as projects
from controlplane.projects.items import ProjectItem
from scripts.openapi.texts import DOCUMENT
from tests.functional.projects.builders import add_audits, add_run, make_project
from tests.support.api import Api, Reply
from tests.support.calls import recorded_calls
from tests.support.each import each
from tests.support.endpoints import endpoint
from tests.support.operations import Operation, operations
from tests.support.populated_organization import detection
from tests.support.table import restored
from tests.support.valid_requests import valid_body
from tests.support.world import Company, World, table_dump

CANARY = "canary"
PATHS: dict[str, Any] = json.loads(DOCUMENT.read_text())["paths"]
OPERATIONS = {(method.upper(), path): it for path, methods in PATHS.items() for method, it in methods.items()}
# These concern no project, or only the key's own.
OPEN = {
    "createFeedback",
    "getBilling",
    "getMe",
    "getOrganization",
    "listInboxItems",
    "listOrganizations",
    "listProjects",
}


class Organization:
    """An organization with two projects. What belongs to the second one contains the canary."""

    def __init__(self, world: World) -> None:
        self.company: Company = world.company()
        self.own, self.other = self._project("Shop"), self._project(CANARY)
        self.items = {
            project.project_id: world.finding(
                self.company, title=f"{project.name} loads a tag", project_id=project.project_id
            )
            for project in (self.own, self.other)
        }
        self.runs = {it.project_id: add_run(it, *add_audits(it)) for it in (self.own, self.other)}
        world.finding(self.company, title=f"{CANARY} of no project")
        intake.record_detection(detection(self.other.project_id, CANARY))
        self.endpoint = endpoint(self.company, name=CANARY, url=f"https://{CANARY}.example.com/")
        self.foreign_key = self._key(CANARY, self.other)
        self.key = self._key("deploy", self.own)

    def _project(self, name: str) -> ProjectItem:
        return make_project(self.company, name, [f"{name.lower()}{number}.example.com" for number in (1, 2)])

    def _key(self, name: str, *accepted: ProjectItem) -> api_keys.MintedKey:
        draft = KeyDraft(name, None, Restrictions(project_ids=tuple(it.project_id for it in accepted)))
        return api_keys.create_key(self.company.organization_id, draft, self.company.owner.user_id, "test")

    def ids(self, project: ProjectItem) -> dict[str, str]:
        """Returns a value for each parameter of paths and for each required one of queries."""
        return {
            "organizationId": self.company.organization_id,
            "projectId": project.project_id,
            "websiteId": project.websites[0].website_id,
            "vendorId": CANARY,
            "auditId": self.runs[project.project_id].audit_id,
            "runId": self.runs[project.project_id].run_id,
            "itemId": self.items[project.project_id].item_id,
            "keyId": (self.key if project is self.own else self.foreign_key).item.key_id,
            "webhookId": self.endpoint.webhook_id,
            "eventId": f"evt_{self.company.organization_id[4:]}01jq2m4n5p6r7s8t9v",
        }


def call(api: Api, place: Organization, operation: tuple[str, str], project: ProjectItem) -> Reply:
    """Sends the request with the IDs of that project, or unknown ones, and with the key of the first project."""
    method, path = operation
    filled = re.sub(r"\{(\w+)\}", lambda match: place.ids(project).get(match[1], "x"), path)
    route = next(it for it in operations() if (it.method, it.path) == operation)
    query = "?repositoryId=rep_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t" if path.endswith("{preparationId}") else ""
    body = valid_body(route)
    if body and "websiteId" in body:
        body["websiteId"] = project.websites[0].website_id
    return api.call(method, filled + query, place.key.secret, json_body=body)


def takes_keys(described: dict[str, Any]) -> bool:
    return {"organizationApiKey": []} in described.get("security", [{"organizationApiKey": []}])


BY_KEY = [it for it, described in OPERATIONS.items() if takes_keys(described)]


def _named(operation: tuple[str, str]) -> str:
    return " ".join(operation)


def _items_of_the_other(place: Organization) -> list[dict[str, Any]]:
    names = (CANARY, place.other.project_id, place.other.project_id[-18:])
    return [item for item in table_dump() if any(name in json.dumps(item) for name in names)]


@pytest.fixture
def place(world):
    return Organization(world)


@each("operation", OPERATIONS, ids=_named, around=restored)
def test_another_project_is_neither_shown_nor_changed(operation, api, place):
    before = _items_of_the_other(place)
    reply = call(api, place, operation, place.other)
    sent = json.dumps([reply.status, dict(reply.headers), reply.body if isinstance(reply.body, dict) else reply.text])
    assert CANARY not in sent.lower()
    assert place.other.project_id not in sent
    assert _items_of_the_other(place) == before
    described = OPERATIONS[operation]
    if takes_keys(described) and described["operationId"] not in OPEN:
        assert reply.code in {"NOT_FOUND", "FORBIDDEN"}


@each("operation", BY_KEY, ids=_named, around=restored)
def test_an_operation_on_its_own_project_works_or_concerns_all_projects(operation, api, place):
    reply = call(api, place, operation, place.own)
    declared = _requirements(operation).keeps_to_projects
    assert (reply.status < 300) is declared, reply.text
    if not declared:
        assert reply.code == "FORBIDDEN"
        assert "projectIds" in reply.error["message"]


def _requirements(operation: tuple[str, str]) -> Any:
    found: Operation = next(it for it in operations() if (it.method, it.path) == operation)
    return found.requires


def test_the_404_of_another_project_is_the_one_of_an_unknown_id(api, world):
    place = Organization(world)
    unknown = f"prj_{place.company.organization_id[4:]}{'0' * 18}"
    for path in ("/v1/projects/{}", "/v1/projects/{}/consent", "/v1/projects/{}/vendors"):
        replies = [api.get(path.format(it), place.key.secret) for it in (place.other.project_id, unknown)]
        assert replies[0].body == replies[1].body
        assert replies[0].status == 404


def test_nothing_of_another_organization_is_read_for_a_key(api, world):
    other = Organization(world)
    key = world.key(world.company())
    with recorded_calls() as calls:
        assert api.get(f"/v1/projects/{other.own.project_id}/vendors", key).status == 404
    assert other.company.organization_id.removeprefix("org_") not in str([call.parameters for call in calls])


def test_pages_of_limited_lists_have_each_item_once(api, world, now):
    place = Organization(world)
    company = place.company
    made = [place.own]
    for number in range(4):
        now.advance(1)
        made.append(make_project(company, f"Shop {number}"))
    findings = []
    for number, project in enumerate([*made, *[place.other] * 5, *made]):
        now.advance(1)
        findings.append(world.finding(company, title=f"Finding {number}", project_id=project.project_id))
    ids = [it.project_id for it in made]
    key = place._key("all", *made).secret
    assert _ids_of(api, "/v1/projects?limit=2", key, "projectId") == [*reversed(ids)]
    assert len(api.get("/v1/projects?limit=2", key).data) == 2
    assert api.get(f"/v1/projects?limit={len(ids)}", key).body["pagination"]["hasMore"] is False
    expected = [it.item_id for it in reversed(findings) if it.project_id in ids]
    assert _ids_of(api, "/v1/inbox?limit=3", key, "id") == [*expected, place.items[place.own.project_id].item_id]


def _ids_of(api: Api, path: str, key: str, name: str) -> list[str]:
    return [it[name] for page in api.pages(path, key) for it in page.data]


def test_me_says_what_the_key_is_limited_to(api, world):
    place = Organization(world)
    me = api.get("/v1/me", place.key.secret).data
    assert me["principal"]["projectIds"] == [place.own.project_id]
    assert me["scopes"] == [*API_KEY_SCOPES]


def test_a_deleted_project_does_not_exist_for_the_key(api, world):
    place = Organization(world)
    projects.delete_project(place.own, None)
    assert api.get(f"/v1/projects/{place.own.project_id}", place.key.secret).status == 404
    assert api.get("/v1/projects", place.key.secret).data == []
