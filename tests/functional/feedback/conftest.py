"""A person who reports, and what is stored of that."""

from typing import Any

import pytest

from controlplane.feedback import store as feedback
from controlplane.platform.table.legs import decode_item
from tests.support.api import Api, Reply
from tests.support.world import table_dump

PATH = "/v1/feedback"


def report(number: int = 0, **fields: Any) -> dict[str, Any]:
    return {"category": "bug", "message": f"It fails in the way number {number}.", **fields}


def stored() -> list[dict[str, Any]]:
    """Returns the reports in the table."""
    items = [decode_item(item) for item in table_dump()]
    return [item for item in items if item["pk"].startswith("FEEDBACK#")]


def taken() -> list[int]:
    """Returns how many reports each caller was charged for in each hour."""
    items = [decode_item(item) for item in table_dump()]
    return sorted(item["taken"] for item in items if item["pk"].startswith("FEEDBACKQUOTA#"))


class Reporter:
    def __init__(self, api: Api, token: str) -> None:
        self.api, self.token = api, token

    def post(self, body: dict[str, Any], token: str | None = None, **headers: str) -> Reply:
        return self.api.post(PATH, token or self.token, json_body=body, headers=headers)

    def fill(self, token: str | None = None, count: int = feedback.NEW_PER_HOUR) -> list[str]:
        """Uses up the quota of an hour. Returns the references."""
        replies = [self.post(report(number), token) for number in range(count)]
        assert {reply.status for reply in replies} == {201}
        return [reply.data["reference"] for reply in replies]


@pytest.fixture
def reporter(api, world):
    return Reporter(api, world.person().token)
