"""The sweep finishes what a crash interrupted, and doesn't touch what is live or merely expires."""

import json
from typing import Any

import pytest

from controlplane.code_host import repositories
from controlplane.erasure import deletions
from controlplane.erasure.cleanup import SETTLED_AFTER_SECONDS
from controlplane.findings import issue_attempts
from controlplane.findings.items import Discovery
from controlplane.findings.publications import publish_finding
from controlplane.organizations import invitations
from controlplane.platform.queues import outbox
from controlplane.platform.queues.messages import ExecuteScan, PrepareScan, Queue
from controlplane.platform.table.table import table
from controlplane.projects import store as projects
from controlplane.scans import reads
from sweeper.app import handler
from sweeper.service import STEPS, StepsFailed
from tests.functional.projects.builders import make_project
from tests.support.api import Api
from tests.support.audits import make_issue, make_scan
from tests.support.crashes import dies_at
from tests.support.populated_organization import populate_organization
from tests.support.sqs import FakeSqs
from tests.support.table import PREPARED
from tests.support.world import Company, World, table_dump

NOTHING = dict.fromkeys(STEPS, 0)
REQUEST_ID = "spr_" + "0" * 34


@pytest.fixture
def company(world: World) -> Company:
    return world.company()


def waits(message: Any = None, queue: Queue = Queue.SCAN_PREPARATION) -> outbox.Entry:
    """Stores a message in the outbox, as a function does that dies before sending it."""
    from controlplane.platform.queues import messages

    entry = messages.entry(queue, message or PrepareScan(request_id=REQUEST_ID))
    table.transact({"message": entry.leg}, PREPARED)
    return entry


class TestNothing:
    def test_a_sweep_without_work_writes_and_sends_nothing(self, sweep, company: Company, sqs: FakeSqs):
        before = table_dump()
        assert sweep() == NOTHING
        assert table_dump() == before
        assert sqs.letters == []

    def test_a_sweep_leaves_expiring_items_alone(self, sweep, company: Company, api: Api, now):
        body = {"email": "grace@example.com", "role": "member"}
        assert api.post("/v1/invitations", company.owner.token, json_body=body).status == 201
        code = {"clientId": "assent-cli", "codeChallenge": "x" * 43, "codeChallengeMethod": "S256"}
        assert api.post("/v1/auth/device/code", json_body=code).status == 201
        now.advance(8 * 86_400)
        before = table_dump()
        assert sweep() == NOTHING
        assert table_dump() == before
        # The expired ones aren't listed, though they still exist.
        assert invitations.list_invitations(company.organization_id, 50, None).invitations == []


class TestResentMessages:
    def test_messages_are_sent_again_after_a_minute(self, sweep, sqs: FakeSqs, now):
        waits()
        now.advance(60)
        assert sweep() == NOTHING
        now.advance(1)
        waits(ExecuteScan(scan_id="scn_" + "0" * 34), Queue.SCAN_EXECUTION)
        assert sweep() == {**NOTHING, "ResentMessages": 1}
        (letter,) = sqs.letters
        assert letter.queue_url == Queue.SCAN_PREPARATION.url
        assert json.loads(letter.body) == {"kind": "prepare-scan", "version": 1, "requestId": REQUEST_ID}

    def test_messages_are_sent_to_their_own_queues(self, sweep, sqs: FakeSqs, now):
        waits()
        waits(ExecuteScan(scan_id="scn_" + "0" * 34), Queue.SCAN_EXECUTION)
        now.advance(61)
        assert sweep() == {**NOTHING, "ResentMessages": 2}
        sent = {letter.queue_url: json.loads(letter.body)["kind"] for letter in sqs.letters}
        assert sent == {Queue.SCAN_PREPARATION.url: "prepare-scan", Queue.SCAN_EXECUTION.url: "execute-scan"}

    def test_messages_are_sent_once_by_a_sweep_that_survives(self, sweep, sqs: FakeSqs, now):
        for _ in range(20):
            waits()
        now.advance(61)
        assert sweep()["ResentMessages"] == 20
        assert sweep()["ResentMessages"] == 0
        assert len(sqs.letters) == 20
        assert stored_partitions("OUTBOX#") == 0

    def test_unsent_messages_remain_and_delay_no_other_step(self, sweep, company: Company, sqs: FakeSqs, now):
        waits()
        projects.delete_project(make_project(company))
        now.advance(SETTLED_AFTER_SECONDS)
        sqs.broken = True
        assert sweep() == {**NOTHING, "FinishedDeletions": 1}
        assert stored_partitions("DELETIONS") == 0
        sqs.broken = False
        assert sweep() == {**NOTHING, "ResentMessages": 1}

    def test_messages_are_sent_again_if_the_sweep_crashed_before_recording_them(self, sweep, sqs: FakeSqs, now):
        waits()
        now.advance(61)
        with dies_at("DeleteItem", applied=False), pytest.raises(StepsFailed):
            sweep()
        assert sweep()["ResentMessages"] == 1
        assert len(sqs.letters) == 2


def stored_partitions(prefix: str) -> int:
    return sum(item["pk"]["S"].startswith(prefix) for item in table_dump())


class TestResumedIssueAttempts:
    def test_issue_attempts_without_a_worker_are_resumed(self, sweep, company: Company, sqs: FakeSqs, now):
        found = publish_finding(
            Discovery(
                organization_id=company.organization_id,
                source="code-audit",
                identity=("a",),
                title="T",
                observed_at="2026-03-04T05:00:00.000Z",
                rule_id="r",
            )
        )
        issue_attempts.begin_attempt(found.item_id, company.owner.user_id)
        assert sweep() == NOTHING
        now.advance(61)
        # The message is the event of the finding.
        assert sweep() == {**NOTHING, "ResumedIssueAttempts": 1, "ResentMessages": 1}
        (letter,) = sqs.at(Queue.ISSUE_CREATION.url)
        assert json.loads(letter.body)["itemId"] == found.item_id


class TestFinishedDeletions:
    """test_deletions.py covers what is removed; here the function itself does it, with its own permissions."""

    def test_every_kind_of_deletion_is_finished(self, sweep, world: World, company: Company, now):
        estates = [populate_organization(world, company if number else None) for number in range(3)]
        repositories.disconnect_repository(estates[1].repository.repository_id)
        projects.delete_project(estates[2].project)
        deletions.delete_organization(estates[0].company.organization_id)
        assert sweep()["FinishedDeletions"] == 0
        now.advance(SETTLED_AFTER_SECONDS)
        assert sweep()["FinishedDeletions"] == 3
        assert stored_partitions("DELETIONS") == 0

    def test_superseded_scans_expire_from_then_on(self, sweep, world: World, company: Company, now):
        repository = world.connected_repository(company)
        first = make_scan(repository, issues=[make_issue()])
        now.advance(1)
        make_scan(repository)
        # The event of the first scan's end.
        assert sweep() == {**NOTHING, "ResentMessages": 1}
        assert reads.get_scan(first.scan_id).findings_expire_at is not None


def test_the_sample_event_is_accepted(sqs: FakeSqs):
    from pathlib import Path

    event = json.loads((Path(__file__).parents[3] / "events" / "sweeper_sweep.json").read_text())
    assert handler(event, None) == NOTHING
