"""Waiting for scans and for a person's approval, on a clock that pauses move."""

from typing import Any

import httpx
import pytest

from cli.tests.support.documented_service import examples, operations
from cli.tests.support.script import CODE, TOKEN, Script, failure, success
from openassent.errors import AccessDenied, Conflict, DeviceCodeExpired, ScanStartFailed, WaitTimedOut
from openassent.models import AuthorizationServerMetadata
from tests.support.each import each

PENDING = failure(409, "CONFLICT", {"status": "authorization_pending"})
SLOW_DOWN = failure(409, "CONFLICT", {"status": "slow_down"})


SCAN: dict[str, Any] = examples(operations()["getScan"])[0][1]["data"]
STARTED, STARTING, NOT_STARTED = (body["data"] for _, body in examples(operations()["getScanRequest"]))


def scan(status: str) -> dict[str, Any]:
    return {**SCAN, "status": status}


class TestAScan:
    def test_is_awaited_from_its_start(self, pauses):
        seen: list[str] = []
        of_request = success(STARTING), success({**STARTED, "scan": scan("queued")})
        script = Script(success(STARTING, 202), *of_request, success(scan("running")), success(scan("completed")))
        client = script.client()
        started = client.scans.start(repository_id="rep_1")
        found = client.scans.wait(started, on_progress=lambda it: seen.append(str(it.status)))
        assert (found.id, found.status, seen) == (SCAN["id"], "completed", ["running", "completed"])
        assert pauses.seconds == [2, 2, 2]
        paths = [it.url.path for it in script.requests]
        assert paths == [
            "/v1/code-audit/scans",
            *[f"/v1/code-audit/scan-requests/{STARTING['preparationId']}"] * 2,
            *[f"/v1/code-audit/scans/{SCAN['id']}"] * 2,
        ]

    @each("status", ["completed", "failed", "canceled"])
    def test_has_ended(self, pauses, status):
        assert Script(success(scan(status))).client().scans.wait("scn_1").status == status

    def test_is_held_by_the_service_unless_its_progress_is_shown(self, pauses):
        script = Script(success(scan("completed")))
        client = script.client()
        client.scans.wait("scn_1")
        client.scans.wait(client.scans.get("scn_1"), on_progress=lambda _: None)
        assert [it.headers.get("Prefer") for it in script.requests] == ["wait=20", None, None]

    def test_that_takes_too_long_raises(self, pauses):
        with pytest.raises(WaitTimedOut):
            Script(success(scan("running"))).client().scans.wait("scn_1", timeout=7)
        assert sum(pauses.seconds) == 6

    def test_that_can_t_be_started_raises(self, pauses):
        client = Script(success(STARTING, 202), success(NOT_STARTED)).client()
        with pytest.raises(ScanStartFailed, match="larger than a scan reads") as caught:
            client.scans.wait(client.scans.start(repository_id="rep_1"))
        assert caught.value.code == "ARCHIVE_TOO_LARGE"


class TestARunOfAnAudit:
    def test_is_awaited_until_it_has_ended_or_the_timeout_is_over(self, pauses):
        ended = examples(operations()["getAuditRun"])[0][1]["data"]
        pending = success({**ended, "status": "pending"})
        client = Script(pending, pending, success(ended)).client()
        assert client.audits.wait(client.audits.run("prj_1", "aud_1", "run_1")).status == "completed"
        assert pauses.seconds == [5]
        client = Script(pending).client()
        with pytest.raises(WaitTimedOut, match="The run hasn't ended"):
            client.audits.wait(client.audits.run("prj_1", "aud_1", "run_1"), timeout=12)


class TestALogin:
    @each(
        ("answers", "waited"),
        [
            ((PENDING, SLOW_DOWN, PENDING), [5, 5, 10, 10]),
            ((httpx.ReadTimeout("slow"), failure(503)), [5, 10, 20]),  # less often after a lost connection
        ],
    )
    def test_waits_for_the_approval(self, pauses, answers, waited):
        pauses.seconds.clear()
        client = Script(success(CODE, 201), *answers, success(TOKEN)).client(max_retries=0)
        assert client.device.poll(client.device.start()).access_token == "a"
        assert pauses.seconds == waited

    @each(
        ("answer", "expected"),
        [
            (failure(403, "FORBIDDEN", {"status": "access_denied"}), AccessDenied),
            (failure(401, "UNAUTHORIZED", {"status": "expired"}), DeviceCodeExpired),
            (failure(409, "CONFLICT", {"status": "used"}), Conflict),
        ],
        ids=["denied", "expired", "used"],
    )
    def test_ends_when_the_person_or_the_service_refuses(self, pauses, answer, expected):
        client = Script(success(CODE, 201), PENDING, answer).client()
        with pytest.raises(expected):
            client.device.poll(client.device.start())

    def test_ends_at_its_timeout_or_when_the_code_expires(self, pauses):
        client = Script(success(CODE, 201), PENDING).client()
        with pytest.raises(WaitTimedOut):
            client.device.poll(client.device.start(), timeout=12)
        assert sum(pauses.seconds) == 10
        pauses.seconds.clear()
        client = Script(success(CODE, 201), PENDING).client()
        with pytest.raises(DeviceCodeExpired):
            client.device.poll(client.device.start())
        assert 55 <= sum(pauses.seconds) <= 65

    def test_hides_its_secrets(self, pauses):
        login = Script(success(CODE, 201)).client().device.start()
        assert login.code_verifier not in repr(login)
        assert "dc" not in repr(login)

    def test_uses_the_endpoints_of_the_metadata(self, pauses):
        content = examples(operations()["getAuthorizationServer"])[0][1]
        metadata = AuthorizationServerMetadata.model_validate(
            {
                **content,
                "device_authorization_endpoint": "https://login.assent.test/code",
                "token_endpoint": "https://login.assent.test/token",
                "revocation_endpoint": "https://login.assent.test/revoke",
            }
        )
        script = Script(success(CODE, 201), success(TOKEN), success(TOKEN), success({"revoked": True}))
        device = script.client().device
        login = device.start(metadata=metadata)
        device.poll(login, metadata=metadata)
        device.refresh("r", metadata=metadata)
        device.revoke("r", metadata=metadata)
        assert [it.url.path for it in script.requests] == ["/code", "/token", "/token", "/revoke"]
        assert {it.url.host for it in script.requests} == {"login.assent.test"}
        assert not any("Authorization" in it.headers for it in script.requests)
