"""`assent-ops table`: a restore is polled to its end and completed, and a damaged table is found."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.session import Session
from botocore.stub import Stubber

from controlplane.store import detections, issue_attempts, keys, projects, schema, sign_in
from controlplane.store.inbox_items import GithubIssue
from controlplane.store.table import Delete, Put, Unrecorded, Update, table
from ops.errors import Conflict, NotFound
from ops.restore import restore
from tests.functional.conftest import FakeClock
from tests.functional.ops.conftest import Ops
from tests.functional.ops.test_identity_commands import identity
from tests.functional.projects.builders import make_project
from tests.support.api import Api
from tests.support.calls import Call, Proceed, intercepted
from tests.support.each import each
from tests.support.legacy_table import delete_index, delete_versions
from tests.support.older_detections import as_older_release_wrote_it
from tests.support.populated_organization import detection, populate_organization
from tests.support.recorded import recorded_calls
from tests.support.table import PREPARED
from tests.support.world import Company, World, table_dump

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

    @each("fields", [{}, {"RestoreSummary": {**SUMMARY, "SourceTableArn": "arn:other"}}])
    def test_another_table_of_that_name_is_never_touched(self, fields: dict[str, Any]):
        cloud = Cloud()
        cloud.table(SOURCE)
        cloud.table(TARGET, **fields)
        with pytest.raises(Conflict):
            cloud.run()

    def test_an_unknown_source_is_reported(self):
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


DAMAGES: dict[str, tuple[Callable[[Company], None], str]] = {
    "owners": (lambda company: _count(company, "owners"), "has 1 owners and counts 7"),
    "projects": (lambda company: _count(company, "projects"), "has 1 projects and counts 7"),
    "keys": (lambda company: _count(company, "keys"), "has 1 keys and counts 7"),
    "webhooks": (lambda company: _count(company, "webhooks"), "has 0 webhooks and counts 7"),
    "slug": (
        lambda company: _delete(keys.organization_slug(company.slug)),
        "requires SLUG#",
    ),
    "project's slug": (
        lambda company: _delete_first(keys.organization_pk(company.organization_id), keys.PROJECT_SLUG_PREFIX),
        f" {keys.PROJECT_SLUG_PREFIX}shop, which doesn't exist",
    ),
    "key's secret": (lambda _: _delete_first("KH#"), "requires KH#"),
    "member": (
        lambda company: _delete(keys.member(company.organization_id, company.owner.user_id)),
        "requires ORG#",
    ),
    "membership": (
        lambda company: _delete(keys.membership(company.owner.user_id, company.organization_id)),
        "requires USER#",
    ),
    "billing": (lambda company: _delete(keys.billing(company.organization_id)), "has no billing"),
    "ledger": (_add_credits, "has 7 credits, and its ledger adds up to 0"),
}


def _delete(key: keys.Key) -> None:
    table.delete(Delete(key), Unrecorded.LEASE)


class TestCheck:
    def test_a_whole_table_has_no_contradictions(self, ops: Ops, world: World):
        company = world.company()
        world.key(company)
        make_project(company)
        found = ops("table", "check").document
        assert (found["organizations"], found["contradictions"]) == (1, 0)
        assert found["items"] > 5

    def test_the_table_is_read_as_it_is(self, ops: Ops):
        """A read that lags behind could miss what was written last, such as a credential to revoke."""
        with recorded_calls() as calls:
            ops("table", "check")
        assert [call.parameters["ConsistentRead"] for call in calls if call.operation == "Scan"] == [True]

    @pytest.mark.parametrize("name", DAMAGES)
    def test_a_damaged_table_is_reported(self, name: str, ops: Ops, world: World):
        damage, expected = DAMAGES[name]
        company = world.company()
        world.key(company)
        make_project(company)
        damage(company)
        outcome = ops("table", "check")
        assert outcome.exit_code == 1
        assert expected in outcome.error["message"]


class TestMigrate:
    @pytest.fixture
    def older(self, world: World) -> Company:
        """A company whose items have the form of a release before every migration."""
        company = world.company()
        sign_in.sign_in(identity("ada"))
        repository = world.connected_repository(company)
        project = make_project(company)
        detections.record_detection(detection(project.project_id, "hotjar"))
        as_older_release_wrote_it(project, company)
        item = world.finding(company, repository)
        issue_attempts.complete(item.item_id, None, GithubIssue(7, "https://github.com/acme/shop/issues/7", "2026"))
        delete_index()
        return company

    def test_it_runs_every_migration_once(self, ops: Ops, older: Company):
        first = ops("table", "migrate").document
        assert {name: result.get("completedAt") is None for name, result in first.items()} == {
            "identities": True,
            "credentials": False,
            "inbox": False,
            "issues": False,
            "versions": False,
        }
        assert first["identities"]["identities"] == 1
        assert first["identities"]["accounts"] >= 1
        assert first["credentials"]["listed"] >= 1
        assert (first["inbox"]["completed"], first["issues"]["indexed"]) == (1, 1)
        with recorded_calls() as calls:
            again = ops("table", "migrate").document
        assert not any(call.operation == "Scan" for call in calls)
        assert [again["inbox"]["read"], again["issues"]["read"], again["credentials"]["read"]] == [0, 0, 0]
        everything = ops("table", "migrate", "--again").document
        assert (everything["inbox"]["read"], everything["inbox"]["completed"]) == (1, 0)

    def test_an_interrupted_run_resumes_with_the_migration_that_was_interrupted(self, ops: Ops, older: Company):
        def interrupted(call: Call, proceed: Proceed) -> Any:
            if call.operation == "Scan" and "githubIssue" in str(call.parameters):
                raise KeyboardInterrupt
            return proceed()

        with intercepted(table.client, interrupted):
            assert ops("table", "migrate").exit_code != 0
        rest = ops("table", "migrate").document
        assert (rest["inbox"]["read"], rest["issues"]["indexed"]) == (0, 1)


class TestVersions:
    def test_every_item_has_the_current_version(self, ops: Ops, api: Api, world: World):
        made = populate_organization(world)
        assert api.get("/v1/me", made.company.owner.token).status == 200
        assert api.post("/v1/auth/device/code", json_body={"clientId": "unknown"}).status == 400  # counts an address
        found = ops("table", "check").document
        assert found["versions"] == {str(schema.VERSION): found["items"]}
        kinds = {item["pk"]["S"].partition("#")[0] for item in table_dump()}
        assert {"ORG", "USER", "KH", "TH", "CREDENTIALS", "OUTBOX", "SCAN", "IP"} <= kinds

    def test_a_migration_marks_older_items_once(self, ops: Ops, world: World, now: FakeClock):
        company = world.company()
        project = make_project(company)
        delete_versions()
        older = ops("table", "check").document
        assert older["versions"] == {"0": older["items"]}
        assert projects.get_project(project.project_id) == project
        # The migration of identities updates some of them before.
        assert 0 < ops("table", "migrate").document["versions"]["marked"] <= older["items"]
        left = [item for item in table_dump() if "v" not in item]
        assert all(int(item["expiresAt"]["N"]) <= now() + 2 * 86_400 for item in left)
        assert ops("table", "check").document["versions"].get("0", 0) == len(left)
        assert ops("table", "migrate").document["versions"]["read"] == 0
        again = ops("table", "migrate", "--again").document["versions"]
        assert (again["read"], again["marked"]) == (0, 0)

    def test_only_lasting_items_are_marked(self, ops: Ops, now: FakeClock):
        ends = {"SOON": 2 * 86_400, "LATER": 2 * 86_400 + 1, "EXPIRED": -1}
        for name, seconds in ends.items():
            table.put(Put({"pk": name, "sk": name, "v": 0, "expiresAt": int(now()) + seconds}), PREPARED)
        ops("table", "migrate")
        marked = {name: (table.get(keys.Key(name, name)) or {})["v"] for name in ends}
        assert marked == {"SOON": 0, "LATER": schema.VERSION, "EXPIRED": 0}

    def test_an_item_that_changed_since_it_was_read_is_left_alone(self, ops: Ops):
        deleted, newer = keys.Key("A", "A"), keys.Key("B", "B")
        for key in (deleted, newer):
            table.put(Put({**key._asdict(), "v": 0}), PREPARED)

        def changed(call: Call, proceed: Proceed) -> Any:
            answer = proceed()
            if call.operation == "Scan" and "v" in call.parameters["ExpressionAttributeNames"].values():
                table.delete(Delete(deleted), PREPARED)
                table.put(Put({**newer._asdict(), "v": 7}), PREPARED)
            return answer

        with intercepted(table.client, changed):
            done = ops("table", "migrate").document["versions"]
        assert (done["read"], done["marked"]) == (2, 0)
        assert (table.get(deleted), table.get(newer)) == (None, {"pk": "B", "sk": "B", "v": 7})

    def test_a_newer_item_is_read_updated_and_not_migrated(self, ops: Ops, world: World):
        company = world.company()
        key = keys.organization(company.organization_id)
        table.put(Put({**(table.get(key) or {}), "v": 99, "ofNewerRelease": True}), PREPARED)
        world.key(company)
        ops("table", "migrate")
        stored = table.get(key) or {}
        assert (stored["keys"], stored["v"], stored["ofNewerRelease"]) == (1, 99, True)
        assert ops("table", "check").document["versions"]["99"] == 1

    def test_the_next_version_is_migrated_as_this_one_was(
        self, ops: Ops, world: World, monkeypatch: pytest.MonkeyPatch
    ):
        company = world.company()
        ops("table", "migrate")
        monkeypatch.setattr(schema, "VERSION", 2)
        project = keys.project(*make_project(company).project_id.location)
        created, organization = keys.Key("A", "A"), keys.organization(company.organization_id)
        table.update(Update(created, "SET #a = :a", None, {"a": 1}), PREPARED)
        places = (project, created, organization)
        assert [(table.get(key) or {})["v"] for key in places] == [2, 1, 1]
        assert ops("table", "migrate").document["versions"]["marked"] > 1
        assert [(table.get(key) or {})["v"] for key in places] == [2, 2, 2]

    def test_an_item_that_an_older_release_replaces_is_older_again(self, api: Api, world: World):
        """So the newer release's migration finds it. A change of a project replaces it."""
        company = world.company()
        project = make_project(company)
        key = keys.project(*project.project_id.location)
        table.put(Put({**(table.get(key) or {}), "v": 99}), PREPARED)
        path = f"/v1/projects/{project.project_id}"
        assert api.patch(path, company.owner.token, json_body={"description": "Changed"}).status == 200
        assert (table.get(key) or {})["v"] == schema.VERSION
