"""The operations as read for the reference: their requests, errors, and definitions."""

import pytest
import yaml

from scripts.reference.operations import Operation, read

SCHEMAS = {
    "Thing": {
        "type": "object",
        "examples": [{"id": "t"}],
        "properties": {"id": {"type": "string"}, "node": {"$ref": "#/components/schemas/Node"}},
    },
    "Node": {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Node"}}},
    "Other": {"type": "object"},
}
THING = {"$ref": "#/components/schemas/Thing"}


def only(**operation) -> Operation:
    """Reads a document with one operation, made from these values and defaults."""
    path, method = operation.pop("path", "/v1/things"), operation.pop("method", "get")
    whole = {"operationId": "doThing", "summary": "Do a thing", "tags": ["Things"], "responses": {}, **operation}
    (operations,) = read(
        {"tags": [{"name": "Things"}], "paths": {path: {method: whole}}, "components": {"schemas": SCHEMAS}}
    ).values()
    return operations[0]


def request(**operation) -> str:
    return only(**operation).node["x-codeSamples"][0]["source"]


class TestRequest:
    def test_the_request_is_a_command_with_example_values(self):
        parameters = [
            {"name": "b", "in": "path", "required": True, "schema": {}, "example": "x/y"},
            {"name": "a", "in": "path", "required": True, "schema": {}, "example": 1},
            {"name": "q", "in": "query", "required": True, "schema": {}, "example": "a b"},
            {"name": "limit", "in": "query", "schema": {"type": "integer"}},
        ]
        assert request(path="/v1/{a}/{b}", parameters=parameters, security=[{"userToken": []}]) == (
            "curl 'https://api.assent.example/v1/1/x%2Fy?q=a+b' \\\n  -H \"Authorization: Bearer $TOKEN\""
        )

    def test_the_requests_body_is_quoted_for_a_shell(self):
        content = {"application/json": {"schema": THING, "examples": {"one": {"value": {"id": "it's"}}}}}
        assert request(method="post", requestBody={"required": True, "content": content}) == (
            "curl https://api.assent.example/v1/things \\\n  -H 'Content-Type: application/json' \\\n"
            '  -d \'{\n    "id": "it\'"\'"\'s"\n  }\''
        )

    @pytest.mark.parametrize("method", ["post", "patch", "delete"])
    def test_the_request_names_its_method_if_curl_would_use_another(self, method: str):
        assert request(method=method).startswith(f"curl -X {method.upper()} ")


class TestDefinition:
    def test_a_definition_has_every_component_that_it_leads_to_and_no_errors(self):
        content = {"application/json": {"schema": THING}}
        responses = {"200": {"description": "Fine.", "content": content}, "404": {"description": "None."}}
        read_back = yaml.safe_load(only(responses=responses).definition)
        assert read_back["components"] == {"schemas": {name: SCHEMAS[name] for name in ("Node", "Thing")}}
        (operation,) = read_back["paths"]["/v1/things"].values()
        assert operation == {"operationId": "doThing", "tags": ["Things"], "responses": {"200": responses["200"]}}

    def test_reading_an_operation_changes_nothing_of_it(self):
        form = {"responses": {"400": {"description": "Bad."}}}
        operation = only(responses={"404": {"description": "None."}}, **{"x-form-encoded": form})
        assert operation.node["x-form-encoded"] == {"responses": {"400": {"description": "Bad."}}}
        assert [status for status, _ in operation.errors] == ["404", "400 to form-encoded requests"]


def test_a_response_is_the_first_example_of_a_success():
    content = {"application/json": {"schema": THING, "examples": {"one": {"value": {"id": 1}}}}}
    assert only(responses={"201": {"content": content}, "200": {}}).response == '{\n  "id": 1\n}'
    assert only().response == ""
