"""Checks counters and unique items of the whole table, such as a restored one. Changes nothing.

It keeps keys and counters in memory, not items. On a table that is in use, a change during the scan can look like a
contradiction: check again.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from controlplane.platform.table import keys
from controlplane.platform.table.legs import decode_item
from controlplane.platform.table.table import table

MOST_SHOWN = 100
# Counted items of an organization, by the attribute that counts them.
_COUNTED = {"keys": keys.KEY_PREFIX, "projects": keys.PROJECT_PREFIX, "webhooks": keys.WEBHOOK_PREFIX}


class _Found:
    """The items that the scan has seen so far."""

    def __init__(self) -> None:
        self.items = 0
        self.organizations: dict[str, dict[str, Any]] = {}
        self.counts: dict[str, Counter[str]] = defaultdict(Counter)
        self.balances: dict[str, int] = {}
        self.ledgers: Counter[str] = Counter()
        # Items that must exist as well, by the item that needs them.
        self.needed: dict[keys.Key, keys.Key] = {}
        self.unique: set[keys.Key] = set()

    def add(self, item: dict[str, Any]) -> None:
        self.items += 1
        key = keys.Key(item["pk"], item["sk"])
        kind, _, name = key.pk.partition("#")
        if kind == "ORG":
            self._add_of_organization(name, key, item)
        elif kind == "USER" and key.sk.startswith(keys.MEMBERSHIP_PREFIX):
            organization_id = key.sk.removeprefix(keys.MEMBERSHIP_PREFIX)
            self.unique.add(key)
            self.needed[key] = keys.member(organization_id, name)
        elif kind in {"SLUG", "KH"}:
            self.unique.add(key)

    def _add_of_organization(self, organization_id: str, key: keys.Key, item: dict[str, Any]) -> None:
        if key == keys.organization(organization_id):
            self.organizations[organization_id] = {name: item.get(name, 0) for name in ("owners", *_COUNTED)}
            self.needed[key] = keys.organization_slug(item["slug"])
        elif key == keys.billing(organization_id):
            self.balances[organization_id] = item["credits"]
        elif key.sk.startswith(keys.LEDGER_PREFIX):
            self.ledgers[organization_id] += item["credits"]
        elif key.sk.startswith(keys.PROJECT_SLUG_PREFIX):
            self.unique.add(key)
        elif key.sk.startswith(keys.MEMBER_PREFIX):
            user_id = key.sk.removeprefix(keys.MEMBER_PREFIX)
            self.counts[organization_id]["owners"] += item["role"] == "owner"
            self.unique.add(key)
            self.needed[key] = keys.membership(user_id, organization_id)
        for name, prefix in _COUNTED.items():
            self.counts[organization_id][name] += key.sk.startswith(prefix)
        if key.sk.startswith(keys.KEY_PREFIX):
            self.needed[key] = keys.key_secret(item["digest"])
        if key.sk.startswith(keys.PROJECT_PREFIX):
            self.needed[key] = keys.project_slug(organization_id, item["slug"])

    def contradictions(self) -> list[str]:
        found = [
            f"{key.pk} {key.sk} requires {needed.pk} {needed.sk}, which doesn't exist"
            for key, needed in self.needed.items()
            if needed not in self.unique
        ]
        for organization_id, counters in self.organizations.items():
            counted = self.counts[organization_id]
            found += [
                f"{organization_id} has {counted[name]} {name} and counts {count}"
                for name, count in counters.items()
                if counted[name] != count
            ]
            if organization_id not in self.balances:
                found.append(f"{organization_id} has no billing")
            elif self.balances[organization_id] != self.ledgers[organization_id]:
                found.append(
                    f"{organization_id} has {self.balances[organization_id]} credits, "
                    f"and its ledger adds up to {self.ledgers[organization_id]}"
                )
        return sorted(found)


def scan() -> Iterator[dict[str, Any]]:
    """Yields every item, with consistent reads. Finds everything written before the scan began."""
    parameters: dict[str, Any] = {"TableName": table.name, "ConsistentRead": True}
    while True:
        answer = table.client.scan(**parameters)
        yield from map(decode_item, answer["Items"])
        if "LastEvaluatedKey" not in answer:
            return
        parameters["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def check() -> dict[str, Any]:
    """Returns the numbers of items and organizations, and up to 100 contradictions."""
    found = _Found()
    for item in scan():
        found.add(item)
    contradictions = found.contradictions()
    return {
        "items": found.items,
        "organizations": len(found.organizations),
        "contradictions": len(contradictions),
        "first": contradictions[:MOST_SHOWN],
    }
