"""Stored items are read into typed items, which write the same attributes."""

from typing import Any

import pytest

from controlplane.api_keys.items import ApiKeyItem, KeySecretItem
from controlplane.projects.audits import AuditItem
from controlplane.projects.items import ProjectItem
from tests.support.each import each

_ORGANIZATION, _LOCAL = "3f8k2m9q7r1s5t6v", "01kb2m3n4p5q6r7s8t"
_PK = f"ORG#org_{_ORGANIZATION}"

PROJECT: dict[str, Any] = {
    "pk": _PK,
    "sk": f"PROJECT#{_LOCAL}",
    "projectId": f"prj_{_ORGANIZATION}{_LOCAL}",
    "name": "Shop",
    "slug": "shop",
    "description": None,
    "region": "eu-central",
    "createdAt": "2026-03-04T05:06:07.000Z",
    "version": "9b1c04d2a7e35f68",
    "websites": [{"websiteId": "web_01", "origin": "example.com", "kind": "domain", "audits": ["aud_01"]}],
    "consent": {"instanceId": f"ins_{_ORGANIZATION}{_LOCAL}", "slug": "shop", "name": "Shop", "branding": "none"},
}
KEY: dict[str, Any] = {
    "pk": _PK,
    "sk": f"KEY#{_LOCAL}",
    "keyId": f"key_{_ORGANIZATION}{_LOCAL}",
    "name": "deploy",
    "start": "assent_Ab3x",
    "digest": "9f86d0",
    "rateLimit": 1500,
    "createdAt": "2026-03-04T05:06:07.000Z",
    "createdBy": "usr_5w1n8q2k7m3r9t4v",
    "createdFrom": "api",
    "lastUsedAt": None,
}
SECRET: dict[str, Any] = {
    "pk": "KH#9f86d0",
    "sk": "KEY",
    "keyId": KEY["keyId"],
    "organizationId": f"org_{_ORGANIZATION}",
    "slug": "acme",
    "name": "Acme",
    "plan": "pro",
    "createdBy": "usr_5w1n8q2k7m3r9t4v",
    "rateLimit": 1500,
    "win": 29384756,
    "hits": 17,
    "usedHour": 489745,
}
LIMITS: dict[str, Any] = {
    "scopes": ["inbox.read"],
    "projects": [_LOCAL],
    "allowedIps": ["192.0.2.0/24"],
    "validUntil": 1_790_000_000,
}
PREVIOUS: dict[str, Any] = {"keyId": KEY["keyId"], "start": "assent_Xk2p", "digest": "5e884a", "until": 1_790_000_000}
AUDIT: dict[str, Any] = {
    "pk": _PK,
    "sk": f"AUDIT#{_LOCAL}#aud_01",
    "auditId": "aud_01",
    "projectId": PROJECT["projectId"],
    "websiteId": "web_01",
    "createdAt": "2026-03-04T05:06:07.000Z",
}


@each(
    ("kind", "stored"),
    [
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
        (AuditItem, AUDIT),
    ],
)
def test_a_stored_item_is_written_back_unchanged(kind: Any, stored: dict[str, Any]):
    assert kind.from_item(stored).to_item() == stored


def test_attributes_of_other_releases_are_left_out():
    assert ProjectItem.from_item({**PROJECT, "later": 1}) == ProjectItem.from_item(PROJECT)


def test_a_website_is_a_consent_entry_by_default():
    assert ProjectItem.from_item(PROJECT).trusted_origins == ["example.com"]


def test_a_typed_id_locates_its_item():
    assert ProjectItem.from_item(PROJECT).key == (PROJECT["pk"], PROJECT["sk"])


def test_a_malformed_stored_id_is_an_error():
    with pytest.raises(LookupError):
        ProjectItem.from_item({**PROJECT, "projectId": "prj_x"})
