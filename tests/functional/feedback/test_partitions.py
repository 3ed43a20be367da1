"""Reports and the intake switch are spread over partitions."""

from typing import Any

import pytest

from controlplane.feedback import store as feedback
from controlplane.platform.table import keys, shards
from controlplane.platform.table.table import table
from tests.functional.feedback.conftest import report
from tests.support.calls import recorded_calls
from tests.support.table import PREPARED

DAY = "2026-03-04"
LONG = {
    "category": "bug",
    "surface": "api",
    **{name: "x" * limit for name, limit in feedback.FIELD_LIMITS.items() if name != "clientVersion"},
}


def size_of(item: dict[str, Any]) -> int:
    """Returns the size as DynamoDB counts it: names and values in UTF-8, and less than 21 bytes for a number."""
    return sum(len(name.encode()) + len(str(value.get("S", "1" * 21)).encode()) for name, value in item.items())


def legs_of(reporter, body) -> tuple[str, list[dict[str, Any]]]:
    """Posts a report. Returns its reference and the legs of the one transaction that wrote it."""
    with recorded_calls() as calls:
        reply = reporter.post(body)
    assert reply.status == 201
    (transaction,) = [call for call in calls if call.operation == "TransactWriteItems"]
    return reply.data["reference"], transaction.parameters["TransactItems"]


class TestLongReports:
    def test_texts_are_stored_apart_and_read_together(self, reporter):
        reference, legs = legs_of(reporter, LONG)
        found = feedback.get_report(reference)
        assert (found.fields, feedback.list_reports(DAY)) == (LONG, [found])
        puts = [leg["Put"]["Item"] for leg in legs if "Put" in leg]
        assert [size_of(item) < 1024 for item in puts if item["pk"]["S"] in keys.feedback_pks(DAY)] == [True]
        again = reporter.post(LONG)
        assert (again.status, again.data) == (200, {"reference": reference, "alreadySubmitted": True})
        table.delete_all([keys.feedback_text(DAY, "".join(reference.lower().split("-")[2:]))], PREPARED)
        assert feedback.list_reports(DAY) == []
        with pytest.raises(feedback.UnknownReport):
            feedback.get_report(reference)


class TestIntakeSwitch:
    def test_the_switch_is_read_from_one_copy_and_written_to_all(self, reporter):
        copies = {f"FEEDBACKINTAKE#{copy}" for copy in range(shards.FEEDBACK_INTAKE)}
        feedback.set_intake(paused=True)
        assert all(table.get(feedback_key)["paused"] for feedback_key in map(keys.feedback_intake, range(8)))  # type: ignore[index]
        with recorded_calls() as calls:
            assert {reporter.post(report(number)).status for number in range(5)} == {503}
        read = [call.parameters["Key"]["pk"]["S"] for call in calls if call.operation == "GetItem"]
        assert len(read) == 5
        assert set(read) <= copies
