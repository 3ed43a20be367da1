"""Invariants of the table's items, which must hold at any time, after any run, race, or crash.

Each function checks only the items, and uses none of the product's code except the format of its keys.
"""

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

from controlplane.notify.webhooks import WEBHOOKS_PER_ORGANIZATION
from controlplane.platform.core.plans import API_KEYS_PER_ORGANIZATION
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.legs import decode_item
from tests.support import logged_changes
from tests.support.table import stored_items

type Items = logged_changes.Items


def read_items(client: Any, table_name: str) -> Items:
    """Reads the whole table."""
    return {Key(*place): decode_item(raw) for place, raw in stored_items(client, table_name).items()}


def check_all(items: Items) -> None:
    """Raises AssertionError if an invariant doesn't hold."""
    for check in CHECKS:
        check(items)


def organizations_are_whole(items: Items) -> None:
    """Each organization has a slug, billing, and an owner; none of these exists without its organization."""
    found = _organizations(items)
    for organization_id, organization in found.items():
        slug = items.get(keys.organization_slug(organization["slug"]))
        assert slug is not None, f"{organization_id} has no slug item"
        assert slug["organizationId"] == organization_id, f"{organization_id} has another organization's slug"
        assert keys.billing(organization_id) in items, f"{organization_id} has no billing"
    for key, item in items.items():
        # The slug of a deleted organization stays reserved for a while, and its ledger is kept.
        if key.pk.startswith("SLUG#") and "expiresAt" not in item:
            assert item["organizationId"] in found, f"{key.pk} names no organization"
        if key.pk.startswith("ORG#") and not key.sk.startswith(keys.LEDGER_PREFIX):
            assert key.pk.removeprefix("ORG#") in found, f"{key} belongs to no organization"


def every_organization_has_its_owners(items: Items) -> None:
    """The owner counter equals the number of owners, and is never zero."""
    for organization_id, organization in _organizations(items).items():
        members = _of_organization(items, organization_id, keys.MEMBER_PREFIX)
        owners = sum(member["role"] == "owner" for member in members)
        assert owners == organization["owners"], f"{organization_id}: {owners} owners, counted {organization['owners']}"
        assert owners >= 1, f"{organization_id} has no owner"


def memberships_have_two_sides(items: Items) -> None:
    """Each membership has its organization's and its user's item, with the same role."""
    for key, item in items.items():
        if key.pk.startswith("ORG#") and key.sk.startswith(keys.MEMBER_PREFIX):
            user_id, organization_id = key.sk.removeprefix(keys.MEMBER_PREFIX), key.pk.removeprefix("ORG#")
            other = items.get(keys.membership(user_id, organization_id))
        elif key.pk.startswith("USER#") and key.sk.startswith(keys.MEMBERSHIP_PREFIX):
            user_id, organization_id = key.pk.removeprefix("USER#"), key.sk.removeprefix(keys.MEMBERSHIP_PREFIX)
            other = items.get(keys.member(organization_id, user_id))
        else:
            continue
        assert other is not None, f"{key} has no other side"
        assert other["role"] == item["role"], f"{key} has another role on its other side"


def keys_are_counted_and_capped(items: Items) -> None:
    """The key counter equals the number of keys, and is at most 50."""
    for organization_id, organization in _organizations(items).items():
        stored = len(_of_organization(items, organization_id, keys.KEY_PREFIX))
        assert stored == organization["keys"], f"{organization_id}: {stored} keys, counted {organization['keys']}"
        assert stored <= API_KEYS_PER_ORGANIZATION, f"{organization_id} has {stored} keys"


def webhooks_are_counted_and_capped(items: Items) -> None:
    """The counter of webhook endpoints equals their number, and is at most ten."""
    for organization_id, organization in _organizations(items).items():
        stored, counted = (
            len(_of_organization(items, organization_id, keys.WEBHOOK_PREFIX)),
            organization.get("webhooks", 0),
        )
        assert stored == counted, f"{organization_id}: {stored} webhook endpoints, counted {counted}"
        assert stored <= WEBHOOKS_PER_ORGANIZATION, f"{organization_id} has {stored} webhook endpoints"


def every_key_has_one_secret(items: Items) -> None:
    """Each listed key has exactly one secret item, and each secret item belongs to a listed key.

    The secret of a key that was rolled with a grace period belongs to the key that replaced it.
    """
    listed = {
        key: item for key, item in items.items() if key.pk.startswith("ORG#") and key.sk.startswith(keys.KEY_PREFIX)
    }
    secrets = {key: item for key, item in items.items() if key.pk.startswith("KH#")}
    for key, item in listed.items():
        secret = secrets.pop(keys.key_secret(item["digest"]), None)
        assert secret is not None, f"{key} has no secret"
        assert secret["keyId"] == item["keyId"], f"{key} has another key's secret"
        assert _restrictions(secret) == _restrictions(item), f"{key} authenticates with other restrictions"
        if "previous" in item:
            previous = secrets.pop(keys.key_secret(item["previous"]["digest"]), None)
            assert previous is not None, f"{key} has no previous secret"
            until = {"validUntil": item["previous"]["until"]}
            assert _restrictions(previous) == {**_restrictions(item), **until}, f"{key} is wider with the old secret"
            assert until["validUntil"] <= item.get("validUntil", until["validUntil"]), f"{key} outlives its expiry"
            assert previous["successor"] == item["keyId"], f"{key} has another key's previous secret"
    assert not secrets, "a secret authenticates that no list shows"


def _restrictions(item: dict[str, Any]) -> dict[str, Any]:
    return {name: item[name] for name in ("scopes", "projects", "allowedIps", "validUntil") if name in item}


def every_key_has_the_plan_of_its_organization(items: Items) -> None:
    plans = {organization_id: organization["plan"] for organization_id, organization in _organizations(items).items()}
    for key, item in items.items():
        if key.pk.startswith("KH#"):
            assert item["plan"] == plans[item["organizationId"]], f"{item['keyId']} is on {item['plan']}"


def projects_are_counted_and_have_their_slugs(items: Items) -> None:
    """The project counter equals the number of projects. Each has its slug, and no slug exists without its project."""
    for organization_id, organization in _organizations(items).items():
        projects = _of_organization(items, organization_id, keys.PROJECT_PREFIX)
        counted = organization["projects"]
        assert len(projects) == counted, f"{organization_id}: {len(projects)} projects, counted {counted}"
        slugs = {
            item["projectId"]: key.sk
            for key, item in items.items()
            if key.pk == f"ORG#{organization_id}" and key.sk.startswith("PSLUG#") and "former" not in item
        }
        expected = {item["projectId"]: keys.project_slug(organization_id, item["slug"]).sk for item in projects}
        assert slugs == expected, f"{organization_id}: slugs and projects differ"
        listed = {item["projectId"]: item.get("formerSlugs", []) for item in projects}
        for former in _of_organization(items, organization_id, "PSLUG#"):
            # Those of a deleted project are removed in the background.
            if "former" in former and former["projectId"] in listed:
                assert former["sk"].removeprefix("PSLUG#") in listed[former["projectId"]], (
                    f"{former['sk']} is forgotten"
                )
        assert all(len(former) <= 10 for former in listed.values()), f"{organization_id}: {listed}"


def websites_are_trusted_or_audited(items: Items) -> None:
    """Each website is a consent entry or audited, consent trusts one of them, and each audit has its schedule."""
    for key, project in items.items():
        if not (key.pk.startswith("ORG#") and key.sk.startswith(keys.PROJECT_PREFIX)):
            continue
        trusted = [website.get("trusted", True) for website in project["websites"]]
        audits = [website.get("audits", []) for website in project["websites"]]
        assert all(map(any, zip(trusted, audits, strict=True))), f"{key} has a website without a purpose"
        assert any(trusted) or not (project["consent"] and trusted), f"{key} has consent that trusts no website"
        listed = {audit_id for of_website in audits for audit_id in of_website}
        for kind in ("AUDIT", "AUDITSCHEDULE"):
            own = f"{kind}#{key.sk.removeprefix(keys.PROJECT_PREFIX)}#"
            stored = {other.sk.removeprefix(own) for other in items if other.pk == key.pk and other.sk.startswith(own)}
            assert stored == listed, f"{key} lists {listed}, stored are {stored}"


def at_most_one_invitation_an_address(items: Items) -> None:
    """No organization has two invitations for the same address, ignoring case."""
    addresses: dict[str, Counter[str]] = defaultdict(Counter)
    for key, item in items.items():
        if key.pk.startswith("ORG#") and key.sk.startswith(keys.INVITATION_PREFIX):
            addresses[key.pk][item["email"].lower()] += 1
    for organization, counted in addresses.items():
        assert max(counted.values()) == 1, f"{organization}: {counted}"


def families_know_their_access_tokens(items: Items) -> None:
    """A live family lists exactly the access tokens that it issued; a revoked family has none."""
    listed: dict[str, set[str]] = {}
    for key, item in items.items():
        if key.pk.startswith("FAMILY#"):
            listed[key.pk.removeprefix("FAMILY#")] = {entry["digest"] for entry in item["access"]}
            assert item["state"] == "live" or not item["access"], f"{key.pk} is revoked and lists access tokens"
    given: dict[str, set[str]] = {family_id: set() for family_id in listed}
    for key, item in items.items():
        if key.pk.startswith("TH#") and "familyId" in item:
            given.setdefault(item["familyId"], set()).add(key.pk.removeprefix("TH#"))
    assert given == listed, "families and their access tokens differ"


def redeemed_requests_have_one_family_each(items: Items) -> None:
    """A device code is redeemed for tokens at most once, and all device tokens come from a redeemed code."""
    redeemed = [item for key, item in items.items() if key.pk.startswith("DC#") and item["status"] == "redeemed"]
    families = sorted(key.pk.removeprefix("FAMILY#") for key in items if key.pk.startswith("FAMILY#"))
    assert sorted(item["familyId"] for item in redeemed) == families, "redeemed codes and families differ"


def reports_are_counted_and_capped(items: Items) -> None:
    """Each caller's hourly quota counts its new reports of that hour, and is at most 10."""
    counted: Counter[Key] = Counter(
        keys.feedback_quota(item["callerId"], item["createdAt"][:13])
        for key, item in items.items()
        if key.pk.startswith("FEEDBACK#")
    )
    charged = {
        key: item["taken"]
        for key, item in items.items()
        # The count of a deleted organization or user remains until it expires at the end of the day.
        if key.pk.startswith("FEEDBACKQUOTA#") and _exists(items, key.pk.partition("#")[2])
    }
    assert counted == charged, f"reports {counted}, charged {charged}"
    assert all(taken <= 10 for taken in charged.values()), f"{charged}"


def inbox_items_stand_where_the_lists_look(items: Items) -> None:
    """An item's position in both indexes matches its status, its last change, and its vendor or its file."""
    for key, item in items.items():
        if key.pk.startswith("ORG#") and key.sk.startswith(keys.INBOX_PREFIX):
            local = key.sk.removeprefix(keys.INBOX_PREFIX)
            vendor = item.get("runtimeVendor")
            paths = [it["path"] for it in item["evidence"] if it.get("path")] if item["source"] == "code-audit" else []
            shown = [vendor[name] for name in ("vendorId", "domain", "name")] if vendor else paths[:1]
            order = "#".join((item["updatedAt"], local, *shown))
            assert item["inboxOrder"] == order, (
                f"{key} is in the wrong place in the lists, or shows another vendor or file"
            )
            assert item["inboxByStatus"] == f"{key.pk}#{item['status']}", f"{key} is listed under another status"


def items_resolved_by_a_scan_are_resolved(items: Items) -> None:
    """Only a resolved inbox item names a scan that resolved it, and that scan exists."""
    scans = {item["scanId"] for key, item in items.items() if key.sk.startswith(keys.SCAN_PREFIX)}
    for key, item in items.items():
        if key.sk.startswith(keys.INBOX_PREFIX) and item.get("resolvedBy"):
            assert item["status"] == "resolved", f"{key} is {item['status']}, resolved by {item['resolvedBy']}"
            assert item["resolvedBy"]["scanId"] in scans, f"{key} was resolved by a scan that doesn't exist"


def attempts_at_issues_are_open(items: Items) -> None:
    """Each attempt belongs to an existing item without an issue."""
    wanted = {key.sk for key in items if key.pk == keys.ISSUE_ATTEMPTS_PK}
    found = {
        item["itemId"]: item
        for key, item in items.items()
        if key.pk.startswith("ORG#") and key.sk.startswith(keys.INBOX_PREFIX)
    }
    for item_id in wanted:
        assert item_id in found, f"an attempt for {item_id}, which does not exist"
        assert "githubIssue" not in found[item_id], f"an attempt for {item_id}, which has its issue"


def live_credentials_are_listed_and_listed_ones_exist(items: Items) -> None:
    """Each live session, token, family, and approved device request has exactly one entry in its user's index, and no
    other entry exists."""
    expected: dict[Key, tuple[str, str]] = {}
    for key, item in items.items():
        if key.pk.startswith("TH#") and "familyId" not in item:
            expected[keys.credential(item["userId"], item["listedAs"])] = "digest", key.pk.removeprefix("TH#")
        elif key.pk.startswith("FAMILY#") and item["state"] == "live":
            expected[keys.credential(item["userId"], item["listedAs"])] = "familyId", key.pk.removeprefix("FAMILY#")
        elif key.pk.startswith("DC#") and item["status"] == "approved":
            expected[keys.credential(item["userId"], item["listedAs"])] = "requestDigest", key.pk.removeprefix("DC#")
    listed = {key for key in items if key.pk.startswith("CREDENTIALS#") and key.sk.startswith(keys.CREDENTIAL_PREFIX)}
    assert listed == set(expected), f"listed {listed}, live {set(expected)}"
    for entry, (name, value) in expected.items():
        assert items[entry][name] == value, f"{entry} names another {name}"


def balances_are_the_sum_of_their_ledgers(items: Items) -> None:
    """A balance is the sum of its ledger and never negative. A scan is charged if and only if it was unlocked."""
    for key, item in items.items():
        if key.sk != "BILLING":
            continue
        own = {other.sk: entry for other, entry in items.items() if other.pk == key.pk}
        ledger = [entry for sk, entry in own.items() if sk.startswith(keys.LEDGER_PREFIX)]
        assert item["credits"] == sum(entry["credits"] for entry in ledger), f"{key.pk}: balance and ledger differ"
        assert item["credits"] >= 0, f"{key.pk} owes credits"
        for charged in (entry["scanId"] for entry in ledger if "scanId" in entry):
            found = [
                entry["access"] for entry in own.values() if "headCommitSha" in entry and entry["scanId"] == charged
            ]
            # A scan is deleted with its project or repository. Its charge stays in the ledger.
            assert found in (["full"], []), f"{charged} is charged and not open"


def reports_are_charged_once(items: Items) -> None:
    """Of the scans of a commit and folder with the same rules, at most one is charged, and then none stays hidden.

    Scans that were completed before that wait in a list until they are unlocked in the background.
    """
    scans: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for item in items.values():
        if "headCommitSha" in item and "rulesVersion" in item:
            shared = ("repositoryId", "headCommitSha", "rootDirectory", "rulesVersion")
            scans[tuple(item[name] for name in shared)].append(item)
    listed = {item["scanId"] for key, item in items.items() if key.sk.startswith("REPORT#") and "scanId" in item}
    for report, own in scans.items():
        charged = [scan["scanId"] for scan in own if Key(scan["pk"], f"LEDGER#{scan['sk']}") in items]
        assert len(charged) <= 1, f"{report} is charged for {charged}"
        hidden = {scan["scanId"] for scan in own if scan["access"] != "full" and "findingsExpireAt" not in scan}
        assert not charged or hidden <= listed, f"{report} is charged, and {hidden - listed} stay locked"


def repositories_have_one_scan_at_a_time(items: Items) -> None:
    """A repository names its one open request or scan, no other is open, and it has at most one free preview."""
    for key, item in items.items():
        if not (key.pk.startswith("ORG#") and key.sk.startswith(keys.REPOSITORY_PREFIX)):
            continue
        own = [
            other
            for place, other in items.items()
            if place.sk.startswith((keys.SCAN_PREFIX, "SCANREQ#")) and other["repositoryId"] == item["repositoryId"]
        ]
        open_work = [other["requestId"] for other in own if other["status"] in {"starting", "queued", "running"}]
        assert open_work == [item[name] for name in ("activeRequestId",) if name in item], f"{key}: {open_work} open"
        previews = [
            other
            for other in own
            if other.get("access") == "free-preview" and other["status"] not in {"failed", "canceled"}
        ]
        assert len(previews) <= 1, f"{key} has {len(previews)} free previews"


def names_of_repositories_lead_to_them(items: Items) -> None:
    """Each name of a repository leads to a connected repository that has it. One may have lost its name to another."""
    names = {
        item["repositoryId"]: keys.repository_name(key.pk.removeprefix("ORG#"), item["owner"], item["name"])
        for key, item in items.items()
        if key.pk.startswith("ORG#") and key.sk.startswith(keys.REPOSITORY_PREFIX)
    }
    for key, item in items.items():
        if key.pk.startswith("ORG#") and key.sk.startswith("reponame#"):
            assert key == names.get(item["repositoryId"]), f"{key} leads to another repository, or to none"


CHECKS: tuple[Callable[[Items], None], ...] = (
    organizations_are_whole,
    every_organization_has_its_owners,
    memberships_have_two_sides,
    keys_are_counted_and_capped,
    webhooks_are_counted_and_capped,
    every_key_has_one_secret,
    every_key_has_the_plan_of_its_organization,
    projects_are_counted_and_have_their_slugs,
    websites_are_trusted_or_audited,
    at_most_one_invitation_an_address,
    balances_are_the_sum_of_their_ledgers,
    reports_are_charged_once,
    repositories_have_one_scan_at_a_time,
    names_of_repositories_lead_to_them,
    reports_are_counted_and_capped,
    families_know_their_access_tokens,
    live_credentials_are_listed_and_listed_ones_exist,
    redeemed_requests_have_one_family_each,
    inbox_items_stand_where_the_lists_look,
    items_resolved_by_a_scan_are_resolved,
    attempts_at_issues_are_open,
    logged_changes.the_audit_log_leads_to_the_items,
)


def _exists(items: Items, caller_id: str) -> bool:
    return keys.organization(caller_id) in items or not caller_id.startswith("org_")


def _organizations(items: Items) -> dict[str, dict[str, Any]]:
    return {
        key.pk.removeprefix("ORG#"): item
        for key, item in items.items()
        if key.pk.startswith("ORG#") and key.sk == "META"
    }


def _of_organization(items: Items, organization_id: str, prefix: str) -> list[dict[str, Any]]:
    return [item for key, item in items.items() if key.pk == f"ORG#{organization_id}" and key.sk.startswith(prefix)]
