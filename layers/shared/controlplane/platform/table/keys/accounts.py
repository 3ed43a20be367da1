"""Keys of accounts: people with their credentials and devices, and organizations with all that belongs to them."""

from controlplane.platform.table.keys.key import Key

PROFILE_SK = "PROFILE"
ISSUER_PREFIX = "ISSUER#"
CREDENTIAL_PREFIX = "SESSION#"
MEMBER_PREFIX = "MEMBER#"
MEMBERSHIP_PREFIX = "ORG#"
INVITEE_PREFIX = "ORG#"
KEY_PREFIX = "KEY#"
PROJECT_PREFIX = "PROJECT#"
PROJECT_SLUG_PREFIX = "PSLUG#"
AUDIT_PREFIX = "AUDIT#"
WEBHOOK_PREFIX = "WEBHOOK#"
WEBHOOK_DELIVERY_PREFIX = "WEBHOOKDELIVERY#"
INVITATION_PREFIX = "INVITATION#"
LEDGER_PREFIX = "LEDGER#"
LOG_PREFIX = "AUDITLOG#"
# The three kinds of ledger entries, each in order of creation. A local part from `new_local` starts with 0 until 3084.
LEDGER_PREFIXES = (f"{LEDGER_PREFIX}0", f"{LEDGER_PREFIX}SCAN#", f"{LEDGER_PREFIX}TOPUP#")


def user_pk(user_id: str) -> str:
    return f"USER#{user_id}"


# `ownerships` counts how many times the user became an owner. `rostersPending`: rosters may still show the previous
# address.
# {pk: USER#usr_8k…, sk: PROFILE, userId: usr_8k…, email: ada@…, name: Ada, image: null, savedOrganizationId: org_2f…,
#  ownerships: 3, rostersPending: true}
def user(user_id: str) -> Key:
    return Key(user_pk(user_id), PROFILE_SK)


# {pk: EMAIL#ada@example.com, sk: USER, userId: usr_8k…}
def user_email(email: str) -> Key:
    return Key(f"EMAIL#{email}", "USER")


# The account that an issuer's subject signs in to.
# {pk: IDENTITY#3a7bd3…, sk: IDENTITY, userId: usr_8k…, issuer: https://…, subject: 8f1c…, createdAt: 2026-…}
def identity(digest: str) -> Key:
    return Key(f"IDENTITY#{digest}", "IDENTITY")


# An account's identities from one issuer. Nothing adds a second one.
# {pk: USER#usr_8k…, sk: ISSUER#5d41…, issuer: https://…, identities: [3a7bd3…]}
def account_issuer(user_id: str, digest: str) -> Key:
    return Key(user_pk(user_id), f"{ISSUER_PREFIX}{digest}")


def blocks_pk(user_id: str) -> str:
    return f"BLOCKS#{user_id}"


# An organization whose invitations the user has blocked.
# {pk: BLOCKS#usr_8k…, sk: org_2f…, organizationId: org_2f…, name: Acme, createdAt: 2026-…}
def block(user_id: str, organization_id: str) -> Key:
    return Key(blocks_pk(user_id), organization_id)


# {pk: TH#60303a…, sk: TOKEN, userId: usr_8k…, kind: oauth, scopes: [...], rateLimit: 600, expiresAt: 1790000000,
#  win: 29384756, hits: 3, usedHour: 489745, listedAs: 01j…, exactWin: 29384755, exactFrom: 61, refusedFor: 29384755#…}
def user_token(digest: str) -> Key:
    return Key(f"TH#{digest}", "TOKEN")


def credentials_pk(user_id: str) -> str:
    return f"CREDENTIALS#{user_id}"


# The index of a user's credentials: one entry per web session, device, and operator-created token. It has its own
# partition because requests that name no organization query all of `USER#…`.
# {pk: CREDENTIALS#usr_8k…, sk: SESSION#01j…, userId: usr_8k…, kind: device, client: assent-cli, deviceName: laptop,
#  address: 198.51.100.7, scopes: [...], createdAt: 2026-…, lastUsedAt: 2026-…, expiresAt: 1790000000,
#  digest: null, familyId: 4t…, requestDigest: 2c26b4…}
def credential(user_id: str, local: str) -> Key:
    return Key(credentials_pk(user_id), f"{CREDENTIAL_PREFIX}{local}")


# A device authorization request, by device code.
# {pk: DC#2c26b4…, sk: DEVICE, clientId: assent-cli, challenge: E9Me…, scopes: [...], deviceName: laptop,
#  address: 198.51.100.7, status: approved, decision: 9b1c…, userId: usr_8k…, granted: [...], familyId: 4t…,
#  interval: 5, polledAt: 1772600770123, createdAt: 1772600767, validUntil: 1772601667, expiresAt: 1772688067,
#  listedAs: 01j…}
def device_request(digest: str) -> Key:
    return Key(f"DC#{digest}", "DEVICE")


# The same request by user code, of which only a keyed digest is stored.
# {pk: UC#77ab0c…, sk: DEVICE, digest: 2c26b4…, seenBy: [usr_8k…], validUntil: 1772601667, expiresAt: 1772688067}
def user_code(keyed_digest: str) -> Key:
    return Key(f"UC#{keyed_digest}", "DEVICE")


# The token family of one device approval: a chain of refresh tokens, and the access tokens that may still be valid.
# {pk: FAMILY#4t…, sk: FAMILY, userId: usr_8k…, clientId: assent-cli, scopes: [...], state: live, current: 60303a…,
#  previous: 9f86d0…, rotatedAt: 1772604367, access: [{digest: 5e88…, expiresAt: 1772607967}], accessScopes: [...],
#  endsAt: 1780376767, expiresAt: 1775196367, listedAs: 01j…}
def token_family(family_id: str) -> Key:
    return Key(f"FAMILY#{family_id}", "FAMILY")


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


# An audit of a website.
# {pk: ORG#org_2f…, sk: AUDIT#01j…#aud_01j…, auditId: aud_01j…, projectId: prj_2f…, websiteId: web_01j…,
#  url: https://example.com/, schedule: weekly, token: 4f…, consentUrl: https://…, createdAt: 2026-…,
#  proof: {method: dns, at: 2026-…}, latestRun: {runId: run_2f…, outcome: failed, at: 2026-…}, activeRunId: run_2f…,
#  findings: [loaded-before-consent:segment]}
def audit(organization_id: str, project_local: str, audit_id: str) -> Key:
    return Key(organization_pk(organization_id), f"{audit_prefix(project_local)}{audit_id}")


def audit_prefix(project_local: str) -> str:
    return f"{AUDIT_PREFIX}{project_local}#"


# The number of runs that people have started on a day for a website's audits.
# {pk: ORG#org_2f…, sk: AUDITSTARTS#shop.example.com#2026-03-04, started: 3, expiresAt: 1790000000}
def audit_starts(organization_id: str, host: str, day: str) -> Key:
    return Key(organization_pk(organization_id), f"AUDITSTARTS#{host}#{day}")


# A run of an audit, which outlives the audit.
# {pk: ORG#org_2f…, sk: AUDITRUN#01j…#aud_01j…#01j…, runId: run_2f…, auditId: aud_01j…, projectId: prj_2f…,
#  websiteId: web_01j…, url: https://example.com/, trigger: manual, status: completed, claim: 9b1c…, createdAt: 2026-…,
#  finishedAt: 2026-…, outcome: failed, reason: {code: …, message: …}, findings: [{id: …, kind: …, title: …,
#  priority: P1, vendorId: segment, itemId: inb_2f…}], changes: {newFindings: […]}, expiresAt: 1790000000}
def audit_run(organization_id: str, project_local: str, audit_id: str, run: str) -> Key:
    return Key(organization_pk(organization_id), f"{audit_run_prefix(project_local, audit_id)}{run}")


def audit_run_prefix(project_local: str = "", audit_id: str = "") -> str:
    """Returns the prefix of the audit's runs, or of all runs of the project, or of the organization."""
    return "".join(f"{part}#" for part in ("AUDITRUN", project_local, audit_id) if part)


# The report of a run.
# {pk: ORG#org_2f…, sk: AUDITREPORT#01j…#aud_01j…#01j…, runId: run_2f…, auditId: aud_01j…, projectId: prj_2f…,
#  vendors: [{vendorId: segment, …}], visits: H4sI…, picture: /9j/…, expiresAt: 1790000000}
def audit_report(organization_id: str, project_local: str, audit_id: str, run: str) -> Key:
    return Key(organization_pk(organization_id), f"AUDITREPORT#{project_local}#{audit_id}#{run}")


VENDOR_PREFIX = "VENDOR#"


# `domain` to `revision` are set once the runtime or an audit has seen the vendor, `inboxItemId` if the runtime has, and
# `code` once a scan has, with the name and the category if they are missing, and `state` and later once a person has
# decided.
# {pk: ORG#org_2f…, sk: VENDOR#01j…#segment, vendorId: segment, projectId: prj_2f…, reviewState: accepted,
#  name: Segment, category: analytics, inboxItemId: inb_2f…, domain: segment.com, firstSeenAt: 2026-…,
#  lastSeenAt: 2026-…, beforeConsent: false, evidence: [{description: …, url: https://…, seenAt: 2026-…}], revision: 7,
#  code: [{repositoryId: rep_2f…, repositoryName: shop, scanId: scn_2f…, scannedAt: 2026-…, treeUrl: https://…,
#          places: [{path: index.html, gated: false}, {path: package.json, package: "@segment/analytics-next"}]}],
#  state: approved, decidedBy: usr_8k…, decidedAt: 2026-…}
def vendor(organization_id: str, project_local: str, vendor_id: str) -> Key:
    return Key(organization_pk(organization_id), f"{vendor_prefix(project_local)}{vendor_id}")


def vendor_prefix(project_local: str) -> str:
    return f"{VENDOR_PREFIX}{project_local}#"


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
