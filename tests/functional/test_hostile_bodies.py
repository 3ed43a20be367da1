"""Hostile 1 MB bodies sent to the whole app: the time to reject them, and the size of the responses."""

import json
import time
from collections.abc import Callable

from tests.functional.conftest import FakeClock
from tests.support.api import Reply

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
# As long as those above, and like what clients send.
REALISTIC = json.dumps({"name": "Acme", "more": [{"id": f"{it:034d}", "ratio": it / 7} for it in range(14_000)]})
LARGEST_ANSWER = 64 * 1_024


def _cheapest(now: FakeClock, send: Callable[[], Reply]) -> tuple[float, Reply]:
    """Sends a request three times, each in its own minute. Returns the shortest CPU time and the response."""
    times = []
    for _ in range(3):
        now.advance(61)
        started = time.thread_time()
        reply = send()
        times.append(time.thread_time() - started)
    return min(times), reply


def test_wrong_json_costs_at_most_five_valid_requests(api, world, now):
    company = world.company()
    # Lives longer than the test's clock advances.
    token = world.token(company.owner.user_id, lifetime_seconds=10**6)
    valid, _ = _cheapest(now, lambda: api.post("/v1/organizations", token, raw_body=REALISTIC.encode()))
    for what, body in WRONG.items():
        for path, caller in (
            (f"/v1/projects?organizationId={company.organization_id}", token),
            ("/v1/feedback", token),
            ("/v1/auth/device/code", None),
            ("/v1/auth/device/token", None),
        ):
            seconds, reply = _cheapest(
                now, lambda path=path, caller=caller, body=body: api.post(path, caller, raw_body=body)
            )
            assert (reply.status, len(reply.text) < LARGEST_ANSWER) == (400, True), (what, path, reply.text[:200])
            assert seconds < 5 * valid, (what, path)


def test_a_content_length_of_many_digits_is_too_large(api, world):
    headers = {"Content-Length": "9" * 5_000}
    reply = api.post("/v1/organizations", world.person().token, raw_body=b"{}", headers=headers)
    assert reply.code == "PAYLOAD_TOO_LARGE"
