"""Values that the document doesn't allow in a body or a query are refused with their name, and nothing is written."""

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any
from urllib.parse import quote

from tests.functional.test_every_route import ANONYMOUS, BY_QUERY, WITH_BODY, sender
from tests.support.documented import document, problems, resolve
from tests.support.each import each
from tests.support.operations import Operation
from tests.support.reply import Reply
from tests.support.valid_requests import valid_body
from tests.support.world import uncounted

__all__ = ["sender"]  # a fixture

# Values that the schema of a field may not allow.
VALUES = (
    None, True, 7, -1, "", "   ", "a\nb", "\u202e", "a b", "A", "é", "a..b", "/a", "a/", "@", "hourly", "P4", "plain",
    [], [None], ["x"], {}, "2026-03-04", "x" * 43 + "=", "ä" * 200,
)  # fmt: skip
# Values of parameters in a query, in which a number is text, too.
TEXTS = (
    "", " ", "x" * 101, "x" * 1_025, "P4", "p0", "OPEN", "open,accepted", "github", "null", "2026-03-04",
    "2026-03-04T05:06:07", "é", "%00",
)  # fmt: skip
_OMITTED = object()


def body_of(operation: Operation) -> dict[str, Any]:
    """Returns the schema of the body, which is empty if the document has none."""
    described = document()["paths"].get(operation.path, {}).get(operation.method.lower(), {})
    if "requestBody" not in described:
        return {}
    return resolve(resolve(described["requestBody"])["content"]["application/json"]["schema"])


OPERATIONS = [operation for operation in (*WITH_BODY, *ANONYMOUS) if body_of(operation).get("properties")]


def wrong_values(schema: dict[str, Any]) -> list[Any]:
    """Returns those of the values that the field's schema doesn't allow and, of an object, its fields with them."""
    inner = schema.get("properties", {}).items()
    found = [{name: value} for name, field in inner for value in wrong_values(resolve(field))]
    return [*found, *(value for value in VALUES if problems(schema, value))]


def edges(schema: dict[str, Any]) -> Iterator[tuple[Any, Any, str]]:
    """Yields the last value that each limit of the schema allows, the first one that it doesn't, and the problem."""
    for limit, unit, more, problem in (
        ("maxLength", "x", 1, "string_too_long"),
        ("minLength", "x", -1, "string_too_short"),
        ("maxItems", ["x"], 1, "too_long"),
        ("minItems", ["x"], -1, "too_short"),
    ):
        # An address has problems of its own.
        if limit in schema and schema.get("format") != "uri":
            yield unit * schema[limit], unit * (schema[limit] + more), problem


def named(reply: Reply) -> dict[str, set[str]]:
    """Returns the codes of the problems by the fields that a 400 names."""
    found: dict[str, set[str]] = {}
    for problem in reply.error["details"] if reply.status == 400 else ():
        found.setdefault((problem["path"] or [""])[0], set()).add(problem["code"])
    return found


@each("operation", OPERATIONS, ids=lambda it: it.name)
def test_a_value_that_the_document_doesnt_allow_is_refused_with_its_field(operation, sender):
    send, valid, schema = sender(operation), valid_body(operation), body_of(operation)
    if "grantType" in valid:
        valid["grantType"] = "refresh_token"  # the other one ignores the scope
    fields = {name: resolve(field) for name, field in schema["properties"].items()}
    before = uncounted()
    # Each request has as many wrong fields as possible: its response names all of them.
    for values in zip_longest(*map(wrong_values, fields.values()), fillvalue=_OMITTED):
        wrong = {name: value for name, value in zip(fields, values, strict=True) if value is not _OMITTED}
        for name in wrong.keys() - named(send(json_body={**valid, **wrong})).keys():
            # Some are checked only once each field is well-formed.
            assert name in named(send(json_body={**valid, name: wrong[name]})), (name, wrong[name])
    for name, field in fields.items():
        for _, beyond, problem in edges(field):
            assert problem in named(send(json_body={**valid, name: beyond}))[name], (name, beyond)
    if missing := {*schema.get("required", ())}:
        assert missing <= named(send(json_body={})).keys()
    assert uncounted() == before


@each("operation", OPERATIONS, ids=lambda it: it.name)
def test_a_value_at_a_limit_of_the_document_is_neither_too_long_nor_too_short(operation, sender):
    send, valid = sender(operation), valid_body(operation)
    for name, field in body_of(operation)["properties"].items():
        for allowed, _, problem in edges(resolve(field)):
            assert problem not in named(send(json_body={**valid, name: allowed})).get(name, ()), (name, allowed)


@each("operation", [it for it in BY_QUERY if it.method == "GET"], ids=lambda it: it.name)
def test_a_parameter_that_the_document_doesnt_allow_is_refused_with_its_name(operation, api, world):
    token = world.company().owner.token
    described = document()["paths"].get(operation.path, {}).get("get", {})
    for parameter in map(resolve, described.get("parameters", ())):
        name, schema = parameter["name"], parameter.get("schema", {})
        for text in TEXTS if parameter["in"] == "query" else ():
            if problems(schema, text):
                assert name in named(api.get(f"{operation.path}?{name}={quote(text)}", token)), (name, text)
