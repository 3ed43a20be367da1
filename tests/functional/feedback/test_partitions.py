"""Reports and the intake switch are spread over partitions."""

import pytest

from controlplane.store import feedback, keys, shards
from controlplane.store.table import table
from tests.support.recorded import recorded_calls
from tests.support.table import PREPARED

DAY = "2026-03-04"
LONG = {
    "category": "bug",
    "surface": "api",
    **{name: "x" * limit for name, limit in feedback.FIELD_LIMITS.items() if name != "clientVersion"},
}


def sent(reporter, **fields):
    """Sends a report. Returns the response, and the items that the transaction puts."""
    with recorded_calls() as calls:
        reply = reporter.send(**fields)
    (transaction,) = [call for call in calls if call.operation == "TransactWriteItems"]
    return reply, [leg["Put"]["Item"] for leg in transaction.parameters["TransactItems"] if "Put" in leg]


def size_of(item):
    """Returns the size as DynamoDB counts it: names and values in UTF-8, and less than 21 bytes for a number."""
    return sum(len(name.encode()) + len(str(value.get("S", "1" * 21)).encode()) for name, value in item.items())


def test_a_long_reports_texts_are_stored_apart_and_read_together(reporter):
    reply, puts = sent(reporter, **LONG)
    report = feedback.get_report(reply.data["reference"])
    assert (reply.status, report.fields, feedback.list_reports(DAY)) == (201, LONG, [report])
    (in_the_day,) = [item for item in puts if item["pk"]["S"] in keys.feedback_pks(DAY)]
    assert size_of(in_the_day) < 1024
    again = reporter.send(**LONG)
    assert (again.status, again.data) == (200, {**reply.data, "alreadySubmitted": True})
    local = "".join(reply.data["reference"].lower().split("-")[2:])
    table.delete_all([keys.feedback_text(DAY, local)], PREPARED)
    assert feedback.list_reports(DAY) == []
    with pytest.raises(feedback.UnknownReport):
        feedback.get_report(reply.data["reference"])


def test_a_report_at_the_inline_limit_is_below_1_kb(reporter):
    for length in (400, 520, 530, 540, 550, 560, 570, 580):
        _, puts = sent(reporter, category="feature_request", surface="dashboard", message="x" * length)
        assert max(map(size_of, puts)) < 1024


def test_the_switch_is_read_from_one_copy_and_written_to_all(reporter):
    copies = [keys.feedback_intake(copy) for copy in range(shards.FEEDBACK_INTAKE)]
    feedback.set_intake(paused=True)
    assert [table.get(key)["paused"] for key in copies] == [True] * 8
    with recorded_calls() as calls:
        assert [reporter.report(number).status for number in range(5)] == [503] * 5
    read = [call.parameters["Key"]["pk"]["S"] for call in calls if call.operation == "GetItem"]
    assert (len(read), {*read} <= {key.pk for key in copies}) == (5, True)


def test_the_switch_applies_to_the_next_request(reporter):
    statuses = []
    for number, paused in enumerate([False, True, False, True]):
        feedback.set_intake(paused=paused)
        statuses.append(reporter.report(number).status)
    assert statuses == [201, 503, 201, 503]


def test_the_full_quota_is_reported_during_a_pause(reporter):
    reporter.fill()
    feedback.set_intake(paused=True)
    refused = reporter.report(99)
    assert (refused.status, refused.headers["retry-after"]) == (429, str(3600 - 6 * 60 - 7))


def test_the_switch_costs_one_read_and_no_write_and_no_transaction_has_it(reporter):
    reporter.report(0)
    with recorded_calls() as calls:
        reporter.report(1)
    assert [call.operation for call in calls] == ["UpdateItem", "GetItem", "TransactWriteItems"]
    legs = calls[-1].parameters["TransactItems"]
    assert [set(leg) for leg in legs] == [{"Put"}, {"Put"}, {"Update"}]
    # Concurrent reports would conflict if each transaction checked the same item.
    assert "FEEDBACKINTAKE" not in str(legs)
