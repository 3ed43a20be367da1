"""Deprecated operations and fields: the headers of responses, and what the document and reference say about them."""

import re
from datetime import timedelta

from pydantic import BaseModel

from controlplane.platform.http import deprecations
from controlplane.platform.http.deprecations import Deprecation
from tests.support.documented import document, parts
from tests.support.each import each
from tests.support.operations import operations
from tests.support.reply import Reply

BASE = "https://api.assent.test"
DEPRECATION_LINK = f'<{BASE}/docs#section/Deprecations>; rel="deprecation"; type="text/html"'
HEADERS = {
    "deprecation": "@1793491200",
    "sunset": "Sat, 01 Jan 2028 00:00:00 GMT",
    "link": DEPRECATION_LINK,
}
PROJECTS = "/v1/projects"
SHOP = {"name": "Shop", "region": "eu-central"}


def _sent(reply: Reply) -> dict[str, str]:
    return {name: reply.headers[name] for name in HEADERS if name in reply.headers}


class TestOperation:
    def test_every_response_of_a_deprecated_operation_has_the_headers(self, api, world):
        company = world.company()
        expected = HEADERS | {"link": f'{DEPRECATION_LINK}, <{BASE}/v1/api-keys>; rel="successor-version"'}
        replies = [
            api.get("/v1/auth/keys", company.owner.token),
            api.get("/v1/auth/keys"),
            api.get("/v1/auth/keys", world.token(company.owner.user_id, ["projects.read"])),
            api.get("/v1/auth/keys?limit=0", company.owner.token),
        ]
        assert [reply.status for reply in replies] == [200, 401, 403, 400]
        assert [_sent(reply) for reply in replies] == [expected] * 4

    def test_its_successor_has_none(self, api, world):
        assert _sent(api.get("/v1/api-keys", world.company().owner.token)) == {}


OLD = {"consent": {"trustedOrigins": ["example.com"]}}


class TestFields:
    @each(
        ("fields", "expected"),
        [
            (OLD, HEADERS),
            ({"trustedOrigins": ["example.com"]}, HEADERS),
            *((fields, {}) for fields in ({}, {"websites": ["example.com"]}, {"consent": {"branding": "assent"}})),
        ],
    )
    def test_only_a_request_with_a_deprecated_field_gets_the_headers_also_if_it_is_refused(
        self, fields, expected, api, world
    ):
        company = world.company()
        # The older shape names its organization.
        body = SHOP | fields | ({"organizationId": company.organization_id} if "trustedOrigins" in fields else {})
        for region, status in (("eu-central", 201), ("mars", 400)):
            reply = api.post(PROJECTS, company.owner.token, json_body=body | {"region": region})
            assert (reply.status, _sent(reply)) == (status, expected)

    def test_a_change_with_a_deprecated_field_and_a_replay_get_the_headers_and_reading_one_does_not(self, api, world):
        token, headers = world.company().owner.token, {"Idempotency-Key": "one"}
        replies = [api.post(PROJECTS, token, json_body=SHOP | OLD, headers=headers) for _ in "12"]
        assert replies[1].headers["idempotency-replayed"] == "true"
        assert [_sent(reply) for reply in replies] == [HEADERS] * 2
        path = f"{PROJECTS}/{replies[0].data['id']}"
        for body, expected in ((OLD, HEADERS), ({"websites": ["example.com"]}, {})):
            reply = api.patch(path, token, json_body=body)
            assert (reply.status, _sent(reply)) == (200, expected)
        shown = api.get(path, token)
        assert ("trustedOrigins" in shown.data["consent"], _sent(shown)) == (True, {})


def test_several_deprecations_have_the_earliest_dates_and_every_successor():
    first, second = deprecations.AUTH_KEYS, deprecations.OLDER_PROJECT
    later = Deprecation("x", "y", "z", second.since + timedelta(1), second.sunset + timedelta(1), successor="/v1/me")
    sent = deprecations.headers([later, first, later])
    assert (sent["Deprecation"], sent["Sunset"]) == (HEADERS["deprecation"], HEADERS["sunset"])
    assert sent["Link"].count('rel="deprecation"') == 1
    assert re.findall(r'<([^>]+)>; rel="successor-version"', sent["Link"]) == [f"{BASE}/v1/me", f"{BASE}/v1/api-keys"]


class TestDocument:
    def test_everything_that_is_marked_as_deprecated_has_a_notice(self):
        """In operations, in the bodies of requests, and in responses."""
        notices = {one.notice for one in deprecations.ALL}
        marked = [part for _, part in parts(document()) if part.get("deprecated") is True]
        assert len(marked) >= 5
        for part in marked:
            assert any(notice in part["description"] for notice in notices), part

    def test_each_deprecated_field_of_a_request_is_declared_and_sends_headers(self):
        found = set()
        for operation in operations():
            field = operation.route.body_field
            model = field.field_info.annotation if field is not None else None
            if isinstance(model, type) and issubclass(model, BaseModel):
                schema = model.model_json_schema()
                marked = [part for _, part in parts(schema) if part.get("deprecated") is True]
                assert len(marked) == len(list(deprecations.declared_in(model))), operation.name
                found |= {*deprecations.declared_in(model)}
        assert found | {*deprecations.OPERATIONS.values()} == {*deprecations.ALL}

    def test_each_deprecated_operation_names_an_existing_successor(self):
        paths = {operation.path for operation in operations()}
        for operation in operations():
            found = deprecations.OPERATIONS.get(operation.route.operation_id)
            assert operation.route.deprecated is (found is not None)
            assert found is None or found.successor in paths

    def test_each_deprecation_is_announced_a_year_before_its_end(self):
        for one in deprecations.ALL:
            assert one.sunset - one.since >= timedelta(days=365)
