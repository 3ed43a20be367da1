"""Examples come from the schema if it has any; otherwise they are built from its parts."""

import pytest

from scripts.reference.samples import Samples
from tests.support.each import each

SCHEMAS = {
    "Shop": {
        "type": "object",
        "required": ["name", "old"],
        "properties": {
            "name": {"type": "string", "examples": ["Cedar"]},
            "kind": {"enum": ["small", "large"]},
            "opened": {"type": "string", "format": "date-time"},
            "old": {"type": "string", "deprecated": True, "examples": ["x"]},
            "older": {"type": "string", "deprecated": True, "examples": ["y"]},
        },
    },
    "Tree": {"type": "object", "properties": {"child": {"$ref": "#/components/schemas/Tree"}}},
    "Loop": {"$ref": "#/components/schemas/Loop"},
}


@pytest.fixture
def samples() -> Samples:
    return Samples({"components": {"schemas": SCHEMAS}, "paths": {"/a/{b}": {"get": {"x": 1}}}})


@each(
    ("schema", "value"),
    [
        ({"type": "string", "example": "a", "examples": ["b"]}, "a"),
        ({"type": "string", "examples": ["b"], "default": "c"}, "b"),
        ({"type": "string", "examples": [None]}, None),
        ({"type": "integer", "default": 50}, 50),
        ({"const": True, "type": "boolean"}, True),
        ({"enum": ["a", "b"]}, "a"),
        ({"anyOf": [{"type": "null"}, {"type": "string", "examples": ["b"]}]}, "b"),
        ({"type": ["null", "integer"]}, 1),
        ({"type": "null"}, None),
        ({"type": "array", "items": {"type": "boolean"}}, [True]),
        ({"type": "array"}, []),
        ({"type": "string", "format": "email"}, "ada@example.com"),
        ({}, "string"),
        (
            {"allOf": [{"$ref": "#/components/schemas/Shop"}, {"properties": {"more": {"const": 1}}}]},
            {"name": "Cedar", "kind": "small", "opened": "2026-03-04T05:06:07.000Z", "old": "x", "more": 1},
        ),
    ],
)
def test_a_sample_matches_its_schema(samples: Samples, schema, value):
    assert samples.of(schema) == value


def test_a_deprecated_field_is_shown_only_if_required(samples: Samples):
    assert list(samples.of({"$ref": "#/components/schemas/Shop"})) == ["name", "kind", "opened", "old"]


def test_a_recursive_schema_ends(samples: Samples):
    assert "child" in samples.of({"$ref": "#/components/schemas/Tree"})


def test_a_schema_that_is_only_itself_is_refused(samples: Samples):
    with pytest.raises(ValueError, match="refers to itself"):
        samples.of({"$ref": "#/components/schemas/Loop"})


def test_siblings_of_a_reference_win_and_a_schema_keeps_its_name(samples: Samples):
    node = samples.resolve({"$ref": "#/components/schemas/Shop", "description": "Here."})
    assert (node["title"], node["description"], node["type"]) == ("Shop", "Here.", "object")


def test_a_reference_can_lead_anywhere_in_the_document(samples: Samples):
    assert samples.resolve({"$ref": "#/paths/~1a~1{b}/get"}) == {"x": 1}


def test_a_union_of_field_combinations_is_not_a_choice_of_shapes(samples: Samples):
    node = {"properties": {"a": {}, "b": {}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}
    assert samples.variants(node) == [node]
