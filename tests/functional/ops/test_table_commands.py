"""`assent-ops table`: a restore is polled to its end and completed, and a damaged table is found."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from botocore.session import Session
from botocore.stub import Stubber

from controlplane.platform.table import keys
from controlplane.platform.table.table import Delete, Unrecorded, Update, table
from ops.output import Conflict, NotFound
from ops.tables import restore
from tests.functional.projects.builders import make_project
from tests.support.calls import recorded_calls
from tests.support.world import Company, table_dump

SOURCE, TARGET = "assent-table", "assent-restored"
MOMENT = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
SUMMARY = {"SourceTableArn": f"arn:{SOURCE}", "RestoreDateTime": MOMENT, "RestoreInProgress": False}


class Cloud:
    """DynamoDB's responses, in order. botocore checks each request against its model."""

    def __init__(self) -> None:
        session = Session()
        session.set_credentials("x", "x")
        self.client = session.create_client("dynamodb", region_name="eu-central-1")
        self.stub = Stubber(self.client)
        self.pauses: list[float] = []

    def table(self, name: str, status: str = "ACTIVE", **fields: Any) -> None:
        described = {"TableName": name, "TableArn": f"arn:{name}", "TableStatus": status, **fields}
        self.stub.add_response("describe_table", {"Table": described}, {"TableName": name})

    def no_table(self, name: str) -> None:
        self.stub.add_client_error("describe_table", "ResourceNotFoundException", expected_params={"TableName": name})

    def restored(self, **expected: Any) -> None:
        sent = {"SourceTableName": SOURCE, "TargetTableName": TARGET, **expected}
        self.stub.add_response("restore_table_to_point_in_time", {}, sent)

    def completed(self, *, refusals: int = 0, is_complete: bool = False) -> None:
        """Adds the responses about the settings that a restore leaves out."""
        on, off = ("ENABLED", "DISABLED")
        state = on if is_complete else off
        name = {"TableName": TARGET}
        self.stub.add_response("describe_time_to_live", {"TimeToLiveDescription": {"TimeToLiveStatus": state}}, name)
        if not is_complete:
            expiry = {"Enabled": True, "AttributeName": "expiresAt"}
            self.stub.add_response("update_time_to_live", {}, {**name, "TimeToLiveSpecification": expiry})
        recovery = {
            "ContinuousBackupsStatus": on,
            "PointInTimeRecoveryDescription": {"PointInTimeRecoveryStatus": state},
        }
        wanted = {**name, "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True}}
        for attempt in range(refusals + 1):
            self.stub.add_response("describe_continuous_backups", {"ContinuousBackupsDescription": recovery}, name)
            if attempt < refusals:
                code = "ContinuousBackupsUnavailableException"
                self.stub.add_client_error("update_continuous_backups", code, expected_params=wanted)
        if not is_complete:
            self.stub.add_response("update_continuous_backups", {}, wanted)
            self.stub.add_response("update_table", {}, {**name, "DeletionProtectionEnabled": True})

    def run(self, moment: datetime | None = MOMENT) -> dict[str, Any]:
        with self.stub:
            done = restore(self.client, SOURCE, TARGET, moment, self.pauses.append)
            self.stub.assert_no_pending_responses()
            return done


class TestRestore:
    def test_a_restore_is_polled_for_hours_and_completed(self):
        cloud = Cloud()
        cloud.table(SOURCE)
        cloud.no_table(TARGET)
        cloud.restored(RestoreDateTime=MOMENT)
        for _ in range(600):
            cloud.table(TARGET, "CREATING")
        cloud.table(TARGET, GlobalSecondaryIndexes=[{"IndexStatus": "CREATING"}])
        cloud.table(TARGET, GlobalSecondaryIndexes=[{"IndexStatus": "ACTIVE"}], RestoreSummary=SUMMARY, ItemCount=7)
        cloud.completed(refusals=2)
        assert cloud.run() == {
            "table": TARGET,
            "source": SOURCE,
            "restoredTo": "2026-03-04T05:06:07+00:00",
            "approximateItems": 7,
        }
        assert sum(cloud.pauses) == (601 + 2) * 20 > 3 * 3_600

    def test_the_latest_time_and_the_sources_key_are_used(self):
        cloud = Cloud()
        cloud.table(SOURCE, SSEDescription={"Status": "ENABLED", "SSEType": "KMS", "KMSMasterKeyArn": "arn:key"})
        cloud.no_table(TARGET)
        encryption = {"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": "arn:key"}
        cloud.restored(UseLatestRestorableTime=True, SSESpecificationOverride=encryption)
        cloud.table(TARGET, RestoreSummary=SUMMARY)
        cloud.completed()
        cloud.run(None)

    def test_an_interrupted_restore_continues(self):
        cloud = Cloud()
        cloud.table(SOURCE)
        cloud.table(TARGET, "CREATING", RestoreSummary=SUMMARY)
        cloud.table(TARGET, RestoreSummary=SUMMARY)
        cloud.completed()
        cloud.run()

    def test_a_completed_restore_is_left_as_it_is(self):
        cloud = Cloud()
        cloud.table(SOURCE)
        for _ in range(2):
            cloud.table(TARGET, RestoreSummary=SUMMARY, DeletionProtectionEnabled=True)
        cloud.completed(is_complete=True)
        cloud.run()

    def test_neither_another_table_of_that_name_nor_an_unknown_source_is_touched(self):
        for fields in ({}, {"RestoreSummary": {**SUMMARY, "SourceTableArn": "arn:other"}}):
            cloud = Cloud()
            cloud.table(SOURCE)
            cloud.table(TARGET, **fields)
            with pytest.raises(Conflict):
                cloud.run()
        cloud = Cloud()
        cloud.no_table(SOURCE)
        with pytest.raises(NotFound):
            cloud.run()


def _count(company: Company, name: str) -> None:
    update = Update(keys.organization(company.organization_id), f"SET #{name} = :other", None, {"other": 7})
    table.update(update, Unrecorded.LEASE)


def _add_credits(company: Company) -> None:
    update = Update(keys.billing(company.organization_id), "SET #credits = #credits + :more", None, {"more": 7})
    table.update(update, Unrecorded.LEASE)


def _delete_first(pk: str, sk: str = "") -> None:
    """Deletes the first item whose key begins like this."""
    items = (it for it in table_dump() if it["pk"]["S"].startswith(pk) and it["sk"]["S"].startswith(sk))
    found = next(items)
    _delete(keys.Key(found["pk"]["S"], found["sk"]["S"]))


def _of(company: Company, prefix: str) -> tuple[str, str]:
    return keys.organization_pk(company.organization_id), prefix


DAMAGES: dict[str, tuple[Callable[[Company], None], str]] = {
    **{
        name: (partial(_count, name=name), f"has {count} {name} and counts 7")
        for name, count in {"owners": 1, "projects": 1, "keys": 1, "webhooks": 0}.items()
    },
    "slug": (lambda company: _delete(keys.organization_slug(company.slug)), "requires SLUG#"),
    "project's slug": (
        lambda company: _delete_first(*_of(company, keys.PROJECT_SLUG_PREFIX)),
        f" {keys.PROJECT_SLUG_PREFIX}shop, which doesn't exist",
    ),
    "key's secret": (lambda _: _delete_first("KH#"), "requires KH#"),
    "member": (lambda it: _delete(keys.member(it.organization_id, it.owner.user_id)), "requires ORG#"),
    "membership": (lambda it: _delete(keys.membership(it.owner.user_id, it.organization_id)), "requires USER#"),
    "billing": (lambda company: _delete(keys.billing(company.organization_id)), "has no billing"),
    "ledger": (_add_credits, "has 12 credits, and its ledger adds up to 5"),
}


def _delete(key: keys.Key) -> None:
    table.delete(Delete(key), Unrecorded.LEASE)


class TestCheck:
    def test_a_whole_table_has_no_contradictions(self, ops, world):
        company = world.company()
        world.key(company)
        world.credits(company, 5)
        make_project(company)
        found = ops("table", "check").document
        assert (found["organizations"], found["contradictions"]) == (1, 0)
        assert found["items"] > 5

    def test_the_table_is_read_as_it_is(self, ops):
        """A read that lags behind could miss what was written last, such as a credential to revoke."""
        with recorded_calls() as calls:
            ops("table", "check")
        assert [call.parameters["ConsistentRead"] for call in calls if call.operation == "Scan"] == [True]

    @pytest.mark.parametrize("name", DAMAGES)
    def test_a_damaged_table_is_reported(self, name, ops, world):
        damage, expected = DAMAGES[name]
        company = world.company()
        world.key(company)
        world.credits(company, 5)
        make_project(company)
        damage(company)
        outcome = ops("table", "check")
        assert outcome.exit_code == 1
        assert expected in outcome.error["message"]
