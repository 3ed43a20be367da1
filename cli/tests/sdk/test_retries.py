"""A request is sent again if that is safe, after growing pauses that honor Retry-After, and with the same key."""

import asyncio
import random
import time

import httpx
import pytest

from cli.tests.support.script import (
    ADDRESS,
    CODE,
    ORGANIZATION,
    REGION,
    SECRET,
    TOKEN,
    Script,
    failure,
    page,
    run,
    success,
)
from openassent import AssentError, AsyncAssent, Conflict, ConnectionFailed, RateLimited, ServerError, TimedOut
from tests.support.each import each

# The request may have taken effect.
LOST = [
    httpx.ReadTimeout("slow"),
    httpx.ReadError("reset"),
    httpx.RemoteProtocolError("Server disconnected without sending a response."),
    failure(500),
    failure(503, "SERVICE_UNAVAILABLE"),
    httpx.Response(502, text="<html>Bad gateway</html>"),
    httpx.Response(504),
]
# The request was never sent, or refused before anything was done.
NOT_DONE = [
    httpx.ConnectError("refused"),
    httpx.ConnectTimeout("slow"),
    httpx.PoolTimeout("busy"),
    failure(429, "RATE_LIMITED"),
]
FINAL = [
    failure(400, "INVALID_PAYLOAD", []),
    failure(401, "UNAUTHORIZED"),
    failure(402, "PLAN_REQUIRED"),
    failure(403, "FORBIDDEN"),
    failure(404, "NOT_FOUND"),
    failure(409, "CONFLICT", {"suggestions": []}),
    failure(409, "SCAN_IN_PROGRESS", {"scanId": "scn_1"}, retry_after="2"),
    httpx.Response(301, headers={"Location": "https://elsewhere.test/"}),
]
UPDATED = success({"updated": True})


@each("answer", FINAL, ids=range(len(FINAL)))
def test_no_request_is_repeated_after_an_answer_that_wouldnt_change(pauses, answer):
    for send in (lambda client: client.me.get(), lambda client: client.organizations.create(name="Acme")):
        script = Script(answer)
        with pytest.raises(AssentError):
            send(script.client())
        assert (len(script.requests), pauses.seconds) == (1, [])


class TestARead:
    @each("answer", [*LOST, *NOT_DONE], ids=repr)
    def test_is_repeated(self, pauses, answer):
        pauses.seconds.clear()
        script = Script(answer, answer, page([REGION]))
        assert [it.id for it in script.client().regions.list()] == ["eu-central"]
        assert (len(script.requests), len(pauses.seconds)) == (3, 2)

    def test_fails_with_the_last_error_when_the_retries_are_used_up(self, pauses):
        for retries, expected in ((0, ServerError), (2, TimedOut)):
            pauses.seconds.clear()
            script = Script(failure(500), failure(503, "SERVICE_UNAVAILABLE"), httpx.ReadTimeout("slow"))
            with pytest.raises(expected) as caught:
                script.client(max_retries=retries).me.get()
            assert (len(script.requests), len(pauses.seconds)) == (retries + 1, retries)
        assert isinstance(caught.value, TimedOut)
        assert caught.value.outcome_unknown


class TestACreation:
    @each("answer", [*LOST, *NOT_DONE], ids=repr)
    def test_is_repeated_with_the_same_key(self, pauses, answer):
        script = Script(answer, answer, success(ORGANIZATION, 201))
        assert script.client().organizations.create(name="Acme").id == "org_1"
        keys = {it.headers["Idempotency-Key"] for it in script.requests}
        assert (len(script.requests), len(keys)) == (3, 1)
        assert {it.content for it in script.requests} == {b'{"name":"Acme"}'}

    def test_has_a_key_of_its_own(self, pauses):
        script = Script(success(ORGANIZATION, 201))
        client = script.client()
        client.organizations.create(name="Acme")
        client.organizations.create(name="Acme")
        client.organizations.create(name="Acme", idempotency_key="mine")
        first, second, third = (it.headers["Idempotency-Key"] for it in script.requests)
        assert len({first, second}) == 2
        assert third == "mine"

    def test_waits_while_the_first_attempt_is_still_running(self, pauses):
        running = failure(409, "CONFLICT", {"reason": "in_flight"}, retry_after="1")
        script = Script(httpx.ReadTimeout("slow"), running, running, success(ORGANIZATION, 201))
        assert script.client().organizations.create(name="Acme").id == "org_1"
        assert all(1 <= it <= 9 for it in pauses.seconds[1:])


class TestAnotherChange:
    def test_is_repeated_only_if_it_had_no_effect(self, pauses):
        for answer in LOST:
            script = Script(answer, UPDATED)
            with pytest.raises((ConnectionFailed, ServerError)):
                script.client().members.update("mem_1", role="admin")
            assert (len(script.requests), pauses.seconds) == (1, []), answer
        for answer in NOT_DONE:
            script = Script(answer, UPDATED)
            assert script.client().members.update("mem_1", role="admin").updated
            assert len(script.requests) == 2, answer

    def test_that_takes_effect_once_is_repeated(self, pauses):
        """A deletion, a revocation, an unlock, and the change of a finding, which has a version."""
        for answer, call in (
            (success({"deleted": True}), lambda client: client.members.delete("mem_1").deleted),
            (success({"revoked": True}), lambda client: client.device.revoke("assent_rt_1").revoked),
            (success({"status": "unlocked"}), lambda client: client.scans.unlock("scn_1").status == "unlocked"),
        ):
            assert call(Script(httpx.ReadTimeout("slow"), answer).client())
        script = Script(httpx.ReadTimeout("slow"), failure(409, "CONFLICT"))
        with pytest.raises(Conflict):
            script.client().inbox.update("inb_1", status="accepted", version="v1")
        assert len(script.requests) == 2


class TestThePauses:
    def test_are_a_random_part_of_a_backoff_that_doubles(self, pauses):
        longest = [0.0] * 7
        for seed in range(50):
            random.seed(seed)
            pauses.seconds.clear()
            with pytest.raises(ServerError):
                Script(failure(500)).client(max_retries=7).me.get()
            longest = [max(pair) for pair in zip(longest, pauses.seconds, strict=True)]
            assert min(pauses.seconds) >= 0
        for seconds, limit in zip(longest, [0.5, 1, 2, 4, 8, 8, 8], strict=True):
            assert limit * 0.8 < seconds <= limit

    @each("value", ["7", "Wed, 04 Mar 2026 05:06:14 GMT"])
    def test_begin_after_what_the_service_asks_for(self, pauses, monkeypatch, value):
        monkeypatch.setattr(time, "time", lambda: 1_772_600_767.0)  # 05:06:07 on that day
        Script(failure(429, "RATE_LIMITED", retry_after=value), page([REGION])).client().regions.list().page()
        assert 7 <= pauses.seconds[0] <= 7.5

    def test_don_t_exceed_a_minute_on_request(self, pauses):
        script = Script(failure(429, "RATE_LIMITED", retry_after="3600"))
        with pytest.raises(RateLimited) as caught:
            script.client().feedback.create(category="bug", message="Broken")
        assert (caught.value.retry_after, len(script.requests), pauses.seconds) == (3600.0, 1, [])

    @each("value", ["soon", "-5", "1e9", "²", ""])
    def test_an_invalid_retry_after_is_ignored(self, pauses, value):
        pauses.seconds.clear()
        answer = httpx.Response(429, headers={"Retry-After": value.encode()})
        Script(answer, page([REGION])).client().regions.list().page()
        assert pauses.seconds[0] <= 0.5


class TestARefresh:
    def test_is_repeated_until_the_old_token_could_revoke_all(self, pauses):
        """After a minute, the service takes a used token for a stolen one."""
        script = Script(httpx.ReadError("reset"), success(TOKEN))
        assert script.client().device.refresh("old").access_token == "a"

        def time_out(request: httpx.Request) -> httpx.Response:
            pauses.now += 30
            raise httpx.ReadTimeout("slow", request=request)

        script = Script(time_out)
        with pytest.raises(TimedOut):
            script.client().device.refresh("old")
        assert len(script.requests) == 1

    def test_redeems_a_code_once(self, pauses):
        script = Script(success(CODE, 201), httpx.ReadError("reset"))
        client = script.client()
        login = client.device.start()
        with pytest.raises(ConnectionFailed):
            client.device.redeem(login)
        assert len(script.requests) == 2


def test_the_asynchronous_client_repeats_a_request_reads_all_pages_and_is_closed(monkeypatch):
    """The synchronous client is made from its source, so the other tests are about both."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def scenario() -> None:
        monkeypatch.setattr(asyncio, "sleep", sleep)
        pages = page([REGION], "c1"), page([], "c2"), page([REGION])
        script = Script(failure(429, "RATE_LIMITED", retry_after="4"), *pages)
        async with AsyncAssent(base_url=ADDRESS, api_key=SECRET, transport=httpx.MockTransport(script)) as client:
            assert [it.id async for it in client.regions.list()] == ["eu-central"] * 2
        with pytest.raises(RuntimeError, match="closed"):
            await client.me.get()

    run(scenario())
    assert 4 <= slept[0] <= 4.5
