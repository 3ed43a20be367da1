"""Every POST that creates something accepts Idempotency-Key and honors it."""

from typing import Any

import pytest

from controlplane.store.idempotency import LEASE_SECONDS
from tests.functional.projects.builders import make_project
from tests.support.api import Api
from tests.support.crashes import dies_at
from tests.support.operations import operations
from tests.support.world import Company, World, table_dump

KEY = {"Idempotency-Key": "8f14e45f-ceea-467f-a9b7-0d5b2c3a1e77"}
BODIES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "/v1/organizations": ({"name": "New Company"}, {"name": "Another Company"}),
    "/v1/invitations": (
        {"email": "grace@example.com", "role": "member"},
        {"email": "grace@example.com", "role": "admin"},
    ),
    "/v1/projects": (
        {"name": "Shop", "region": "eu-central", "websites": ["shop.example.com"]},
        {"name": "Shop", "region": "eu-central", "websites": ["other.example.com"]},
    ),
    "/v1/api-keys": ({"name": "deploy"}, {"name": "other"}),
    "/v1/webhook-endpoints": (
        {"name": "Alerts", "url": "https://hooks.example.com/", "events": ["credits.low"]},
        {"name": "Other", "url": "https://hooks.example.com/", "events": ["credits.low"]},
    ),
    # `addressed` adds the repository and the project.
    "/v1/code-audit/repositories/{repositoryId}/links": ({"rootDirectory": "web"}, {"rootDirectory": "api"}),
    "/v1/feedback": ({"category": "bug", "message": "It fails."}, {"category": "bug", "message": "It fails again."}),
}
creations = pytest.mark.parametrize("path", BODIES)


def addressed(path: str, world: World, company: Company) -> tuple[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Returns the path and the bodies of two creations in the organization."""
    first, second = BODIES[path]
    if "{repositoryId}" not in path:
        return path, (first, second)
    repository = world.connected_repository(company, linked=False)
    project = {"projectId": make_project(company).project_id}
    return path.format(repositoryId=repository.repository_id), ({**first, **project}, {**second, **project})


def stored() -> set[tuple[str, str]]:
    """Returns the keys of the stored items, without the stored response."""
    keys = {(item["pk"]["S"], item["sk"]["S"]) for item in table_dump()}
    return {key for key in keys if not key[0].startswith("IDEMPOTENCY#")}


# A device has no caller yet to bind a key to, and an issue is identified by its inbox item.
WITHOUT_THE_HEADER = {"/v1/auth/device/code", "/v1/inbox/{itemId}/github-issue"}


def test_every_creation_is_tested_and_documents_the_header():
    creating = [o for o in operations() if o.method == "POST" and o.route.status_code == 201]
    posts = [o for o in creating if o.path not in WITHOUT_THE_HEADER]
    assert {o.path for o in posts} == set(BODIES)
    for operation in posts:
        assert "Idempotency-Key" in [field.alias for field in operation.route.dependant.header_params]


@creations
class TestEach:
    def test_a_repetition_returns_the_same_and_writes_nothing(self, path, api: Api, world: World):
        company = world.company()
        token, (path, bodies) = company.owner.token, addressed(path, world, company)
        first = api.post(path, token, json_body=bodies[0], headers=KEY)
        before = stored()
        second = api.post(path, token, json_body=bodies[0], headers=KEY)
        assert first.status == second.status == 201
        assert first.text == second.text
        assert "idempotency-replayed" not in first.headers
        assert second.headers["idempotency-replayed"] == "true"
        assert stored() == before

    def test_another_body_returns_400_and_writes_nothing(self, path, api: Api, world: World):
        company = world.company()
        token, (path, bodies) = company.owner.token, addressed(path, world, company)
        api.post(path, token, json_body=bodies[0], headers=KEY)
        before = stored()
        reply = api.post(path, token, json_body=bodies[1], headers=KEY)
        assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")
        assert stored() == before

    def test_a_malformed_idempotency_key_returns_400_and_writes_nothing(self, path, api: Api, world: World):
        company = world.company()
        token, (path, bodies) = company.owner.token, addressed(path, world, company)
        before = stored()
        reply = api.post(path, token, json_body=bodies[0], headers={"Idempotency-Key": "k" * 256})
        assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")
        assert stored() == before

    def test_another_users_keys_are_independent(self, path, api: Api, world: World):
        company = world.company()
        admin = world.member(company, "admin")
        path, bodies = addressed(path, world, company)
        api.post(path, company.owner.token, json_body=bodies[0], headers=KEY)
        assert "idempotency-replayed" not in api.post(path, admin.token, json_body=bodies[1], headers=KEY).headers

    @pytest.mark.parametrize("death", [("TransactWriteItems", True), ("UpdateItem", False)])
    def test_after_a_crash_following_the_effect_no_repetition_creates_again(
        self, path, death, api: Api, world: World, now
    ):
        operation, applied = death
        company = world.company()
        token, (path, bodies) = company.owner.token, addressed(path, world, company)
        with dies_at(operation, applied=applied) as interrupted:
            assert api.post(path, token, json_body=bodies[0], headers=KEY).status == 500
        assert interrupted
        before = stored()
        now.advance(LEASE_SECONDS + 1)
        reply = api.post(path, token, json_body=bodies[0], headers=KEY)
        assert (reply.status, reply.error["details"]) == (409, {"reason": "answer_lost"})
        assert stored() == before

    def test_after_a_crash_before_the_effect_a_repetition_creates(self, path, api: Api, world: World, now):
        company = world.company()
        token, (path, bodies) = company.owner.token, addressed(path, world, company)
        with dies_at("TransactWriteItems", applied=False):
            assert api.post(path, token, json_body=bodies[0], headers=KEY).status == 500
        now.advance(LEASE_SECONDS + 1)
        assert api.post(path, token, json_body=bodies[1], headers=KEY).status == 201


def test_a_taken_slug_leaves_the_idempotency_key_usable(api: Api, world: World):
    person = world.person()
    taken = world.company().slug
    refused = api.post("/v1/organizations", person.token, json_body={"name": "N", "slug": taken}, headers=KEY)
    assert refused.code == "CONFLICT"
    made = api.post("/v1/organizations", person.token, json_body={"name": "N", "slug": "another-slug"}, headers=KEY)
    assert made.status == 201


def test_an_organizations_api_keys_share_idempotency_keys(api: Api, world: World):
    company = world.company()
    body = BODIES["/v1/projects"][0]
    first, second = (api.post("/v1/projects", world.key(company), json_body=body, headers=KEY) for _ in range(2))
    assert (first.status, first.text) == (201, second.text)
    assert second.headers["idempotency-replayed"] == "true"
