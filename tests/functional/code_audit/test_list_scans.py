"""GET /v1/code-audit/scans: newest first, filtered by repository and by status."""

from itertools import product

from tests.functional.code_audit.conftest import SCANS, Organization
from tests.support.each import each
from tests.support.recorded import recorded_calls

STATUSES = ("completed", "failed", "running", "queued", "canceled")


def listed(acme, query=""):
    return acme.send("GET", f"{SCANS}?organizationId={acme.id}{query}")


def ids(acme, query=""):
    return [scan["id"] for scan in listed(acme, query).data]


def test_a_list_has_whole_scans_without_their_inventories(acme):
    scan = acme.scan()
    # Only a scan of its own has the inventory, whose size would multiply the price of a list.
    assert [{**it, "inventory": None} for it in listed(acme).data] == [acme.get(scan).data]


def test_filters_work_alone_and_together_and_the_newest_is_first(acme, api, world, now):
    shop, blog, theirs = acme.connect(), acme.connect(), Organization(api, world).connect()
    made = {}
    for repository, status in product((shop, blog, theirs), STATUSES[:3]):
        made[repository.repository_id, status] = acme.scan(repository, status=status).scan_id
        now.advance(1)
    own = [it for it in made if it[0] != theirs.repository_id][::-1]
    assert ids(acme) == [made[it] for it in own]
    named = [it.repository_id for it in (shop, blog, theirs)]
    for only, status in product([*named, "nonsense", None], [*STATUSES, None]):
        query = (f"&repositoryId={only}" if only else "") + (f"&status={status}" if status else "")
        assert ids(acme, query) == [made[it] for it in own if it == (only or it[0], status or it[1])], query


@each("filtered", ["", "&status=completed", "&repositoryId={}", "&repositoryId={}&status=completed"])
def test_paging_returns_each_scan_once_and_reads_only_its_pages(filtered, api, world, now):
    acme = Organization(api, world)
    repository = acme.connect()
    made = []
    for status in ("completed", "failed", "completed", "completed", "failed", "completed"):
        scan = acme.scan(repository, status=status)
        if status == "completed" or "status" not in filtered:
            made.insert(0, scan.scan_id)
        now.advance(1)
    query, seen, cursor = filtered.format(repository.repository_id), [], ""
    while cursor is not None:
        with recorded_calls() as calls:
            reply = listed(acme, f"{query}&limit=2{cursor and '&cursor='}{cursor}")
        (read,) = [call for call in calls if call.operation == "Query" and "Limit" in call.parameters]
        assert (read.parameters["Limit"] <= 4, "FilterExpression" in read.parameters) == (True, False)
        seen += [scan["id"] for scan in reply.data]
        cursor = reply.body["pagination"]["nextCursor"]
    assert seen == made


@each("query", ["status=done", "status=", "repositoryId=", "status=Completed"])
def test_an_invalid_filter_returns_400(query, acme):
    reply = listed(acme, f"&{query}")
    assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")


def test_a_cursor_works_only_with_its_filter_and_organization(acme, api, world):
    repository = acme.connect()
    for _ in range(2):
        acme.scan(repository)
    cursor = f"&cursor={listed(acme, '&limit=1').body['pagination']['nextCursor']}"
    queries = ("", "&status=completed", f"&repositoryId={repository.repository_id}")
    assert [listed(acme, f"{query}{cursor}").status for query in queries] == [200, 400, 400]
    other = world.company(owner=acme.owner).organization_id
    assert acme.send("GET", f"{SCANS}?organizationId={other}{cursor}").code == "INVALID_PAYLOAD"
