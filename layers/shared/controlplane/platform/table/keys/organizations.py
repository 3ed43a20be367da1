"""Keys of organizations: members, invitations, API keys, billing, and projects with their websites and vendors."""

from controlplane.platform.table.keys.key import Key
from controlplane.platform.table.keys.people import user_pk

MEMBER_PREFIX = "MEMBER#"
MEMBERSHIP_PREFIX = "ORG#"
INVITEE_PREFIX = "ORG#"
KEY_PREFIX = "KEY#"
PROJECT_PREFIX = "PROJECT#"
PROJECT_SLUG_PREFIX = "PSLUG#"
WEBHOOK_PREFIX = "WEBHOOK#"
WEBHOOK_DELIVERY_PREFIX = "WEBHOOKDELIVERY#"
INVITATION_PREFIX = "INVITATION#"
LEDGER_PREFIX = "LEDGER#"
LOG_PREFIX = "AUDITLOG#"
# The three kinds of ledger entries, each in order of creation. A local part from `new_local` starts with 0 until 3084.
LEDGER_PREFIXES = (f"{LEDGER_PREFIX}0", f"{LEDGER_PREFIX}SCAN#", f"{LEDGER_PREFIX}TOPUP#")


def organization_pk(organization_id: str) -> str:
    return f"ORG#{organization_id}"


def organization_of(pk: str) -> str:
    """Returns the id of the organization that the partition belongs to."""
    return pk.removeprefix("ORG#")


# {pk: ORG#org_2f…, sk: META, name: Acme, slug: acme, plan: pro, owners: 1, keys: 2, keyVersion: 7, projects: 3,
#  createdAt: 2026-…}
def organization(organization_id: str) -> Key:
    return Key(organization_pk(organization_id), "META")


# An item with `expiresAt` reserves the slug of a deleted organization until the item expires.
# {pk: SLUG#acme, sk: SLUG, organizationId: org_2f…}
def organization_slug(slug: str) -> Key:
    return Key(f"SLUG#{slug}", "SLUG")


# The roster side of a membership, with the profile fields that the roster shows.
# {pk: ORG#org_2f…, sk: MEMBER#usr_8k…, userId: usr_8k…, role: owner, joinedAt: 2026-…, name, email, image}
def member(organization_id: str, user_id: str) -> Key:
    return Key(organization_pk(organization_id), f"{MEMBER_PREFIX}{user_id}")


# The user side of the same membership. It authorizes user tokens.
# {pk: USER#usr_8k…, sk: ORG#org_2f…, organizationId: org_2f…, role: owner, slug: acme, name: Acme}
def membership(user_id: str, organization_id: str) -> Key:
    return Key(user_pk(user_id), f"{MEMBERSHIP_PREFIX}{organization_id}")


# {pk: ORG#org_2f…, sk: INVITATION#01j…, invitationId: inv_2f…, email, role, createdAt, expiresAt, invitedBy: {...},
#  resends: {total: 4, day: 2026-03-04, onDay: 1}, mail: sent}
def invitation(organization_id: str, local: str) -> Key:
    return Key(organization_pk(organization_id), f"{INVITATION_PREFIX}{local}")


# The lock that allows one pending invitation per organization and address. Keyed by address, for lookup at sign-in.
# {pk: INVITEE#ada@example.com, sk: ORG#org_2f…, invitationId: inv_2f…, expiresAt: 1790000000, inviterId}
def invitee(email: str, organization_id: str) -> Key:
    return Key(invitee_pk(email), f"{INVITEE_PREFIX}{organization_id}")


def invitee_pk(email: str) -> str:
    return f"INVITEE#{email}"


# The number of invitations an organization ever sent, and the number an address received. The latter expires after
# eight days without a new invitation. The former also counts how many were sent again on a day.
# {pk: ORG#org_2f…, sk: INVITATIONS, made: 17, resends: {total: 12, day: 2026-03-04, onDay: 3}}
def invitations_made(organization_id: str) -> Key:
    return Key(organization_pk(organization_id), "INVITATIONS")


# {pk: INVITEE#ada@example.com, sk: COUNT, made: 3, expiresAt: 1790000000}
def invitations_received(email: str) -> Key:
    return Key(invitee_pk(email), "COUNT")


# Authenticates an API key and counts its requests. The secret itself is not stored.
# {pk: KH#9f86d0…, sk: KEY, keyId: key_2f…, organizationId: org_2f…, slug: acme, name: Acme, plan: pro, rateLimit: 1500,
#  createdBy: usr_8k…, win: 29384756, hits: 17, usedHour: 489745, refusedFor: 29384756#org_2f…, requests20405: 8123,
#  refused20405: 12, …}
# Restrictions, if the key has any: {scopes: [inbox.read], projects: [01j…], allowedIps: [192.0.2.0/24],
#  validUntil: 1790000000}. A rolled key's, in the grace period: {validUntil, successor: key_2f…, expiresAt: 1790086400,
#  rolledWin: 29384750, rolledHits: 9}, what `win` and `hits` were when it was rolled
def key_secret(digest: str) -> Key:
    return Key(f"KH#{digest}", "KEY")


# The same key, as shown in lists.
# {pk: ORG#org_2f…, sk: KEY#01j…, keyId: key_2f…, name: deploy, start: assent_Ab3x, digest: 9f86d0…, rateLimit: 1500,
#  createdAt: 2026-…, createdBy: usr_8k…, createdFrom: api, lastUsedAt: 2026-…, description: For releases., revision: 2,
#  previous: {keyId: key_2f…, start: assent_Xk2p, digest: 5e884a…, until: 1790000000}}
# and the same restrictions as above
def api_key(organization_id: str, local: str) -> Key:
    return Key(organization_pk(organization_id), f"{KEY_PREFIX}{local}")


# A key that was revoked because its secret was found in public, for those who are told.
# {pk: ORG#org_2f…, sk: LEAKEDKEY#01j…, keyId: key_2f…, name: deploy, start: assent_Ab3x, revokedAt: 2026-…,
#  source: commit, url: https://github.com/acme/shop/blob/…, expiresAt: 1790000000}
def leaked_key(organization_id: str, local: str) -> Key:
    return Key(organization_pk(organization_id), f"LEAKEDKEY#{local}")


# {pk: ORG#org_2f…, sk: BILLING, credits: 120, topUp: {enabled: true, threshold: 50, amount: 100, monthlyLimit: 3,
#  month: 2026-03, used: 1}}
def billing(organization_id: str) -> Key:
    return Key(organization_pk(organization_id), "BILLING")


# One credit transaction. The balance is the sum of all entries. A scan has at most one.
# {pk: ORG#org_2f…, sk: LEDGER#SCAN#01j…, kind: unlock, credits: -50, scanId: scn_2f…, by: usr_8k…, at: 2026-…}
def ledger_of_scan(organization_id: str, scan_local: str) -> Key:
    return Key(organization_pk(organization_id), f"{LEDGER_PREFIX}SCAN#{scan_local}")


# The automatic top-up that the charge for a scan needed.
# {pk: ORG#org_2f…, sk: LEDGER#TOPUP#01j…, kind: top-up, credits: 100, scanId: scn_2f…, at: 2026-…}
def ledger_of_top_up(organization_id: str, scan_local: str) -> Key:
    return Key(organization_pk(organization_id), f"{LEDGER_PREFIX}TOPUP#{scan_local}")


# {pk: ORG#org_2f…, sk: LEDGER#01j…, kind: operator, credits: 500, at: 2026-…}
def ledger_entry(organization_id: str, local: str) -> Key:
    return Key(organization_pk(organization_id), f"{LEDGER_PREFIX}{local}")


# {pk: ORG#org_2f…, sk: PROJECT#01j…, projectId: prj_2f…, name, slug, description, region, createdAt, version,
#  websites: [{id, origin, kind, audits: [aud…], trusted: false if it isn't a consent entry}],
#  consent: {instanceId, slug, name, branding}, formerSlugs: [shop]}
def project(organization_id: str, local: str) -> Key:
    return Key(organization_pk(organization_id), f"{PROJECT_PREFIX}{local}")


# `former` marks a slug that the project had before a rename. Another project may claim it.
# {pk: ORG#org_2f…, sk: PSLUG#my-shop, projectId: prj_2f…, former: true}
def project_slug(organization_id: str, slug: str) -> Key:
    return Key(organization_pk(organization_id), f"{PROJECT_SLUG_PREFIX}{slug}")


# A website audit, its schedule, and one of its runs (runs outlive the audit).
# {pk: ORG#org_2f…, sk: AUDIT#01j…#<auditId>, projectId: prj_2f…, websiteId: web_…, createdAt: 2026-…}
def audit(organization_id: str, project_local: str, audit_id: str) -> Key:
    return Key(organization_pk(organization_id), f"AUDIT#{project_local}#{audit_id}")


# {pk: ORG#org_2f…, sk: AUDITSCHEDULE#01j…#<auditId>, everyDays: 7}
def audit_schedule(organization_id: str, project_local: str, audit_id: str) -> Key:
    return Key(organization_pk(organization_id), f"AUDITSCHEDULE#{project_local}#{audit_id}")


# {pk: ORG#org_2f…, sk: AUDITRUN#01j…#<auditId>#<run>, startedAt: 2026-…, result: passed}
def audit_run(organization_id: str, project_local: str, audit_id: str, run: str) -> Key:
    return Key(organization_pk(organization_id), f"AUDITRUN#{project_local}#{audit_id}#{run}")


# `name` to `revision` are set once the runtime has seen the vendor, `state` and later once a person has decided.
# {pk: ORG#org_2f…, sk: VENDOR#01j…#segment, vendorId: segment, projectId: prj_2f…, reviewState: accepted,
#  name: Segment, domain: segment.com, category: analytics, inboxItemId: inb_2f…, firstSeenAt: 2026-…,
#  lastSeenAt: 2026-…, beforeConsent: false, evidence: [{description: …, url: https://…, seenAt: 2026-…}], revision: 7,
#  state: approved, decidedBy: usr_8k…, decidedAt: 2026-…}
def vendor(organization_id: str, project_local: str, vendor_id: str) -> Key:
    return Key(organization_pk(organization_id), f"{vendor_prefix(project_local)}{vendor_id}")


def vendor_prefix(project_local: str) -> str:
    return f"VENDOR#{project_local}#"


# An endpoint that webhooks are sent to. The secrets are encrypted.
# {pk: ORG#org_2f…, sk: WEBHOOK#01j…, webhookId: whk_2f…, name: Slack, url: https://…, format: slack,
#  events: [finding.opened], status: enabled, secret: …, previousSecret: …, previousUntil: 1790000000,
#  pagesUrl: https://…, createdAt: 2026-…, createdBy: usr_8k…, failingSince: 1790000000, disabledReason: failing,
#  disabledAt: 2026-…, slot0: 1790000040, timeouts: 2, restsUntil: 1790000120}
def webhook(organization_id: str, local: str) -> Key:
    return Key(organization_pk(organization_id), f"{WEBHOOK_PREFIX}{local}")


# The body of an event, one item for all endpoints. It expires with the deliveries.
# {pk: ORG#org_2f…, sk: WEBHOOKEVENT#01j…, event: finding.opened, body: "{…}", expiresAt: 1790000000}
def webhook_event(organization_id: str, event_local: str) -> Key:
    return Key(organization_pk(organization_id), f"WEBHOOKEVENT#{event_local}")


# The delivery of an event to an endpoint. The sort keys of an endpoint's deliveries are in the order of the events.
# {pk: ORG#org_2f…, sk: WEBHOOKDELIVERY#01j…#01j…, webhookId: whk_2f…, eventId: evt_2f…, event: finding.opened,
#  createdAt: 2026-…, status: pending, attempts: 2, retries: 1, leaseUntil: 0, claim: 9b2e…, nextAttemptAt: 2026-…,
#  log: [{at: 2026-…, status: 500, error: status, milliseconds: 120}], expiresAt: 1790000000}
def webhook_delivery(organization_id: str, webhook_local: str, event_local: str) -> Key:
    return Key(organization_pk(organization_id), f"{webhook_delivery_prefix(webhook_local)}{event_local}")


def webhook_delivery_prefix(webhook_local: str) -> str:
    return f"{WEBHOOK_DELIVERY_PREFIX}{webhook_local}#"


# An entry of the audit log. Each organization has a partition for each month, named by the time of the entry.
# {pk: AUDITLOG#org_2f…#2026-03, sk: 01j…, entryId: log_2f…, at: 2026-…, action: project.update, resource: prj_2f…,
#  name: Shop, actorKind: person, actorId: usr_8k…, source: page, requestId: 7c1e…, before: {name: Store},
#  after: {name: Shop}, expiresAt: 1790000000}
def log_entry(organization_id: str, at: str, local: str) -> Key:
    return Key(log_pk(organization_id, at[:7]), local)


def log_pk(organization_id: str, month: str) -> str:
    return f"{LOG_PREFIX}{organization_id}#{month}"
