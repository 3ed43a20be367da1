"""Each event is written with what happened, as a message that contains nothing but ids."""

import pytest

from controlplane.api_keys import changes as key_changes
from controlplane.api_keys import store as api_keys
from controlplane.findings import inbox, intake, publications, vendors
from controlplane.organizations import invitees
from controlplane.organizations import store as organizations
from controlplane.platform.core.ids import InvitationId, KeyId, MemberId
from controlplane.platform.queues import messages
from controlplane.platform.queues.messages import Queue
from controlplane.projects.store import get_project
from ops import members
from sweeper.service import sweep
from tests.support.audits import make_issue, make_scan
from tests.support.populated_organization import detection
from tests.support.told import told
from tests.support.world import publish_finding


@pytest.fixture
def company(world):
    return world.company()


def test_findings_that_are_opened_together_share_a_message_for_each_25(world, company, sqs, now):
    discoveries = [world.discovery(company) for _ in range(30)]
    publications.publish_findings(discoveries)
    ids = [it.item_id for it in discoveries]
    parts = [("finding.opened", part) for part in (ids[:25], ids[25:])]
    assert sorted(told(company), key=lambda it: -len(it[1])) == parts
    publications.publish_findings(discoveries)
    publications.publish_findings([world.discovery(company, settled=True)])
    assert len(told(company)) == 2
    now.advance(1)
    assert sweep()["ResentMessages"] == 2
    assert (len(sqs.at(Queue.NOTIFICATIONS.url)), told(company)) == (2, [])


def test_a_worker_sends_its_message_itself(world, company, sqs):
    messages.dispatch(*publications.publish_findings([world.discovery(company)]))
    assert (len(sqs.at(Queue.NOTIFICATIONS.url)), told(company)) == (1, [])


def test_each_way_in_which_a_finding_is_opened_or_resolved_is_an_event(world, company, now):
    repository = world.connected_repository(company)
    found = world.discovery(company, repository)
    publish_finding(found)
    for status in ("accepted", "resolved", "open", "dismissed", "open"):
        now.advance(1)
        item = inbox.get_item(found.item_id)
        changed = inbox.change_status(item, status, item.version, company.owner.user_id, "why")
        assert changed == inbox.get_item(found.item_id)
    # A settled finding that is published late is no event.
    publish_finding(world.discovery(company, settled=True))
    expected = ["finding.opened", "finding.resolved", "finding.opened", "finding.opened"]
    assert told(company) == [(event, [found.item_id]) for event in expected]


def test_a_vendors_finding_is_opened_by_its_detection_and_resolved_by_the_decision(world, company, now):
    repository = world.connected_repository(company)
    project_id = repository.links[0].project_id
    intake.record_detection(detection(project_id))
    now.advance(1)
    item_id = vendors.decide_vendor(get_project(project_id), "segment", "approved", company.owner.user_id)
    assert told(company) == [("finding.opened", [item_id]), ("finding.resolved", [item_id])]


def test_a_new_key_is_an_event_also_if_it_replaces_one(company, now):
    key = api_keys.create_key(company.organization_id, "deploy", company.owner.user_id, "test").item.key_id
    now.advance(1)
    rolled = api_keys.roll_key(KeyId.stored(key), company.owner.user_id, "test", grace_seconds=0).item.key_id
    key_changes.delete_key(rolled)
    assert told(company) == [("key.created", [key]), ("key.created", [rolled])]


def test_a_member_who_accepts_or_is_added_has_joined(world, company, api, now):
    grace, alan = world.person("grace@example.com"), world.person("alan@example.com")
    body = {"email": "grace@example.com", "role": "member"}
    invited = api.post("/v1/invitations", company.owner.token, json_body=body).data["id"]
    invitees.accept_invitation(InvitationId.stored(invited), grace.user_id)
    now.advance(1)
    members.add_member(organizations.get_organization(company.organization_id), alan.user_id, "admin")
    joined = [MemberId.of_user(company.organization_id, it.user_id) for it in (grace, alan)]
    assert told(company) == [("member.joined", [member]) for member in joined]


def test_credits_are_low_once_a_charge_leaves_fewer_than_100(world, company, api):
    repository = world.connected_repository(company)
    make_scan(repository)
    world.credits(company, 200)
    seen = []
    for number in range(4):
        scan = make_scan(repository, issues=[make_issue(it) for it in range(5)], commit=f"{number}" * 40)
        assert api.post(f"/v1/code-audit/scans/{scan.scan_id}/unlock", company.owner.token).status == 200
        seen.append([it for it in told(company) if it[0] == "credits.low"])
    # 150 and 100 credits are left, then 50 and none.
    assert seen == [[], [], [("credits.low", [])], [("credits.low", [])]]
