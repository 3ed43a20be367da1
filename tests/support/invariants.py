"""Invariants of the table's items, which must hold at any time, after any run, race, or crash.

Each function checks only the items, and uses none of the product's code except the format of its keys.
"""

import inspect
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from controlplane.notify.webhooks import WEBHOOKS_PER_ORGANIZATION
from controlplane.platform.core.plans import API_KEYS_PER_ORGANIZATION
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.legs import decode_item
from tests.support import logged_changes
from tests.support.table import stored_items

type Items = logged_changes.Items

# The counters of an organization, with the prefix of what they count and the largest number of it.
_COUNTED = {
    "keys": (keys.KEY_PREFIX, API_KEYS_PER_ORGANIZATION),
    "webhooks": (keys.WEBHOOK_PREFIX, WEBHOOKS_PER_ORGANIZATION),
    "projects": (keys.PROJECT_PREFIX, 1_000),
}


def read_items(client: Any, table_name: str) -> Items:
    """Reads the whole table."""
    return {Key(*place): decode_item(raw) for place, raw in stored_items(client, table_name).items()}


def check_all(items: Items) -> None:
    """Raises AssertionError if an invariant doesn't hold."""
    for check in CHECKS:
        check(items)


def _of(items: Items, pk: str, sk: str = "") -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yields the items whose keys begin like this: the rest of both keys, and the item."""
    for key, item in items.items():
        if key.pk.startswith(pk) and key.sk.startswith(sk):
            yield key.pk.removeprefix(pk), key.sk.removeprefix(sk), item


def _organizations(items: Items) -> dict[str, dict[str, Any]]:
    return {organization_id: item for organization_id, _, item in _of(items, "ORG#", "META")}


def _of_organization(items: Items, organization_id: str, prefix: str) -> list[dict[str, Any]]:
    return [item for other_id, _, item in _of(items, "ORG#", prefix) if other_id == organization_id]


def organizations_are_whole(items: Items) -> None:
    """Each organization has a slug, billing, and an owner; none of these exists without its organization."""
    found = _organizations(items)
    for organization_id, organization in found.items():
        slug = items.get(keys.organization_slug(organization["slug"]), {})
        assert slug.get("organizationId") == organization_id, f"{organization_id} doesn't have its slug"
        assert keys.billing(organization_id) in items, f"{organization_id} has no billing"
    for name, _, item in _of(items, "SLUG#"):
        # The slug of a deleted organization stays reserved for a while, and its ledger is kept.
        assert "expiresAt" in item or item["organizationId"] in found, f"the slug {name} names no organization"
    for organization_id, sk, _ in _of(items, "ORG#"):
        assert organization_id in found or sk.startswith(keys.LEDGER_PREFIX), f"{sk} belongs to no organization"


def every_organization_has_its_owners(items: Items) -> None:
    """The owner counter equals the number of owners, and is never zero."""
    for organization_id, organization in _organizations(items).items():
        members = _of_organization(items, organization_id, keys.MEMBER_PREFIX)
        owners = sum(member["role"] == "owner" for member in members)
        assert owners == organization["owners"], f"{organization_id}: {owners} owners, counted {organization['owners']}"
        assert owners >= 1, f"{organization_id} has no owner"


def memberships_have_two_sides(items: Items) -> None:
    """Each membership has its organization's and its user's item, with the same role."""
    members = {(user_id, own_id): item["role"] for own_id, user_id, item in _of(items, "ORG#", keys.MEMBER_PREFIX)}
    held = {(user_id, own_id): item["role"] for user_id, own_id, item in _of(items, "USER#", keys.MEMBERSHIP_PREFIX)}
    assert members == held, f"members {members}, memberships {held}"


def parts_are_counted_and_capped(items: Items) -> None:
    """Each counter of an organization equals the number of what it counts, and has its limit."""
    for organization_id, organization in _organizations(items).items():
        for name, (prefix, most) in _COUNTED.items():
            stored, counted = len(_of_organization(items, organization_id, prefix)), organization.get(name, 0)
            assert stored == counted, f"{organization_id}: {stored} {name}, counted {counted}"
            assert stored <= most, f"{organization_id} has {stored} {name}"


def every_key_has_one_secret(items: Items) -> None:
    """Each listed key has exactly one secret item, and each secret item belongs to a listed key.

    The secret of a key that was rolled with a grace period belongs to the key that replaced it.
    """
    secrets = {digest: item for digest, _, item in _of(items, "KH#")}
    for _, name, item in _of(items, "ORG#", keys.KEY_PREFIX):
        secret = secrets.pop(item["digest"], None)
        assert secret is not None, f"{name} has no secret"
        assert secret["keyId"] == item["keyId"], f"{name} has another key's secret"
        assert _restrictions(secret) == _restrictions(item), f"{name} authenticates with other restrictions"
        if "previous" in item:
            previous = secrets.pop(item["previous"]["digest"], None)
            assert previous is not None, f"{name} has no previous secret"
            until = {"validUntil": item["previous"]["until"]}
            assert _restrictions(previous) == {**_restrictions(item), **until}, f"{name} is wider with the old secret"
            assert until["validUntil"] <= item.get("validUntil", until["validUntil"]), f"{name} outlives its expiry"
            assert previous["successor"] == item["keyId"], f"{name} has another key's previous secret"
    assert not secrets, "a secret authenticates that no list shows"


def _restrictions(item: dict[str, Any]) -> dict[str, Any]:
    return {name: item[name] for name in ("scopes", "projects", "allowedIps", "validUntil") if name in item}


def every_key_has_the_plan_of_its_organization(items: Items) -> None:
    found = _organizations(items)
    for _, _, item in _of(items, "KH#"):
        assert item["plan"] == found[item["organizationId"]]["plan"], f"{item['keyId']} is on {item['plan']}"


def projects_have_their_slugs(items: Items) -> None:
    """Each project has its slug, and its former ones; no slug exists without its project."""
    for organization_id in _organizations(items):
        projects = _of_organization(items, organization_id, keys.PROJECT_PREFIX)
        slugs = _of_organization(items, organization_id, "PSLUG#")
        current = {item["projectId"]: item["sk"] for item in slugs if "former" not in item}
        expected = {item["projectId"]: keys.project_slug(organization_id, item["slug"]).sk for item in projects}
        assert current == expected, f"{organization_id}: slugs and projects differ"
        listed = {item["projectId"]: item.get("formerSlugs", []) for item in projects}
        for former in slugs:
            # Those of a deleted project are removed in the background.
            known = listed.get(former["projectId"]) if "former" in former else None
            assert known is None or former["sk"].removeprefix("PSLUG#") in known, f"{former['sk']} is forgotten"
        assert all(len(former) <= 10 for former in listed.values()), f"{organization_id}: {listed}"


def websites_are_trusted_or_audited(items: Items) -> None:
    """Each website is a consent entry or audited, consent trusts one of them, and each audit has its parts."""
    for organization_id, local, project in _of(items, "ORG#", keys.PROJECT_PREFIX):
        trusted = [website.get("trusted", True) for website in project["websites"]]
        audits = [website.get("audits", []) for website in project["websites"]]
        assert all(map(any, zip(trusted, audits, strict=True))), f"{local} has a website without a purpose"
        assert any(trusted) or not (project["consent"] and trusted), f"{local} has consent that trusts no website"
        listed = {audit_id for of_website in audits for audit_id in of_website}
        stored = {sk: it for _, sk, it in _of(items, f"ORG#{organization_id}", keys.audit_prefix(local))}
        assert stored.keys() == listed, f"{local} lists {listed}, stored are {stored}"
        for audit_id, audit in stored.items():
            _check_audit(items, audit_id, audit)


def _check_audit(items: Items, audit_id: str, audit: dict[str, Any]) -> None:
    """An audit has the entry of its schedule, and if it has a pending run, that is its active one, which is watched."""
    entries = [it["auditId"] for _, _, it in _of(items, "AUDITSCHEDULE#")]
    assert audit_id in entries or not audit["schedule"], f"{audit_id} has no entry"
    runs = [it for _, sk, it in _of(items, "ORG#", "AUDITRUN#") if f"#{audit_id}#" in f"#{sk}"]
    pending = [it["runId"] for it in runs if it["status"] == "pending"]
    assert pending == [it for it in [audit.get("activeRunId")] if it], f"{audit_id} has the pending runs {pending}"
    watched = {it["runId"] for _, _, it in _of(items, "AUDITWATCH#")}
    assert watched.issuperset(pending), f"{audit_id} has a run that nothing watches"


def configurations_have_the_vendors(items: Items) -> None:
    """Each project's item repeats what the public configuration shows of the project's vendors."""
    shown: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for _, _, item in _of(items, "ORG#", "VENDOR#"):
        uses = (use.get("places") for use in item.get("code", []))
        if not ("state" in item or "revision" in item or any(uses)):
            continue
        public = {name: item.get(name) for name in ("vendorId", "name", "domain", "category", "state")}
        shown[item["projectId"]].append({name: value for name, value in public.items() if value is not None})
    for _, _, project in _of(items, "ORG#", keys.PROJECT_PREFIX):
        both = (project.get("vendors", []), shown[project["projectId"]])
        listed, stored = (sorted(sorted(it.items()) for it in vendors) for vendors in both)
        assert listed == stored, f"{project['projectId']}: the vendors {listed}, not {stored}"


def at_most_one_invitation_an_address(items: Items) -> None:
    """No organization has two invitations for the same address, ignoring case."""
    invitations = _of(items, "ORG#", keys.INVITATION_PREFIX)
    counted = Counter((organization_id, item["email"].lower()) for organization_id, _, item in invitations)
    assert not counted or max(counted.values()) == 1, f"{counted}"


def families_know_their_access_tokens(items: Items) -> None:
    """A live family lists exactly the access tokens that it issued; a revoked family has none."""
    listed: dict[str, set[str]] = {}
    for family_id, _, item in _of(items, "FAMILY#"):
        listed[family_id] = {entry["digest"] for entry in item["access"]}
        assert item["state"] == "live" or not item["access"], f"{family_id} is revoked and lists access tokens"
    given: dict[str, set[str]] = {family_id: set() for family_id in listed}
    for digest, _, item in _of(items, "TH#"):
        if "familyId" in item:
            given.setdefault(item["familyId"], set()).add(digest)
    assert given == listed, "families and their access tokens differ"


def redeemed_requests_have_one_family_each(items: Items) -> None:
    """A device code is redeemed for tokens at most once, and all device tokens come from a redeemed code."""
    redeemed = [item["familyId"] for _, _, item in _of(items, "DC#") if item["status"] == "redeemed"]
    families = [family_id for family_id, _, _ in _of(items, "FAMILY#")]
    assert sorted(redeemed) == sorted(families), "redeemed codes and families differ"


def reports_are_counted_and_capped(items: Items) -> None:
    """Each caller's hourly quota counts its new reports of that hour, and is at most 10."""
    reports = [item for _, _, item in _of(items, "FEEDBACK#")]
    counted = Counter(keys.feedback_quota(item["callerId"], item["createdAt"][:13]) for item in reports)
    charged = {
        Key(item["pk"], item["sk"]): item["taken"]
        for caller_id, _, item in _of(items, "FEEDBACKQUOTA#")
        # The count of a deleted organization or user remains until it expires at the end of the day.
        if keys.organization(caller_id) in items or not caller_id.startswith("org_")
    }
    assert counted == charged, f"reports {counted}, charged {charged}"
    assert all(taken <= 10 for taken in charged.values()), f"{charged}"


def inbox_items_stand_where_the_lists_look(items: Items) -> None:
    """An item's position in both indexes matches its status, last change, assignee, and vendor or file."""
    for _, local, item in _of(items, "ORG#", keys.INBOX_PREFIX):
        vendor = item.get("runtimeVendor")
        paths = [it["path"] for it in item["evidence"] if it.get("path")] if item["source"] == "code-audit" else []
        shown = [vendor[name] for name in ("vendorId", "domain", "name")] if vendor else paths[:1]
        assignee = item.get("assignee")
        assigned = (assignee["userId"], assignee["since"]) if assignee else ()
        order = "#".join((item["updatedAt"], "@".join((local, *assigned)), *shown))
        assert item["inboxOrder"] == order, f"{local} is in the wrong place, or shows another vendor, file, or assignee"
        assert item["inboxByStatus"] == f"{item['pk']}#{item['status']}", f"{local} is listed under another status"


def items_resolved_by_a_scan_are_resolved(items: Items) -> None:
    """Only a resolved inbox item names a scan or a run of an audit that resolved it, and that exists."""
    scans = {item["scanId"] for _, _, item in _of(items, "", keys.SCAN_PREFIX)}
    runs = {item["runId"] for _, _, item in _of(items, "ORG#", "AUDITRUN#")}
    for _, local, item in _of(items, "ORG#", keys.INBOX_PREFIX):
        if by := item.get("resolvedBy"):
            assert item["status"] == "resolved", f"{local} is {item['status']}, resolved by {by}"
            found = by["scanId"] in scans or by.get("runId") in runs
            assert found, f"{local} was resolved by a scan or a run that doesn't exist"


def attempts_at_issues_are_open(items: Items) -> None:
    """Each attempt belongs to an existing item without an issue."""
    found = {item["itemId"]: item for _, _, item in _of(items, "ORG#", keys.INBOX_PREFIX)}
    for _, item_id, _ in _of(items, keys.ISSUE_ATTEMPTS_PK):
        assert item_id in found, f"an attempt for {item_id}, which does not exist"
        assert "githubIssue" not in found[item_id], f"an attempt for {item_id}, which has its issue"


def live_credentials_are_listed_and_listed_ones_exist(items: Items) -> None:
    """Each live session, token, family, and approved device request has exactly one entry in its user's index, and no
    other entry exists."""
    expected: dict[Key, tuple[str, str]] = {}
    for kind, name, is_live in (
        ("TH#", "digest", lambda it: "familyId" not in it),
        ("FAMILY#", "familyId", lambda it: it["state"] == "live"),
        ("DC#", "requestDigest", lambda it: it["status"] == "approved"),
    ):
        for value, _, item in _of(items, kind):
            if is_live(item):
                expected[keys.credential(item["userId"], item["listedAs"])] = name, value
    listed = {Key(it["pk"], it["sk"]) for _, _, it in _of(items, "CREDENTIALS#", keys.CREDENTIAL_PREFIX)}
    assert listed == set(expected), f"listed {listed}, live {set(expected)}"
    for entry, (name, value) in expected.items():
        assert items[entry][name] == value, f"{entry} names another {name}"


def balances_are_the_sum_of_their_ledgers(items: Items) -> None:
    """A balance is the sum of its ledger and never negative. A scan is charged if and only if it was unlocked."""
    for organization_id, _, item in _of(items, "ORG#", "BILLING"):
        ledger = _of_organization(items, organization_id, keys.LEDGER_PREFIX)
        scans = [scan for scan in _of_organization(items, organization_id, "") if "headCommitSha" in scan]
        assert item["credits"] == sum(it["credits"] for it in ledger), f"{organization_id}: balance and ledger differ"
        assert item["credits"] >= 0, f"{organization_id} owes credits"
        for charged in (entry["scanId"] for entry in ledger if "scanId" in entry):
            found = [scan["access"] for scan in scans if scan["scanId"] == charged]
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
    listed = {item["scanId"] for _, _, item in _of(items, "", "REPORT#") if "scanId" in item}
    for report, own in scans.items():
        charged = [scan["scanId"] for scan in own if Key(scan["pk"], f"LEDGER#{scan['sk']}") in items]
        assert len(charged) <= 1, f"{report} is charged for {charged}"
        hidden = {scan["scanId"] for scan in own if scan["access"] != "full" and "findingsExpireAt" not in scan}
        assert not charged or hidden <= listed, f"{report} is charged, and {hidden - listed} stay locked"


def repositories_have_one_scan_at_a_time(items: Items) -> None:
    """A repository names its one open request or scan, no other is open, and it knows that it was scanned."""
    work = [item for prefix in (keys.SCAN_PREFIX, "SCANREQ#") for _, _, item in _of(items, "", prefix)]
    for _, local, item in _of(items, "ORG#", keys.REPOSITORY_PREFIX):
        own = [it for it in work if it["repositoryId"] == item["repositoryId"]]
        is_open = [it["requestId"] for it in own if it["status"] in {"starting", "queued", "running"}]
        assert is_open == [item[name] for name in ("activeRequestId",) if name in item], f"{local}: {is_open} open"
        completed = [it for it in own if it["status"] == "completed" and "pullRequestNumber" not in it.get("cause", {})]
        assert item["previewUsed"] or not completed, f"{local} would have another first scan"


def names_of_repositories_lead_to_them(items: Items) -> None:
    """Each name of a repository leads to a connected repository that has it. One may have lost its name to another."""
    names = {
        item["repositoryId"]: keys.repository_name(organization_id, item["owner"], item["name"])
        for organization_id, _, item in _of(items, "ORG#", keys.REPOSITORY_PREFIX)
    }
    for _, name, item in _of(items, "ORG#", "reponame#"):
        expected = names.get(item["repositoryId"])
        assert Key(item["pk"], item["sk"]) == expected, f"{name} leads to another repository, or to none"


# All public functions of this module but those that read and check.
CHECKS: tuple[Callable[[Items], None], ...] = (
    *(
        check
        for name, check in [*globals().items()]
        if inspect.isfunction(check)
        and check.__module__ == __name__
        and not name.startswith(("_", "read_items", "check_all"))
    ),
    logged_changes.the_audit_log_leads_to_the_items,
)
