"""POST /v1/code-audit/scans: requests a scan of a linked repository."""

from typing import Any

import pytest

from controlplane.core.ids import ScanRequestId
from controlplane.queues import messages
from controlplane.queues.messages import Queue
from controlplane.store import outbox, projects, repositories
from controlplane.store.leases import MAX_ATTEMPTS
from controlplane.store.repository_items import Link, RepositoryItem
from controlplane.store.scans import execution, reads
from controlplane.store.table import table
from tests.support.api import Api, Reply
from tests.support.audits import end_scan, make_request, make_scan, preparation_worker, serving, stored_repository
from tests.support.calls import Call, item_of, refused
from tests.support.code_host import SHA
from tests.support.crashes import dies_at
from tests.support.each import each
from tests.support.recorded import recorded_calls
from tests.support.sqs import FakeSqs
from tests.support.sweeping import swept
from tests.support.world import World, table_dump

PATH = "/v1/code-audit/scans"
KEY = {"Idempotency-Key": "8f14e45f-ceea-467f-a9b7-0d5b2c3a1e77"}


def start(
    api: Api, token: str, repository: RepositoryItem, headers: dict[str, str] | None = None, **more: Any
) -> Reply:
    return api.post(PATH, token, json_body={"repositoryId": repository.repository_id, **more}, headers=headers)


def waiting() -> list[dict[str, Any]]:
    return [item for item in table_dump() if item["pk"]["S"].startswith("OUTBOX#")]


class _AtOnce(FakeSqs):
    """Prepares a scan as soon as it is requested, like a fast worker."""

    def __init__(self, repository: RepositoryItem) -> None:
        super().__init__()
        self._handler = preparation_worker(serving(repository))

    def send_message(self, **message: Any) -> dict[str, Any]:
        super().send_message(**message)
        if message["QueueUrl"] == Queue.SCAN_PREPARATION.url:
            self.deliver(self.letters[-1], self._handler, Queue.SCAN_PREPARATION.dead_letters_url)
        return {}


class Test202:
    def test_returns_starting_and_retry_after_if_the_scan_takes_longer(self, api: Api, world: World, sqs: FakeSqs):
        company = world.company()
        repository = world.connected_repository(company)
        reply = start(api, company.owner.token, repository)
        assert reply.status == 202
        assert reply.headers["retry-after"] == "2"
        preparation_id = reply.data["preparationId"]
        assert reply.data == {
            "status": "starting",
            "preparationId": preparation_id,
            "repositoryId": repository.repository_id,
            "createdAt": "2026-03-04T05:06:07.000Z",
            "retryAfterSeconds": 2,
        }
        (letter,) = sqs.at(Queue.SCAN_PREPARATION.url)
        assert letter.body == f'{{"version": 1, "kind": "prepare-scan", "requestId": "{preparation_id}"}}'
        assert waiting() == []

    def test_returns_the_scan_if_it_exists_in_time(
        self, api: Api, world: World, sqs: FakeSqs, monkeypatch: pytest.MonkeyPatch
    ):
        company = world.company()
        repository = world.connected_repository(company)
        monkeypatch.setattr(messages.sender, "client", _AtOnce(repository))
        reply = start(api, company.owner.token, repository)
        assert reply.status == 202
        assert reply.data["status"] == "started"
        assert "retry-after" not in reply.headers
        scan = reply.data["scan"]
        assert {**scan, "inventory": None} == api.get(f"{PATH}/{scan['id']}", company.owner.token).data
        assert (scan["status"], scan["access"], scan["headCommitSha"]) == ("queued", "free-preview", SHA)

    def test_any_member_can_start_a_scan(self, api: Api, world: World):
        company = world.company()
        member = world.member(company)
        assert start(api, member.token, world.connected_repository(company)).status == 202

    def test_the_request_and_its_message_are_one_transaction(self, api: Api, world: World, sqs: FakeSqs):
        company = world.company()
        repository = world.connected_repository(company)
        sqs.broken = True
        reply = start(api, company.owner.token, repository)
        assert reply.status == 202
        (entry,) = waiting()
        assert entry["message"]["M"]["requestId"]["S"] == reply.data["preparationId"]

    @pytest.mark.parametrize("code", ["ThrottlingException", "InternalServerError", "AccessDeniedException"])
    def test_a_message_that_was_sent_may_stay_in_the_outbox(self, code: str, api: Api, world: World, sqs: FakeSqs):
        company = world.company()
        with refused(table.client, lambda call: call.operation == "DeleteItem", code):
            assert start(api, company.owner.token, world.connected_repository(company)).status == 202
        assert (len(sqs.at(Queue.SCAN_PREPARATION.url)), len(waiting())) == (1, 1)

    def test_the_sweep_sends_an_unsent_message_once(self, api: Api, world: World, sqs: FakeSqs, now):
        company = world.company()
        sqs.broken = True
        start(api, company.owner.token, world.connected_repository(company))
        sqs.broken = False
        assert swept(messages.resend) == 0  # the function itself may still be sending it
        now.advance(outbox.RESEND_AFTER_SECONDS + 1)
        assert swept(messages.resend) == 1
        assert len(sqs.at(Queue.SCAN_PREPARATION.url)) == 1
        assert waiting() == []
        assert swept(messages.resend) == 0

    def test_the_named_project_of_several_is_scanned(self, api: Api, world: World):
        company = world.company()
        repository = world.connected_repository(company)
        other = world.connected_repository(company).links[0].project_id
        repositories.link_project(repository.repository_id, Link(other, "release", None, False))
        reply = start(api, company.owner.token, repository, projectId=other)
        assert reads.get_request(ScanRequestId.stored(reply.data["preparationId"])).project_id == other

    def test_defaults_to_the_first_linked_project_that_still_exists(self, api: Api, world: World):
        company = world.company()
        repository = world.connected_repository(company)
        other = world.connected_repository(company).links[0].project_id
        repositories.link_project(repository.repository_id, Link(other, None, None, False))
        projects.delete_project(projects.get_project(repository.links[0].project_id))
        reply = start(api, company.owner.token, repository)
        assert reads.get_request(ScanRequestId.stored(reply.data["preparationId"])).project_id == other

    @pytest.mark.parametrize("status", ["completed", "failed"])
    def test_another_scan_can_start_after_one_has_ended(self, status: str, api: Api, world: World):
        company = world.company()
        repository = world.connected_repository(company)
        make_scan(repository, status=status)
        assert start(api, company.owner.token, repository).status == 202

    def test_a_scan_without_remaining_attempts_does_not_block_the_repository(self, api: Api, world: World, now):
        company = world.company()
        repository = world.connected_repository(company)
        dead = make_scan(repository, status="running")
        for _ in range(MAX_ATTEMPTS - 1):
            now.advance(420 + 61)
            assert start(api, company.owner.token, repository).code == "SCAN_IN_PROGRESS"  # it is retried
            execution.acquire_scan(dead.scan_id, 420)
        now.advance(420 + 61)
        reply = start(api, company.owner.token, repository)
        assert reply.status == 202
        ended = api.get(f"{PATH}/{dead.scan_id}", company.owner.token).data
        assert (ended["status"], ended["failure"]["code"]) == ("failed", "ABANDONED")
        assert ended["completedAt"] is not None
        assert stored_repository(repository)["activeRequestId"] == reply.data["preparationId"]

    @pytest.mark.parametrize("prepared", [False, True])
    def test_a_lost_message_blocks_the_repository_for_at_most_five_days(
        self, prepared: bool, api: Api, world: World, now
    ):
        company = world.company()
        repository = world.connected_repository(company)
        if prepared:
            make_scan(repository, status="queued")
        else:
            make_request(repository)
        now.advance(5 * 86_400)
        token = world.token(company.owner.user_id)
        assert start(api, token, repository).status == 409
        now.advance(1)
        assert start(api, token, repository).status == 202

    def test_a_retry_returns_the_same_response_and_requests_no_other_scan(self, api: Api, world: World, sqs: FakeSqs):
        company = world.company()
        repository = world.connected_repository(company)
        first = start(api, company.owner.token, repository, KEY)
        sqs.deliver(sqs.letters[0], preparation_worker(serving(repository)), Queue.SCAN_PREPARATION.dead_letters_url)
        second = start(api, company.owner.token, repository, KEY)
        assert (second.status, second.text) == (202, first.text)
        assert "idempotency-replayed" not in first.headers
        assert second.headers["idempotency-replayed"] == "true"
        assert second.headers["retry-after"] == "2"
        assert len([item for item in table_dump() if item["sk"]["S"].startswith("SCANREQ#")]) == 1

    def test_a_retry_after_a_crash_before_the_answer_says_that_it_is_one(self, api: Api, world: World):
        company = world.company()
        repository = world.connected_repository(company)
        with dies_at("UpdateItem", applied=True):
            assert start(api, company.owner.token, repository, KEY).status == 500
        reply = start(api, company.owner.token, repository, KEY)
        assert (reply.status, reply.data["status"]) == (202, "starting")
        assert reply.headers["idempotency-replayed"] == "true"

    def test_a_request_that_cant_be_read_right_after_its_creation_is_read_again(
        self, api: Api, world: World, sqs: FakeSqs
    ):
        company = world.company()
        repository = world.connected_repository(company)
        failures = iter([True])

        def first_read(call: Call) -> bool:
            is_read = call.operation == "GetItem" and item_of(call.parameters)[1].startswith("SCANREQ#")
            return is_read and next(failures, False)

        with refused(table.client, first_read, "ThrottlingException"):
            reply = start(api, company.owner.token, repository)
        assert (reply.status, reply.data["status"]) == (202, "starting")
        assert next(failures, None) is None

    def test_a_dry_run_of_a_retry_returns_the_same_response(
        self, api: Api, world: World, sqs: FakeSqs, monkeypatch: pytest.MonkeyPatch
    ):
        company = world.company()
        repository = world.connected_repository(company)
        monkeypatch.setattr(messages.sender, "client", _AtOnce(repository))
        first = start(api, company.owner.token, repository, KEY)
        body = {"repositoryId": repository.repository_id}
        dry = api.post(f"{PATH}?dryRun=true", company.owner.token, json_body=body, headers=KEY)
        assert (first.data["status"], dry.text) == ("started", first.text)

    def test_adds_only_reads_and_writes_of_the_request_to_the_access_check(self, api: Api, world: World):
        company = world.company()
        repository = world.connected_repository(company)
        api.get("/v1/me", company.owner.token)  # counting a token's first request in a minute takes two updates
        with recorded_calls() as calls:
            start(api, company.owner.token, repository)
        # Count; membership with repository; transaction; then the message's entry is deleted while the request is read.
        made = [call.operation for call in calls]
        assert [made[0], {*made[1:3]}, made[3], {*made[4:]}] == [
            "UpdateItem", {"Query", "GetItem"}, "TransactWriteItems", {"DeleteItem", "GetItem"},
        ]  # fmt: skip
        assert len(made) == 6


class Test400:
    @each("body", [{}, {"repositoryId": ""}, {"repositoryId": 7}, {"repositoryId": None}])
    def test_returns_400_without_a_repository(self, body: dict[str, Any], api: Api, world: World):
        reply = api.post(PATH, world.company().owner.token, json_body=body)
        assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")
        assert reply.error["details"][0]["path"] == ["repositoryId"]

    def test_returns_400_for_an_idempotency_key_of_another_request(self, api: Api, world: World):
        company = world.company()
        start(api, company.owner.token, world.connected_repository(company), KEY)
        reply = start(api, company.owner.token, world.connected_repository(company), KEY)
        assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")


class Test403:
    def test_returns_403_for_a_key_without_the_scope(self, api: Api, world: World):
        company = world.company()
        reply = start(api, world.key(company), world.connected_repository(company))
        assert (reply.status, reply.code) == (403, "INSUFFICIENT_SCOPE")
        assert reply.error["details"] == {"requiredScope": "code-audit.write"}


class Test404:
    def test_unknown_foreign_and_malformed_repositories_give_the_same_response(self, api: Api, world: World):
        company, other = world.company(), world.company()
        foreign = world.connected_repository(other).repository_id
        unknown = f"rep_{company.organization_id[4:]}{'0' * 18}"
        replies = [
            api.post(PATH, company.owner.token, json_body={"repositoryId": repository_id})
            for repository_id in (foreign, unknown, "nonsense", "REPO#x")
        ]
        assert {(reply.status, reply.text) for reply in replies} == {(404, replies[0].text)}
        assert replies[0].code == "NOT_FOUND"


class Test409:
    def test_returns_409_for_a_repository_without_a_project(self, api: Api, world: World):
        company = world.company()
        reply = start(api, company.owner.token, world.connected_repository(company, linked=False))
        assert (reply.status, reply.code) == (409, "REPOSITORY_NOT_LINKED")

    def test_returns_409_for_a_repository_whose_only_project_is_gone(self, api: Api, world: World):
        company = world.company()
        repository = world.connected_repository(company)
        projects.delete_project(projects.get_project(repository.links[0].project_id))
        assert start(api, company.owner.token, repository).code == "REPOSITORY_NOT_LINKED"

    def test_a_project_that_is_not_linked_to_the_repository(self, api: Api, world: World):
        company = world.company()
        other = world.connected_repository(company).links[0].project_id
        reply = start(api, company.owner.token, world.connected_repository(company), projectId=other)
        assert reply.code == "REPOSITORY_NOT_LINKED"

    def test_names_the_request_while_a_scan_is_starting(self, api: Api, world: World):
        company = world.company()
        repository = world.connected_repository(company)
        first = start(api, company.owner.token, repository)
        reply = start(api, company.owner.token, repository)
        assert (reply.status, reply.code) == (409, "SCAN_IN_PROGRESS")
        assert reply.error["details"] == {"preparationId": first.data["preparationId"]}

    @pytest.mark.parametrize("status", ["queued", "running"])
    def test_names_the_scan_while_it_is_open(self, status: str, api: Api, world: World):
        company = world.company()
        repository = world.connected_repository(company)
        scan = make_scan(repository, status=status)
        before = stored_repository(repository)
        reply = start(api, company.owner.token, repository)
        assert (reply.status, reply.code) == (409, "SCAN_IN_PROGRESS")
        assert reply.error["details"] == {"scanId": scan.scan_id}
        assert stored_repository(repository) == before

    def test_a_rejected_request_leaves_the_idempotency_key_usable(self, api: Api, world: World):
        company = world.company()
        repository = world.connected_repository(company)
        running = make_scan(repository, status="running")
        assert start(api, company.owner.token, repository, KEY).status == 409
        end_scan(running)
        assert start(api, company.owner.token, repository, KEY).status == 202
