"""Keys of findings: the inbox, repositories, and scans."""

from collections.abc import Sequence

from controlplane.platform.table.keys.accounts import organization_pk
from controlplane.platform.table.keys.key import Index, Key
from controlplane.platform.table.shards import partition_of, partitions

# Lists of scans, one index per filter. Items without the attribute are not in the index.
SCANS_BY_STATUS = Index("scansByStatus", "scansByStatus", "sk")
SCANS_BY_REPOSITORY = Index("scansByRepository", "scansByRepository", "sk")
SCANS_BY_REPOSITORY_AND_STATUS = Index("scansByRepositoryAndStatus", "scansByRepositoryAndStatus", "sk")

# Repositories by the code host's installation of our App. Its partition key is a number.
REPOSITORIES_BY_INSTALLATION = Index("repositoriesByInstallation", "installationId", "sk")

# Inbox items by time of the last change: all items of an organization, and those in one status.
INBOX = Index("inbox", "pk", "inboxOrder")
INBOX_BY_STATUS = Index("inboxByStatus", "inboxByStatus", "inboxOrder")

INBOX_PREFIX = "INBOX#"
COMMENTER_PREFIX = "COMMENTER#"
_LONGEST_SORT_KEY_BYTES = 1_024
REPOSITORY_PREFIX = "REPO#"
INSTALLATION_PREFIX = "INSTALLATION#"
SCAN_PREFIX = "SCAN#"
SCAN_REQUEST_PREFIX = "SCANREQ#"


# The first three lines are projected into the list indexes, whose keys are in the last line. The projection of an index
# can't be changed, so `inboxOrder` also carries what lists show of `runtimeVendor` and `assignee`.
# {pk: ORG#org_2f…, sk: INBOX#8c4…, itemId: inb_2f…, title: Segment loads before consent, summary: …, priority: P1,
#  status: open, source: runtime, projectId: prj_2f…, repositoryName: null, updatedAt: 2026-…, version: 9b1c…,
#  githubIssue: {number: 7, url: https://…, createdAt: 2026-…}, statusAt: 2026-…, statusReason: null, statusBy: usr_8k…,
#  dismissedUntil: null, resolvedBy: {scanId: scn_2f…, observedAt: 2026-…, attempt: 1}, observedAt: 2026-…,
#  repositoryId: null,
#  decisions: [{vendorId: segment, state: approved, decidedAt: 2026-…}],
#  lockedFindings: {scanId: scn_2f…, newCount: 12, unlockCredits: 50},
#  ruleId: null, description: …, remediation: …, references: […], evidence: [{…}],
#  runtimeVendor: {projectId: prj_2f…, vendorId: segment, name: Segment, domain: segment.com},
#  auditRun: {auditId: aud_2f…, runId: run_2f…},
#  issueRefusal: {marker: 4f…, reason: issues-disabled, at: 2026-…},
#  history: [{status: open, at: 2026-…}, {status: dismissed, at: 2026-…, by: usr_8k…, reason: …}],
#  assignee: {userId: usr_8k…, since: 2026-…},
#  comments: [{id: cmt_8c…, at: 2026-…, by: usr_8k…, text: …, mentions: [usr_3c…]}],
#  inboxOrder: 2026-…#8c4…@usr_8k…@2026-…#segment#segment.com#Segment, inboxByStatus: ORG#org_2f…#open}
def inbox_item(organization_id: str, local: str) -> Key:
    return Key(organization_pk(organization_id), f"{INBOX_PREFIX}{local}")


# Written with each comment, so that people can export what they wrote. It stays if the comment is deleted.
# {pk: ORG#org_2f…, sk: COMMENTER#usr_8k…#8c4…, userId: usr_8k…}
def commenter(organization_id: str, user_id: str, local: str) -> Key:
    return Key(organization_pk(organization_id), f"{commenter_prefix(user_id)}{local}")


def commenter_prefix(user_id: str) -> str:
    return f"{COMMENTER_PREFIX}{user_id}#"


# Written with them, so that people can export what they wrote in organizations that they have left.
# {pk: COMMENTED#usr_8k…, sk: org_2f…, organizationId: org_2f…}
def commented(user_id: str, organization_id: str) -> Key:
    return Key(commented_pk(user_id), organization_id)


def commented_pk(user_id: str) -> str:
    return f"COMMENTED#{user_id}"


def commented_item(commented: Key) -> Key:
    """Returns the item that the person has commented on."""
    return Key(commented.pk, f"{INBOX_PREFIX}{commented.sk.rpartition('#')[2]}")


def inbox_order(updated_at: str, local: str, *shown: str, assignee: Sequence[str] = ()) -> str:
    """Returns the item's position in the lists, followed by texts that lists show, if they fit into a sort key.

    Only the last text may contain `#`. The texts don't change the order, because the position is unique. assignee: the
    ID of an account and a time, which always fit.
    """
    order = "#".join((updated_at, "@".join((local, *assignee)), *shown))
    return order if len(order.encode()) <= _LONGEST_SORT_KEY_BYTES else inbox_position(order)


def inbox_position(order: str) -> str:
    """Returns the position without the texts that follow it."""
    return "#".join(order.split("#", 2)[:2])


def inbox_order_assignee(order: str) -> list[str]:
    """Returns the ID of the assignee's account and the time of the assignment, or nothing."""
    return inbox_position(order).split("@")[1:]


def inbox_order_texts(order: str, count: int) -> list[str]:
    """Returns the texts that follow the position: `count` of them, or none."""
    return order.split("#", count + 1)[2:]


def inbox_status_pk(organization_id: str, status: str) -> str:
    return f"{organization_pk(organization_id)}#{status}"


# Makes the sweep open a dismissed item at that time. It has no effect if the item has another status or end by then.
# {pk: SNOOZES#17, sk: 2026-03-04T00:00:00.000Z#inb_2f…, itemId: inb_2f…}
def snooze(until: str, item_id: str) -> Key:
    return Key(partition_of("SNOOZES", item_id), f"{until}#{item_id}")


SNOOZES_PKS = partitions("SNOOZES")


ISSUE_ATTEMPTS_PK = "ISSUEATTEMPTS"


# A pending attempt to open an issue on the code host, until the issue exists or can't be created. All attempts share
# one partition because they are few and a sweep must find them.
# {pk: ISSUEATTEMPTS, sk: inb_2f…, marker: 4f…, state: sending, requestedBy: usr_8k…, requestedAt: 2026-…, claim: 9b1c…,
#  sentAt: 1790000000, dueAt: 1790000900}
def issue_attempt(item_id: str) -> Key:
    return Key(ISSUE_ATTEMPTS_PK, item_id)


# A repository on the code host. The `active…` attributes name the scan that is requested or running, if any.
# {pk: ORG#org_2f…, sk: REPO#01j…, repositoryId: rep_2f…, installationId: 4711, owner: acme, name: shop, htmlUrl: https://…,
#  defaultBranch: main, visibility: private, connectedAt: 2026-…, links: [{projectId: prj_2f…, productionBranch: null,
#  rootDirectory: apps/web, pullRequestScansEnabled: false}], previewUsed: true, activeRequestId: spr_2f…,
#  activeScanId: scn_2f…, hostedId: 1296269, accessLostAt: 2026-…, lastTurnAt: 2026-…}
def repository(organization_id: str, local: str) -> Key:
    return Key(organization_pk(organization_id), f"{REPOSITORY_PREFIX}{local}")


# Makes sure that a repository is connected to an organization only once.
# {pk: ORG#org_2f…, sk: reponame#acme/shop, repositoryId: rep_2f…}
def repository_name(organization_id: str, owner: str, name: str) -> Key:
    return Key(organization_pk(organization_id), f"reponame#{owner}/{name}".lower())


# The organization whose members connect repositories through an installation of our GitHub App. Each connection sets
# another version.
# {pk: INSTALLATION#4711, sk: INSTALLATION, organizationId: org_2f…, connectedBy: usr_8k…, version: 9b1c…}
def installation(installation_id: int) -> Key:
    return Key(f"{INSTALLATION_PREFIX}{installation_id}", "INSTALLATION")


# The same by organization.
# {pk: ORG#org_2f…, sk: INSTALLATION#4711, number: 4711, version: 9b1c…}
def organization_installation(organization_id: str, installation_id: int) -> Key:
    return Key(organization_pk(organization_id), f"{INSTALLATION_PREFIX}{installation_id}")


# Marks the state of a finished GitHub callback, which can't be used again.
# {pk: GITHUBSTATE#9f86d0…, sk: GITHUBSTATE, expiresAt: 1790003600}
def used_github_state(digest: str) -> Key:
    return Key(f"GITHUBSTATE#{digest}", "GITHUBSTATE")


# A requested scan, until the scan is created or can't be.
# {pk: ORG#org_2f…, sk: SCANREQ#01j…, requestId: spr_2f…, repositoryId: rep_2f…, projectId: prj_2f…, status: starting,
#  requestedBy: usr_8k…, createdAt: 2026-…, attempts: 1, claim: 9b1c…, leaseUntil: 1790000030, scanId: null}
def scan_request(organization_id: str, local: str) -> Key:
    return Key(organization_pk(organization_id), f"{SCAN_REQUEST_PREFIX}{local}")


# {pk: ORG#org_2f…, sk: SCAN#01j…, scanId: scn_2f…, repositoryId: rep_2f…, requestId: spr_2f…, repositoryName: shop,
#  branch: main, headCommitSha: 1f0c…, scope: repository, trigger: manual, status: running, access: free-preview,
#  unlockCredits: 50, progress: {…}, createdAt: 2026-…, attempts: 1, claim: 9b1c…, leaseUntil: 1790000300,
#  scansByStatus: org_2f…#running, scansByRepository: rep_2f…, scansByRepositoryAndStatus: rep_2f…#running}
def scan(organization_id: str, local: str) -> Key:
    return Key(organization_pk(organization_id), f"{SCAN_PREFIX}{local}")


def scan_pk(scan_id: str) -> str:
    return f"SCAN#{scan_id}"


# One finding of a scan, ordered by urgency. Each attempt at the scan writes under its own number, and the scan names
# the attempt that counts.
# {pk: SCAN#scn_2f…, sk: FINDING#002#00001, fingerprint: 77ab…, ruleId: tracker-before-consent, priority: P1, path: …}
def finding(scan_id: str, attempt: int, rank: int) -> Key:
    return Key(scan_pk(scan_id), f"{finding_prefix(attempt)}{rank:05d}")


FINDING_PREFIX = "FINDING#"


def finding_prefix(attempt: int) -> str:
    return f"{FINDING_PREFIX}{attempt:03d}#"


# A scan's inventory. Lists of scans don't show it, so it isn't part of the scan's item.
# {pk: SCAN#scn_2f…, sk: INVENTORY, files: 412, languages: [{name: Ruby, files: 310, bytes: 912345}],
#  frameworks: [{id: rails, name: Ruby on Rails, version: ~> 8.0, path: Gemfile}], packageManagers: [{…}],
#  vendors: [{id: posthog, name: PostHog, category: analytics, packages: [{name: posthog-js, version: ^1.2.0,
#  path: package.json}], hosts: [], loadingFiles: 2}], truncated: false}
def scan_inventory(scan_id: str) -> Key:
    return Key(scan_pk(scan_id), "INVENTORY")


# A project's latest scan of the repository's production branch.
# {pk: LATESTSCANS#17, sk: rep_2f…#01j…, projectId: prj_2f…, scanId: scn_2f…}
def latest_scan(repository_id: str, project_local: str) -> Key:
    return Key(latest_scans_pk(repository_id), f"{repository_id}#{project_local}")


def latest_scans_pk(repository_id: str) -> str:
    return partition_of("LATESTSCANS", repository_id)


LATEST_SCANS_PKS = partitions("LATESTSCANS")


# A repository whose latest scans are to be compared with the list of advisories. Each event has another `change`.
# {pk: ADVISORIES#17, sk: rep_2f…, change: 01j…}
def due_comparison(repository_id: str) -> Key:
    return Key(partition_of("ADVISORIES", repository_id), repository_id)


ADVISORIES_PKS = partitions("ADVISORIES")


# A finding of a repository, over all scans. `place` is the fingerprint of its current place if it has moved. `gone`
# names the scan that no longer found it, and `unsettled` is set until its inbox item is known to be resolved.
# {pk: REPO#rep_2f…, sk: FP#77ab…, firstSeenAt: 2026-…, ruleId: analytics-loaded, content: 0b1c…, ordinal: 0,
#  path: src/index.html, place: 93fe…, projectIds: [prj_2f…], gone: {scanId: scn_2f…, since: 2026-…}, unsettled: true}
def finding_history(repository_id: str, fingerprint: str) -> Key:
    return Key(finding_history_pk(repository_id), f"{FINDING_HISTORY_PREFIX}{fingerprint}")


FINDING_HISTORY_PREFIX = "FP#"


# A report that was paid for. The key's last part identifies the report: commit, folder, and rules.
# {pk: REPO#rep_2f…, sk: REPORT#5f0c…, at: 2026-…}
def paid_report(repository_id: str, report: str) -> Key:
    return Key(finding_history_pk(repository_id), report_prefix(report))


# A completed scan with that report whose findings are locked.
# {pk: REPO#rep_2f…, sk: REPORT#5f0c…#01j…, scanId: scn_2f…}
def locked_scan(repository_id: str, report: str, scan_local: str) -> Key:
    return Key(finding_history_pk(repository_id), f"{report_prefix(report)}#{scan_local}")


def report_prefix(report: str) -> str:
    return f"REPORT#{report}"


def finding_history_pk(repository_id: str) -> str:
    return f"REPO#{repository_id}"


# A pull request that is scanned for a project, with our report on it. `checks` are the check runs by commit, and
# `creating` is the last creation that was sent, with its time, until its id is known.
# {pk: REPO#rep_2f…, sk: PULL#0000000012#01j…, number: 12, projectId: prj_2f…, headSha: 1f0c…, marker: 4f…,
#  requestId: spr_2f…, scanId: scn_2f…, checks: {1f0c…: {id: 88, shown: completed}}, commentId: 99, comment: 77ab…,
#  creating: {what: check, sentAt: 1790000000}, claim: 9b1c…, claimedUntil: 1790000120}
def pull_request(repository_id: str, number: int, project_local: str) -> Key:
    return Key(finding_history_pk(repository_id), f"{pull_request_prefix(number)}{project_local}")


def pull_request_prefix(number: int) -> str:
    return f"PULL#{number:010d}#"


# An inbox item that an issue of the repository was opened for, or linked to.
# {pk: REPO#rep_2f…, sk: ISSUE#0000000007#01j…, itemId: inb_2f…}
def opened_issue(repository_id: str, number: int, item_local: str) -> Key:
    return Key(finding_history_pk(repository_id), f"{opened_issue_prefix(number)}{item_local}")


def opened_issue_prefix(number: int) -> str:
    return f"ISSUE#{number:010d}#"


# A scan that is to start once the repository has no other: the newest of its kind. `subject` is PRODUCTION, or a pull
# request.
# {pk: SCANQUEUE#17, sk: rep_2f…#01j…#PRODUCTION, repositoryId: rep_2f…, projectId: prj_2f…, trigger: push,
#  queuedAt: 2026-…, notBefore: 1790000000}
def queued_scan(repository_id: str, project_local: str, subject: str) -> Key:
    return Key(scan_queue_pk(repository_id), f"{repository_id}#{project_local}#{subject}")


def scan_queue_pk(repository_id: str) -> str:
    return partition_of("SCANQUEUE", repository_id)


SCAN_QUEUE_PKS = partitions("SCANQUEUE")


# The next scheduled scan of a link. It has no effect if its time isn't in the link's schedule anymore.
# {pk: SCANSCHEDULE#17, sk: 2026-03-04T05:16:00.000Z#rep_2f…#01j…, repositoryId: rep_2f…, projectId: prj_2f…}
def scheduled_scan(at: str, repository_id: str, project_local: str) -> Key:
    return Key(partition_of("SCANSCHEDULE", repository_id), f"{at}#{repository_id}#{project_local}")


SCAN_SCHEDULE_PKS = partitions("SCANSCHEDULE")


# Makes the sweep check on a request, then on its scan, from that time until either has ended.
# {pk: SCANWATCH#17, sk: 2026-03-04T05:16:07.000Z#spr_2f…, requestId: spr_2f…, repositoryId: rep_2f…}
def scan_watch(at: str, request_id: str) -> Key:
    return Key(partition_of("SCANWATCH", request_id), f"{at}#{request_id}")


SCAN_WATCH_PKS = partitions("SCANWATCH")
