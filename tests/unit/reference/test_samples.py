"""Examples come from the schema if it has any, and otherwise from its parts."""

import pytest

from scripts.reference.samples import Samples
from tests.support.each import each

SCHEMAS = {
    "Shop": {
        "type": "object",
        "required": ["name", "old"],
        "properties": {
            "name": {"type": "string", "examples": ["Cedar"]},
            "kind": {"enum": ["small", "large"], "examples": ["small"]},
            "old": {"type": "string", "deprecated": True, "examples": ["x"]},
            "older": {"type": "string", "deprecated": True, "examples": ["y"]},
        },
    },
}


@pytest.fixture
def samples() -> Samples:
    return Samples({"components": {"schemas": SCHEMAS}})


@each(
    ("schema", "value"),
    [
        ({"type": "string", "examples": ["b"], "default": "c"}, "b"),
        ({"type": "string", "examples": [None]}, None),
        ({"type": "integer", "default": 50}, 50),
        ({"const": True, "type": "boolean"}, True),
        ({"anyOf": [{"type": "null"}, {"type": "string", "examples": ["b"]}]}, "b"),
        ({"type": "array", "items": {"type": "boolean", "examples": [True]}}, [True]),
        (
            {"allOf": [{"$ref": "#/components/schemas/Shop"}, {"properties": {"more": {"const": 1}}}]},
            {"name": "Cedar", "kind": "small", "old": "x", "more": 1},
        ),
    ],
)
def test_a_sample_matches_its_schema(samples: Samples, schema, value):
    assert samples.of(schema) == value


def test_a_deprecated_field_is_shown_only_if_required(samples: Samples):
    assert list(samples.of({"$ref": "#/components/schemas/Shop"})) == ["name", "kind", "old"]


def test_a_part_without_an_example_is_refused(samples: Samples):
    with pytest.raises(SystemExit, match="add an example"):
        samples.of({"type": "string"})


def test_siblings_of_a_reference_win_and_a_schema_keeps_its_name(samples: Samples):
    node = samples.resolve({"$ref": "#/components/schemas/Shop", "description": "Here."})
    assert (node["title"], node["description"], node["type"]) == ("Shop", "Here.", "object")


def test_a_union_of_field_combinations_is_not_a_choice_of_shapes(samples: Samples):
    node = {"properties": {"a": {}, "b": {}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}
    assert samples.variants(node) == [node]
