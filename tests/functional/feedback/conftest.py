"""A person who sends reports, and the stored items."""

import pytest

from controlplane.store import codec, feedback
from tests.support.world import table_dump


class Reporter:
    """Sends reports in a person's name. `who` is another token."""

    def __init__(self, api, world):
        self.api, self.person = api, world.person()
        self.token = world.token(self.person.user_id, lifetime_seconds=2 * 86_400)

    def send(self, who=None, headers=None, **fields):
        return self.api.post("/v1/feedback", who or self.token, json_body=fields, headers=headers)

    def report(self, number=0, who=None, **fields):
        """Sends one of many reports, which differ by their number."""
        return self.send(who, category="bug", **{"message": f"It fails in the way number {number}.", **fields})

    def fill(self, who=None, count=feedback.NEW_PER_HOUR):
        """Sends so many new reports."""
        replies = [self.report(number, who) for number in range(count)]
        assert {reply.status for reply in replies} == {201}
        return replies


def items_in(prefix):
    items = [codec.decode_item(item) for item in table_dump()]
    return [item for item in items if item["pk"].startswith(prefix)]


def stored():
    return items_in("FEEDBACK#")


def taken():
    """Returns how many reports each caller was charged for in each hour."""
    return sorted(item["taken"] for item in items_in("FEEDBACKQUOTA#"))


@pytest.fixture
def reporter(api, world):
    return Reporter(api, world)
