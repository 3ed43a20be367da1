"""The deployed product recovers from failures: nothing is lost, and no request waits forever."""

from typing import Any

import pytest

from controlplane.platform.core.ids import Located
from controlplane.platform.table import keys
from controlplane.platform.table.table import table
from tests.e2e.deployment import Invoked, Stack
from tests.e2e.failures import QUEUES, UnfinishedDeletion
from tests.e2e.people import Caller


class TestSweeper:
    def test_the_sweeper_finishes_every_step(self, stack: Stack, swept: Invoked):
        assert swept.failure is None, f"{swept.answer}\n{stack.errors()}"

    def test_the_sweeper_sends_what_a_crashed_function_left_unsent(self, second_scan: dict[str, Any]):
        assert (second_scan["status"], second_scan["failure"]) == ("completed", None)

    def test_the_sweeper_resumes_an_unannounced_issue_attempt(self, late_issue: dict[str, Any]):
        assert late_issue["number"]

    def test_the_sweeper_fails_a_scan_whose_message_was_lost(
        self, call: Caller, unfinished_deletion: UnfinishedDeletion, swept: Invoked
    ):
        query = f"repositoryId={unfinished_deletion.repository_id}"
        target = f"/v1/code-audit/scan-requests/{unfinished_deletion.request_id}?{query}"
        answer = call(200, "GET", target)
        assert (answer["status"], answer["error"]["code"]) == ("failed", "ABANDONED")

    def test_the_sweeper_removes_what_a_deleted_project_left(self, deleted_project: Located, swept: Invoked):
        prefix = keys.vendor_prefix(deleted_project.local)
        left = table.query(keys.organization_pk(deleted_project.organization_id), prefix=prefix, limit=10)
        assert left.items == []


class TestCodeHost:
    @pytest.mark.parametrize("group", ["ScanPreparation", "ScanExecution", "IssueCreation"])
    @pytest.mark.usefixtures("second_scan", "issue")
    def test_a_rate_limited_worker_delays_its_message(self, stack: Stack, group: str):
        written = stack.logs()[stack.physical_ids[f"{group}LogGroup"]]
        assert [line for line in written if '"outcome":"delayed"' in line]
        assert not [line for line in written if "backoff not set" in line]

    def test_a_missing_branch_fails_the_request_with_the_reason(self, refused_scan: dict[str, Any]):
        assert refused_scan["status"] == "failed"
        assert refused_scan["error"]["code"] in {"BRANCH_GONE", "REPOSITORY_GONE"}


@pytest.mark.usefixtures("refused_scan", "late_issue", "detection", "advisory")
def test_a_worker_dead_letters_a_message_of_an_unknown_kind_with_its_reason(dead_letters: dict[str, str]):
    """Runs when no other work is in progress."""
    reasons = {queue: reason.partition(": ")[0] for queue, reason in dead_letters.items()}
    assert reasons == {**dict.fromkeys(QUEUES, "newer release"), "WebsiteAudits": "none"}
