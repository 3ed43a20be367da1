"""/v1/webhook-endpoints: admins create, read, change, and delete endpoints, and deliveries are signed."""

import io
import json
import re
from typing import Any

import pytest

from controlplane.notify import webhooks
from controlplane.platform.core import clock, keyring
from controlplane.platform.core.settings import settings
from openassent import webhooks as sdk
from tests.support.each import each
from tests.support.endpoints import SECRET, URL, documented_verify, endpoint
from tests.support.guides import text_of
from tests.support.world import table_dump

PATH = "/v1/webhook-endpoints"
BODY = {"name": " Alerts ", "url": f" {URL} ", "events": ["scan.completed", "finding.opened", "finding.opened"]}


@pytest.fixture
def send(api, company):
    def call(method, path="", body=None, who=None, **headers):
        target = f"{PATH}{path}" if path else f"{PATH}?organizationId={company.organization_id}"
        return api.call(method, target, who or company.owner.token, json_body=body, headers=headers)

    return call


@pytest.fixture
def create(send):
    def call(headers=(), **changes):
        return send("POST", "", {**BODY, **changes}, **dict(headers))

    return call


def test_the_secret_is_returned_once_and_signs_what_is_sent(send, create, line):
    reply = create()
    assert (reply.status, reply.headers["cache-control"]) == (201, "no-store")
    made = reply.data
    secret = made.pop("secret")
    assert secret.startswith("whsec_")
    assert made == {
        "id": made["id"],
        "name": "Alerts",
        "url": URL,
        "events": ["finding.opened", "scan.completed"],
        "format": "standard",
        "status": "enabled",
        "disabledReason": None,
        "disabledAt": None,
        "failingSince": None,
        "createdAt": "2026-03-04T05:06:07.000Z",
    }
    assert (send("GET", f"/{made['id']}").data, send("GET").data) == (made, [made])
    assert secret[6:] not in str(table_dump())
    line.tell()
    ((_, body, headers),) = line.receiver.requests
    documented_verify()(secret, headers, body, clock.now())


def test_an_organization_has_at_most_ten(send, create):
    made = [create().data["id"] for _ in range(10)]
    refused = create()
    assert (refused.status, refused.error["details"]) == (409, {"limit": 10})
    assert send("DELETE", f"/{made[0]}").data == {"deleted": True}
    assert [create().status for _ in range(2)] == [201, 409]


@each(
    ("changes", "path"),
    [
        ({"url": "http://hooks.example.com"}, ["url"]),
        ({"url": "https://169.254.169.254/"}, ["url"]),
        ({"events": ["webhook.disabled"]}, ["events", "0"]),
        ({"secret": "mine"}, ["secret"]),
    ],
)
def test_unacceptable_values_return_400(changes, path, send, create):
    reply = create(**changes)
    assert (reply.status, reply.error["details"][0]["path"]) == (400, path)
    assert send("GET").data == []


def test_only_the_named_fields_change(send, create):
    shown = create().data
    del shown["secret"]
    path = f"/{shown['id']}"
    since = "2026-03-04T05:06:07.000Z"
    for body, changed in (
        ({"url": "https://other.example.com/", "format": "slack"}, {}),
        ({}, {}),
        # Values are normalized like those of a creation.
        ({"url": BODY["url"], "events": BODY["events"]}, {"url": URL, "events": ["finding.opened", "scan.completed"]}),
        ({"status": "disabled"}, {"disabledReason": "person", "disabledAt": since}),
        ({"status": "enabled"}, {"disabledReason": None, "disabledAt": None}),
    ):
        shown = {**shown, **body, **changed}
        assert send("PATCH", path, body).data == shown
    assert send("PATCH", path, {"url": "https://10.0.0.1/"}).status == 400


def test_deliveries_are_listed_and_replayed(send, create, line, now):
    path = f"/{create().data['id']}"
    line.receiver.answer = 500
    for _ in range(3):
        line.happen()
        now.advance(1)
    line.work()
    (first, *_) = listed = send("GET", f"{path}/deliveries").data
    latest = {"at": "2026-03-04T05:06:10.000Z", "responseStatus": 500, "error": "status"}
    assert first == {
        "eventId": first["eventId"],
        "event": "finding.opened",
        "status": "pending",
        "attempts": 1,
        "nextAttemptAt": "2026-03-04T05:07:10.000Z",
        "latest": [{**latest, "durationMs": first["latest"][0]["durationMs"]}],
        "createdAt": "2026-03-04T05:06:10.000Z",
    }
    read = send("GET", path).data
    assert (read["failingSince"], read["disabledAt"]) == ("2026-03-04T05:06:10.000Z", None)
    ids = [it["eventId"] for it in listed]
    assert (len(ids), ids) == (3, sorted(ids, reverse=True))
    line.receiver.answer = 200
    replay = f"{path}/deliveries/{ids[0]}/replay"
    replayed = send("POST", replay)
    assert (replayed.status, replayed.data["status"]) == (200, "pending")
    line.work()
    assert send("GET", f"{path}/deliveries").data[0]["status"] == "succeeded"
    for unknown in (f"evt_{'0' * 34}", "evt_x"):
        assert send("POST", f"{path}/deliveries/{unknown}/replay").status == 404
    send("PATCH", path, {"status": "disabled"})
    assert send("POST", replay).status == 409


def test_only_admins_read_and_change_endpoints(send, company, world):
    own = f"/{endpoint(company).webhook_id}"
    member, admin = world.member(company).token, world.member(company, "admin").token
    requests = [
        ("GET", ""),
        ("GET", own),
        ("GET", f"{own}/deliveries"),
        ("POST", f"{own}/rotate-secret"),
        ("POST", f"{own}/deliveries/evt_{'0' * 34}/replay"),
        ("DELETE", own),
    ]
    assert [send(*it, who=member).code for it in requests] == ["FORBIDDEN"] * 6
    assert [send(*it, who=admin).status for it in requests] == [200, 200, 200, 200, 404, 200]


SECOND = "another-signing-secret-of-enough-length"


@pytest.fixture
def verify():
    return documented_verify()


def test_the_documented_code_verifies_a_delivery_and_nothing_else(line, company, verify, now):
    webhook = endpoint(company)
    item_id = line.tell()
    ((url, body, headers),) = line.receiver.requests
    (delivery,) = line.deliveries(webhook)
    assert (url, verify(SECRET, headers, body, clock.now())) == (URL, delivery.event_id)
    assert sdk.verify(body, headers, SECRET, now=clock.now()).id == delivery.event_id
    for secret, wrong, seconds, reason in (
        (SECRET, body + b" ", 0, "signature"),
        (SECRET, body.replace(b"open", b"shut"), 0, "signature"),
        ("whsec_" + "Ab3y" * 9, body, 0, "signature"),
        (SECRET, body, 301, "old"),
    ):
        with pytest.raises(ValueError, match=reason):
            verify(secret, headers, wrong, clock.now() + seconds)
    event = json.loads(body)
    (finding,) = event["data"]["findings"]
    assert (event["type"], finding["id"]) == ("finding.opened", item_id)
    assert finding["url"].startswith(f"https://dashboard.assent.test/organizations/{company.slug}/")
    assert (delivery.status, delivery.attempts, delivery.next_attempt_at) == ("succeeded", 1, None)
    assert [(it.status, it.error) for it in delivery.log] == [(200, None)]
    assert delivery.expires_at == now.seconds + 30 * 86_400


def test_a_rotated_secret_signs_together_with_the_old_one_for_a_day(line, company, verify, now):
    new = "whsec_" + "Zz9x" * 9
    webhooks.rotate_secret(endpoint(company), new, company.owner.user_id, {})
    for elapsed, old_is_valid in ((0, True), (86_399, True), (1, False)):
        now.advance(elapsed)
        line.tell()
        _, body, headers = line.receiver.requests[-1]
        verify(new, headers, body, clock.now())
        assert sdk.verify(body, headers, new, now=clock.now())
        if old_is_valid:
            verify(SECRET, headers, body, clock.now())
        else:
            with pytest.raises(ValueError, match="signature"):
                verify(SECRET, headers, body, clock.now())


def test_secrets_survive_a_rotation_of_the_signing_secret(line, company, sign_with):
    webhook, first = endpoint(company), settings.signing_secret.current
    webhooks.rotate_secret(webhook, SECRET, company.owner.user_id, {})
    webhook = line.read(webhook)  # with two secrets
    for previous in (first, None):
        sign_with(SECOND, previous)
        line.tell()
    assert [it.status for it in line.deliveries(webhook)] == ["succeeded", "succeeded"]
    assert line.read(webhook).secret != webhook.secret


def test_both_secrets_are_sealed_with_the_current_signing_secret_unless_one_was_replaced(line, company, sign_with):
    outdated = endpoint(company)
    sign_with(SECOND, settings.signing_secret.current)
    webhooks.rotate_secret(outdated, SECRET, company.owner.user_id, {})
    webhook = line.read(outdated)
    webhooks.seal_again(outdated)
    assert line.read(outdated) == webhook
    webhooks.seal_again(webhook)
    sign_with(SECOND)
    texts = [keyring.unseal(webhook.webhook_id, it).text for it in line.read(webhook).sealed_secrets]
    assert texts == [SECRET, SECRET]


def test_a_secret_that_no_key_opens_fails_visibly_until_it_is_rotated(line, company, sign_with):
    webhook = endpoint(company)
    sign_with(SECOND)
    line.tell()
    assert (line.deliveries(webhook)[0].log[-1].error, line.receiver.requests) == ("secret", [])


def test_the_receiver_of_the_guide_accepts_signed_deliveries_only(line, company, monkeypatch, capsys):
    endpoint(company)
    line.tell()
    _, body, headers = line.receiver.requests[-1]
    code = "\n".join(re.findall(r"```(?:python|py receiver.py)\n(.*?)```", text_of("webhooks"), re.DOTALL))
    names: dict[str, Any] = {"__name__": "receiver"}
    exec(code, names)
    monkeypatch.setenv("WEBHOOK_SECRET", SECRET)
    monkeypatch.setattr("time.time", clock.now)
    for sent, status, printed in ((body, b"204", "finding.opened\n"), (body + b" ", b"400", "")):
        lines = [b"POST / HTTP/1.1", *(f"{name}: {value}".encode() for name, value in headers.items())]
        connection = Connection(b"\r\n".join([*lines, f"Content-Length: {len(sent)}".encode(), b"", sent]))
        capsys.readouterr()
        names["Receiver"](connection, ("127.0.0.1", 1), None)
        assert (connection.answer.split()[1], capsys.readouterr().out) == (status, printed)


class Connection:
    """A socket with one request."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self.answer = b""

    def makefile(self, *_: object) -> io.BytesIO:
        return io.BytesIO(self._request)

    def sendall(self, content: bytes) -> None:
        self.answer += content
