"""The OpenAPI document as parsed for the reference."""

import pytest

from scripts.reference.document import Field, Operation, slug
from scripts.reference.fields import Fields
from scripts.reference.reader import Reader
from scripts.reference.samples import Samples
from tests.support.each import each


def read(**operation) -> Operation:
    """Parses a document with one operation, made from these values and defaults. Returns the operation."""
    path, method = operation.pop("path", "/v1/things"), operation.pop("method", "get")
    whole = {"operationId": "doThing", "summary": "Do a thing", "responses": {}, **operation}
    (tag,) = Reader({"paths": {path: {method: whole}}, "components": {"schemas": SCHEMAS}}).tags()
    (only,) = tag.operations
    return only


SCHEMAS = {
    "Thing": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}, "n": {"type": "integer"}}},
    "OtherThing": {"type": "object", "properties": {"name": {"type": "string"}}},
    "Node": {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Node"}}},
}
THING = {"$ref": "#/components/schemas/Thing"}


def field(schema) -> Field:
    return Fields(Samples({"components": {"schemas": SCHEMAS}})).read("x", schema, required=False)


def response(schema, status: str = "200"):
    node = {status: {"description": "Fine.", "content": {"application/json": {"schema": schema}}}}
    (only,) = read(responses=node).responses
    return only


@each(
    ("schema", "words"),
    [
        ({"type": "string"}, "string"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string or null"),
        ({"type": ["integer", "null"]}, "integer or null"),
        ({"type": "array", "items": THING}, "array of objects"),
        ({"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}}, "array of (string or null)"),
        ({"type": "array"}, "array"),
        ({"const": "a"}, "string"),
        ({"enum": [True]}, "boolean"),
        ({"oneOf": [THING, {"$ref": "#/components/schemas/OtherThing"}]}, "object"),
        ({}, "any value"),
    ],
)
def test_a_type_is_named(schema, words):
    assert field(schema).type == words


@each(
    ("schema", "facts"),
    [
        ({"type": "string", "minLength": 3, "maxLength": 20}, ["3 to 20 characters"]),
        ({"type": "string", "minLength": 1, "maxLength": 1}, ["1 character"]),
        ({"type": "string", "maxLength": 1_024}, ["at most 1,024 characters"]),
        ({"type": "string", "minLength": 1}, []),
        ({"type": "integer", "minimum": 1, "maximum": 100, "default": 50}, ["1 to 100", "`50` if omitted"]),
        ({"type": "integer", "minimum": 0}, []),
        ({"type": "integer", "minimum": 5}, ["at least 5"]),
        (
            {"type": "array", "items": {"maxLength": 9}, "minItems": 1, "uniqueItems": True},
            ["no repeated ones", "each at most 9 characters"],
        ),
        ({"enum": ["a", None]}, ["one of `a`, `null`"]),
        ({"const": "a", "default": "a"}, ["always `a`"]),
        ({"type": "string", "format": "date-time"}, ["RFC 3339 time"]),
        ({"type": "string", "format": "ipv4"}, ["ipv4"]),
        ({"type": "string", "pattern": "^a$"}, ["matches `^a$`"]),
        ({"type": "string", "pattern": "^" + "a" * 60}, []),
        (
            {"anyOf": [{"maxLength": 5}, {"type": "null"}], "default": False},
            ["at most 5 characters", "`false` if omitted"],
        ),
    ],
)
def test_bounds_are_words(schema, facts):
    assert field(schema).facts == facts


class TestFields:
    def test_fields_include_nested_fields(self):
        assert [child.name for child in field({"type": "array", "items": THING}).children] == ["id", "n"]
        assert [child.name for child in field({"anyOf": [THING, {"type": "null"}]}).children] == ["id", "n"]

    def test_fields_show_each_of_several_shapes(self):
        shapes = field({"oneOf": [THING, {"$ref": "#/components/schemas/OtherThing"}]}).variants
        assert [(shape.title, len(shape.fields)) for shape in shapes] == [("Thing", 2), ("Other thing", 1)]

    def test_fields_end_at_a_recursive_shape(self):
        inner = field({"$ref": "#/components/schemas/Node"}).children[0]
        assert inner.children == []


class TestResponses:
    def test_responses_are_shown_without_their_envelope(self):
        envelope = {"type": "object", "properties": {"success": {"const": True}, "data": THING}}
        (body,) = response(envelope).bodies
        assert (body.is_enveloped, body.is_paged, body.type) == (True, False, "object")
        assert [one.name for one in body.variants[0].fields] == ["id", "n"]

    def test_paginated_responses_are_shown_as_pages(self):
        listed = {"type": "array", "items": THING}
        (body,) = response({"type": "object", "properties": {"data": listed, "pagination": {}}}).bodies
        assert (body.is_paged, body.type) == (True, "array of objects")

    def test_responses_without_an_envelope_are_marked_among_others(self):
        envelope = {"type": "object", "properties": {"success": {"const": True}, "data": {**SCHEMAS["Thing"]}}}
        bare = {"type": "object", "properties": {"id": {"type": "string"}}}
        (body,) = response({"oneOf": [envelope, bare]}).bodies
        assert [shape.title for shape in body.variants] == ["In the envelope", "Without the envelope"]

    def test_headers_of_some_responses_are_shown(self):
        headers = {"X-Request-Id": {}, "Retry-After": {"description": "Seconds."}}
        (only,) = read(responses={"429": {"description": "Slow down.", "headers": headers}}).responses
        assert [(header.name, header.description) for header in only.headers] == [("Retry-After", "Seconds.")]

    @pytest.mark.parametrize("words", ["OK", "Successful Response"])
    def test_responses_dont_repeat_what_their_status_says(self, words: str):
        assert read(responses={"200": {"description": words}}).responses[0].description == ""

    def test_responses_can_have_any_status(self):
        responses = read(responses={"418": {"description": "Tea."}, "default": {"description": "Else."}}).responses
        assert [(one.status, one.name) for one in responses] == [("418", "I'm a teapot"), ("default", "Any other")]


class TestCredentials:
    @pytest.mark.parametrize(
        ("security", "credential"),
        [
            ([], "none"),
            ([{"userToken": []}], "user"),
            ([{"organizationApiKey": []}, {"userToken": []}], "any"),
        ],
    )
    def test_credentials_are_read_from_the_security_requirements(self, security, credential: str):
        assert read(security=security).credential == credential

    def test_unknown_kinds_of_credentials_are_not_ignored(self):
        with pytest.raises(ValueError, match="cookie"):
            read(security=[{"cookie": []}])

    @each(
        ("sentence", "roles", "role"),
        [
            (
                "Needs a user token with the scope `a.b` or `c.d`, of an admin or owner.",
                ["admin", "owner"],
                "an admin or owner",
            ),
            ("Needs an API key or a user token with the scope `a.b`, of an owner.", ["owner"], "an owner"),
            ("Needs a user token with the scope `a.b`.", [], None),
            ("Needs no credential.", [], None),
            ("Needs any valid credential.", [], None),
        ],
    )
    def test_credentials_are_separated_from_the_description(self, sentence: str, roles: list[str], role: str | None):
        asked = {"x-required-roles": roles} if roles else {}
        operation = read(description=f"Does a thing. Needs nothing else.\n\nAt once.\n\n{sentence}", **asked)
        assert (operation.description, operation.role) == ("Does a thing. Needs nothing else.\n\nAt once.", role)

    def test_a_description_without_credentials_is_unchanged(self):
        assert read(description="Needs care.\n\nReally.").description == "Needs care.\n\nReally."


class TestRequest:
    def test_the_request_is_a_command_with_example_values(self):
        parameters = [
            {"name": "b", "in": "path", "required": True, "schema": {}, "example": "x/y"},
            {"name": "a", "in": "path", "required": True, "schema": {"examples": ["1"]}},
            {"name": "q", "in": "query", "required": True, "schema": {}, "examples": {"one": {"value": "a b"}}},
            {"name": "limit", "in": "query", "schema": {"type": "integer"}},
        ]
        operation = read(path="/v1/{a}/{b}", parameters=parameters, security=[{"userToken": []}])
        assert operation.request == (
            "curl 'https://api.assent.example/v1/1/x%2Fy?q=a+b' \\\n  -H \"Authorization: Bearer $TOKEN\""
        )
        assert [one.name for one in operation.parameters["path"]] == ["a", "b"]

    def test_the_requests_body_is_quoted_for_a_shell(self):
        content = {"application/json": {"schema": THING, "example": {"id": "it's"}}}
        operation = read(method="post", requestBody={"required": True, "content": content})
        assert operation.request == (
            "curl https://api.assent.example/v1/things \\\n  -H 'Content-Type: application/json' \\\n"
            '  -d \'{\n    "id": "it\'"\'"\'s"\n  }\''
        )

    @pytest.mark.parametrize("method", ["post", "patch", "delete"])
    def test_the_request_names_its_method_if_curl_would_use_another(self, method: str):
        assert read(method=method).request.startswith(f"curl -X {method.upper()} ")

    def test_the_request_shows_every_alternative_body(self):
        examples = {"a": {"summary": "One", "value": {"a": 1}}, "b": {"summary": "Two", "value": {"b": "x y"}}}
        content = {
            "application/json": {"schema": {}, "examples": examples},
            "application/x-www-form-urlencoded": {"schema": {}, "examples": examples},
        }
        others = read(method="post", requestBody={"content": content}).other_requests
        assert [(one.title, one.text) for one in others] == [
            ("Two", '{\n  "b": "x y"\n}'),
            ("One", "a=1"),
            ("Two", "b=x+y"),
        ]


class TestTags:
    def test_tags_are_listed_in_order_then_the_others_without_empty_ones(self):
        paths = {
            "/b": {"get": {"operationId": "b", "tags": ["B"], "responses": {}}},
            "/a": {"get": {"operationId": "a", "tags": ["A b"], "responses": {}}},
            "/n": {"get": {"operationId": "n", "responses": {}}, "parameters": []},
        }
        document = {"paths": paths, "tags": [{"name": "Empty"}, {"name": "A b", "description": "Those."}]}
        found = Reader(document).tags()
        assert [(tag.name, tag.description) for tag in found] == [("A b", "Those."), ("B", ""), ("Other", "")]
        assert slug(found[0].name) == "a-b"
