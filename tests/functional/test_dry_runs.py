"""`?dryRun=true` on every operation that changes something: the same answer as the real request's, and no effect."""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import pytest

from controlplane.platform.core import tokens
from controlplane.platform.core.settings import settings
from controlplane.platform.table.table import table
from tests.functional.audit_log.test_operations import CASES, CHANGING, CREATING, OF_NO_ORGANIZATION, Sent
from tests.functional.test_every_route import PROTECTED, _uncounted, address, valid_body
from tests.support.api import Api, Reply
from tests.support.audit_log import Subject
from tests.support.browser import Browser
from tests.support.calls import intercepted
from tests.support.each import each
from tests.support.operations import Operation, operations
from tests.support.sqs import FakeSqs
from tests.support.table import restored
from tests.support.world import World, table_dump

KEY = {"Idempotency-Key": "8f14e45f-ceea-467f-a9b7-0d5b2c3a1e77"}
# OAuth's endpoints follow their standards, and change no resource. GitHub sends webhooks and leaked keys.
WITHOUT = {"createDeviceCode", "createDeviceToken", "revokeDeviceToken", "receiveWebhook", "receiveLeakReport"}
# What creates an issue waits for GitHub's answer, which a dry run can't know.
UNKNOWN_OUTCOME = {"createGithubIssue": (201, 409)}
# Spellings of query parameters, and the names that they resemble.
MISTYPED = {
    "dryrun": "dryRun",
    "dry_run": "dryRun",
    "dry-run": "dryRun",
    "DryRun": "dryRun",
    "dryRun%20": "dryRun",
    "organizationid": "organizationId",
    "organisationId": "organizationId",
    "preview": None,
}
# What is random: IDs and versions, and secrets with their first characters.
_EXAMPLES = re.compile(r"\b[a-z]{3}_[0-9a-z]{12,}|\b[0-9a-f]{16,}|assent_\w+|whsec_[\w+/=]+|FDB-\w+|-[0-9a-z]{4,6}\b")


def _of_session(it: Subject) -> Sent:
    sessions = it.api.get("/v1/me/sessions", it.owner.token).data
    return {"sessionId": sessions[0]["id"]}, None


PREPARE: dict[str, Callable[[Subject], Sent]] = {
    **{name: prepare for name, (_, prepare) in CASES.items()},
    "createFeedback": lambda _: ({}, {"category": "bug", "message": "It fails."}),
    "saveActiveOrganization": lambda it: (
        {},
        {"organizationId": it.world.company(owner=it.owner).organization_id},
    ),
    "revokeSession": _of_session,
}


def send(
    subject: Subject, name: str, sent: Sent, *, dry: bool, token: str | None = None, query: str = "", **headers: str
) -> Reply:
    ids, body = sent
    path = CHANGING[name].path
    for parameter, value in ids.items():
        path = path.replace("{" + parameter + "}", value)
    query = query or ("?dryRun=true" if dry else "")
    token = token or subject.owner.token
    return subject.api.call(CHANGING[name].method, path + query, token, json_body=body, headers=headers)


def shape(value: Any) -> Any:
    """Returns the names of all fields and the types of their values."""
    if isinstance(value, dict):
        return {name: shape(part) for name, part in value.items()}
    return [shape(part) for part in value] if isinstance(value, list) else type(value).__name__


@pytest.fixture(autouse=True)
def _without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(settings.__dict__, "issue_wait_seconds", 0)
    monkeypatch.setitem(settings.__dict__, "scan_start_wait_seconds", 0)


def test_every_operation_that_changes_something_has_dry_runs():
    assert CHANGING.keys() == PREPARE.keys() | WITHOUT
    assert PREPARE.keys() >= OF_NO_ORGANIZATION - WITHOUT
    with_parameter = {o.route.operation_id for o in operations() if _has_parameter(o)}
    assert with_parameter == {*PREPARE}


def _has_parameter(operation: Operation) -> bool:
    return "dryRun" in [field.alias for field in operation.route.dependant.query_params]


def told(reply: Reply) -> Any:
    """Returns what a reply says, without the fix of an error, which repeats the request's path and query."""
    return reply.error if reply.status >= 400 else reply.text


@each("name", PREPARE, around=restored)
class TestEach:
    def test_has_the_answer_of_the_real_request_and_no_effect(self, name: str, api: Api, world: World, sqs: FakeSqs):
        subject = Subject(world, api)
        sent = PREPARE[name](subject)
        before, letters = _uncounted(table_dump()), len(sqs.letters)
        writes: list[str] = []

        def noting(call, proceed):
            if call.operation == "TransactWriteItems":
                writes.extend(kind for leg in call.parameters["TransactItems"] for kind in leg)
            return proceed()

        with intercepted(table.client, noting):
            dry = send(subject, name, sent, dry=True)
        assert _uncounted(table_dump()) == before
        assert {*writes} <= {"ConditionCheck"}
        assert len(sqs.letters) == letters
        assert dry.headers["dry-run"] == "true"
        real = send(subject, name, sent, dry=False)
        assert "dry-run" not in real.headers
        if name in UNKNOWN_OUTCOME:
            assert (dry.status, real.status) == UNKNOWN_OUTCOME[name]
            return
        assert dry.status == real.status < 300, dry.text
        assert shape(dry.body) == shape(real.body)
        assert _EXAMPLES.sub("…", dry.text) == _EXAMPLES.sub("…", real.text)
        assert dry.headers.keys() - {"dry-run"} == real.headers.keys()

    def test_is_refused_like_the_real_request(self, name: str, api: Api, world: World, sqs: FakeSqs):
        subject = Subject(world, api)
        sent = PREPARE[name](subject)
        stranger = world.company().owner.token
        unscoped = world.token(subject.owner.user_id, ["billing.read"])
        member = subject.member.token
        for token in (stranger, unscoped, member, "garbage"):
            if token == stranger and name in CREATING:
                continue
            dry = send(subject, name, sent, dry=True, token=token)
            assert ("dry-run" in dry.headers) is (dry.status < 400)
            if name in UNKNOWN_OUTCOME and dry.status < 400:
                continue
            real = send(subject, name, sent, dry=False, token=token)
            assert dry.status == real.status
            if dry.status >= 400:
                assert dry.error == real.error
        ids, body = sent
        if body:
            broken = (ids, {key: {"x": 1} for key in body})
            assert told(send(subject, name, broken, dry=True)) == told(send(subject, name, broken, dry=False))

    def test_a_mistyped_parameter_changes_nothing_and_is_told_the_right_one(
        self, name: str, api: Api, world: World, sqs: FakeSqs
    ):
        subject = Subject(world, api)
        sent = PREPARE[name](subject)
        before, letters = _uncounted(table_dump()), len(sqs.letters)
        for mistyped, meant in MISTYPED.items():
            reply = send(subject, name, sent, dry=False, query=f"?{mistyped}=true")
            assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD"), mistyped
            (problem,) = reply.error["details"]
            assert (problem["code"], problem["path"]) == ("unknown_parameter", [unquote(mistyped)])
            assert "dryRun" in problem["known"]
            asked = f" Did you mean {meant}?" if meant else "but not this parameter."
            assert reply.error["message"].endswith(asked)
        assert _uncounted(table_dump()) == before
        assert len(sqs.letters) == letters

    def test_after_the_real_request_it_is_answered_like_a_second_one(
        self, name: str, api: Api, world: World, sqs: FakeSqs
    ):
        subject = Subject(world, api)
        sent = PREPARE[name](subject)
        send(subject, name, sent, dry=False)
        dry, real = (send(subject, name, sent, dry=it) for it in (True, False))
        if name in UNKNOWN_OUTCOME:
            return
        assert (dry.status, shape(dry.body)) == (real.status, shape(real.body))

    def test_an_idempotency_key_is_neither_used_up_nor_ignored(self, name: str, api: Api, world: World, sqs: FakeSqs):
        if "Idempotency-Key" not in [field.alias for field in CHANGING[name].route.dependant.header_params]:
            return
        subject = Subject(world, api)
        sent = PREPARE[name](subject)
        send(subject, name, sent, dry=True, **KEY)
        real = send(subject, name, sent, dry=False, **KEY)
        assert "idempotency-replayed" not in real.headers
        before = _uncounted(table_dump())
        dry, again = (send(subject, name, sent, dry=it, **KEY) for it in (True, False))
        assert _uncounted(table_dump()) == before
        assert dry.headers["idempotency-replayed"] == again.headers["idempotency-replayed"] == "true"
        assert (dry.status, shape(dry.body)) == (again.status, shape(again.body))
        other = (
            sent[0],
            {**(sent[1] or {}), "name": "Another", "message": "Another", "items": [], "email": "b@example.com"},
        )
        dry, again = (send(subject, name, other, dry=it, **KEY) for it in (True, False))
        assert dry.status == again.status


def test_a_secret_of_a_dry_run_is_a_placeholder(api: Api, world: World):
    subject = Subject(world, api)
    for name, field in {
        "createApiKey": "key",
        "rollApiKey": "key",
        "createWebhookEndpoint": "secret",
        "rotateWebhookSecret": "secret",
    }.items():
        sent = PREPARE[name](subject)
        for headers in ({}, KEY):
            secret = send(subject, name, sent, dry=True, **headers).data[field]
            assert "DryRunWithoutSecret" in secret
            assert tokens.prefix_of(secret) is None
            assert api.get("/v1/me", secret).status == 401


def test_a_replayed_secret_is_shown_by_the_real_request_only(api: Api, world: World):
    subject = Subject(world, api)
    sent = PREPARE["createApiKey"](subject)
    made = send(subject, "createApiKey", sent, dry=False, **KEY).data["key"]
    assert made not in send(subject, "createApiKey", sent, dry=True, **KEY).text
    assert send(subject, "createApiKey", sent, dry=False, **KEY).data["key"] == made


def test_requests_are_counted(api: Api, world: World):
    subject = Subject(world, api)
    sent = PREPARE["createProject"](subject)
    left = [int(send(subject, "createProject", sent, dry=True).headers["x-ratelimit-remaining"]) for _ in range(2)]
    assert left[0] == left[1] + 1


@each("value", ["", "1", "True", "yes", "on", "null", "truee"])
def test_only_true_and_false_are_understood(value: str, api: Api, world: World):
    company = world.company()
    before = _uncounted(table_dump())
    reply = api.post(
        f"/v1/projects?dryRun={value}", company.owner.token, json_body={"name": "Shop", "region": "eu-central"}
    )
    assert (reply.status, reply.error["details"][0]["path"]) == (400, ["dryRun"])
    assert _uncounted(table_dump()) == before


def test_a_repeated_parameter_is_refused(api: Api, world: World):
    token = world.company().owner.token
    body = {"name": "Shop", "region": "eu-central"}
    for query in ("dryRun=true&dryRun=false", "dryRun=true&dryRun=true", "dryRun=%74rue&dryRun=true"):
        assert api.post(f"/v1/projects?{query}", token, json_body=body).status == 400


def test_false_is_a_real_request_and_an_encoded_true_is_a_dry_run(api: Api, world: World):
    token = world.company().owner.token
    body = {"name": "Shop", "region": "eu-central"}
    assert api.post("/v1/projects?%64ryRun=%74rue", token, json_body=body).headers["dry-run"] == "true"
    assert api.get("/v1/projects", token).data == []
    assert "dry-run" not in api.post("/v1/projects?dryRun=false", token, json_body=body).headers
    assert len(api.get("/v1/projects", token).data) == 1


def test_a_page_ignores_the_parameter(api: Api, world: World):
    browser = Browser(api).signed_in(world.person().user_id)
    secret = browser.secret
    reply = browser.forge("/sign-out?dryRun=true")
    assert reply.status == 303
    assert "dry-run" not in reply.headers
    assert api.get("/v1/me", secret).status == 401


OTHERS = [
    operation for operation in operations() if operation.route.include_in_schema and not _has_parameter(operation)
]


@each("operation", OTHERS, ids=lambda operation: operation.name)
def test_operations_without_dry_runs_refuse_the_parameter(operation: Operation, api: Api, world: World):
    company = world.company()
    path = address(operation, company.organization_id) if operation in PROTECTED else operation.path
    body = valid_body(operation) if operation.route.body_field is not None else None
    query = f"{'&' if '?' in path else '?'}dryRun=true"
    reply = api.call(operation.method, path + query, company.owner.token, json_body=body)
    assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD"), reply.text
    assert "dryRun" in [name for problem in reply.error["details"] for name in problem["path"]]
    assert "dry-run" not in reply.headers
