"""Keys of the single table. Keys are built only here, from ids whose format was validated.

Each builder has an example item above it.
"""

from typing import NamedTuple

from controlplane.store import shards
from controlplane.store.shards import shard_of


class Key(NamedTuple):
    pk: str
    sk: str


class Index(NamedTuple):
    """A secondary index from the template: its name and key attributes."""

    name: str
    pk: str
    sk: str


# Lists of scans, one index per filter. Items without the attribute are not in the index.
SCANS_BY_STATUS = Index("scansByStatus", "scansByStatus", "sk")
SCANS_BY_REPOSITORY = Index("scansByRepository", "scansByRepository", "sk")
SCANS_BY_REPOSITORY_AND_STATUS = Index("scansByRepositoryAndStatus", "scansByRepositoryAndStatus", "sk")

# Inbox items by time of the last change: all items of an organization, and those in one status.
INBOX = Index("inbox", "pk", "inboxOrder")
INBOX_BY_STATUS = Index("inboxByStatus", "inboxByStatus", "inboxOrder")


MEMBER_PREFIX = "MEMBER#"
MEMBERSHIP_PREFIX = "ORG#"
PROFILE_SK = "PROFILE"
ISSUER_PREFIX = "ISSUER#"
INVITEE_PREFIX = "ORG#"
KEY_PREFIX = "KEY#"
PROJECT_PREFIX = "PROJECT#"
INVITATION_PREFIX = "INVITATION#"
INBOX_PREFIX = "INBOX#"
REPOSITORY_PREFIX = "REPO#"
SCAN_PREFIX = "SCAN#"
SCAN_REQUEST_PREFIX = "SCANREQ#"
LEDGER_PREFIX = "LEDGER#"
CREDENTIAL_PREFIX = "SESSION#"
IDENTITY_PREFIX = "IDENTITY#"


def organization_pk(organization_id: str) -> str:
    return f"ORG#{organization_id}"


def user_pk(user_id: str) -> str:
    return f"USER#{user_id}"


# {pk: ORG#org_2f…, sk: META, name: Acme, slug: acme, plan: pro, owners: 1, keys: 2, keyVersion: 7, projects: 3,
#  createdAt: 2026-…}
def organization(organization_id: str) -> Key:
    return Key(organization_pk(organization_id), "META")


# An item with `expiresAt` reserves the slug of a deleted organization until the item expires.
# {pk: SLUG#acme, sk: SLUG, organizationId: org_2f…}
def organization_slug(slug: str) -> Key:
    return Key(f"SLUG#{slug}", "SLUG")


# {pk: ORG#org_2f…, sk: BILLING, credits: 120, topUp: {enabled: false, threshold: null, amount: null}}
def billing(organization_id: str) -> Key:
    return Key(organization_pk(organization_id), "BILLING")


# `ownerships` counts how many times the user became an owner. `identitiesRecorded`: each identity is also listed under
# the account (see account_issuer). `rostersPending`: rosters may still show the previous address.
# {pk: USER#usr_8k…, sk: PROFILE, userId: usr_8k…, email: ada@…, name: Ada, image: null, savedOrganizationId: org_2f…,
#  ownerships: 3, identitiesRecorded: true, rostersPending: true}
def user(user_id: str) -> Key:
    return Key(user_pk(user_id), PROFILE_SK)


# One credit transaction. The balance is the sum of all entries. A scan has at most one.
# {pk: ORG#org_2f…, sk: LEDGER#SCAN#01j…, credits: -50, scanId: scn_2f…, by: usr_8k…, at: 2026-…}
def ledger_of_scan(organization_id: str, scan_local: str) -> Key:
    return Key(organization_pk(organization_id), f"{LEDGER_PREFIX}SCAN#{scan_local}")


# {pk: ORG#org_2f…, sk: LEDGER#01j…, credits: 500, at: 2026-…}
def ledger_entry(organization_id: str, local: str) -> Key:
    return Key(organization_pk(organization_id), f"{LEDGER_PREFIX}{local}")


# {pk: EMAIL#ada@example.com, sk: USER, userId: usr_8k…}
def user_email(email: str) -> Key:
    return Key(f"EMAIL#{email}", "USER")


# The account that an issuer's subject signs in to.
# {pk: IDENTITY#3a7bd3…, sk: IDENTITY, userId: usr_8k…, issuer: https://…, subject: 8f1c…, createdAt: 2026-…}
def identity(digest: str) -> Key:
    return Key(f"IDENTITY#{digest}", "IDENTITY")


# An account's identities from one issuer. Only operators can add more now, so there is usually one. Older accounts can
# have several.
# {pk: USER#usr_8k…, sk: ISSUER#5d41…, issuer: https://…, identities: [3a7bd3…]}
def account_issuer(user_id: str, digest: str) -> Key:
    return Key(user_pk(user_id), f"{ISSUER_PREFIX}{digest}")


# An organization whose invitations the user has blocked.
# {pk: BLOCKS#usr_8k…, sk: org_2f…, organizationId: org_2f…, name: Acme, createdAt: 2026-…}
def block(user_id: str, organization_id: str) -> Key:
    return Key(blocks_pk(user_id), organization_id)


def blocks_pk(user_id: str) -> str:
    return f"BLOCKS#{user_id}"


# The roster side of a membership, with the profile fields that the roster shows.
# {pk: ORG#org_2f…, sk: MEMBER#usr_8k…, userId: usr_8k…, role: owner, joinedAt: 2026-…, name, email, image}
def member(organization_id: str, user_id: str) -> Key:
    return Key(organization_pk(organization_id), f"{MEMBER_PREFIX}{user_id}")


# The user side of the same membership. It authorizes user tokens.
# {pk: USER#usr_8k…, sk: ORG#org_2f…, organizationId: org_2f…, role: owner, slug: acme, name: Acme}
def membership(user_id: str, organization_id: str) -> Key:
    return Key(user_pk(user_id), f"{MEMBERSHIP_PREFIX}{organization_id}")


# Authenticates an API key and counts its requests. The secret itself is not stored.
# {pk: KH#9f86d0…, sk: KEY, keyId: key_2f…, organizationId: org_2f…, slug: acme, name: Acme, plan: pro, rateLimit: 1500,
#  createdBy: usr_8k…, win: 29384756, hits: 17, usedHour: 489745, refusedFor: 29384756#org_2f…}
def key_secret(digest: str) -> Key:
    return Key(f"KH#{digest}", "KEY")


# The same key, as shown in lists.
# {pk: ORG#org_2f…, sk: KEY#01j…, keyId: key_2f…, name: deploy, start: assent_Ab3x, digest: 9f86d0…, rateLimit: 1500,
#  createdAt: 2026-…, createdBy: usr_8k…, createdFrom: api, lastUsedAt: 2026-…}
def api_key(organization_id: str, local: str) -> Key:
    return Key(organization_pk(organization_id), f"{KEY_PREFIX}{local}")


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


# Progress of the backfill of that index. `completedAt` is set when the index is complete.
# {pk: CREDENTIALINDEX, sk: CREDENTIALINDEX, position: {pk: TH#60303a…, sk: TOKEN}, completedAt: 2026-…}
def credential_backfill() -> Key:
    return Key("CREDENTIALINDEX", "CREDENTIALINDEX")


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


# Unauthenticated requests from one address to one operation in one minute.
# {pk: IP#device.token#198.51.100.7, sk: 29543346, hits: 3, expiresAt: 1772600940}
def address_count(operation: str, address: str, window: int) -> Key:
    return Key(f"IP#{operation}#{address}", str(window))


# Requests in one minute that are reserved for a user or an organization, across all of its credentials.
# {pk: RATE#usr_8k…, sk: 29543346, hits: 36, expiresAt: 1772601700}
def owner_count(owner_id: str, minute: int) -> Key:
    return Key(f"RATE#{owner_id}", str(minute))


# A slot that a request holds while it waits for a worker. The number of slots is fixed.
# {pk: WAITSLOT#17, sk: WAITSLOT, holder: 4t…, expiresAt: 1772600777}
def waiting_slot(number: int) -> Key:
    return Key(f"WAITSLOT#{number}", "WAITSLOT")


# The number of invalid user codes that a person has tried.
# {pk: TRIES#usr_8k…, sk: 1969556, hits: 2, expiresAt: 1772601300}
def code_tries(user_id: str, window: int) -> Key:
    return Key(f"TRIES#{user_id}", str(window))


# {pk: ORG#org_2f…, sk: PROJECT#01j…, projectId: prj_2f…, name, slug, description, region, createdAt, version,
#  websites: [{id, origin, kind, audits: [aud…]}], consent: {instanceId, slug, name, branding}}
def project(organization_id: str, local: str) -> Key:
    return Key(organization_pk(organization_id), f"{PROJECT_PREFIX}{local}")


# {pk: ORG#org_2f…, sk: PSLUG#my-shop, projectId: prj_2f…}
def project_slug(organization_id: str, slug: str) -> Key:
    return Key(organization_pk(organization_id), f"PSLUG#{slug}")


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


# `name` to `lastSeenAt` are set once the runtime has seen the vendor, `state` and later once a person has decided.
# {pk: ORG#org_2f…, sk: VENDOR#01j…#segment, vendorId: segment, projectId: prj_2f…, reviewState: accepted,
#  name: Segment, domain: segment.com, category: analytics, inboxItemId: inb_2f…, firstSeenAt: 2026-…,
#  lastSeenAt: 2026-…, state: approved, decidedBy: usr_8k…, decidedAt: 2026-…}
def vendor(organization_id: str, project_local: str, vendor_id: str) -> Key:
    return Key(organization_pk(organization_id), f"{vendor_prefix(project_local)}{vendor_id}")


def vendor_prefix(project_local: str) -> str:
    return f"VENDOR#{project_local}#"


# The first three lines are projected into the list indexes, whose keys are in the last line.
# {pk: ORG#org_2f…, sk: INBOX#8c4…, itemId: inb_2f…, title: Segment loads before consent, summary: …, priority: P1,
#  status: open, source: runtime, projectId: prj_2f…, repositoryName: null, updatedAt: 2026-…, version: 9b1c…,
#  githubIssue: {number: 7, url: https://…, createdAt: 2026-…}, statusAt: 2026-…, statusReason: null, statusBy: usr_8k…,
#  observedAt: 2026-…, repositoryId: null, ruleId: null, description: …, remediation: …, references: […],
#  evidence: [{…}], runtimeVendor: {projectId: prj_2f…, vendorId: segment, name: Segment, domain: segment.com},
#  issueRefusal: {marker: 4f…, reason: issues-disabled, at: 2026-…},
#  inboxOrder: 2026-…#8c4…, inboxByStatus: ORG#org_2f…#open}
def inbox_item(organization_id: str, local: str) -> Key:
    return Key(organization_pk(organization_id), f"{INBOX_PREFIX}{local}")


def inbox_order(updated_at: str, local: str) -> str:
    return f"{updated_at}#{local}"


def inbox_status_pk(organization_id: str, status: str) -> str:
    return f"{organization_pk(organization_id)}#{status}"


ISSUE_ATTEMPTS_PK = "ISSUEATTEMPTS"


# A pending attempt to open an issue on the code host, until the issue exists or can't be created. All attempts share
# one partition because they are few and a sweep must find them.
# {pk: ISSUEATTEMPTS, sk: inb_2f…, marker: 4f…, state: sending, requestedBy: usr_8k…, requestedAt: 2026-…, claim: 9b1c…,
#  sentAt: 1790000000, dueAt: 1790000900}
def issue_attempt(item_id: str) -> Key:
    return Key(ISSUE_ATTEMPTS_PK, item_id)


# {pk: ORG#org_2f…, sk: INVITATION#01j…, invitationId: inv_2f…, email, role, createdAt, expiresAt, invitedBy: {...}}
def invitation(organization_id: str, local: str) -> Key:
    return Key(organization_pk(organization_id), f"{INVITATION_PREFIX}{local}")


# The lock that allows one pending invitation per organization and address. Keyed by address, for lookup at sign-in.
# {pk: INVITEE#ada@example.com, sk: ORG#org_2f…, invitationId: inv_2f…, expiresAt: 1790000000}
def invitee(email: str, organization_id: str) -> Key:
    return Key(invitee_pk(email), f"{INVITEE_PREFIX}{organization_id}")


def invitee_pk(email: str) -> str:
    return f"INVITEE#{email}"


# The number of invitations an organization ever sent, and the number an address received. The latter expires after
# eight days without a new invitation.
# {pk: ORG#org_2f…, sk: INVITATIONS, made: 17}
def invitations_made(organization_id: str) -> Key:
    return Key(organization_pk(organization_id), "INVITATIONS")


# {pk: INVITEE#ada@example.com, sk: COUNT, made: 3, expiresAt: 1790000000}
def invitations_received(email: str) -> Key:
    return Key(invitee_pk(email), "COUNT")


# The outcome of a request with an Idempotency-Key, kept for its retries.
# {pk: IDEMPOTENCY#4c1d9e…, sk: IDEMPOTENCY, status: COMPLETED, attempt: 9b2e…, leaseUntil: 1790000030, effective: true,
#  payload: 77ab…, data: "{…}", expiresAt: 1790086400}
def idempotent_answer(digest: str) -> Key:
    return Key(f"IDEMPOTENCY#{digest}", "IDEMPOTENCY")


# A repository on the code host. The three `active…` attributes name the scan that is requested or running, if any.
# {pk: ORG#org_2f…, sk: REPO#01j…, repositoryId: rep_2f…, installationId: 4711, owner: acme, name: shop, htmlUrl: https://…,
#  defaultBranch: main, visibility: private, connectedAt: 2026-…, links: [{projectId: prj_2f…, productionBranch: null,
#  rootDirectory: apps/web, pullRequestScansEnabled: false}], previewUsed: true, activeRequestId: spr_2f…,
#  activeScanId: scn_2f…, activeUntil: 1790014400}
def repository(organization_id: str, local: str) -> Key:
    return Key(organization_pk(organization_id), f"{REPOSITORY_PREFIX}{local}")


# Makes sure that a repository is connected to an organization only once.
# {pk: ORG#org_2f…, sk: REPONAME#acme/shop, repositoryId: rep_2f…}
def repository_name(organization_id: str, owner: str, name: str) -> Key:
    return Key(organization_pk(organization_id), f"REPONAME#{owner}/{name}".lower())


# A requested scan, until the scan is created or can't be.
# {pk: ORG#org_2f…, sk: SCANREQ#01j…, requestId: spr_2f…, repositoryId: rep_2f…, projectId: prj_2f…, status: starting,
#  requestedBy: usr_8k…, createdAt: 2026-…, attempts: 1, claim: 9b1c…, leaseUntil: 1790000030, scanId: null}
def scan_request(organization_id: str, local: str) -> Key:
    return Key(organization_pk(organization_id), f"{SCAN_REQUEST_PREFIX}{local}")


# {pk: ORG#org_2f…, sk: SCAN#01j…, scanId: scn_2f…, repositoryId: rep_2f…, requestId: spr_2f…, repositoryName: shop,
#  branch: main, headCommitSha: 1f0c…, scope: repository, trigger: manual, status: running, access: free-preview,
#  unlockCredits: 50, progress: {…}, createdAt: 2026-…, attempts: 1, claim: 9b1c…, leaseUntil: 1790000300,
#  scansByStatus: org_2f…#running, scansByRepository: rep_2f…, scansByRepositoryAndStatus: rep_2f…#running}
def scan(organization_id: str, local: str) -> Key:
    return Key(organization_pk(organization_id), f"{SCAN_PREFIX}{local}")


def scan_pk(scan_id: str) -> str:
    return f"SCAN#{scan_id}"


# One finding of a scan, ordered by urgency. Each attempt at the scan writes under its own number, and the scan names
# the attempt that counts.
# {pk: SCAN#scn_2f…, sk: FINDING#002#00001, fingerprint: 77ab…, ruleId: tracker-before-consent, priority: P1, path: …}
def finding(scan_id: str, attempt: int, rank: int) -> Key:
    return Key(scan_pk(scan_id), f"{finding_prefix(attempt)}{rank:05d}")


FINDING_PREFIX = "FINDING#"


def finding_prefix(attempt: int) -> str:
    return f"{FINDING_PREFIX}{attempt:03d}#"


# When a finding was first seen in a repository, by any scan.
# {pk: REPO#rep_2f…, sk: FP#77ab…, firstSeenAt: 2026-…}
def finding_history(repository_id: str, fingerprint: str) -> Key:
    return Key(finding_history_pk(repository_id), f"FP#{fingerprint}")


def finding_history_pk(repository_id: str) -> str:
    return f"REPO#{repository_id}"


def outbox_pk(shard: int) -> str:
    return f"OUTBOX#{shard}"


# Releases before the shard count last changed used the first four of these.
OUTBOX_PKS = tuple(outbox_pk(shard) for shard in range(shards.OUTBOX))


# A message to send. Written in the same transaction as the change it announces, and removed once sent.
# {pk: OUTBOX#3, sk: 2026-03-04T05:06:07.000Z#01j…, queue: scan-preparation, message: {kind: …, version: 1, …}}
def outbox_message(shard: int, at: str, local: str) -> Key:
    return Key(outbox_pk(shard), f"{at}#{local}")


# A feedback report. The sort key is derived from the caller and the content.
# {pk: FEEDBACK#2026-03-04#17, sk: 7k3m9q…, reference: FDB-20260304-7K3M9Q-…, callerId: usr_8k…, category: bug,
#  surface: api, message: …, createdAt: 2026-…, expiresAt: 1807160767}
def feedback_report(date: str, local: str) -> Key:
    return Key(f"FEEDBACK#{date}#{shard_of(local, shards.FEEDBACK)}", local)


# The same report, as written by releases before sharding.
def unsharded_feedback_report(date: str, local: str) -> Key:
    return Key(f"FEEDBACK#{date}", local)


def feedback_pks(date: str) -> tuple[str, ...]:
    return (*(f"FEEDBACK#{date}#{shard}" for shard in range(shards.FEEDBACK)), f"FEEDBACK#{date}")


# The texts of a long report. The report's item then has `detached`.
# {pk: FEEDBACKTEXT#2026-03-04#7k3m9q…, sk: TEXT, message: …, expected: …, expiresAt: 1807160767}
def feedback_text(date: str, local: str) -> Key:
    return Key(f"FEEDBACKTEXT#{date}#{local}", "TEXT")


# The same report by caller, so that a deletion can find it.
# {pk: FEEDBACKBY#usr_8k…, sk: FDB-20260304-7K3M9Q-…, expiresAt: 1807160767}
def feedback_by(caller_id: str, reference: str) -> Key:
    return Key(feedback_by_pk(caller_id), reference)


def feedback_by_pk(caller_id: str) -> str:
    return f"FEEDBACKBY#{caller_id}"


# The number of new reports accepted from a caller in an hour.
# {pk: FEEDBACKQUOTA#usr_8k…, sk: 2026-03-04T05, taken: 3, expiresAt: 1772690400}
def feedback_quota(caller_id: str, hour: str) -> Key:
    return Key(f"FEEDBACKQUOTA#{caller_id}", hour)


# The switch for feedback intake, in several copies that are written together. Without an item, intake is open.
# {pk: FEEDBACKINTAKE#3, sk: FEEDBACKINTAKE, paused: true, changedAt: 2026-…}
def feedback_intake(copy: int) -> Key:
    return Key(f"FEEDBACKINTAKE#{copy}", "FEEDBACKINTAKE")


# The single item that releases before the copies read and wrote.
def single_feedback_intake() -> Key:
    return Key("FEEDBACKINTAKE", "FEEDBACKINTAKE")


# A cleanup work item: a deleted project, organization, or repository that may still have leftover items, or a completed
# scan that supersedes earlier ones. `step` and `after` record the progress.
# {pk: DELETIONS#17, sk: prj_2f…, deletedAt: 2026-…, final: true, step: 2, after: INBOX#8c4…}
def deletion(subject_id: str) -> Key:
    return Key(f"DELETIONS#{shard_of(subject_id, shards.DELETIONS)}", subject_id)


# The last partition holds items from releases before sharding.
DELETIONS_PKS = (*(f"DELETIONS#{shard}" for shard in range(shards.DELETIONS)), "DELETIONS")


# Makes the sweep check on a request, then on its scan, from that time until either has ended.
# {pk: SCANWATCH#17, sk: 2026-03-04T05:16:07.000Z#spr_2f…, requestId: spr_2f…, repositoryId: rep_2f…}
def scan_watch(at: str, request_id: str) -> Key:
    return Key(f"SCANWATCH#{shard_of(request_id, shards.SCAN_WATCH)}", f"{at}#{request_id}")


# The last partition holds items from releases before sharding.
SCAN_WATCH_PKS = (*(f"SCANWATCH#{shard}" for shard in range(shards.SCAN_WATCH)), "SCANWATCH")


# The position at which a sweep step ran out of time and its next run continues.
# {pk: SWEEP#ResentMessages, sk: POSITION, partition: OUTBOX#17, after: 2026-03-04T05:06:07.000Z#01j…}
def sweep_position(step: str) -> Key:
    return Key(f"SWEEP#{step}", "POSITION")
