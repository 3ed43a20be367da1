"""Every example in docs/openapi.json is valid against its schema."""

from collections.abc import Iterator
from typing import Any

from tests.support.documented import (
    DocumentedOperation,
    document,
    documented_operations,
    parts,
    problems,
    resolve,
    samples,
)
from tests.support.each import each

Example = tuple[str, dict[str, Any], Any]


def _of_content(at: str, part: dict[str, Any]) -> Iterator[Example]:
    for media_type, media in part.get("content", {}).items():
        for name, example in samples().examples(media).items():
            yield f"{at} {media_type} {name}", media["schema"], example


def _of_operation(operation: DocumentedOperation) -> Iterator[Example]:
    yield from _of_content("request", operation.content.get("requestBody", {}))
    for parameter in map(resolve, operation.content.get("parameters", [])):
        yield parameter["name"], parameter["schema"], parameter["example"]
    for status, response in operation.responses().items():
        yield from _of_content(str(status), response)
        for name, header in response.get("headers", {}).items():
            yield f"{status} {name}", resolve(header)["schema"], resolve(header)["example"]


@each("operation", documented_operations(), ids=lambda operation: operation.name)
def test_an_operations_examples_are_valid(operation: DocumentedOperation):
    found = {place: problems(schema, value) for place, schema, value in _of_operation(operation)}
    assert found
    assert {place: said for place, said in found.items() if said} == {}


@each("name", document()["components"]["schemas"])
def test_the_examples_of_a_schema_and_its_fields_are_valid(name: str):
    for at, schema in parts(document()["components"]["schemas"][name]):
        for value in schema.get("examples", []) if isinstance(schema.get("examples"), list) else []:
            assert problems(schema, value) == [], at
