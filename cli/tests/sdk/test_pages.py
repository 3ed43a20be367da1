"""Lists iterate over all pages, lazily."""

import httpx
import pytest

from cli.tests.support.script import Script, failure, page
from openassent import NotFound


def region(number: int) -> dict[str, str]:
    return {"id": f"region-{number}", "label": "Somewhere"}


def member(number: int) -> dict[str, object]:
    user = {"id": f"usr_{number}", "name": "Ada", "email": "ada@example.com", "image": None}
    return {"id": f"mem_{number}", "role": "member", "joinedAt": "2026-03-04T05:06:07.000Z", "user": user}


def pages() -> Script:
    """Two pages with an empty one between them, as filters can leave."""
    return Script(page([member(1), member(2)], "c1"), page([], "c2"), page([member(3)]))


class TestIterating:
    def test_requests_all_pages(self):
        script = pages()
        assert [it.id for it in script.client().members.list(limit=2)] == ["mem_1", "mem_2", "mem_3"]
        sent = [dict(it.url.params) for it in script.requests]
        assert sent == [{"limit": "2"}, {"limit": "2", "cursor": "c1"}, {"limit": "2", "cursor": "c2"}]

    def test_requests_only_the_pages_that_are_needed(self):
        script = pages()
        members = script.client().members.list()
        assert script.requests == []
        iterator = iter(members)
        assert [next(iterator).id, next(iterator).id] == ["mem_1", "mem_2"]
        assert len(script.requests) == 1

    def test_begins_at_a_cursor_and_can_be_repeated(self):
        script = Script(page([member(1)]))
        members = script.client().members.list(cursor="c9")
        assert list(members) == list(members)
        assert [it.url.params["cursor"] for it in script.requests] == ["c9", "c9"]

    def test_raises_the_error_of_a_page(self):
        iterator = iter(Script(page([member(1)], "c1"), failure(404, "NOT_FOUND")).client().members.list())
        assert next(iterator).id == "mem_1"
        with pytest.raises(NotFound):
            next(iterator)


class TestAPage:
    def test_has_its_items_and_the_next_cursor(self):
        script = pages()
        first = script.client().members.list().page()
        assert ([it.id for it in first.items], first.next_cursor) == (["mem_1", "mem_2"], "c1")
        assert [it.next_cursor for it in script.client().members.list().pages()] == ["c2", None]

    def test_can_be_without_pagination(self):
        script = Script(httpx.Response(200, json={"success": True, "data": [region(1)]}))
        assert [it.id for it in script.client().regions.list()] == ["region-1"]


class TestAModel:
    def test_keeps_fields_and_values_that_it_doesn_t_know(self):
        content = {**member(1), "role": "auditor", "badgeColor": "green"}
        (found,) = Script(page([content])).client().members.list()
        assert found.role == "auditor"
        assert found.model_extra == {"badgeColor": "green"}
        assert found.model_dump(mode="json", by_alias=True)["badgeColor"] == "green"
        assert found.joined_at.tzinfo is not None


def test_fields_that_the_service_ignored_are_logged(caplog):
    warning = {"code": "unknown_field", "message": "Unknown field. Did you mean websites?", "path": ["website"]}
    ignored = httpx.Response(200, json={"success": True, "data": [region(1)], "warnings": [warning, "x"]})
    assert [it.id for it in Script(ignored).client().regions.list()] == ["region-1"]
    assert [it.getMessage() for it in caplog.records if it.levelname == "WARNING"] == [
        "GET /v1/regions: website: Unknown field. Did you mean websites?"
    ]
