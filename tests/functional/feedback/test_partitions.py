"""Reports and the intake switch are spread over partitions."""

from typing import Any

import pytest

from controlplane.store import feedback, keys, shards
from controlplane.store.table import table
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
