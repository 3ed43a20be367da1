"""Every write of an item stores the schema version, unless the item has one already."""

from typing import Any

import pytest

from controlplane.store import schema
from controlplane.store.keys import Key
from controlplane.store.legs import Put, Update, to_check
from tests.support.each import each

KEY = Key("A", "B")
MARK = "#v = if_not_exists(#v, :v)"


@each(
    "change, sent",
    [
        ("SET #a = :a REMOVE #b", f"SET {MARK}, #a = :a REMOVE #b"),
        ("ADD #hits :a SET #b = :a", f"ADD #hits :a SET {MARK}, #b = :a"),
        ("REMOVE #OFFSET ", f"SET {MARK} REMOVE #OFFSET "),
        ("ADD #a :a", f"SET {MARK} ADD #a :a"),
        ("SET #v = :v", "SET #v = :v"),
        ("SET #value = :a", f"SET {MARK}, #value = :a"),
    ],
)
def test_an_update_gives_an_item_without_a_version_the_first_one(change: str, sent: str):
    parameters = Update(KEY, change, None, {"a": 1}).parameters()
    assert parameters["UpdateExpression"] == sent
    assert parameters["ExpressionAttributeNames"]["#v"] == "v"
    assert parameters["ExpressionAttributeValues"] == {":a": {"N": "1"}, ":v": {"N": str(schema.FIRST)}}


@each("item, version", [({}, schema.VERSION), ({"v": 0}, 0), ({"v": 99}, 99)])
def test_a_new_item_has_the_current_version_unless_it_has_one(item: dict[str, Any], version: int):
    sent = Put({"pk": "A", "sk": "B", **item}).parameters()
    assert sent == {"Item": {"pk": {"S": "A"}, "sk": {"S": "B"}, "v": {"N": str(version)}}}


def test_the_version_is_no_part_of_a_condition():
    check = to_check(Update(KEY, "SET #a = :a", "#b = :b", {"a": 1, "b": 2}))
    assert check is not None
    assert check.parameters()["ExpressionAttributeValues"] == {":b": {"N": "2"}}


def test_an_item_without_a_version_is_older_than_all_others():
    assert schema.version_of({}) == 0 < schema.version_of({"v": 1}) == 1


def test_a_rewritten_item_keeps_its_version_or_gets_the_first_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(schema, "VERSION", 2)
    assert schema.rewritten({"a": 1, "b": 1}, {"b": 2}) == {"a": 1, "b": 2, "v": schema.FIRST}
    assert schema.rewritten({"a": 1, "v": 9}, {}) == {"a": 1, "v": 9}
