"""Hostile 1 MB bodies sent to the whole app: the time to reject them, and the size of the responses."""

import json
from collections.abc import Callable

import pytest

from tests.functional.conftest import FakeClock
from tests.support import hostile_bodies
from tests.support.api import FORM, Api, Reply
from tests.support.browser import Browser
from tests.support.growth import cpu_seconds
from tests.support.world import World

# Valid JSON that validation rejects.
WRONG = {
    "unknown fields": json.dumps({f"f{number}": number for number in range(9_999)}).encode().ljust(1_000_000),
    "a long unknown field": b'{"' + b"a" * 1_000_000 + b'":1}',
    "numbers for addresses": b'{"websites":[' + b"1," * 500_000 + b'1],"trustedOrigins":[' + b"1," * 20 + b"1]}",
    "addresses": b'{"name":"a","region":"eu-central","websites":[' + b'"a",' * 250_000 + b'"a"]}',
    "long addresses": json.dumps({"name": "a", "region": "eu-central", "websites": ["a" * 20_000] * 50}).encode(),
    "a long name": json.dumps({"name": "a\u0300" * 145_000, "region": "x", "category": "bug"}).encode(),
    "long values": json.dumps(dict.fromkeys(("clientId", "scope", "token", "codeVerifier"), "a" * 260_000)).encode(),
}
LARGEST_ANSWER = 64 * 1_024


def _requests(api: Api, world: World) -> dict[str, Callable[[bytes], Reply]]:
    company = world.company()
    # Lives longer than the test's clock advances.
    token = world.token(company.owner.user_id, lifetime_seconds=10**6)

    def post(path: str) -> Callable[[bytes], Reply]:
        return lambda body: api.post(path, token, raw_body=body)

    def anonymous(path: str, headers: dict[str, str] | None = None) -> Callable[[bytes], Reply]:
        return lambda body: api.post(path, raw_body=body, headers=headers)

    return {
        "organizations": post("/v1/organizations"),
        "projects": post(f"/v1/projects?organizationId={company.organization_id}"),
        "feedback": post("/v1/feedback"),
        "device code": anonymous("/v1/auth/device/code"),
        "device token": anonymous("/v1/auth/device/token"),
    }


@pytest.fixture
def timed(now: FakeClock) -> Callable[[Callable[[], Reply]], tuple[float, Reply]]:
    """Sends a request twice, each in its own minute. Returns the shorter time and the response."""

    def measure(send: Callable[[], Reply]) -> tuple[float, Reply]:
        replies: list[Reply] = []
        times = []
        for _ in range(2):
            now.advance(61)
            times.append(cpu_seconds(lambda: replies.append(send())))
        return min(times), replies[-1]

    return measure


def _valid(api: Api, world: World) -> Callable[[], Reply]:
    token = world.person().token
    body = b'{"name":"Acme",' + hostile_bodies.realistic()[1:]
    return lambda: api.post("/v1/organizations", token, raw_body=body)


def test_hostile_json_costs_at_most_five_valid_requests(api: Api, world: World, timed):
    requests = _requests(api, world)
    valid = min(timed(_valid(api, world))[0] for _ in range(3))
    dear = {}
    for bodies in (hostile_bodies.JSON, WRONG):
        for what, body in bodies.items():
            names = set(requests) - {"organizations"} if bodies is WRONG else ("organizations", "device token")
            for name in names:
                seconds, reply = timed(lambda name=name, body=body: requests[name](body))
                assert reply.status == 400, (what, name, reply.text[:200])
                assert len(reply.text) < LARGEST_ANSWER, (what, name)
                if seconds > 5 * valid:
                    dear[what, name] = seconds / valid
    assert dear == {}


def test_hostile_forms_cost_at_most_five_valid_requests(api: Api, world: World, timed):
    browser = Browser(api).signed_in(world.person().user_id)
    valid = min(timed(_valid(api, world))[0] for _ in range(3))
    dear = {}
    for what, body in hostile_bodies.FORMS.items():
        sends = {
            "device": lambda body=body: api.post(
                "/v1/auth/device/token", raw_body=body, headers={"Content-Type": FORM}
            ),
            "page": lambda body=body: api.post(
                "/device", raw_body=body, headers={"Content-Type": FORM, **browser._cookie_header()}
            ),
        }
        for name, send in sends.items():
            seconds, reply = timed(send)
            assert reply.status == 400, (what, name)
            assert len(reply.text) < LARGEST_ANSWER, (what, name)
            if seconds > 5 * valid:
                dear[what, name] = seconds / valid
    assert dear == {}


def test_the_response_counts_many_problems(api: Api, world: World):
    reply = api.post("/v1/feedback", world.person().token, raw_body=WRONG["unknown fields"])
    assert len(reply.error["details"]) == 101
    assert reply.error["details"][-1]["message"] == "9,901 more problems are not listed."


def test_a_content_length_of_many_digits_is_too_large(api: Api, world: World):
    headers = {"Content-Length": "9" * 5_000}
    reply = api.post("/v1/organizations", world.person().token, raw_body=b"{}", headers=headers)
    assert reply.code == "PAYLOAD_TOO_LARGE"
