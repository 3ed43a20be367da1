"""The queue: invalid messages go to the dead-letter queue with their reason, and don't block others."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.each import each
from tests.support.world import table_dump

EVENTS = Path(__file__).parents[3] / "events"

WRONG: dict[str, Any] = {
    "projectId": ["prj_x", "", None, 1, "ORG#x", "prj_" + "0" * 33, "org_0123456789abcdef"],
    "vendorId": ["", "Segment", "a b", "x" * 101, "a#b", None, 1],
    "name": ["", "  ", "x" * 201, None, 1, "ada@example.com" * 40],
    "domain": ["", "Segment.com", "https://segment.com", "a..b", "-a.com", "a/b", ".com", "x" * 254, None],
    "category": ["", " ", 1],
    "beforeConsent": ["yes", 1, None],
    "seenOn": [
        *(["ftp://a"], ["https://"], ["https://ada:secret@example.com/"], ["x"], "https://a.example", [None]),
        ["https://shop.example.com/"] * 21,
    ],
    "observedAt": ["yesterday", "2026-03-04T05:00:00", "2026-03-04", 1772600767, None, "0001-01-01T00:00:00Z"],
    "version": [0, 2, "1", None],
    "kind": ["advice", "", None],
}


class TestMalformed:
    @each(("field", "value"), [(field, value) for field, values in WRONG.items() for value in values], ids=repr)
    def test_is_dead_lettered_with_the_field_and_kind_of_its_mistake_and_without_its_text(self, intake, field, value):
        intake.sqs.letters.clear()
        before = table_dump()
        message = intake.detection(**{field: value})
        intake.use_up(message)
        ((body, reason),) = intake.dead
        assert json.loads(body) == message
        assert reason.startswith(("malformed: ", "newer release: "))
        assert field in reason or field == "kind"
        assert "ada" not in reason
        assert (table_dump(), intake.letters[0]) == (before, 0)

    @each("body", ["", "{", "null", "[]", "{}", '"x"', '{"kind":"advisory"}', "\ufffd", "[" * 500])
    def test_a_message_that_isnt_json_is_dead_lettered(self, intake, body):
        intake.sqs.letters.clear()
        intake.use_up(body)
        assert (intake.letters[0], len(intake.dead)) == (0, 1)

    def test_a_field_of_a_later_version_is_ignored(self, intake):
        intake.detect(surprise="x")
        assert (intake.letters, len(intake.items)) == ((0, []), 1)
        assert "surprise" not in str(table_dump())

    def test_a_future_time_is_dead_lettered_unless_within_the_clock_skew(self, intake):
        for second, items in ((8, 0), (7, 1)):
            intake.take(intake.advisory(publishedAt=f"2026-03-04T05:11:0{second}Z"))
            assert (intake.letters[1], len(intake.items)) == (["observed in the future"], items)


def test_an_unknown_organization_of_a_project_is_dead_lettered(intake):
    before = table_dump()
    intake.detect(projectId="prj_" + "0" * 34)
    assert (table_dump(), intake.letters) == (before, (0, ["unknown organization"]))


@pytest.mark.parametrize("name", ["runtime_vendor_detection", "advisory"])
def test_sample_messages_are_accepted_for_an_existing_organization(intake, name):
    (record,) = json.loads((EVENTS / f"finding_intake_{name}.json").read_text())["Records"]
    message = json.loads(record["body"]) | {"projectId": intake.project.project_id}
    if name == "advisory":
        message |= {"organizationId": intake.company.organization_id}
    intake.take(message)
    assert (intake.dead, len(intake.items)) == ([], 1)
