"""The stored form of accounts, organizations, projects, repositories, keys, and credentials doesn't change."""

import pytest

from controlplane.api_keys.items import ApiKeyItem, KeySecretItem
from controlplane.audits import items as audits
from controlplane.code_host.items import Link, RepositoryItem
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
from controlplane.people.credential_index import CredentialItem
from controlplane.people.device import DeviceRequestItem
from controlplane.people.identities import IdentityItem, Subject
from controlplane.people.token_families import TokenFamilyItem
from controlplane.people.tokens import UserTokenItem
from controlplane.people.users import UserItem
from controlplane.platform.core import clock, ids
from controlplane.platform.queues.deletion_items import DeletionItem
from controlplane.platform.table.idempotency import RecordItem
from controlplane.platform.table.keys import Key
from controlplane.platform.table.stored import read_map
from controlplane.projects.items import ProjectItem
from tests.support.each import each

OWN, LOCAL = "3f8k2m9q7r1s5t6v", "01kb2m3n4p5q6r7s8t"
AT = "2026-03-04T05:06:07.000Z"
ORGANIZATION, USER_ID = f"org_{OWN}", "usr_5w1n8q2k7m3r9t4v"
PK = f"ORG#{ORGANIZATION}"
INVITATION_ID = f"inv_{OWN}{LOCAL}"

PROJECT = {
    "pk": PK,
    "sk": f"PROJECT#{LOCAL}",
    "projectId": f"prj_{OWN}{LOCAL}",
    "name": "Shop",
    "slug": "shop",
    "description": None,
    "region": "eu-central",
    "createdAt": AT,
    "version": "9b1c04d2a7e35f68",
    "websites": [{"websiteId": "web_01", "origin": "example.com", "kind": "domain", "audits": ["aud_01"]}],
    "consent": {"instanceId": f"ins_{OWN}{LOCAL}", "slug": "shop", "name": "Shop", "branding": "none"},
}
KEY = {
    "pk": PK,
    "sk": f"KEY#{LOCAL}",
    "keyId": f"key_{OWN}{LOCAL}",
    "name": "deploy",
    "start": "assent_Ab3x",
    "digest": "9f86d0",
    "rateLimit": 1500,
    "createdAt": AT,
    "createdBy": USER_ID,
    "createdFrom": "api",
    "lastUsedAt": None,
}
SECRET = {
    "pk": "KH#9f86d0",
    "sk": "KEY",
    "keyId": KEY["keyId"],
    "organizationId": ORGANIZATION,
    "slug": "acme",
    "name": "Acme",
    "plan": "pro",
    "createdBy": USER_ID,
    "rateLimit": 1500,
    "win": 29384756,
    "hits": 17,
    "usedHour": 489745,
}
LIMITS = {
    "scopes": ["inbox.read"],
    "projects": [LOCAL],
    "allowedIps": ["192.0.2.0/24"],
    "validUntil": 1_790_000_000,
}
PREVIOUS = {"keyId": KEY["keyId"], "start": "assent_Xk2p", "digest": "5e884a", "until": 1_790_000_000}
AUDIT = {
    "pk": PK,
    "sk": f"AUDIT#{LOCAL}#aud_01",
    "auditId": "aud_01",
    "projectId": PROJECT["projectId"],
    "websiteId": "web_01",
    "url": "https://example.com/",
    "schedule": None,
    "token": "4f",
    "createdAt": AT,
}
RUN_ID = f"run_{OWN}{LOCAL}"
LATEST = {"runId": RUN_ID, "outcome": "failed", "at": AT}
PROOF = {"proof": {"method": "dns", "at": AT}, "consentUrl": "https://c.example"}
RUN = {
    "pk": PK,
    "sk": f"AUDITRUN#{LOCAL}#aud_01#{LOCAL}",
    "runId": RUN_ID,
    "auditId": "aud_01",
    "projectId": PROJECT["projectId"],
    "websiteId": "web_01",
    "url": "https://example.com/",
    "trigger": "manual",
    "status": "pending",
    "claim": "9b1c",
    "createdAt": AT,
    **clock.expiry(400, ids.created_at(LOCAL)),
}
FOUND = {"id": "k:s", "kind": "k", "title": "T", "priority": "P1", "vendorId": "s", "itemId": f"inb_{OWN}{LOCAL}"}
RESULT = {"outcome": "failed", "findings": [FOUND], "changes": {"newFindings": ["k:s"]}, "finishedAt": AT}
VENDOR = {"vendorId": "s", "name": "S", "domain": "s.com", "category": None, "needsConsent": True, "aliasOf": None}
VENDOR |= {"before": True, "refused": False, "accepted": True, "pages": ["https://example.com/"]}
REPORT = {
    **{name: RUN[name] for name in ("pk", "runId", "auditId", "projectId", "expiresAt")},
    "sk": f"AUDITREPORT#{LOCAL}#aud_01#{LOCAL}",
    "vendors": [VENDOR],
    "visits": "H4sI",
}
ORG = {
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
BILLING = {
    "pk": PK,
    "sk": "BILLING",
    "credits": 120,
    "topUp": {"enabled": True, "threshold": 20, "amount": 100},
}
MEMBER = {
    "pk": PK,
    "sk": f"MEMBER#{USER_ID}",
    "userId": USER_ID,
    "name": "Ada",
    "email": "ada@example.com",
    "image": None,
    "role": "owner",
    "joinedAt": AT,
}
MEMBERSHIP = {
    "pk": f"USER#{USER_ID}",
    "sk": f"ORG#{ORGANIZATION}",
    "organizationId": ORGANIZATION,
    "slug": "acme",
    "name": "Acme",
    "role": "owner",
}
INVITATION = {
    "pk": PK,
    "sk": f"INVITATION#{LOCAL}",
    "invitationId": INVITATION_ID,
    "email": "Grace@example.com",
    "role": "member",
    "createdAt": AT,
    "expiresAt": 1_773_205_567,
    "invitedBy": {"id": USER_ID, "name": "Ada", "email": "ada@example.com"},
}
LOCK = {
    "pk": "INVITEE#grace@example.com",
    "sk": f"ORG#{ORGANIZATION}",
    "invitationId": INVITATION_ID,
    "expiresAt": 1_773_205_567,
    "inviterId": USER_ID,
}
BLOCK = {
    "pk": f"BLOCKS#{USER_ID}",
    "sk": ORGANIZATION,
    "organizationId": ORGANIZATION,
    "name": "Acme",
    "createdAt": AT,
}
USER = {"pk": "USER#usr_8k", "sk": "PROFILE", "userId": "usr_8k", "email": "ada@example.com", "name": "Ada"}
TOKEN = {
    "pk": "TH#60303a",
    "sk": "TOKEN",
    "userId": "usr_8k",
    "kind": "oauth",
    "scopes": ["projects.read"],
    "rateLimit": 600,
    "expiresAt": 1790000000,
    "win": 29384756,
    "hits": 3,
    "usedHour": 489745,
    "listedAs": "01j",
}
FAMILY = {
    "pk": "FAMILY#4t",
    "sk": "FAMILY",
    "userId": "usr_8k",
    "clientId": "assent-cli",
    "scopes": ["projects.read"],
    "state": "live",
    "current": "60303a",
    "previous": None,
    "rotatedAt": 1772604367,
    "access": [{"digest": "5e88", "expiresAt": 1772607967}],
    "accessScopes": ["projects.read"],
    "createdAt": "2026-03-04T05:06:07.000Z",
    "endsAt": 1780376767,
    "expiresAt": 1775196367,
    "listedAs": "01j",
}
REQUEST = {
    "pk": "DC#2c26b4",
    "sk": "DEVICE",
    "clientId": "assent-cli",
    "challenge": "E9Me",
    "scopes": ["projects.read"],
    "address": "198.51.100.7",
    "status": "pending",
    "interval": 5,
    "polledAt": 0,
    "createdAt": 1772600767,
    "validUntil": 1772601667,
    "expiresAt": 1772688067,
    "listedAs": "01j",
}
ENTRY = {
    "pk": "CREDENTIALS#usr_8k",
    "sk": "SESSION#01j",
    "userId": "usr_8k",
    "kind": "device",
    "client": "assent-cli",
    "scopes": ["billing.read", "projects.read"],
    "deviceName": "laptop",
    "address": "198.51.100.7",
    "createdAt": "2026-03-04T05:06:07.000Z",
    "lastUsedAt": "2026-03-04T05:06:07.000Z",
    "expiresAt": 1790000000,
    "digest": None,
    "familyId": "4t",
    "requestDigest": "2c26b4",
}
RECORD = {
    "pk": "IDEMPOTENCY#4c1d9e",
    "sk": "IDEMPOTENCY",
    "status": "INPROGRESS",
    "attempt": "9b2e",
    "payload": "77ab",
    "leaseUntil": 1790000030,
    "expiresAt": 1790086400,
}
LINK = {
    "projectId": f"prj_{OWN}{LOCAL}",
    "productionBranch": "release",
    "rootDirectory": None,
    "pullRequestScansEnabled": True,
}
REPOSITORY = {
    "pk": f"ORG#org_{OWN}",
    "sk": f"REPO#{LOCAL}",
    "repositoryId": f"rep_{OWN}{LOCAL}",
    "installationId": 4711,
    "owner": "acme",
    "name": "shop",
    "htmlUrl": "https://github.com/acme/shop",
    "defaultBranch": "main",
    "visibility": "private",
    "connectedAt": AT,
    "links": [LINK],
    "previewUsed": True,
}
PROFILE = {**USER, "image": None, "savedOrganizationId": None, "createdAt": AT}
IDENTITY = {"userId": "usr_8k", "issuer": "https://a.test", "subject": "8f", "createdAt": AT}
SETTINGS = {"scanOnPush": True, "schedule": "weekly", "failureThreshold": "P3"}
STORED = [
    (ProjectItem, PROJECT),
    (ProjectItem, {**PROJECT, "websites": [], "consent": None}),
    (ProjectItem, {**PROJECT, "websites": [{**PROJECT["websites"][0], "trusted": False}]}),
    (ProjectItem, {**PROJECT, "formerSlugs": ["shop", "store"]}),
    (ApiKeyItem, KEY),
    (ApiKeyItem, {**KEY, **LIMITS, "description": "For releases.", "revision": 2}),
    (ApiKeyItem, {**KEY, "previous": PREVIOUS}),
    (KeySecretItem, SECRET),
    (KeySecretItem, {**SECRET, "refusedFor": "29384756#org_2f"}),
    (KeySecretItem, {**SECRET, **LIMITS, "successor": KEY["keyId"]}),
    (audits.AuditItem, AUDIT),
    (
        audits.AuditItem,
        {**AUDIT, **PROOF, "schedule": "daily", "latestRun": LATEST, "activeRunId": RUN_ID, "findings": ["k:s"]},
    ),
    (audits.RunItem, RUN),
    (audits.RunItem, {**RUN, **RESULT}),
    (audits.RunItem, {**RUN, "status": "failed", "reason": {"code": "lost", "message": "It ended."}}),
    (audits.ReportItem, REPORT),
    (audits.ReportItem, {**REPORT, "picture": "/9j/"}),
    (OrganizationItem, ORG),
    (BillingItem, BILLING),
    (MemberItem, MEMBER),
    (InvitationItem, INVITATION),
    (UserItem, PROFILE),
    (UserItem, {**PROFILE, "ownerships": 3, "rostersPending": True}),
    (IdentityItem, {**Subject("https://a.test", "8f").key._asdict(), **IDENTITY}),
    (UserTokenItem, TOKEN),
    (UserTokenItem, {**TOKEN, "familyId": "4t", "clientId": "assent-cli"}),
    (UserTokenItem, {**TOKEN, "exactWin": 29384755, "exactFrom": 61, "refusedFor": "29384755#usr_8k"}),
    (TokenFamilyItem, FAMILY),
    (TokenFamilyItem, {**FAMILY, "previous": "9f86d0"}),
    (DeviceRequestItem, REQUEST),
    (DeviceRequestItem, {**REQUEST, "userId": "usr_8k", "granted": [], "decision": "9b1c"}),
    (CredentialItem, ENTRY),
    (RecordItem, RECORD),
    (RecordItem, {**RECORD, "status": "COMPLETED", "effective": True, "data": "{}"}),
    (RepositoryItem, REPOSITORY),
    (RepositoryItem, {**REPOSITORY, "links": [{**LINK, **SETTINGS}]}),
]


@each(("kind", "stored"), STORED)
def test_a_stored_item_is_written_back_unchanged_and_attributes_of_other_releases_are_left_out(kind, stored):
    assert kind.from_item(stored).to_item() == stored
    assert kind.from_item({**stored, "later": 1}).to_item() == stored


def test_items_of_a_membership_an_invitation_and_a_block_lead_to_each_other():
    assert Membership.from_item(MEMBERSHIP).to_item(USER_ID) == MEMBERSHIP
    assert BlockItem.from_item(BLOCK).to_item(USER_ID) == BLOCK
    assert InvitationLock.from_item(LOCK).to_map().items() < LOCK.items()
    invitation, member = InvitationItem.from_item(INVITATION), MemberItem.from_item(MEMBER)
    assert invitation.lock_key == (LOCK["pk"], LOCK["sk"])
    assert InvitationLock.from_item(LOCK).invitation_key == invitation.key
    assert member.membership_key == (MEMBERSHIP["pk"], MEMBERSHIP["sk"])
    assert member.member_id == f"mem_{OWN}{USER_ID[4:]}"
    assert RecordItem.from_item(RECORD).key == Key("IDEMPOTENCY#4c1d9e", "IDEMPOTENCY")


def test_nested_attributes_of_other_releases_are_ignored():
    invitation = {**INVITATION, "invitedBy": {**INVITATION["invitedBy"], "later": 1}}
    assert InvitationItem.from_item(invitation).to_item() == INVITATION
    billing = {**BILLING, "topUp": {**BILLING["topUp"], "later": 1}}
    assert BillingItem.from_item(billing).to_item() == BILLING


def test_a_malformed_id_is_an_error():
    with pytest.raises(LookupError):
        ProjectItem.from_item({**PROJECT, "projectId": "prj_x"})
    with pytest.raises(LookupError):
        InvitationItem.from_item({**INVITATION, "invitationId": f"{INVITATION_ID}x"})


def test_items_have_defaults():
    project, link = ProjectItem.from_item(PROJECT), read_map(Link, LINK)
    assert (project.key, project.trusted_origins) == ((PROJECT["pk"], PROJECT["sk"]), ["example.com"])
    assert (link.scan_on_push, link.schedule, link.failure_threshold) == (False, None, "P1")
    assert link.next_scheduled_scan(RepositoryItem.from_item(REPOSITORY).repository_id) is None
    deletion = DeletionItem.from_item({"pk": "DELETIONS#1", "sk": ORGANIZATION, "deletedAt": AT})
    assert (deletion.step, deletion.after, deletion.final) == (None, None, False)


def test_billing_and_the_ledger_are_stored_as_they_were_read():
    off = {"enabled": False, "threshold": None, "amount": None}
    assert BillingItem(organization_id=ORGANIZATION).to_item() == {**BILLING, "credits": 0, "topUp": off}
    used = {"enabled": True, "threshold": 20, "amount": 100, "monthlyLimit": 3, "month": "2026-03", "used": 1}
    for stored in (off, used):
        assert TopUpItem.from_item(stored).to_map() == stored
    entry = {"pk": PK, "sk": "LEDGER#01jq2m4n5p6r7s8t9v", "credits": 500, "at": AT, "kind": "top-up", "scanId": "scn_1"}
    assert LedgerItem.from_item(entry).leg.item == entry


def test_a_long_report_keeps_its_fields_in_an_item_of_their_own():
    fields = {"category": "bug", "message": "x" * 600}
    report = ReportItem(reference="FDB-1", caller_id=USER_ID, created_at=AT, fields=fields)
    item = report.to_item()
    assert item == {"reference": "FDB-1", "callerId": USER_ID, "detached": True, "createdAt": AT}
    assert ReportItem.from_items(item, {"pk": "x", "sk": "y", **fields}) == report
    assert ReportItem.from_items(item, None) is None
