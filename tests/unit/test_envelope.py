"""The serialized bytes of a response."""

import json
from typing import Any

from pydantic import Field

from controlplane.platform.http.envelope import Page, Wire, success
from tests.support.each import each


class Leaf(Wire):
    wire_name: str
    url_of: str | None = Field(None, alias="urlOF")


class Tree(Wire):
    leaves: list[Leaf]


LEAF = Leaf(wire_name='é"\u2028\U0001f600', url_of=None)
AS_JSON = {"wireName": 'é"\u2028\U0001f600', "urlOF": None}


@each(
    ("content", "data"),
    [
        (LEAF, AS_JSON),
        ([LEAF, LEAF], [AS_JSON, AS_JSON]),
        ([Tree(leaves=[LEAF]), LEAF], [{"leaves": [AS_JSON]}, AS_JSON]),
        ([], []),
        ([{"a": 1}, "é", None, 1.5, True], [{"a": 1}, "é", None, 1.5, True]),
        ({"a": [1]}, {"a": [1]}),
    ],
)
def test_data_is_serialized_under_its_wire_names(content: Any, data: Any):
    body = success(content)
    assert json.loads(body) == {"success": True, "data": data}
    assert body == json.dumps({"success": True, "data": data}, separators=(",", ":"), ensure_ascii=False).encode()


def test_a_page_names_the_next_one():
    assert json.loads(success(Page([LEAF], "next")))["pagination"] == {"nextCursor": "next", "hasMore": True}
    assert json.loads(success(Page([LEAF])))["pagination"] == {"nextCursor": None, "hasMore": False}
