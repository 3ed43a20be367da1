"""/v1/webhook-endpoints: admins create, read, change, and delete endpoints, and replay deliveries."""

import json

import pytest

from controlplane.platform.core import clock
from tests.support.each import each
from tests.support.endpoints import URL, documented_verify, endpoint
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


def test_the_secret_is_returned_once_and_signs_what_is_sent(send, create, line, company):
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
    (finding,) = json.loads(body)["data"]["findings"]
    assert finding["url"].startswith(f"https://dashboard.assent.test/organizations/{company.slug}/")


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
        ({"url": ""}, ["url"]),
        ({"events": []}, ["events"]),
        ({"events": ["webhook.disabled"]}, ["events", "0"]),
        ({"format": "xml"}, ["format"]),
        ({"name": " "}, ["name"]),
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
    page = send("GET", f"{path}/deliveries?limit=2")
    first = page.data[0]
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
    cursor = f"cursor={page.body['pagination']['nextCursor']}"
    rest = send("GET", f"{path}/deliveries?limit=2&{cursor}")
    ids = [it["eventId"] for it in (*page.data, *rest.data)]
    assert (len(ids), ids) == (3, sorted(ids, reverse=True))
    assert send("GET", f"/{create().data['id']}/deliveries?{cursor}").code == "INVALID_PAYLOAD"
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
