"""The document's operations as read for the reference: their requests, responses, errors, and definitions."""

import json
import shlex

import pytest
from jsonschema import Draft202012Validator

from scripts.reference.operations import read
from tests.support.documented import document


@pytest.fixture(scope="module")
def tags():
    return read(document())


@pytest.fixture(scope="module")
def operations(tags):
    return [it for operations in tags.values() for it in operations]


def check(schema, value) -> None:
    Draft202012Validator({**schema, "components": document()["components"]}).validate(value)


def after(words: list[str], option: str) -> str | None:
    return words[words.index(option) + 1] if option in words else None


def test_a_request_is_a_command_with_a_valid_body_whose_method_curl_would_not_guess(operations):
    for operation in operations:
        words = shlex.split(operation.node["x-codeSamples"][0]["source"].replace("\\\n", ""))
        body, named = after(words, "-d"), after(words, "-X")
        guessed = "POST" if body else "GET"
        assert (words[0], named or guessed) == ("curl", operation.method)
        assert named != guessed
        parts = next(word for word in words if word.startswith("https://")).partition("?")[0].split("/")[3:]
        for expected, part in zip(operation.path[1:].split("/"), parts, strict=True):
            assert expected.startswith("{") or part == expected
        if body and "application/json" in str(words):
            check(operation.node["requestBody"]["content"]["application/json"]["schema"], json.loads(body))


def test_errors_are_listed_by_status_and_tags_in_the_documents_order(tags, operations):
    for operation in operations:
        form = operation.node.get("x-form-encoded", {}).get("responses", {})
        expected = [status for status in sorted(operation.node["responses"]) if status >= "400"]
        expected += [f"{status} to form-encoded requests" for status in sorted(form) if status >= "400"]
        assert [status for status, _ in operation.errors] == expected
    assert [*tags] == [tag["name"] for tag in document()["tags"]]
