"""The queue: invalid messages go to the dead-letter queue with their reason, and don't block others."""

import json
from pathlib import Path
from typing import Any

import pytest

from controlplane.queues.messages import MAX_RECEIVES
from controlplane.store import projects
from controlplane.store.project_items import ProjectItem
from controlplane.store.table import table
from finding_intake.app import handler
from tests.functional.finding_intake.conftest import DEAD_LETTERS, URL, Intake, advisory, detection, items_of
from tests.support.calls import intercepted
from tests.support.each import each
from tests.support.world import Company, table_dump

EVENTS = Path(__file__).parents[3] / "events"

WRONG: dict[str, Any] = {
    "projectId": ["prj_x", "", None, 1, "ORG#x", "prj_" + "0" * 33, "org_0123456789abcdef"],
    "vendorId": ["", "Segment", "a b", "x" * 101, "a#b", None, 1],
    "name": ["", "  ", "x" * 201, None, 1],
    "domain": ["", "Segment.com", "https://segment.com", "a..b", "-a.com", "a/b", ".com", "x" * 254, None],
    "category": ["", " ", 1],
    "beforeConsent": ["yes", 1, None],
    "seenOn": [["ftp://a"], ["https://"], ["https://ada:secret@example.com/"], ["x"], "https://a.example", [None]],
    "observedAt": ["yesterday", "2026-03-04T05:00:00", "2026-03-04", 1772600767, None, "0001-01-01T00:00:00Z"],
    "version": [0, 2, "1", None],
    "kind": ["advice", "", None],
}


class TestMalformed:
    @each(("field", "value"), [(field, value) for field, values in WRONG.items() for value in values], ids=repr)
    def test_is_dead_lettered_with_the_field_and_kind_of_its_mistake(
        self, intake: Intake, project: ProjectItem, field: str, value: Any
    ):
        intake.sqs.letters.clear()
        before = table_dump()
        message = detection(project, **{field: value})
        intake.use_up(message)
        ((body, reason),) = intake.dead
        assert json.loads(body) == message
        assert reason.startswith(("malformed: ", "newer release: "))
        assert field in reason or field == "kind"
        assert table_dump() == before
        assert intake.waiting == 0

    def test_a_field_of_a_later_version_is_ignored(self, intake: Intake, company: Company, project: ProjectItem):
        intake.take(detection(project, surprise="x"))
        assert (intake.waiting, intake.dead) == (0, [])
        assert len(items_of(company)) == 1
        assert "surprise" not in str(table_dump())

    @each("body", ["", "{", "null", "[]", "{}", '"x"', '{"kind":"advisory"}', "\ufffd", "[" * 500])
    def test_a_message_that_isnt_json_is_dead_lettered(self, intake: Intake, body: str):
        intake.sqs.letters.clear()
        intake.use_up(body)
        assert len(intake.dead) == 1
        assert intake.waiting == 0

    def test_the_reason_quotes_nothing_of_the_message(self, intake: Intake, project: ProjectItem):
        intake.use_up(detection(project, name="ada@example.com" * 40))
        assert "ada" not in intake.dead[0][1]

    def test_a_message_with_too_many_pages_is_dead_lettered(self, intake: Intake, project: ProjectItem):
        intake.use_up(detection(project, seenOn=["https://shop.example.com/"] * 21))
        assert len(intake.dead) == 1

    def test_a_future_time_is_dead_lettered_unless_within_the_clock_skew(
        self, intake: Intake, company: Company, project: ProjectItem
    ):
        intake.take(advisory(company, publishedAt="2026-03-04T05:11:08Z"))
        assert [reason for _, reason in intake.dead] == ["observed in the future"]
        intake.take(advisory(company, publishedAt="2026-03-04T05:11:07Z"))
        assert len(items_of(company)) == 1


class TestPoison:
    def test_one_poison_message_doesnt_delay_the_other_nine(
        self, intake: Intake, company: Company, project: ProjectItem
    ):
        """In one batch, as Lambda delivers them: each valid message is processed once, and one is dead-lettered."""
        messages = [detection(project, vendorId=f"vendor{number}") for number in range(10)]
        messages[4]["domain"] = "no domain"
        intake.send(*messages)
        letters = intake.sqs.at(URL)
        for letter in letters:
            letter.receives = MAX_RECEIVES
        answer = handler({"Records": [letter.record for letter in letters]}, None)
        assert answer == {"batchItemFailures": []}
        assert len(items_of(company)) == 9
        ((body, reason),) = intake.dead
        assert json.loads(body)["vendorId"] == "vendor4"
        assert reason == "malformed: runtime-vendor-detection.domain string_pattern_mismatch"

    def test_a_message_that_fails_in_the_table_is_received_five_times(
        self, intake: Intake, company: Company, project: ProjectItem, now
    ):
        def broken(call, proceed):
            if call.operation == "TransactWriteItems" and "poison" in json.dumps(call.parameters):
                raise RuntimeError("never to be told: ada@example.com")
            return proceed()

        intake.send(*(detection(project, vendorId=f"vendor{number}") for number in range(9)))
        intake.send(detection(project, vendorId="poison"))
        with intercepted(table.client, broken):
            for _ in range(8):
                intake.work()
                now.advance(400)
        assert len(items_of(company)) == 9
        ((_, reason),) = intake.dead
        assert reason.startswith("RuntimeError at ")
        assert "ada" not in reason
        assert intake.waiting == 0

    def test_a_redriven_message_is_accepted_once_the_cause_is_fixed(
        self, intake: Intake, company: Company, project: ProjectItem
    ):
        intake.take(advisory(company, organizationId="org_0123456789abcdef"))
        (letter,) = intake.sqs.at(DEAD_LETTERS)
        letter.queue_url, letter.receives = URL, 0
        letter.body = letter.body.replace("org_0123456789abcdef", company.organization_id)
        intake.work()
        assert len(items_of(company)) == 1


class TestUnknown:
    def test_organization_of_a_project_is_dead_lettered(self, intake: Intake, project: ProjectItem):
        before = table_dump()
        intake.take(detection(project, projectId="prj_" + "0" * 34))
        assert [reason for _, reason in intake.dead] == ["unknown organization"]
        assert table_dump() == before

    def test_a_message_for_an_unknown_project_is_dropped(self, intake: Intake, project: ProjectItem):
        projects.delete_project(project)
        intake.take(detection(project))
        assert (intake.waiting, intake.dead) == (0, [])


class TestSamples:
    @pytest.mark.parametrize("name", ["runtime_vendor_detection", "advisory"])
    def test_sample_messages_are_accepted_for_an_existing_organization(
        self, intake: Intake, company: Company, project: ProjectItem, name: str
    ):
        (record,) = json.loads((EVENTS / f"finding_intake_{name}.json").read_text())["Records"]
        message = json.loads(record["body"])
        message |= {"projectId": project.project_id}
        if name == "advisory":
            message |= {"organizationId": company.organization_id}
        intake.take(message)
        assert intake.dead == []
        assert len(items_of(company)) == 1
