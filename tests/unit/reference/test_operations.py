"""The document's operations as read for the reference: their requests, responses, errors, and definitions."""

import json
import shlex
from typing import Any

import yaml
from jsonschema import Draft202012Validator

from scripts.reference.operations import Operation, read
from tests.support.documented import document
from tests.support.each import each

TAGS = read(document())
OPERATIONS = [it for operations in TAGS.values() for it in operations]


def check(schema: dict[str, Any], value: Any) -> None:
    Draft202012Validator({**schema, "components": document()["components"]}).validate(value)


def media_of(operation: Operation) -> dict[str, Any]:
    """Returns what a success has in JSON."""
    for status, response in sorted(operation.node["responses"].items()):
        if status < "400" and "application/json" in response.get("content", {}):
            found: dict[str, Any] = response["content"]["application/json"]
            return found
    return {}


@each("operation", OPERATIONS, ids=lambda it: it.node["operationId"])
class TestOperation:
    def test_the_request_is_a_command_with_a_valid_body_whose_method_curl_would_not_guess(self, operation):
        words = shlex.split(operation.node["x-codeSamples"][0]["source"].replace("\\\n", ""))
        body = words[words.index("-d") + 1] if "-d" in words else None
        named = words[words.index("-X") + 1] if "-X" in words else None
        assert words[0] == "curl"
        assert (named or ("POST" if body else "GET")) == operation.method
        assert named not in {"GET", "POST" if body else ""}
        parts = next(word for word in words if word.startswith("https://")).partition("?")[0].split("/")[3:]
        for expected, part in zip(operation.path[1:].split("/"), parts, strict=True):
            assert expected.startswith("{") or part == expected
        if body and "application/json" in str(words):
            check(operation.node["requestBody"]["content"]["application/json"]["schema"], json.loads(body))

    def test_the_response_is_valid(self, operation):
        media = media_of(operation)
        assert bool(operation.response) is bool(media)
        if media:
            check(media["schema"], json.loads(operation.response))

    def test_the_definition_has_every_component_that_it_leads_to_and_no_errors(self, operation):
        whole = yaml.safe_load(operation.definition)
        (methods,) = whole["paths"].values()
        (definition,) = methods.values()
        assert definition["operationId"] == operation.node["operationId"]
        assert not [status for status in definition["responses"] if status >= "400"]
        named = {it.rpartition("/")[2].rstrip("'\"") for it in operation.definition.split() if "#/components/" in it}
        assert named == {name for those in whole.get("components", {}).values() for name in those}

    def test_its_errors_are_listed_by_status(self, operation):
        form = operation.node.get("x-form-encoded", {}).get("responses", {})
        expected = [status for status in sorted(operation.node["responses"]) if status >= "400"]
        expected += [f"{status} to form-encoded requests" for status in sorted(form) if status >= "400"]
        assert [status for status, _ in operation.errors] == expected


def test_tags_are_in_the_documents_order():
    assert [*TAGS] == [tag["name"] for tag in document()["tags"]]
