"""POST /v1/projects/{projectId}/vendors/{vendorId}/decision: a person approves or ignores a vendor."""

from typing import Any

import pytest

from controlplane.core.ids import InboxItemId
from controlplane.store import inbox, projects
from controlplane.store.project_items import ProjectItem
from controlplane.store.table import table
from tests.functional.projects.builders import add_finding, make_project, stored, uncounted
from tests.support.api import Api, Reply
from tests.support.calls import before_the_transaction, intercepted
from tests.support.each import each
from tests.support.told import told
from tests.support.world import World


def decide(api: Api, token: str, project: ProjectItem, decision: Any = "approve", vendor_id: str = "segment") -> Reply:
    path = f"/v1/projects/{project.project_id}/vendors/{vendor_id}/decision"
    return api.post(path, token, json_body={"decision": decision})


class Test200:
    @pytest.mark.parametrize(
        ("decision", "state", "review_state"), [("approve", "approved", "accepted"), ("ignore", "ignored", "rejected")]
    )
    def test_a_vendor_can_be_decided_before_any_scan_finds_it(
        self, decision: str, state: str, review_state: str, api: Api, world: World
    ):
        company = world.company()
        project = make_project(company)
        reply = decide(api, company.owner.token, project, decision)
        assert reply.status == 200
        assert reply.data == {
            "inboxItemId": None,
            "projectId": project.project_id,
            "reviewState": review_state,
            "state": state,
            "vendorId": "segment",
        }
        (vendor,) = stored("VENDOR#")
        assert (vendor["state"]["S"], vendor["reviewState"]["S"]) == (state, review_state)
        assert vendor["decidedBy"] == {"S": company.owner.user_id}
        assert vendor["decidedAt"] == {"S": "2026-03-04T05:06:07.000Z"}

    @pytest.mark.parametrize("decision", ["approve", "ignore"])
    def test_a_decision_resolves_the_vendors_finding_under_a_new_version(self, decision: str, api: Api, world: World):
        company = world.company()
        project = make_project(company)
        finding = add_finding(project, "segment")
        assert decide(api, company.owner.token, project, decision).data["inboxItemId"] == finding
        (item,) = stored("INBOX#")
        assert item["status"] == {"S": "resolved"}
        assert item["version"]["S"] != "first"
        assert item["updatedAt"] == {"S": "2026-03-04T05:06:07.000Z"}
        assert item["title"] == {"S": "Segment loads before consent"}

    def test_a_decided_finding_moves_to_the_top_of_the_inbox(self, api: Api, world: World, now):
        company = world.company()
        project = make_project(company)
        finding = add_finding(project, "segment")
        world.finding(company)
        now.advance(1)
        decide(api, company.owner.token, project)
        token = company.owner.token
        assert api.get("/v1/inbox", token).data[0]["id"] == finding
        assert [item["id"] for item in api.get("/v1/inbox?status=resolved", token).data] == [finding]
        assert finding not in [item["id"] for item in api.get("/v1/inbox?status=open", token).data]

    def test_another_vendors_finding_stays_open(self, api: Api, world: World):
        company = world.company()
        project = make_project(company)
        add_finding(project, "segment")
        decide(api, company.owner.token, project, vendor_id="hotjar")
        assert [item["status"]["S"] for item in stored("INBOX#")] == ["open"]

    def test_a_decision_can_be_changed_and_repeated_but_resolves_the_finding_once(self, api: Api, world: World, now):
        company = world.company()
        project = make_project(company)
        finding = add_finding(project, "segment")
        resolved: list[Any] = []
        for decision, state in (("approve", "approved"), ("approve", "approved"), ("ignore", "ignored")):
            now.advance(1)
            decided = decide(api, company.owner.token, project, decision).data
            assert (decided["state"], decided["inboxItemId"]) == (state, finding)
            resolved += stored("INBOX#")
        assert [item["state"]["S"] for item in stored("VENDOR#")] == ["ignored"]
        assert resolved == [resolved[0]] * 3
        assert told(company) == [("finding.resolved", [finding])]

    def test_what_a_person_decided_before_stays_in_the_history(self, api: Api, world: World, now):
        company = world.company()
        project = make_project(company)
        finding, token = add_finding(project, "segment"), company.owner.token
        body = {"status": "dismissed", "version": "first", "reason": "Known."}
        assert api.patch(f"/v1/inbox/{finding}", token, json_body=body).status == 200
        now.advance(1)
        decide(api, token, project)
        item = inbox.get_item(InboxItemId.stored(finding))
        assert [(it.status, it.by, it.reason) for it in item.history[-2:]] == [
            ("dismissed", company.owner.user_id, "Known."),
            ("resolved", company.owner.user_id, None),
        ]

    def test_a_finding_added_during_the_decision_is_resolved_too(self, api: Api, world: World):
        company = world.company()
        project = make_project(company)
        made: list[str] = []

        def before_the_transaction(call, proceed):
            if call.operation == "TransactWriteItems" and not made:
                made.append(add_finding(project, "segment"))
            return proceed()

        with intercepted(table.client, before_the_transaction):
            reply = decide(api, company.owner.token, project)
        assert reply.data["inboxItemId"] == made[0]
        assert [item["status"]["S"] for item in stored("INBOX#")] == ["resolved"]

    def test_an_admin_may_decide(self, api: Api, world: World):
        company = world.company()
        assert decide(api, world.member(company, "admin").token, make_project(company)).status == 200

    @each("vendor_id", ["a", "google-analytics_4.v2", "0", "x" * 100])
    def test_valid_vendor_ids_are_accepted(self, vendor_id: str, api: Api, world: World):
        company = world.company()
        reply = decide(api, company.owner.token, make_project(company), vendor_id=vendor_id)
        assert reply.data["vendorId"] == vendor_id

    def test_a_decision_makes_four_calls_with_and_without_a_finding(self, api: Api, world: World):
        company = world.company()
        project = make_project(company)
        decide(api, company.owner.token, project)
        add_finding(project, "hotjar")
        for vendor_id in ("segment", "hotjar"):
            calls: list[str] = []

            def noting(call, proceed, calls=calls):
                calls.append(call.operation)
                return proceed()

            with intercepted(table.client, noting):
                decide(api, company.owner.token, project, vendor_id=vendor_id)
            assert len(calls) == 4


class Test400:
    @each("decision", ["approved", "APPROVE", "", None, True, 1, [], {}, ["approve"]])
    def test_returns_400_unless_the_decision_is_approve_or_ignore(self, decision: Any, api: Api, world: World):
        company = world.company()
        project = make_project(company)
        before = uncounted()
        reply = decide(api, company.owner.token, project, decision)
        assert reply.code == "INVALID_PAYLOAD"
        assert reply.error["details"][0]["path"] == ["decision"]
        assert uncounted() == before

    @each("vendor_id", ["Segment", "x" * 101, "a b", "a#b", "ségment", "a:b", "a\n", "%00"])
    def test_a_vendor_id_with_other_characters_is_rejected(self, vendor_id: str, api: Api, world: World):
        from urllib.parse import quote

        company = world.company()
        project = make_project(company)
        before = uncounted()
        reply = decide(api, company.owner.token, project, vendor_id=quote(vendor_id))
        assert reply.code == "INVALID_PAYLOAD"
        assert reply.error["details"][0]["path"] == ["vendorId"]
        assert uncounted() == before


class Test403:
    def test_an_api_key_lacks_the_scope_to_decide(self, api: Api, world: World):
        company = world.company()
        reply = decide(api, world.key(company), make_project(company))
        assert reply.code == "INSUFFICIENT_SCOPE"
        assert reply.error["details"] == {"requiredScope": "vendors.write"}

    def test_a_member_may_not_decide_and_nothing_is_written(self, api: Api, world: World):
        company = world.company()
        project = make_project(company)
        token = world.member(company).token
        before = uncounted()
        assert decide(api, token, project).code == "FORBIDDEN"
        assert uncounted() == before


class Test404:
    def test_a_project_deleted_during_the_decision_gets_no_vendor(self, api: Api, world: World):
        company = world.company()
        project = make_project(company)
        with before_the_transaction(table.client, lambda: projects.delete_project(project)):
            assert decide(api, company.owner.token, project).code == "NOT_FOUND"
        assert stored("VENDOR#") == []
