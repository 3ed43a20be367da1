"""The typed items of users and their credentials are read and written without a change."""

from typing import Any

from controlplane.people.credential_index import CredentialItem
from controlplane.people.device import DeviceRequestItem
from controlplane.people.identities import IdentityItem, Subject
from controlplane.people.token_families import TokenFamilyItem
from controlplane.people.tokens import UserTokenItem
from controlplane.people.users import UserItem
from controlplane.platform.table.idempotency import RecordItem
from controlplane.platform.table.keys import Key

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


def test_a_stored_item_is_read_and_written_without_a_change():
    profile = {**USER, "image": None, "savedOrganizationId": None, "createdAt": "2026-03-04T05:06:07.000Z"}
    identity = {"userId": "usr_8k", "issuer": "https://a.test", "subject": "8f", "createdAt": profile["createdAt"]}
    stored: list[tuple[Any, dict[str, Any]]] = [
        (UserItem, profile),
        (UserItem, {**profile, "ownerships": 3, "rostersPending": True}),
        (IdentityItem, {**Subject("https://a.test", "8f").key._asdict(), **identity}),
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
    ]
    for kind, item in stored:
        assert kind.from_item(item).to_item() == item


def test_attributes_of_other_releases_are_ignored():
    assert UserTokenItem.from_item({**TOKEN, "later": 1}) == UserTokenItem.from_item(TOKEN)


def test_a_record_names_its_key():
    assert RecordItem.from_item(RECORD).key == Key("IDEMPOTENCY#4c1d9e", "IDEMPOTENCY")
