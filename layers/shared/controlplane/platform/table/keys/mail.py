"""Keys of emails: people's choices, stopped addresses, and sent emails."""

from controlplane.platform.table.keys.key import Key
from controlplane.platform.table.keys.organizations import organization_pk
from controlplane.platform.table.keys.people import user_pk

MAIL_CHOICE_PREFIX = "MAIL#"


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


# The number of invitation emails to an address on a day, and those of an organization.
# {pk: MAILTO#ada@example.com, sk: DAY#2026-03-04, invitations: 3, expiresAt: 1772773567}
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
