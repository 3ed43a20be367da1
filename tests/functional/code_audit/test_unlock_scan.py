"""POST /v1/code-audit/scans/{scanId}/unlock: unlocks the remaining findings and charges for them once."""

from typing import Any

import pytest

from controlplane.queues.messages import Queue
from controlplane.store import billing, keys
from controlplane.store.scans.items import ScanItem
from controlplane.store.table import table
from tests.support.api import Api, Reply
from tests.support.audits import make_issue, make_scan
from tests.support.recorded import recorded_calls
from tests.support.sqs import FakeSqs
from tests.support.world import Company, World, table_dump

ISSUES = [make_issue(number) for number in range(1, 6)]


def unlock(api: Api, token: str, scan: ScanItem) -> Reply:
    return api.post(f"/v1/code-audit/scans/{scan.scan_id}/unlock", token)


def balance(company: Company) -> int:
    return billing.get_billing(company.organization_id)[1].credits


def ledger(company: Company) -> list[dict[str, Any]]:
    page = table.query(keys.organization_pk(company.organization_id), prefix=keys.LEDGER_PREFIX, consistent=True)
    return page.items


@pytest.fixture
def company(world: World) -> Company:
    made = world.company("free")
    world.credits(made, 80)
    return made


@pytest.fixture
def scan(company: Company, world: World) -> ScanItem:
    return make_scan(world.connected_repository(company), issues=ISSUES)


class Test200:
    def test_charges_and_unlocks_all_findings(self, company: Company, scan: ScanItem, api: Api):
        reply = unlock(api, company.owner.token, scan)
        assert (reply.status, reply.data) == (200, {"status": "unlocked"})
        assert balance(company) == 30
        shown = api.get(f"/v1/code-audit/scans/{scan.scan_id}", company.owner.token).data
        assert (shown["access"], shown["unlockCredits"]) == ("full", None)
        issues = api.get(f"/v1/code-audit/scans/{scan.scan_id}/issues", company.owner.token).data
        assert len(issues["issues"]) == 5
        assert issues["lockedCount"] == 0

    def test_the_ledger_records_user_amount_and_scan(self, company: Company, scan: ScanItem, api: Api):
        unlock(api, company.owner.token, scan)
        (spent,) = [entry for entry in ledger(company) if "scanId" in entry]
        assert (spent["credits"], spent["scanId"], spent["by"]) == (-50, scan.scan_id, company.owner.user_id)
        assert sum(entry["credits"] for entry in ledger(company)) == balance(company)

    def test_a_second_unlock_charges_nothing(self, company: Company, scan: ScanItem, api: Api):
        unlock(api, company.owner.token, scan)
        before = len(table_dump())
        reply = unlock(api, company.owner.token, scan)
        assert (reply.status, reply.data) == (200, {"status": "already-unlocked"})
        assert balance(company) == 30
        assert len(table_dump()) == before

    def test_a_locked_scan_can_be_unlocked(self, company: Company, world: World, api: Api):
        scan = make_scan(world.connected_repository(company), again="locked", issues=ISSUES)
        assert unlock(api, company.owner.token, scan).data == {"status": "unlocked"}
        assert balance(company) == 30

    def test_a_full_scan_was_never_locked(self, company: Company, world: World, api: Api):
        scan = make_scan(world.connected_repository(company), again="full", issues=ISSUES)
        assert unlock(api, company.owner.token, scan).data == {"status": "already-unlocked"}
        assert balance(company) == 80

    def test_unlocking_nothing_is_free(self, company: Company, world: World, api: Api):
        scan = make_scan(world.connected_repository(company), issues=ISSUES[:3])
        assert unlock(api, company.owner.token, scan).data == {"status": "unlocked"}
        assert balance(company) == 80

    def test_enqueues_the_unlocked_findings_for_publication(
        self, company: Company, scan: ScanItem, api: Api, sqs: FakeSqs
    ):
        unlock(api, company.owner.token, scan)
        (letter,) = sqs.at(Queue.SCAN_EXECUTION.url)
        assert letter.body == f'{{"version": 1, "kind": "publish-scan", "scanId": "{scan.scan_id}"}}'

    def test_takes_a_count_a_read_and_one_transaction(self, company: Company, scan: ScanItem, api: Api):
        api.get("/v1/me", company.owner.token)
        with recorded_calls() as calls:
            unlock(api, company.owner.token, scan)
        assert [call.operation for call in calls] == ["UpdateItem", "BatchGetItem", "TransactWriteItems", "DeleteItem"]


class Test402:
    def test_an_insufficient_balance_is_reported_and_unchanged(self, scan: ScanItem, company: Company, api: Api):
        billing.add_credits(company.organization_id, -31)
        reply = unlock(api, company.owner.token, scan)
        assert (reply.status, reply.code) == (402, "INSUFFICIENT_CREDITS")
        assert reply.error["details"] == {"remainingCredits": 49, "requiredCredits": 50}
        assert balance(company) == 49
        assert api.get(f"/v1/code-audit/scans/{scan.scan_id}", company.owner.token).data["access"] == "free-preview"

    def test_an_exact_balance_is_sufficient(self, scan: ScanItem, company: Company, api: Api):
        billing.add_credits(company.organization_id, -30)
        assert unlock(api, company.owner.token, scan).data == {"status": "unlocked"}
        assert balance(company) == 0


class Test403:
    @pytest.mark.parametrize("role", ["member", "admin"])
    def test_other_roles_are_forbidden(self, role: str, scan: ScanItem, company: Company, world: World, api: Api):
        reply = unlock(api, world.member(company, role).token, scan)
        assert (reply.status, reply.code) == (403, "FORBIDDEN")
        assert balance(company) == 80


class Test404:
    def test_returns_404_for_another_organizations_scan(self, scan: ScanItem, world: World, api: Api):
        assert unlock(api, world.company().owner.token, scan).code == "NOT_FOUND"


class Test409:
    @pytest.mark.parametrize("status", ["queued", "running", "failed"])
    def test_a_scan_that_is_not_completed_cannot_be_unlocked(
        self, status: str, company: Company, world: World, api: Api
    ):
        scan = make_scan(world.connected_repository(company), status=status)
        reply = unlock(api, company.owner.token, scan)
        assert (reply.status, reply.code) == (409, "CONFLICT")
        assert reply.error["details"] == {"reason": "not_completed", "status": status}
        assert balance(company) == 80
