"""The stand-in's data in the shapes of GitHub's published description: the properties that our client reads.

base: the URL of the stand-in's pages.
"""

from typing import Any

from local.github.records import CheckRun, Comment, PullRequest, Review, StoredIssue
from local.github.repositories import Change, GitRepository, stable_id
from local.github.setup import APP_ID, APP_SLUG
from local.pages import moment

# The events that the App's webhook is subscribed to. Events of installations are always sent.
EVENTS = ["check_run", "issues", "pull_request", "push", "repository"]


def problem(message: str, status: int) -> dict[str, Any]:
    return {"message": message, "documentation_url": "https://docs.github.com/rest", "status": str(status)}


def app(permissions: dict[str, str], base: str) -> dict[str, Any]:
    url = f"{base}/apps/{APP_SLUG}"
    known = {"id": int(APP_ID), "name": APP_SLUG, "html_url": url, "owner": account(APP_SLUG, base)}
    return {**known, "permissions": permissions, "events": EVENTS, "created_at": moment(0)}


def installation(owner: str, permissions: dict[str, str], base: str, *, is_suspended: bool) -> dict[str, Any]:
    return {
        "id": stable_id(owner),
        "html_url": f"{base}/settings/installations/{stable_id(owner)}",
        "permissions": permissions,
        "events": EVENTS,
        "created_at": moment(0),
        "suspended_at": moment(0) if is_suspended else None,
    }


def account(login: str, base: str) -> dict[str, Any]:
    return {"id": stable_id(login), "login": login, "html_url": f"{base}/{login}"}


def repository(found: GitRepository, base: str) -> dict[str, Any]:
    return {
        "id": found.repository_id,
        "name": found.name,
        "owner": account(found.owner, base),
        "private": True,
        "visibility": "private",
        "html_url": f"{base}/{found.full_name}",
        "homepage": f"https://{found.owner}.example.com",
        "default_branch": found.default_branch(),
        "archived": False,
        "has_issues": True,
        "created_at": moment(found.created_seconds),
    }


def commit(found: GitRepository, sha: str, base: str) -> dict[str, Any]:
    return {"sha": sha, "html_url": f"{base}/{found.full_name}/commit/{sha}", "commit": {}}


def issue(found: GitRepository, it: StoredIssue | PullRequest, base: str) -> dict[str, Any]:
    """Returns the issue, or the pull request as an issue: GitHub's API has each of them as one, too."""
    url = f"{base}/{found.full_name}/{'issues' if isinstance(it, StoredIssue) else 'pull'}/{it.number}"
    shown = {
        "id": it.number,
        "number": it.number,
        "title": it.title,
        "body": it.body if isinstance(it, StoredIssue) else None,
        "state": it.state,
        "created_at": moment(it.created_seconds),
        "html_url": url,
    }
    return shown if isinstance(it, StoredIssue) else {**shown, "pull_request": {"html_url": url}}


def pull_request(found: GitRepository, it: PullRequest, head: str, target: str, base: str) -> dict[str, Any]:
    """Returns the pull request. head, target: the commits that its branches are at."""
    ends = {"head": {"ref": it.head, "sha": head}, "base": {"ref": it.base, "sha": target}}
    shown = issue(found, it, base)
    del shown["pull_request"]
    return {**shown, **ends}


def comment(found: GitRepository, it: Comment, base: str) -> dict[str, Any]:
    url = f"{base}/{found.full_name}/pull/{it.number}#issuecomment-{it.comment_id}"
    return {"id": it.comment_id, "body": it.body, "html_url": url, "created_at": moment(it.created_seconds)}


def review(found: GitRepository, it: Review, base: str) -> dict[str, Any]:
    url = f"{base}/{found.full_name}/pull/{it.number}#pullrequestreview-{it.review_id}"
    return {"id": it.review_id, "body": it.body, "state": "COMMENTED", "commit_id": it.commit_id, "html_url": url}


def changed_file(it: Change) -> dict[str, Any]:
    return {"filename": it.path, "status": it.status} | ({"patch": it.patch} if it.patch else {})


def check_run(found: GitRepository, it: CheckRun, base: str) -> dict[str, Any]:
    return {
        "id": it.check_run_id,
        "name": it.name,
        "external_id": it.external_id,
        "html_url": f"{base}/{found.full_name}/runs/{it.check_run_id}",
        "status": it.status,
        "conclusion": it.conclusion,
        "output": {
            "title": it.output.get("title"),
            "summary": it.output.get("summary"),
            "annotations_count": len(it.annotations),
        },
    }
