"""Reports and the intake switch are spread over partitions, and items of earlier releases still count."""

from typing import Any

import pytest

from controlplane.store import feedback, keys, shards
from controlplane.store.feedback import ReportItem
from controlplane.store.table import Delete, Put, table
from tests.support.api import Api
from tests.support.calls import Call, Proceed, intercepted
from tests.support.recorded import recorded_calls
from tests.support.table import PREPARED
from tests.support.world import World

PATH = "/v1/feedback"
DAY = "2026-03-04"
LONG = {
    "category": "bug",
    "surface": "api",
    **{name: "x" * limit for name, limit in feedback.FIELD_LIMITS.items() if name != "clientVersion"},
}


@pytest.fixture
def token(world: World) -> str:
    return world.person().token


def old_report(local: str = "7" * 18) -> dict[str, Any]:
    """Stores a report as releases before the sharding did."""
    groups = "-".join([local[:6], local[6:12], local[12:]]).upper()
    item = {
        "pk": f"FEEDBACK#{DAY}",
        "sk": local,
        "reference": f"FDB-20260304-{groups}",
        "callerId": "usr_0123456789abcdef",
        "category": "bug",
        "message": "It fails.",
        "createdAt": "2026-03-04T01:00:00.000Z",
        "expiresAt": 1_807_160_767,
    }
    table.put(Put(item), PREPARED)
    return item


def move_to_unsharded_partition(local: str) -> None:
    """Moves a report of the day to the key that earlier releases wrote it to."""
    item = table.delete(Delete(keys.feedback_report(DAY, local)), PREPARED)
    assert item is not None
    table.put(Put({**item, **keys.unsharded_feedback_report(DAY, local)._asdict()}), PREPARED)


class TestALongReport:
    def test_a_long_reports_texts_are_stored_apart_and_read_together(self, api: Api, token: str):
        with recorded_calls() as calls:
            reply = api.post(PATH, token, json_body=LONG)
        assert reply.status == 201
        report = feedback.get_report(reply.data["reference"])
        assert report.fields == LONG
        assert feedback.list_reports(DAY) == [report]
        (transaction,) = [call for call in calls if call.operation == "TransactWriteItems"]
        puts = [leg["Put"]["Item"] for leg in transaction.parameters["TransactItems"] if "Put" in leg]
        in_the_day = [item for item in puts if item["pk"]["S"] in keys.feedback_pks(DAY)]
        assert [size_of(item) < 1024 for item in in_the_day] == [True]

    def test_a_report_at_the_inline_limit_is_below_1_kb(self, api: Api, token: str):
        for length in (400, 520, 530, 540, 550, 560, 570, 580):
            body = {"category": "feature_request", "surface": "dashboard", "message": "x" * length}
            with recorded_calls() as calls:
                api.post(PATH, token, json_body=body)
            (transaction,) = [call for call in calls if call.operation == "TransactWriteItems"]
            puts = [leg["Put"]["Item"] for leg in transaction.parameters["TransactItems"] if "Put" in leg]
            assert all(size_of(item) < 1024 for item in puts)

    def test_a_report_whose_texts_have_expired_is_missing(self, api: Api, token: str):
        reference = api.post(PATH, token, json_body=LONG).data["reference"]
        local = "".join(reference.lower().split("-")[2:])
        table.delete_all([keys.feedback_text(DAY, local)], PREPARED)
        assert feedback.list_reports(DAY) == []
        with pytest.raises(feedback.UnknownReport):
            feedback.get_report(reference)

    def test_a_repeated_long_report_is_the_same_report(self, api: Api, token: str):
        first = api.post(PATH, token, json_body=LONG)
        again = api.post(PATH, token, json_body=LONG)
        assert (again.status, again.data) == (200, {**first.data, "alreadySubmitted": True})


def size_of(item: dict[str, Any]) -> int:
    """Returns the size as DynamoDB counts it: names and values in UTF-8, and less than 21 bytes for a number."""
    return sum(len(name.encode()) + len(str(value.get("S", "1" * 21)).encode()) for name, value in item.items())


class TestReportsOfEarlierReleases:
    def test_older_reports_are_found_by_reference(self):
        item = old_report()
        assert feedback.get_report(item["reference"]) == ReportItem.from_items(item, None)

    def test_older_reports_are_listed_among_the_others(self, api: Api, token: str):
        old = old_report()
        new = api.post(PATH, token, json_body={"category": "bug", "message": "It fails too."}).data["reference"]
        assert [report.reference for report in feedback.list_reports(DAY)] == [new, old["reference"]]

    def test_older_reports_keep_their_reference_when_repeated_and_are_listed_once(self):
        report = {"category": "bug", "message": "It fails."}
        reference = feedback.submit_report("usr_0123456789abcdef", report).reference
        local = "".join(reference.lower().split("-")[2:])
        move_to_unsharded_partition(local)
        assert feedback.submit_report("usr_0123456789abcdef", report).reference == reference
        assert [listed.reference for listed in feedback.list_reports(DAY)] == [reference]

    def test_older_reports_are_acknowledged_when_repeated_during_a_pause(self):
        report = {"category": "bug", "message": "It fails."}
        receipt = feedback.submit_report("usr_0123456789abcdef", report)
        local = "".join(receipt.reference.lower().split("-")[2:])
        move_to_unsharded_partition(local)
        feedback.set_intake(paused=True)
        assert feedback.submit_report("usr_0123456789abcdef", report) == receipt._replace(already_submitted=True)


class TestIntakeSwitch:
    def post(self, api: Api, token: str, number: int) -> int:
        return api.post(PATH, token, json_body={"category": "bug", "message": f"Number {number}."}).status

    def test_the_switch_is_read_from_one_copy_and_written_to_all(self, api: Api, token: str):
        copies = {f"FEEDBACKINTAKE#{copy}" for copy in range(shards.FEEDBACK_INTAKE)}
        feedback.set_intake(paused=True)
        assert all(table.get(feedback_key)["paused"] for feedback_key in map(keys.feedback_intake, range(8)))  # type: ignore[index]
        with recorded_calls() as calls:
            assert [self.post(api, token, number) for number in range(5)] == [503] * 5
        read = [call.parameters["Key"]["pk"]["S"] for call in calls if call.operation == "GetItem"]
        assert len(read) == 5
        assert set(read) <= copies

    def test_the_switch_applies_to_the_next_request(self, api: Api, token: str):
        statuses = []
        for number, paused in enumerate([False, True, False, True]):
            feedback.set_intake(paused=paused)
            statuses.append(self.post(api, token, number))
        assert statuses == [201, 503, 201, 503]

    def test_a_pause_set_by_an_older_release_lasts_until_resumed(self, api: Api, token: str):
        table.put(Put({**keys.single_feedback_intake()._asdict(), "paused": True, "changedAt": "2026-03-01"}), PREPARED)
        assert feedback.get_intake() == (True, "2026-03-01")
        assert [self.post(api, token, number) for number in range(3)] == [503] * 3
        feedback.set_intake(paused=False)
        assert self.post(api, token, 4) == 201
        single = table.get(keys.single_feedback_intake())
        assert single is not None
        assert single["paused"] is False

    def test_the_full_quota_is_reported_during_a_pause(self, api: Api, token: str):
        for number in range(feedback.NEW_PER_HOUR):
            assert self.post(api, token, number) == 201
        feedback.set_intake(paused=True)
        refused = api.post(PATH, token, json_body={"category": "bug", "message": "Number 99."})
        assert (refused.status, refused.headers["retry-after"]) == (429, str(3600 - 6 * 60 - 7))

    def test_the_switch_costs_one_read_and_no_write_unit(self, api: Api, token: str):
        self.post(api, token, 0)
        with recorded_calls() as calls:
            self.post(api, token, 1)
        assert [call.operation for call in calls] == ["UpdateItem", "GetItem", "TransactWriteItems"]
        legs = [set(leg) for leg in calls[-1].parameters["TransactItems"]]
        assert legs == [{"Put"}, {"Put"}, {"Update"}]

    def test_the_switch_never_conflicts_with_another_transaction(self, api: Api, token: str):
        """Concurrent reports would conflict if each transaction checked the same item."""
        checked: list[Call] = []

        def watch(call: Call, proceed: Proceed) -> Any:
            if call.operation == "TransactWriteItems":
                checked.append(call)
            return proceed()

        with intercepted(table.client, watch):
            self.post(api, token, 0)
        keys_written = [next(iter(leg.values())) for call in checked for leg in call.parameters["TransactItems"]]
        assert not [leg for leg in keys_written if "FEEDBACKINTAKE" in str(leg)]
