"""Pull requests, comments, and check runs in the shapes of GitHub's published description."""

from typing import Any

from local.github import shapes
from local.github.issues import StoredIssue
from local.github.pull_requests import CheckRun, Comment, PullRequest
from local.github.repositories import GitRepository, stable_id
from local.github.setup import APP_ID, APP_SLUG
from local.github.shapes import Address

_NOTHING = {
    "active_lock_reason": None,
    "assignee": None,
    "auto_merge": None,
    "merge_commit_sha": None,
    "mergeable": None,
    "merged_at": None,
    "merged_by": None,
    "milestone": None,
}
_COUNTS = ("additions", "changed_files", "comments", "commits", "deletions", "review_comments")
_PAGES = {"comments": "/comments", "commits": "/commits", "review_comments": "/comments", "statuses": "/statuses"}


def pull_request(found: GitRepository, it: PullRequest, head: str, base: str, address: Address) -> dict[str, Any]:
    """Returns the pull request. head, base: the commits that its branches are at."""
    url = f"{address.repository_api(found)}/pulls/{it.number}"
    page = f"{address.repository_page(found)}/pull/{it.number}"
    made = shapes.moment(found.created_seconds)
    user = shapes.account(it.fork or found.owner, address, "User")
    links = ("comments", "commits", "html", "issue", "review_comment", "review_comments", "self", "statuses")
    return {
        "id": stable_id(url),
        "node_id": f"PR_{stable_id(url)}",
        "number": it.number,
        "state": it.state,
        "locked": False,
        "title": it.title,
        "user": user,
        "body": None,
        **{name: [] for name in ("assignees", "labels", "requested_reviewers", "requested_teams")},
        "draft": False,
        "head": _end(found, it.fork or found.owner, it.head, head, address),
        "base": _end(found, found.owner, it.base, base, address),
        "url": url,
        "html_url": page,
        "diff_url": f"{page}.diff",
        "patch_url": f"{page}.patch",
        "issue_url": f"{address.repository_api(found)}/issues/{it.number}",
        "review_comment_url": f"{url}/comments{{/number}}",
        **{f"{name}_url": url + path for name, path in _PAGES.items()},
        "_links": {name: {"href": url} for name in links},
        "author_association": "NONE",
        "created_at": made,
        "updated_at": made,
        "closed_at": made if it.state == "closed" else None,
        "merged": False,
        "mergeable_state": "unknown",
        "maintainer_can_modify": False,
        **_NOTHING,
        **dict.fromkeys(_COUNTS, 0),
    }


def _end(found: GitRepository, owner: str, branch: str, sha: str, address: Address) -> dict[str, Any]:
    return {
        "label": f"{owner}:{branch}",
        "ref": branch,
        "sha": sha,
        "user": shapes.account(owner, address),
        "repo": shapes.repository(GitRepository(owner, found.name, found.path), address),
    }


def as_issue(found: GitRepository, it: PullRequest, address: Address) -> dict[str, Any]:
    """Returns the pull request as an issue: GitHub's API has each of them as one, too."""
    made = int(found.created_seconds)
    shown = shapes.issue(found, StoredIssue(it.number, it.title, None, (), made, made, it.state), address)
    page = f"{address.repository_page(found)}/pull/{it.number}"
    url = f"{address.repository_api(found)}/pulls/{it.number}"
    links = {"diff_url": f"{page}.diff", "html_url": page, "patch_url": f"{page}.patch", "url": url}
    return {**shown, "html_url": page, "pull_request": {**links, "merged_at": None}}


def comment(found: GitRepository, it: Comment, address: Address) -> dict[str, Any]:
    url = f"{address.repository_api(found)}/issues/comments/{it.comment_id}"
    return {
        "id": it.comment_id,
        "node_id": f"IC_{it.comment_id}",
        "url": url,
        "html_url": f"{address.repository_page(found)}/pull/{it.number}#issuecomment-{it.comment_id}",
        "issue_url": f"{address.repository_api(found)}/issues/{it.number}",
        "body": it.body,
        "user": shapes.account(f"{APP_SLUG}[bot]", address, "Bot"),
        "author_association": "NONE",
        "created_at": shapes.moment(it.created_seconds),
        "updated_at": shapes.moment(it.updated_seconds),
    }


def check_run(found: GitRepository, it: CheckRun, address: Address) -> dict[str, Any]:
    url = f"{address.repository_api(found)}/check-runs/{it.check_run_id}"
    return {
        "id": it.check_run_id,
        "node_id": f"CR_{it.check_run_id}",
        "name": it.name,
        "head_sha": it.head_sha,
        "external_id": it.external_id,
        "url": url,
        "html_url": f"{address.repository_page(found)}/runs/{it.check_run_id}",
        "details_url": f"{address.repository_page(found)}/runs/{it.check_run_id}",
        "status": it.status,
        "conclusion": it.conclusion,
        "started_at": shapes.moment(found.created_seconds),
        "completed_at": shapes.moment(found.created_seconds) if it.status == "completed" else None,
        "output": {
            "title": it.output.get("title"),
            "summary": it.output.get("summary"),
            "text": it.output.get("text"),
            "annotations_count": len(it.annotations),
            "annotations_url": f"{url}/annotations",
        },
        "check_suite": {"id": stable_id(it.head_sha)},
        "app": shapes.app(int(APP_ID), {"checks": "write"}, address),
        "pull_requests": [],
    }
