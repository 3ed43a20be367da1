"""/v1/webhook-endpoints: admins create, read, change, and delete endpoints, and replay deliveries."""

import json
from typing import Any

from controlplane.core import clock
from tests.functional.conftest import FakeClock
from tests.support.api import Api, Reply
from tests.support.endpoints import URL, Line, documented_verify, endpoint
from tests.support.world import Company, World, table_dump

PATH = "/v1/webhook-endpoints"
BODY = {"name": " Alerts ", "url": f" {URL} ", "events": ["scan.completed", "finding.opened", "finding.opened"]}


def create(api: Api, company: Company, headers: dict[str, str] | None = None, **changes: Any) -> Reply:
    return api.post(PATH, company.owner.token, json_body={**BODY, **changes}, headers=headers or {})


class TestCreate:
    def test_the_secret_is_returned_once_and_signs_the_deliveries(self, api: Api, line: Line, company: Company):
        reply = create(api, company)
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
        assert api.get(f"{PATH}/{made['id']}", company.owner.token).data == made
        assert api.get(PATH, company.owner.token).data == [made]
        assert secret[6:] not in str(table_dump())
        line.happen()
        line.work()
        ((_, body, headers),) = line.receiver.requests
        documented_verify()(secret, headers, body, clock.now())

    def test_what_is_sent_links_to_the_dashboard(self, api: Api, line: Line, company: Company):
        create(api, company)
        line.happen()
        line.work()
        ((_, body, _),) = line.receiver.requests
        (finding,) = json.loads(body)["data"]["findings"]
        assert finding["url"].startswith(f"https://dashboard.assent.test/organizations/{company.slug}/")

    def test_a_repeated_creation_returns_the_same_secret_and_creates_nothing(self, api: Api, company: Company):
        first, second = (create(api, company, {"Idempotency-Key": "f81d4fae"}) for _ in range(2))
        assert first.data == second.data
        assert len(api.get(PATH, company.owner.token).data) == 1

    def test_an_organization_has_at_most_ten(self, api: Api, company: Company):
        made = [create(api, company).data["id"] for _ in range(10)]
        refused = create(api, company)
        assert (refused.status, refused.error["details"]) == (409, {"limit": 10})
        assert api.delete(f"{PATH}/{made[0]}", company.owner.token).data == {"deleted": True}
        assert [create(api, company).status for _ in range(2)] == [201, 409]

    def test_unacceptable_values_are_refused(self, api: Api, company: Company):
        for changes, path in (
            ({"url": "http://hooks.example.com"}, ["url"]),
            ({"url": "https://169.254.169.254/"}, ["url"]),
            ({"url": ""}, ["url"]),
            ({"events": []}, ["events"]),
            ({"events": ["webhook.disabled"]}, ["events", "0"]),
            ({"format": "xml"}, ["format"]),
            ({"name": " "}, ["name"]),
            ({"secret": "mine"}, ["secret"]),
        ):
            reply = create(api, company, **changes)
            assert (reply.status, reply.error["details"][0]["path"]) == (400, path), changes
        assert api.get(PATH, company.owner.token).data == []


class TestChange:
    def test_only_the_named_fields_change(self, api: Api, company: Company):
        made = create(api, company).data
        path = f"{PATH}/{made['id']}"
        reply = api.patch(path, company.owner.token, json_body={"url": "https://other.example.com/", "format": "slack"})
        assert reply.data["url"] == "https://other.example.com/"
        assert (reply.data["format"], reply.data["name"], reply.data["events"]) == ("slack", "Alerts", made["events"])
        assert api.patch(path, company.owner.token, json_body={}).data == reply.data
        assert api.patch(path, company.owner.token, json_body={"url": "https://10.0.0.1/"}).status == 400
        disabled = api.patch(path, company.owner.token, json_body={"status": "disabled"}).data
        assert (disabled["status"], disabled["disabledReason"]) == ("disabled", "person")
        assert (disabled["disabledAt"], disabled["failingSince"]) == ("2026-03-04T05:06:07.000Z", None)
        enabled = api.patch(path, company.owner.token, json_body={"status": "enabled"}).data
        assert (enabled["status"], enabled["disabledReason"], enabled["disabledAt"]) == ("enabled", None, None)

    def test_values_are_normalized_like_those_of_a_creation(self, api: Api, company: Company):
        path = f"{PATH}/{create(api, company).data['id']}"
        changes = {name: BODY[name] for name in ("url", "events")}
        changed = api.patch(path, company.owner.token, json_body=changes).data
        assert (changed["url"], changed["events"]) == (URL, ["finding.opened", "scan.completed"])

    def test_a_rotation_returns_a_new_secret(self, api: Api, company: Company):
        made = create(api, company).data
        path = f"{PATH}/{made['id']}/rotate-secret"
        first, second = (api.post(path, company.owner.token, headers={"Idempotency-Key": "f81d4fae"}) for _ in range(2))
        assert first.data == second.data
        assert first.data["secret"] != made["secret"]

    def test_a_rotation_of_another_endpoint_is_no_repetition(self, api: Api, company: Company):
        first, second = (
            api.post(
                f"{PATH}/{create(api, company).data['id']}/rotate-secret",
                company.owner.token,
                headers={"Idempotency-Key": "f81d4fae"},
            )
            for _ in range(2)
        )
        assert (first.status, second.status, second.code) == (200, 400, "INVALID_PAYLOAD")


class TestDeliveries:
    def test_are_listed_and_replayed(self, api: Api, line: Line, company: Company, now: FakeClock):
        made = create(api, company).data
        path = f"{PATH}/{made['id']}/deliveries"
        line.receiver.answer = 500
        for _ in range(3):
            line.happen()
            now.advance(1)
        line.work()
        page = api.get(f"{path}?limit=2", company.owner.token)
        assert page.data[0] == {
            "eventId": page.data[0]["eventId"],
            "event": "finding.opened",
            "status": "pending",
            "attempts": 1,
            "nextAttemptAt": "2026-03-04T05:07:10.000Z",
            "latest": [
                {
                    "at": "2026-03-04T05:06:10.000Z",
                    "responseStatus": 500,
                    "error": "status",
                    "durationMs": page.data[0]["latest"][0]["durationMs"],
                }
            ],
            "createdAt": "2026-03-04T05:06:10.000Z",
        }
        read = api.get(f"{PATH}/{made['id']}", company.owner.token).data
        assert (read["failingSince"], read["disabledAt"]) == ("2026-03-04T05:06:10.000Z", None)
        rest = api.get(f"{path}?limit=2&cursor={page.body['pagination']['nextCursor']}", company.owner.token)
        ids = [it["eventId"] for it in (*page.data, *rest.data)]
        assert (len(ids), ids) == (3, sorted(ids, reverse=True))
        line.receiver.answer = 200
        replayed = api.post(f"{path}/{ids[0]}/replay", company.owner.token)
        assert (replayed.status, replayed.data["status"]) == (200, "pending")
        line.work()
        assert api.get(path, company.owner.token).data[0]["status"] == "succeeded"
        for unknown in (f"evt_{'0' * 34}", "evt_x"):
            assert api.post(f"{path}/{unknown}/replay", company.owner.token).status == 404
        api.patch(f"{PATH}/{made['id']}", company.owner.token, json_body={"status": "disabled"})
        assert api.post(f"{path}/{ids[0]}/replay", company.owner.token).status == 409

    def test_a_cursor_belongs_to_its_endpoint(self, api: Api, line: Line, company: Company):
        path, other = (f"{PATH}/{create(api, company).data['id']}/deliveries" for _ in range(2))
        for _ in range(2):
            line.happen()
        line.work()
        cursor = api.get(f"{path}?limit=1", company.owner.token).body["pagination"]["nextCursor"]
        assert api.get(f"{path}?cursor={cursor}", company.owner.token).status == 200
        assert api.get(f"{other}?cursor={cursor}", company.owner.token).code == "INVALID_PAYLOAD"


class TestAccess:
    def test_no_key_and_no_scope_of_the_organization_reads_endpoints(self, api: Api, company: Company, world: World):
        own = f"{PATH}/{endpoint(company).webhook_id}"
        narrow = world.token(company.owner.user_id, ["organizations.read", "organizations.write"])
        for token in (world.key(company), narrow):
            for path in (PATH, own, f"{own}/deliveries"):
                reply = api.get(path, token)
                assert (reply.status, reply.code) == (403, "INSUFFICIENT_SCOPE")
                assert reply.error["details"] == {"requiredScope": "webhooks.read"}
            assert api.post(PATH, token, json_body=BODY).error["details"] == {"requiredScope": "webhooks.write"}

    def test_members_keys_and_other_organizations_get_nothing(self, api: Api, company: Company, world: World):
        made = endpoint(company)
        member, admin, stranger = world.member(company), world.member(company, "admin"), world.company().owner
        own = f"{PATH}/{made.webhook_id}"
        for caller, listed, read in (
            (member.token, 403, 403),
            (admin.token, 200, 200),
            (stranger.token, 403, 404),
        ):
            organization = f"?organizationId={company.organization_id}"
            assert api.get(PATH + organization, caller).status == listed
            assert api.get(own, caller).status == read
            assert api.get(f"{own}/deliveries", caller).status == read
        key = world.key(company)
        assert api.post(PATH, key, json_body=BODY).status == 403
        for method, path in (
            (api.delete, own),
            (api.post, f"{own}/rotate-secret"),
            (api.post, f"{own}/deliveries/evt_{'0' * 34}/replay"),
        ):
            assert [method(path, caller).status for caller in (key, member.token, stranger.token)] == [403, 403, 404]
        assert api.get(own, admin.token).data["status"] == "enabled"
