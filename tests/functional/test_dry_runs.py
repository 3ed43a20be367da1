"""`?dryRun=true` on every operation that changes something: the same answer as the real request's, and no effect."""

import re
from typing import Any
from urllib.parse import unquote

import pytest

from controlplane.platform.core import tokens
from controlplane.platform.core.settings import settings
from controlplane.platform.table.table import table
from tests.functional.test_every_route import address, send_valid
from tests.support.api import Reply
from tests.support.browser import Browser
from tests.support.calls import intercepted
from tests.support.each import each
from tests.support.operations import Operation, operations
from tests.support.subject import Subject
from tests.support.table import restored
from tests.support.valid_requests import CHANGING, CREATING, USUAL
from tests.support.world import uncounted

DRY = "?dryRun=true"
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


def shape(value: Any) -> Any:
    """Returns the names of all fields and the types of their values."""
    if isinstance(value, dict):
        return {name: shape(part) for name, part in value.items()}
    return [shape(part) for part in value] if isinstance(value, list) else type(value).__name__


@pytest.fixture(autouse=True)
def _without_waiting(monkeypatch):
    monkeypatch.setitem(settings.__dict__, "issue_wait_seconds", 0)
    monkeypatch.setitem(settings.__dict__, "scan_start_wait_seconds", 0)


def test_every_operation_that_changes_something_has_dry_runs():
    assert CHANGING.keys() == USUAL.keys() | WITHOUT
    assert {o.route.operation_id for o in operations() if _has_parameter(o)} == {*USUAL}


def _has_parameter(operation: Operation) -> bool:
    return "dryRun" in [field.alias for field in operation.route.dependant.query_params]


def told(reply: Reply) -> Any:
    """Returns what a reply says, without the fix of an error, which repeats the request's path and query."""
    return reply.error if reply.status >= 400 else reply.text


@each("case", USUAL.values(), ids=str, around=restored)
class TestEach:
    def test_has_the_answer_of_the_real_request_and_no_effect(self, case, api, world, sqs):
        name, request = case.name, case.prepared(Subject(world, api))
        before, letters = uncounted(), len(sqs.letters)
        writes: list[str] = []

        def noting(call, proceed):
            if call.operation == "TransactWriteItems":
                writes.extend(kind for leg in call.parameters["TransactItems"] for kind in leg)
            return proceed()

        with intercepted(table.client, noting):
            dry = request.send(query=DRY)
        assert uncounted() == before
        assert {*writes} <= {"ConditionCheck"}
        assert len(sqs.letters) == letters
        assert dry.headers["dry-run"] == "true"
        real = request.send()
        assert "dry-run" not in real.headers
        if name in UNKNOWN_OUTCOME:
            assert (dry.status, real.status) == UNKNOWN_OUTCOME[name]
            return
        assert dry.status == real.status < 300, dry.text
        assert shape(dry.body) == shape(real.body)
        assert _EXAMPLES.sub("…", dry.text) == _EXAMPLES.sub("…", real.text)
        assert dry.headers.keys() - {"dry-run"} == real.headers.keys()

    def test_is_refused_like_the_real_request(self, case, api, world, sqs):
        name, subject = case.name, Subject(world, api)
        request = case.prepared(subject)
        stranger = world.company().owner.token
        unscoped = world.token(subject.owner.user_id, ["billing.read"])
        member = subject.member.token
        for token in (stranger, unscoped, member, "garbage"):
            if token == stranger and name in CREATING:
                continue
            dry = request.send(token, DRY)
            assert ("dry-run" in dry.headers) is (dry.status < 400)
            if name in UNKNOWN_OUTCOME and dry.status < 400:
                continue
            real = request.send(token)
            assert dry.status == real.status
            if dry.status >= 400:
                assert dry.error == real.error
        if request.body:
            broken = request._replace(body={key: {"x": 1} for key in request.body})
            assert told(broken.send(query=DRY)) == told(broken.send())

    def test_a_mistyped_parameter_changes_nothing_and_is_told_the_right_one(self, case, api, world, sqs):
        request = case.prepared(Subject(world, api))
        before, letters = uncounted(), len(sqs.letters)
        for mistyped, meant in MISTYPED.items():
            reply = request.send(query=f"?{mistyped}=true")
            assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD"), mistyped
            (problem,) = reply.error["details"]
            assert (problem["code"], problem["path"]) == ("unknown_parameter", [unquote(mistyped)])
            assert problem["known"] == ["organizationId", "dryRun"]
            asked = f" Did you mean {meant}?" if meant else "but not this parameter."
            assert reply.error["message"].endswith(asked)
        assert uncounted() == before
        assert len(sqs.letters) == letters

    def test_after_the_real_request_it_is_answered_like_a_second_one(self, case, api, world, sqs):
        request = case.prepared(Subject(world, api))
        request.send()
        dry, real = (request.send(query=it) for it in (DRY, ""))
        if case.name in UNKNOWN_OUTCOME:
            return
        assert (dry.status, shape(dry.body)) == (real.status, shape(real.body))

    def test_an_idempotency_key_is_neither_used_up_nor_ignored(self, case, api, world, sqs):
        if "Idempotency-Key" not in [field.alias for field in case.operation.route.dependant.header_params]:
            return
        request = case.prepared(Subject(world, api))
        request.send(query=DRY, **KEY)
        real = request.send(**KEY)
        assert "idempotency-replayed" not in real.headers
        before = uncounted()
        dry, again = (request.send(query=it, **KEY) for it in (DRY, ""))
        assert uncounted() == before
        assert dry.headers["idempotency-replayed"] == again.headers["idempotency-replayed"] == "true"
        assert (dry.status, shape(dry.body)) == (again.status, shape(again.body))
        changed = {"name": "Another", "message": "Another", "items": [], "email": "b@example.com"}
        other = request._replace(body={**(request.body or {}), **changed})
        dry, again = (other.send(query=it, **KEY) for it in (DRY, ""))
        assert dry.status == again.status


def test_a_secret_of_a_dry_run_is_a_placeholder(api, world):
    subject = Subject(world, api)
    for name, field in {
        "createApiKey": "key",
        "rollApiKey": "key",
        "createWebhookEndpoint": "secret",
        "rotateWebhookSecret": "secret",
    }.items():
        request = USUAL[name].prepared(subject)
        for headers in ({}, KEY):
            secret = request.send(query=DRY, **headers).data[field]
            assert "DryRunWithoutSecret" in secret
            assert tokens.prefix_of(secret) is None
            assert api.get("/v1/me", secret).status == 401


def test_a_replayed_secret_is_shown_by_the_real_request_only(api, world):
    request = USUAL["createApiKey"].prepared(Subject(world, api))
    made = request.send(**KEY).data["key"]
    assert made not in request.send(query=DRY, **KEY).text
    assert request.send(**KEY).data["key"] == made


def test_requests_are_counted(api, world):
    request = USUAL["createProject"].prepared(Subject(world, api))
    left = [int(request.send(query=DRY).headers["x-ratelimit-remaining"]) for _ in range(2)]
    assert left[0] == left[1] + 1


SHOP = {"name": "Shop", "region": "eu-central"}


@each(
    "query",
    [
        *(f"dryRun={value}" for value in ("", "1", "True", "yes", "on", "null", "truee")),
        *(f"dryRun={value}&dryRun=true" for value in ("true", "false", "%74rue")),
    ],
)
def test_another_value_or_a_repeated_parameter_is_refused(query, api, world):
    company = world.company()
    before = uncounted()
    reply = api.post(f"/v1/projects?{query}", company.owner.token, json_body=SHOP)
    assert (reply.status, reply.error["details"][0]["path"]) == (400, ["dryRun"])
    assert uncounted() == before


def test_false_is_a_real_request_and_an_encoded_true_is_a_dry_run(api, world):
    token = world.company().owner.token
    assert api.post("/v1/projects?%64ryRun=%74rue", token, json_body=SHOP).headers["dry-run"] == "true"
    assert api.get("/v1/projects", token).data == []
    assert "dry-run" not in api.post("/v1/projects?dryRun=false", token, json_body=SHOP).headers
    assert len(api.get("/v1/projects", token).data) == 1


def test_a_page_ignores_the_parameter(api, world):
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
def test_operations_without_dry_runs_refuse_the_parameter(operation, api, world):
    company = world.company()
    query = f"{'&' if '?' in address(operation, company.organization_id) else '?'}dryRun=true"
    reply = send_valid(api, operation, company.owner.token, company.organization_id, query)
    assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD"), reply.text
    assert "dryRun" in [name for problem in reply.error["details"] for name in problem["path"]]
    assert "dry-run" not in reply.headers
