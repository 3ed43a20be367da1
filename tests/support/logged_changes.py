"""The invariant of the audit log: its entries say how the items came to be what they are."""

from collections import Counter, defaultdict
from typing import Any

from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key

type Items = dict[Key, dict[str, Any]]

# The fields of entries that the items have, by the kind of resource, if all of their changes have entries.
_LOGGED = {
    "prj": ("name", "slug", "description"),
    "key": ("name", "rateLimit"),
    "mem": ("role",),
    "org": ("plan",),
}
# Actions that begin or end a resource, so that it has no item before or after them.
_BEGINS = {"project.create", "api_key.create", "member.join", "member.add", "invitation.create", "organization.create"}
_ENDS = {
    "project.delete",
    "api_key.delete",
    "api_key.revoke_leaked",
    "api_key.roll",
    "member.remove",
    "invitation.cancel",
    "invitation.decline",
}


def the_audit_log_leads_to_the_items(items: Items) -> None:
    """The entries of each resource, in some order, lead from its creation or first known state to its item.

    So every change has its entry, and every entry its change: of each value, as many changes lead to it as away
    from it, except the value that the item has, and the one that it began with.
    """
    entries: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for key, entry in items.items():
        if key.pk.startswith(keys.LOG_PREFIX):
            assert key.pk.split("#")[1:] == [_owner_of(entry["entryId"]), entry["at"][:7]], f"{key} is misplaced"
            entries[entry["resource"]].append(entry)
    stored = _stored_resources(items)
    for resource, own in entries.items():
        actions = Counter(entry["action"] for entry in own)
        begun = sum(count for action, count in actions.items() if action in _BEGINS)
        ended = sum(count for action, count in actions.items() if action in _ENDS)
        # A member can leave and join again.
        assert begun <= 1 or resource.startswith("mem_"), f"{resource} was created {begun} times"
        assert ended <= max(begun, 1), f"{resource} ended {ended} times"
        item = stored.get(resource)
        # An accepted invitation ends with the entry of its member, and an expired one without any.
        if begun and (item is not None or not resource.startswith("inv_")):
            assert begun - ended == (item is not None), f"{resource}: {dict(actions)}, and its item is {item}"
        elif ended:
            assert item is None, f"{resource} ended, and exists"
        for name in _LOGGED.get(resource[:3], ()):
            _check_field(resource, name, own, item)


def _check_field(resource: str, name: str, entries: list[dict[str, Any]], item: dict[str, Any] | None) -> None:
    moved: Counter[Any] = Counter()
    for entry in entries:
        if name not in entry["before"] and name not in entry["after"]:
            continue
        moved[entry["before"].get(name)] -= 1
        moved[entry["after"].get(name)] += 1
    left = {value: count for value, count in moved.items() if count}
    if not left:
        return
    assert sorted(left.values()) == [-1, 1], f"{resource}: the entries of {name} don't follow each other: {left}"
    (reached,) = (value for value, count in left.items() if count > 0)
    assert reached == (item.get(name) if item else None), f"{resource}: {name} isn't {reached!r}, as the log says"


def _stored_resources(items: Items) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for key, item in items.items():
        if not key.pk.startswith("ORG#"):
            continue
        organization_id = key.pk.removeprefix("ORG#")
        if key.sk == "META":
            found[organization_id] = item
        elif key.sk.startswith(keys.MEMBER_PREFIX):
            found[f"mem_{organization_id[4:]}{item['userId'][4:]}"] = item
        else:
            for prefix, name in (
                (keys.PROJECT_PREFIX, "projectId"),
                (keys.KEY_PREFIX, "keyId"),
                (keys.INBOX_PREFIX, "itemId"),
                (keys.INVITATION_PREFIX, "invitationId"),
            ):
                if key.sk.startswith(prefix):
                    found[item[name]] = item
    return found


def _owner_of(entry_id: str) -> str:
    return f"org_{entry_id[4:20]}"
