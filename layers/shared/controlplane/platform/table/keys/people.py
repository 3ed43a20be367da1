"""Keys of people: users, their identities, credentials, and devices."""

from controlplane.platform.table.keys.key import Key

PROFILE_SK = "PROFILE"
ISSUER_PREFIX = "ISSUER#"
CREDENTIAL_PREFIX = "SESSION#"


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
