"""The stored form of organizations, memberships, invitations, billing, blocks, and deletions doesn't change."""

from typing import Any

import pytest

from controlplane.feedback.store import ReportItem
from controlplane.organizations.invitees import BlockItem
from controlplane.organizations.items import (
    BillingItem,
    InvitationItem,
    InvitationLock,
    LedgerItem,
    OrganizationItem,
    TopUpItem,
)
from controlplane.organizations.store import MemberItem, Membership
from controlplane.platform.core.ids import InvitationId
from controlplane.platform.queues.deletion_items import DeletionItem

ORGANIZATION, USER = "org_3f8k2m9q7r1s5t6v", "usr_5w1n8q2k7m3r9t4v"
INVITATION = "inv_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v"
PK, AT = f"ORG#{ORGANIZATION}", "2026-03-04T05:06:07.000Z"

STORED_ORGANIZATION: dict[str, Any] = {
    "pk": PK,
    "sk": "META",
    "organizationId": ORGANIZATION,
    "name": "Acme",
    "slug": "acme",
    "plan": "pro",
    "owners": 1,
    "keys": 2,
    "keyVersion": 7,
    "projects": 3,
    "createdAt": AT,
}
STORED_BILLING: dict[str, Any] = {
    "pk": PK,
    "sk": "BILLING",
    "credits": 120,
    "topUp": {"enabled": True, "threshold": 20, "amount": 100},
}
STORED_MEMBER: dict[str, Any] = {
    "pk": PK,
    "sk": f"MEMBER#{USER}",
    "userId": USER,
    "name": "Ada",
    "email": "ada@example.com",
    "image": None,
    "role": "owner",
    "joinedAt": AT,
}
STORED_MEMBERSHIP: dict[str, Any] = {
    "pk": f"USER#{USER}",
    "sk": f"ORG#{ORGANIZATION}",
    "organizationId": ORGANIZATION,
    "slug": "acme",
    "name": "Acme",
    "role": "owner",
}
STORED_INVITATION: dict[str, Any] = {
    "pk": PK,
    "sk": "INVITATION#01jq2m4n5p6r7s8t9v",
    "invitationId": INVITATION,
    "email": "Grace@example.com",
    "role": "member",
    "createdAt": AT,
    "expiresAt": 1_773_205_567,
    "invitedBy": {"id": USER, "name": "Ada", "email": "ada@example.com"},
}
STORED_LOCK: dict[str, Any] = {
    "pk": "INVITEE#grace@example.com",
    "sk": f"ORG#{ORGANIZATION}",
    "invitationId": INVITATION,
    "expiresAt": 1_773_205_567,
    "inviterId": USER,
}
STORED_BLOCK: dict[str, Any] = {
    "pk": f"BLOCKS#{USER}",
    "sk": ORGANIZATION,
    "organizationId": ORGANIZATION,
    "name": "Acme",
    "createdAt": AT,
}


def test_stored_items_are_read_and_written_without_a_change():
    assert OrganizationItem.from_item(STORED_ORGANIZATION).to_item() == STORED_ORGANIZATION
    assert BillingItem.from_item(STORED_BILLING).to_item() == STORED_BILLING
    assert MemberItem.from_item(STORED_MEMBER).to_item() == STORED_MEMBER
    assert Membership.from_item(STORED_MEMBERSHIP).to_item(USER) == STORED_MEMBERSHIP
    assert InvitationItem.from_item(STORED_INVITATION).to_item() == STORED_INVITATION
    assert InvitationLock.from_item(STORED_LOCK).to_map().items() < STORED_LOCK.items()
    assert BlockItem.from_item(STORED_BLOCK).to_item(USER) == STORED_BLOCK


def test_nested_attributes_of_other_releases_are_ignored():
    invitation = {**STORED_INVITATION, "invitedBy": {**STORED_INVITATION["invitedBy"], "later": 1}}
    assert InvitationItem.from_item(invitation).to_item() == STORED_INVITATION
    billing = {**STORED_BILLING, "topUp": {**STORED_BILLING["topUp"], "later": 1}}
    assert BillingItem.from_item(billing).to_item() == STORED_BILLING


def test_both_items_of_an_invitation_and_of_a_membership_lead_to_each_other():
    invitation, member = InvitationItem.from_item(STORED_INVITATION), MemberItem.from_item(STORED_MEMBER)
    assert invitation.lock_key == (STORED_LOCK["pk"], STORED_LOCK["sk"])
    assert InvitationLock.from_item(STORED_LOCK).invitation_key == invitation.key
    assert member.membership_key == (STORED_MEMBERSHIP["pk"], STORED_MEMBERSHIP["sk"])
    assert member.member_id == "mem_3f8k2m9q7r1s5t6v5w1n8q2k7m3r9t4v"


def test_an_organization_starts_without_credits_and_without_automatic_purchases():
    assert BillingItem(organization_id=ORGANIZATION).to_item() == {
        **STORED_BILLING,
        "credits": 0,
        "topUp": {"enabled": False, "threshold": None, "amount": None},
    }


def test_a_top_up_is_stored_as_it_was_read():
    for stored in (
        {"enabled": False, "threshold": None, "amount": None},
        {"enabled": True, "threshold": 20, "amount": 100, "monthlyLimit": 3, "month": "2026-03", "used": 1},
    ):
        assert TopUpItem.from_item(stored).to_map() == stored


def test_a_ledger_entry_is_read_and_written_without_a_change():
    entry = {"pk": PK, "sk": "LEDGER#01jq2m4n5p6r7s8t9v", "credits": 500, "at": AT, "kind": "top-up", "scanId": "scn_1"}
    assert LedgerItem.from_item(entry).leg.item == entry


def test_a_deletion_that_has_not_started_has_no_position():
    deletion = DeletionItem.from_item({"pk": "DELETIONS#1", "sk": ORGANIZATION, "deletedAt": AT})
    assert (deletion.step, deletion.after, deletion.final) == (None, None, False)


def test_a_long_report_keeps_its_fields_in_an_item_of_their_own():
    fields = {"category": "bug", "message": "x" * 600}
    report = ReportItem(reference="FDB-1", caller_id=USER, created_at=AT, fields=fields)
    item = report.to_item()
    assert item == {"reference": "FDB-1", "callerId": USER, "detached": True, "createdAt": AT}
    assert ReportItem.from_items(item, {"pk": "x", "sk": "y", **fields}) == report
    assert ReportItem.from_items(item, None) is None


def test_a_malformed_id_in_an_invitation_is_an_error():
    with pytest.raises(LookupError):
        InvitationItem.from_item({**STORED_INVITATION, "invitationId": f"{INVITATION}x"})
    assert InvitationId.parse(f"{INVITATION}x") is None
