"""One response names every mistake of a request, and what a request has beyond the fields of its operation."""

from typing import Any

import pytest

from tests.support.each import each

SHOP = {"name": "Shop", "region": "eu-central"}
UNKNOWN = "unknown_field"


def listed(reply: Any) -> list[tuple[str, str]]:
    """Returns the place and the code of each problem."""
    return [(".".join(problem["path"]), problem["code"]) for problem in reply.error["details"]]


@pytest.fixture
def token(world):
    return world.company().owner.token


def test_path_query_headers_and_body_are_checked_in_one_pass(api, token):
    reply = api.post(
        "/v1/projects/prj_x/vendors/No%20vendor/decision?dryRun=maybe&organization=x&organization=y",
        token,
        json_body={"decision": "allow", "reason": "none"},
        headers={"Idempotency-Key": "a,b"},
    )
    assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")
    assert listed(reply) == [
        ("Idempotency-Key", "repeated"),
        ("organization", "repeated"),
        ("organization", "unknown_parameter"),
        ("vendorId", "string_pattern_mismatch"),
        ("dryRun", "value_error"),
        ("decision", "literal_error"),
        ("reason", UNKNOWN),
    ]


@each(
    ("path", "expected"),
    [
        ("?limit=0&bogus=1", [("bogus", "unknown_parameter"), ("limit", "greater_than_equal")]),
        ("?limit=1&limit=x&cursor=", [("limit", "repeated"), ("cursor", "string_too_short")]),
    ],
)
def test_each_problem_of_a_query_is_named(path, expected, api, token):
    assert listed(api.get(f"/v1/projects{path}", token)) == expected


def test_a_body_that_cant_be_read_doesnt_hide_the_problems_of_the_query(api, token):
    reply = api.call("POST", "/v1/projects?bogus=1&organizationId=", token, raw_body=b"{")
    assert listed(reply) == [
        ("", "json_invalid"),
        ("bogus", "unknown_parameter"),
        ("organizationId", "string_too_short"),
    ]


@each(
    ("fields", "code", "expected"),
    [
        (
            {"name": "", "region": "nowhere", "websites": ["a.example.com", "bad host", "b c"]},
            "INVALID_PAYLOAD",
            [
                ("name", "string_too_short"),
                ("region", "invalid_region"),
                ("websites.1", "invalid_origin"),
                ("websites.2", "invalid_origin"),
            ],
        ),
        (
            {"region": "nowhere", "websites": ["bad host"]},
            "INVALID_REGION",
            [("region", "invalid_region"), ("websites.0", "invalid_origin")],
        ),
        (
            {"consent": {"trustedOrigins": ["bad host"]}},
            "INVALID_ORIGIN",
            [("consent.trustedOrigins.0", "invalid_origin")],
        ),
        # Unknown fields alone are no error, so they don't change its code.
        ({"region": "nowhere", "foo": 1}, "INVALID_REGION", [("region", "invalid_region"), ("foo", UNKNOWN)]),
        ({"websites": ["bad host"], "foo": 1}, "INVALID_ORIGIN", [("websites.0", "invalid_origin"), ("foo", UNKNOWN)]),
        (
            {"trustedOrigins": ["bad host"], "websites": [], "consent": {"brand": 1}},
            "INVALID_PAYLOAD",
            [
                ("organizationId", "missing"),
                ("websites", "contradiction"),
                ("websites", "too_short"),
                ("trustedOrigins.0", "invalid_origin"),
                ("consent.brand", UNKNOWN),
            ],
        ),
    ],
)
def test_a_new_project_is_refused_for_everything_that_is_wrong(fields, code, expected, api, token):
    reply = api.post("/v1/projects", token, json_body={**SHOP, **fields})
    assert (reply.status, reply.code, listed(reply)) == (400, code, expected)
    assert api.get("/v1/projects", token).data == []


def test_a_key_is_refused_for_each_limit_that_is_wrong(api, token):
    body = {"name": "CI", "allowedIps": ["10.0.0.0/8", "10.0.0.1/8", "x"], "expiresAt": "2001-01-01T00:00:00Z"}
    reply = api.post("/v1/api-keys", token, json_body=body)
    assert listed(reply) == [
        ("allowedIps.1", "host_bits"),
        ("allowedIps.2", "invalid_network"),
        ("expiresAt", "in_the_past"),
    ]


class TestUnknownFields:
    """They are ignored (additive clients), unless the contract says otherwise, but never in silence."""

    def test_a_success_names_each_with_the_name_that_was_probably_meant(self, api, token):
        body = {**SHOP, "website": ["shop.example.com"], "consent": {"brandin": "none"}, "zzz": 1}
        made = api.post("/v1/projects", token, json_body=body)
        assert (made.status, made.data["websites"]) == (201, [])
        assert [(".".join(it["path"]), it["code"], it["message"]) for it in made.body["warnings"]] == [
            ("website", UNKNOWN, "Unknown field. Did you mean websites?"),
            ("consent.brandin", UNKNOWN, "Unknown field. Did you mean branding?"),
            ("zzz", UNKNOWN, "Unknown field"),
        ]
        changed = {"projectName": "Market", "descripton": "Sells"}
        reply = api.patch(f"/v1/projects/{made.data['id']}", token, json_body=changed)
        assert (reply.status, [it["path"] for it in reply.body["warnings"]]) == (200, [["descripton"]])

    def test_those_in_the_entries_of_a_list_are_named_and_a_success_without_any_has_no_warnings(self, api, token):
        assert "warnings" not in api.post("/v1/projects", token, json_body=SHOP).body
        change = {"id": "inb_x", "version": "1", "status": "open", "note": "x"}
        reply = api.patch("/v1/inbox", token, json_body={"items": [change]})
        assert (reply.status, [it["path"] for it in reply.body["warnings"]]) == (200, [["items", "0", "note"]])

    def test_a_repetition_has_the_warnings_of_its_own_request(self, api, token):
        headers = {"Idempotency-Key": "one"}
        first = api.post("/v1/projects", token, json_body=SHOP, headers=headers)
        repeated = api.post("/v1/projects", token, json_body={**SHOP, "slug": "mine"}, headers=headers)
        assert (repeated.data, [it["path"] for it in repeated.body["warnings"]]) == (first.data, [["slug"]])

    @each(
        ("body", "expected"),
        [
            ({"titel": "Q"}, [("titel", UNKNOWN)]),
            ({"consent": {"brandin": "none"}}, [("consent.brandin", UNKNOWN)]),
            ({"consent": {}}, [("", "empty")]),
            ({"consent": {}, "titel": "Q"}, [("consent", "empty"), ("titel", UNKNOWN)]),
            ({}, [("", "empty")]),
            (
                {"projectName": "", "descripton": "Sells"},
                [("projectName", "string_too_short"), ("descripton", UNKNOWN)],
            ),
        ],
    )
    def test_a_change_without_known_fields_is_refused_and_names_unknown_ones(self, body, expected, api, token):
        path = f"/v1/projects/{api.post('/v1/projects', token, json_body=SHOP).data['id']}"
        before = api.get(path, token).data
        reply = api.patch(path, token, json_body=body)
        assert (reply.status, listed(reply)) == (400, expected)
        assert api.get(path, token).data == before

    @each(("consent", "unknown"), [({}, []), ({"brandin": "none"}, [["consent", "brandin"]])])
    def test_an_empty_part_is_ignored_next_to_another_change(self, consent, unknown, api, token):
        path = f"/v1/projects/{api.post('/v1/projects', token, json_body=SHOP).data['id']}"
        before = api.get(path, token).data
        reply = api.patch(path, token, json_body={"projectName": "Q", "consent": consent})
        assert (reply.status, [it["path"] for it in reply.body.get("warnings", ())]) == (200, unknown)
        after = api.get(path, token).data
        assert (after["name"], after["consent"]["branding"]) == ("Q", before["consent"]["branding"])

    def test_a_link_and_a_key_are_not_changed_by_nothing(self, api, token):
        key = api.post("/v1/api-keys", token, json_body={"name": "CI"}).data["keyId"]
        assert listed(api.patch(f"/v1/api-keys/{key}", token, json_body={})) == [("", "empty")]
        assert listed(api.patch(f"/v1/api-keys/{key}", token, json_body={"nam": 1})) == [("nam", "extra_forbidden")]

    def test_thousands_are_counted_and_not_compared_and_a_long_name_is_cut(self, api, token):
        body = {**SHOP, **{f"field{number}": 1 for number in range(5_000)}}
        reply = api.post("/v1/projects", token, json_body=body)
        assert (reply.status, len(reply.body["warnings"])) == (201, 101)
        assert reply.body["warnings"][-1]["message"] == "4,900 more problems are not listed."
        reply = api.post("/v1/projects", token, json_body={**SHOP, "x" * 100_000: 1})
        assert (reply.status, len(reply.text)) == (201, pytest.approx(1_000, abs=500))


class TestName:
    """`name` is what a project's response calls `projectName`."""

    @each(
        ("body", "status"),
        [
            ({"name": "Market"}, 200),
            ({"name": " Market", "projectName": "Market"}, 200),
            ({"name": "Market", "projectName": "Other"}, 400),
        ],
    )
    def test_renames_like_project_name(self, body, status, api, token):
        path = f"/v1/projects/{api.post('/v1/projects', token, json_body=SHOP).data['id']}"
        reply = api.patch(path, token, json_body=body)
        assert reply.status == status
        assert api.get(path, token).data["name"] == ("Market" if status == 200 else "Shop")
        if status == 400:
            assert listed(reply) == [("name", "contradiction")]
