"""Keys of limits, retries, messages, emails, background work, and feedback."""

from controlplane.platform.table import shards
from controlplane.platform.table.keys.accounts import organization_pk, user_pk
from controlplane.platform.table.keys.key import Key
from controlplane.platform.table.shards import partition_of, partitions, shard_of

MAIL_CHOICE_PREFIX = "MAIL#"


# Unauthenticated requests from one address to one operation in one minute.
# {pk: IP#device.token#198.51.100.7, sk: 29543346, hits: 3, expiresAt: 1772600940}
def address_count(operation: str, address: str, window: int) -> Key:
    return Key(f"IP#{operation}#{address}", str(window))


# Requests in one minute that are reserved for a user or an organization, across all of its credentials.
# {pk: RATE#usr_8k…, sk: 29543346, hits: 36, expiresAt: 1772601700}
def owner_count(owner_id: str, minute: int) -> Key:
    return Key(f"RATE#{owner_id}", str(minute))


# Refused requests of one minute, of an organization, or of a user's requests that named none. A caller has one of the
# minute's items.
# {pk: REFUSALS#org_2f…, sk: 29543346#3, count: 1, refusals: [{requestId: 7c1e…-01j…, at: 2026-…, status: 403,
#  code: INSUFFICIENT_SCOPE, rule: insufficient_scope, operation: GET /v1/members, keyId: key_2f…,
#  details: {requiredScope: members.read}, limits: {requestsPerMinute: 600, requests: 2}}], expiresAt: 1790000000}
def refusals(owner_id: str, minute: int, shard: int) -> Key:
    return Key(refusals_pk(owner_id), f"{refusals_of_minute(minute)}{shard}")


def refusals_pk(owner_id: str) -> str:
    return f"REFUSALS#{owner_id}"


def refusals_of_minute(minute: int) -> str:
    return f"{minute}#"


def minute_of_refusals(key: Key) -> str:
    return str(key.sk).partition("#")[0]


# A slot that a request holds while it waits for a worker, or a visitor's check of code. The number of slots is fixed.
# {pk: WAITSLOT#17, sk: WAITSLOT, holder: 4t…, expiresAt: 1772600777}
# {pk: WAITSLOT#check#1, sk: WAITSLOT, holder: 4t…, expiresAt: 1772600777}
def waiting_slot(name: str) -> Key:
    return Key(f"WAITSLOT#{name}", "WAITSLOT")


# Which slots for an organization's messages in a queue are taken, and when the last waiting one comes back, in
# milliseconds.
# {pk: WORKERS#org_2f…, sk: notifications, until0: 1790000030, holder0: 9b1c…, lineEndsAt: 1790000004250,
#  expiresAt: 1790086400}
def worker_slots(organization_id: str, queue: str) -> Key:
    return Key(f"WORKERS#{organization_id}", queue)


# The number of invalid user codes that a person has tried.
# {pk: TRIES#usr_8k…, sk: 1969556, hits: 2, expiresAt: 1772601300}
def code_tries(user_id: str, window: int) -> Key:
    return Key(f"TRIES#{user_id}", str(window))


# The outcome of a request with an Idempotency-Key, kept for its retries.
# {pk: IDEMPOTENCY#4c1d9e…, sk: IDEMPOTENCY, status: COMPLETED, attempt: 9b2e…, leaseUntil: 1790000030, effective: true,
#  payload: 77ab…, data: "{…}", expiresAt: 1790086400}
def idempotent_answer(digest: str) -> Key:
    return Key(f"IDEMPOTENCY#{digest}", "IDEMPOTENCY")


# A webhook of GitHub that was accepted.
# {pk: DELIVERY#72d3162e-cc78-11e3-81ab-4c9367dc0958, sk: DELIVERY, expiresAt: 1773205567}
def delivery(delivery_id: str) -> Key:
    return Key(f"DELIVERY#{delivery_id}", "DELIVERY")


# Until when the code host limits the requests of an installation.
# {pk: HOSTLIMIT#4711, sk: HOSTLIMIT, until: 1790000060, expiresAt: 1790000060}
def host_limit(installation_id: int) -> Key:
    return Key(f"HOSTLIMIT#{installation_id}", "HOSTLIMIT")


OUTBOX_PKS = partitions("OUTBOX")


# A message to send. Written in the same transaction as the change it announces, and removed once sent.
# {pk: OUTBOX#3, sk: 2026-03-04T05:06:07.000Z#01j…, queue: scan-preparation, message: {kind: …, version: 1, …}}
def outbox_message(shard: int, at: str, local: str) -> Key:
    return Key(f"OUTBOX#{shard}", f"{at}#{local}")


# A cleanup work item: a deleted project, organization, or repository that may still have leftover items, or a completed
# scan that supersedes earlier ones. `step` and `after` record the progress.
# {pk: DELETIONS#17, sk: prj_2f…, deletedAt: 2026-…, final: true, step: 2, after: INBOX#8c4…}
def deletion(subject_id: str) -> Key:
    return Key(partition_of("DELETIONS", subject_id), subject_id)


DELETIONS_PKS = partitions("DELETIONS")


# The next scheduled run of an audit. It has no effect if its time isn't in the audit's schedule anymore.
# {pk: AUDITSCHEDULE#17, sk: 2026-03-04T05:16:00.000Z#aud_01j…, auditId: aud_01j…, projectId: prj_2f…}
def scheduled_audit(at: str, audit_id: str) -> Key:
    return Key(partition_of("AUDITSCHEDULE", audit_id), f"{at}#{audit_id}")


AUDIT_SCHEDULE_PKS = partitions("AUDITSCHEDULE")


# Makes the sweep end a run that has no report by that time.
# {pk: AUDITWATCH#17, sk: 2026-03-04T05:16:07.000Z#run_2f…, runId: run_2f…, auditId: aud_01j…, projectId: prj_2f…}
def audit_watch(at: str, run_id: str) -> Key:
    return Key(partition_of("AUDITWATCH", run_id), f"{at}#{run_id}")


AUDIT_WATCH_PKS = partitions("AUDITWATCH")


# The position at which a sweep step ran out of time and its next run continues.
# {pk: SWEEP#ResentMessages, sk: POSITION, partition: OUTBOX#17, after: 2026-03-04T05:06:07.000Z#01j…}
def sweep_position(step: str) -> Key:
    return Key(f"SWEEP#{step}", "POSITION")


# The edition of the list of advisories with which all repositories are compared, and up to where they are due for it.
# {pk: SWEEP#MatchedRepositories, sk: EDITION, edition: 5f0c…, partitions: 17, after: rep_2f…#01j…}
ADVISORIES_EDITION = Key("SWEEP#MatchedRepositories", "EDITION")


# A feedback report. The sort key is derived from the caller and the content.
# {pk: FEEDBACK#2026-03-04#17, sk: 7k3m9q…, reference: FDB-20260304-7K3M9Q-…, callerId: usr_8k…, category: bug,
#  surface: api, message: …, createdAt: 2026-…, expiresAt: 1807160767}
def feedback_report(date: str, local: str) -> Key:
    return Key(f"FEEDBACK#{date}#{shard_of(local, shards.FEEDBACK)}", local)


def feedback_pks(date: str) -> tuple[str, ...]:
    return tuple(f"FEEDBACK#{date}#{shard}" for shard in range(shards.FEEDBACK))


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


# The kinds of emails that a person has turned off or on for an organization. A missing kind is on.
# {pk: USER#usr_8k…, sk: MAIL#org_2f…, finding: true, credits: true, webhook: true, digest: false}
def mail_choice(user_id: str, organization_id: str) -> Key:
    return Key(user_pk(user_id), f"{MAIL_CHOICE_PREFIX}{organization_id}")


def mail_address_pk(address: str) -> str:
    return f"MAILTO#{address}"


# An address that receives no emails.
# {pk: MAILTO#ada@example.com, sk: STOP, reason: returned, at: 2026-…}
def mail_stop(address: str) -> Key:
    return Key(mail_address_pk(address), "STOP")


# The number of emails of invitations, and about assignments and mentions, to an address on a day, and those of an
# organization.
# {pk: MAILTO#ada@example.com, sk: DAY#2026-03-04, invitations: 3, mentions: 2, expiresAt: 1772773567}
def mail_day_of_address(address: str, day: str) -> Key:
    return Key(mail_address_pk(address), f"DAY#{day}")


# {pk: ORG#org_2f…, sk: MAILDAY#2026-03-04, invitations: 12, expiresAt: 1772773567}
def mail_day(organization_id: str, day: str) -> Key:
    return Key(organization_pk(organization_id), f"MAILDAY#{day}")


def mails_pk(recipient_id: str) -> str:
    return f"MAILS#{recipient_id}"


# An email to a person, or to an invited address. SES reports its outcome under both ids.
# {pk: MAILS#usr_8k…, sk: 3q8…, address: ada@example.com, about: digest, organizationId: org_2f…, state: sending,
#  until: 1772600887, at: 2026-…, expiresAt: 1780376767}
def mail(recipient_id: str, local: str) -> Key:
    return Key(mails_pk(recipient_id), local)


# A sign-in of the person that was revoked because a token of it was found in public.
# {pk: MAILS#usr_8k…, sk: LEAK#01j…, client: assent-cli, source: commit, url: https://github.com/acme/shop/blob/…,
#  expiresAt: 1780376767}
def leaked_token(user_id: str, local: str) -> Key:
    return Key(mails_pk(user_id), f"LEAK#{local}")


# Findings of priority P0 that go into one email.
# {pk: ORG#org_2f…, sk: MAILBATCH#5908669, count: 1, items: [inb_2f…], expiresAt: 1773205567}
def mail_batch(organization_id: str, window: str) -> Key:
    return Key(organization_pk(organization_id), f"MAILBATCH#{window}")


# An event that is part of such an email, so that a repeated message doesn't add it again.
# {pk: ORG#org_2f…, sk: MAILEVENT#evt_2f…, expiresAt: 1773896767}
def mail_event(organization_id: str, event_id: str) -> Key:
    return Key(organization_pk(organization_id), f"MAILEVENT#{event_id}")


# The digest of the week that ends on this day is scheduled.
# {pk: ORG#org_2f…, sk: DIGEST#2026-03-09, expiresAt: 1773896767}
def digest(organization_id: str, day: str) -> Key:
    return Key(organization_pk(organization_id), f"DIGEST#{day}")
