"""PATCH /v1/inbox/{itemId}."""

from dataclasses import replace
from typing import Any

import pytest

from controlplane.store import inbox, publications
from controlplane.store.inbox_items import InboxItem
from controlplane.store.table import table
from tests.support.api import Api, Reply
from tests.support.calls import intercepted
from tests.support.each import each
from tests.support.world import Company, World, table_dump

STATUSES = ("open", "accepted", "dismissed", "resolved")


def patch(api: Api, token: str, item: InboxItem, **body: Any) -> Reply:
    return api.patch(f"/v1/inbox/{item.item_id}", token, json_body=body)


def brought_to(status: str, item: InboxItem, company: Company) -> InboxItem:
    return inbox.change_status(item, status, item.version, company.owner.user_id, None)


def stored() -> list[dict[str, Any]]:
    """Returns the items of the inbox."""
    return [item for item in table_dump() if item["sk"]["S"].startswith("INBOX#")]


class Test200:
    @pytest.mark.parametrize("after", STATUSES)
    @pytest.mark.parametrize("before", STATUSES)
    def test_any_status_can_follow_any_other(self, before: str, after: str, api: Api, world: World, now):
        company = world.company()
        item = brought_to(before, world.finding(company), company)
        now.advance(1)
        reply = patch(api, company.owner.token, item, status=after, version=item.version)
        assert reply.status == 200
        assert reply.data["status"] == after
        assert (reply.data["version"] == item.version) is (before == after)
        assert (reply.data["updatedAt"] == "2026-03-04T05:06:08.000Z") is (before != after)
        assert inbox.get_item(item.item_id).status == after

    def test_returns_the_updated_item(self, api: Api, world: World):
        company = world.company()
        item = world.finding(company, world.connected_repository(company))
        reply = patch(api, company.owner.token, item, status="accepted", version=item.version)
        shown = api.get("/v1/inbox", company.owner.token).data
        assert shown == [reply.data]

    def test_the_new_version_is_accepted_in_the_next_change(self, api: Api, world: World):
        company = world.company()
        item = world.finding(company)
        token = company.owner.token
        first = patch(api, token, item, status="accepted", version=item.version)
        second = patch(api, token, item, status="dismissed", version=first.data["version"])
        assert second.data["status"] == "dismissed"
        assert len({item.version, first.data["version"], second.data["version"]}) == 3

    def test_the_same_status_writes_nothing(self, api: Api, world: World):
        company = world.company()
        item = world.finding(company)
        before = stored()
        reply = patch(api, company.owner.token, item, status="open", version=item.version, reason="why not")
        assert reply.data["version"] == item.version
        assert stored() == before

    def test_a_repeated_request_returns_the_same_and_writes_nothing(self, api: Api, world: World):
        company = world.company()
        item = world.finding(company)
        body = {"status": "resolved", "version": item.version, "reason": "fixed"}
        first = patch(api, company.owner.token, item, **body)
        before = stored()
        second = patch(api, company.owner.token, item, **body)
        assert second.status == 200
        assert second.data == first.data
        assert stored() == before

    def test_the_reason_and_its_author_are_stored(self, api: Api, world: World):
        company = world.company()
        item, member = world.finding(company), world.member(company)
        patch(api, member.token, item, status="dismissed", version=item.version, reason="a test page")
        (kept,) = stored()
        assert kept["statusReason"] == {"S": "a test page"}
        assert kept["statusBy"] == {"S": member.user_id}

    def test_the_next_change_without_a_reason_removes_it(self, api: Api, world: World):
        company = world.company()
        item = world.finding(company)
        token = company.owner.token
        first = patch(api, token, item, status="dismissed", version=item.version, reason="a test page")
        patch(api, token, item, status="open", version=first.data["version"], reason=None)
        assert api.get(f"/v1/inbox/{item.item_id}", token).data["statusReason"] is None

    def test_other_fields_have_no_effect(self, api: Api, world: World):
        company = world.company()
        item = world.finding(company)
        body = {"title": "Mine", "priority": "P0", "projectId": "prj_x", "githubIssue": {"number": 1}, "id": "inb_x"}
        patch(api, company.owner.token, item, status="accepted", version=item.version, **body)
        changed = inbox.get_item(item.item_id)
        same = {name: getattr(changed, name) for name in ("version", "updated_at", "history")}
        assert changed == replace(item, status="accepted", **same)

    def test_evidence_survives_a_change(self, api: Api, world: World):
        company = world.company()
        item = world.finding(company, world.connected_repository(company))
        patch(api, company.owner.token, item, status="accepted", version=item.version)
        assert inbox.get_item(item.item_id).evidence == item.evidence

    def test_newer_evidence_doesnt_conflict_with_a_change(self, api: Api, world: World, now):
        company = world.company()
        repository = world.connected_repository(company)
        found = world.discovery(company, repository)
        item = publications.publish_finding(found)
        now.advance(60)
        publications.publish_finding(found._replace(observed_at="2026-03-04T05:07:00.000Z", evidence=()))
        assert patch(api, company.owner.token, item, status="accepted", version=item.version).status == 200

    def test_a_user_makes_three_table_calls(self, api: Api, world: World):
        company = world.company()
        item = world.finding(company)
        api.get("/v1/me", company.owner.token)  # starts the minute
        calls: list[str] = []

        def noting(call, proceed):
            calls.append(call.operation)
            return proceed()

        with intercepted(table.client, noting):
            patch(api, company.owner.token, item, status="accepted", version=item.version)
        assert calls == ["UpdateItem", "BatchGetItem", "TransactWriteItems"]


class Test400:
    @each("status", ["", "OPEN", "closed", None, 1, True, [], {}, ["open"], "open\u200b"])
    def test_returns_400_unless_the_status_is_one_of_four(self, status: Any, api: Api, world: World):
        company = world.company()
        item = world.finding(company)
        reply = patch(api, company.owner.token, item, status=status, version=item.version)
        assert reply.code == "INVALID_PAYLOAD"
        assert reply.error["details"][0]["path"] == ["status"]
        assert inbox.get_item(item.item_id) == item

    @each("version", ["", None, 1, True, [], {}, "x" * 201])
    def test_returns_400_unless_the_version_is_a_string(self, version: Any, api: Api, world: World):
        company = world.company()
        reply = patch(api, company.owner.token, world.finding(company), status="accepted", version=version)
        assert reply.code == "INVALID_PAYLOAD"
        assert reply.error["details"][0]["path"] == ["version"]

    @each("reason", [1, True, [], {}, "x" * 1_001])
    def test_returns_400_unless_the_reason_is_a_short_text(self, reason: Any, api: Api, world: World):
        company = world.company()
        item = world.finding(company)
        reply = patch(api, company.owner.token, item, status="accepted", version=item.version, reason=reason)
        assert reply.code == "INVALID_PAYLOAD"
        assert reply.error["details"][0]["path"] == ["reason"]

    @pytest.mark.parametrize("missing", ["status", "version"])
    def test_returns_400_without_status_or_version(self, missing: str, api: Api, world: World):
        company = world.company()
        item = world.finding(company)
        body = {"status": "accepted", "version": item.version}
        del body[missing]
        reply = patch(api, company.owner.token, item, **body)
        assert reply.error["details"][0]["path"] == [missing]


class Test403:
    def test_returns_403_for_a_key_without_the_scope(self, api: Api, world: World):
        company = world.company()
        item = world.finding(company)
        reply = patch(api, world.key(company), item, status="accepted", version=item.version)
        assert reply.code == "INSUFFICIENT_SCOPE"
        assert reply.error["details"] == {"requiredScope": "inbox.write"}


class Test404:
    def test_another_organizations_item_looks_like_an_unknown_one(self, api: Api, world: World):
        item = world.finding(world.company())
        reply = patch(api, world.company().owner.token, item, status="accepted", version=item.version)
        assert reply.code == "NOT_FOUND"
        assert inbox.get_item(item.item_id) == item


class Test409:
    def test_a_stale_version_returns_409_with_the_current_item(self, api: Api, world: World):
        company = world.company()
        item = world.finding(company)
        changed = brought_to("accepted", item, company)
        reply = patch(api, company.owner.token, item, status="dismissed", version=item.version)
        assert (reply.status, reply.code) == (409, "CONFLICT")
        assert reply.error["details"] == {"currentVersion": changed.version, "currentStatus": "accepted"}
        assert inbox.get_item(item.item_id) == changed

    def test_another_users_stale_version_returns_409_for_the_same_status_too(self, api: Api, world: World):
        company = world.company()
        item = world.finding(company)
        brought_to("accepted", item, company)
        reply = patch(api, world.member(company).token, item, status="accepted", version=item.version)
        assert reply.code == "CONFLICT"

    def test_returns_409_for_an_unknown_version(self, api: Api, world: World):
        company = world.company()
        item = world.finding(company)
        reply = patch(api, company.owner.token, item, status="open", version="nonsense")
        assert reply.error["details"] == {"currentVersion": item.version, "currentStatus": "open"}

    def test_an_old_version_is_never_valid_again(self, api: Api, world: World):
        company = world.company()
        item = world.finding(company)
        token = company.owner.token
        versions = [item.version]
        for status in ("accepted", "open", "accepted", "open"):
            versions.append(patch(api, token, item, status=status, version=versions[-1]).data["version"])
        assert len(set(versions)) == 5
        for stale in versions[:-1]:
            assert patch(api, token, item, status="dismissed", version=stale).status == 409

    def test_returns_409_if_the_item_changed_between_read_and_write(self, api: Api, world: World):
        company = world.company()
        item = world.finding(company)
        between: list[InboxItem] = []

        def change_before_the_write(call, proceed):
            if call.operation == "TransactWriteItems" and not between:
                between.append(item)
                between.append(brought_to("resolved", item, company))
            return proceed()

        with intercepted(table.client, change_before_the_write):
            reply = patch(api, company.owner.token, item, status="accepted", version=item.version)
        assert reply.error["details"] == {"currentVersion": between[1].version, "currentStatus": "resolved"}
