"""Answers in the shapes of GitHub's published description, from the stand-in's data. Unknown values are said
as GitHub says it of an empty repository.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from local.github import setup
from local.github.issues import StoredIssue
from local.github.repositories import Commit, GitRepository, stable_id

APP_SLUG = setup.APP_SLUG
# The events that the App's webhook is subscribed to. Events of installations are always sent.
EVENTS = ("check_run", "issues", "pull_request", "push", "repository")

_REACTIONS = ("+1", "-1", "confused", "eyes", "heart", "hooray", "laugh", "rocket", "total_count")
_REPOSITORY_LINKS = {
    "archive": "/{archive_format}{/ref}",
    "assignees": "/assignees{/user}",
    "blobs": "/git/blobs{/sha}",
    "branches": "/branches{/branch}",
    "collaborators": "/collaborators{/collaborator}",
    "comments": "/comments{/number}",
    "commits": "/commits{/sha}",
    "compare": "/compare/{base}...{head}",
    "contents": "/contents/{+path}",
    "contributors": "/contributors",
    "deployments": "/deployments",
    "downloads": "/downloads",
    "events": "/events",
    "forks": "/forks",
    "git_commits": "/git/commits{/sha}",
    "git_refs": "/git/refs{/sha}",
    "git_tags": "/git/tags{/sha}",
    "hooks": "/hooks",
    "issue_comment": "/issues/comments{/number}",
    "issue_events": "/issues/events{/number}",
    "issues": "/issues{/number}",
    "keys": "/keys{/key_id}",
    "labels": "/labels{/name}",
    "languages": "/languages",
    "merges": "/merges",
    "milestones": "/milestones{/number}",
    "notifications": "/notifications{?since,all,participating}",
    "pulls": "/pulls{/number}",
    "releases": "/releases{/id}",
    "stargazers": "/stargazers",
    "statuses": "/statuses/{sha}",
    "subscribers": "/subscribers",
    "subscription": "/subscription",
    "tags": "/tags",
    "teams": "/teams",
    "trees": "/git/trees{/sha}",
}
_USER_LINKS = {
    "events": "/events{/privacy}",
    "followers": "/followers",
    "following": "/following{/other_user}",
    "gists": "/gists{/gist_id}",
    "organizations": "/orgs",
    "received_events": "/received_events",
    "repos": "/repos",
    "starred": "/starred{/owner}{/repo}",
    "subscriptions": "/subscriptions",
}


@dataclass(frozen=True, slots=True)
class Address:
    """The stand-in's URLs: `html_url` of its pages, `api_url` of its REST API."""

    html_url: str
    api_url: str

    def repository_api(self, repository: GitRepository) -> str:
        return f"{self.api_url}/repos/{repository.full_name}"

    def repository_page(self, repository: GitRepository) -> str:
        return f"{self.html_url}/{repository.full_name}"


def moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def problem(message: str, status: int) -> dict[str, Any]:
    return {"message": message, "documentation_url": "https://docs.github.com/rest", "status": str(status)}


def account(login: str, address: Address, kind: str = "Organization") -> dict[str, Any]:
    url = f"{address.api_url}/users/{login}"
    return {
        "login": login,
        "id": stable_id(login),
        "node_id": f"U_{stable_id(login)}",
        "avatar_url": f"{address.html_url}/{login}.png",
        "gravatar_id": "",
        "url": url,
        "html_url": f"{address.html_url}/{login}",
        **{f"{name}_url": url + path for name, path in _USER_LINKS.items()},
        "type": kind,
        "site_admin": False,
    }


def repository(found: GitRepository, address: Address) -> dict[str, Any]:
    url, page = address.repository_api(found), address.repository_page(found)
    made = moment(found.created_seconds)
    return {
        "id": found.repository_id,
        "node_id": f"R_{found.repository_id}",
        "name": found.name,
        "full_name": found.full_name,
        "private": True,
        "visibility": "private",
        "owner": account(found.owner, address),
        "html_url": page,
        "description": None,
        "fork": False,
        "url": url,
        **{f"{name}_url": url + path for name, path in _REPOSITORY_LINKS.items()},
        "clone_url": f"{page}.git",
        "git_url": f"{page}.git",
        "ssh_url": f"{page}.git",
        "svn_url": page,
        "mirror_url": None,
        "homepage": None,
        "language": None,
        "license": None,
        "topics": [],
        "default_branch": found.default_branch(),
        "archived": False,
        "disabled": False,
        "has_issues": True,
        "has_projects": False,
        "has_wiki": False,
        "has_pages": False,
        "has_discussions": False,
        "has_downloads": False,
        "created_at": made,
        "updated_at": made,
        "pushed_at": made,
        **dict.fromkeys(("forks", "forks_count", "open_issues", "open_issues_count", "size", "stargazers_count"), 0),
        **dict.fromkeys(("watchers", "watchers_count", "network_count", "subscribers_count"), 0),
    }


def branch(found: GitRepository, name: str, head: Commit, address: Address) -> dict[str, Any]:
    url = address.repository_api(found)
    return {
        "name": name,
        "commit": _commit(found, head, address),
        "_links": {
            "self": f"{url}/branches/{name}",
            "html": f"{address.repository_page(found)}/tree/{name}",
        },
        "protected": False,
        "protection": {"enabled": False},
        "protection_url": f"{url}/branches/{name}/protection",
    }


def _commit(found: GitRepository, commit: Commit, address: Address) -> dict[str, Any]:
    url, page = address.repository_api(found), address.repository_page(found)
    person = {"name": commit.author, "email": commit.email, "date": commit.date}
    return {
        "sha": commit.sha,
        "node_id": f"C_{commit.sha[:12]}",
        "url": f"{url}/commits/{commit.sha}",
        "html_url": f"{page}/commit/{commit.sha}",
        "comments_url": f"{url}/commits/{commit.sha}/comments",
        "author": None,
        "committer": None,
        "parents": [{"sha": parent, "url": f"{url}/commits/{parent}"} for parent in commit.parents],
        "commit": {
            "url": f"{url}/git/commits/{commit.sha}",
            "author": person,
            "committer": person,
            "message": commit.message,
            "comment_count": 0,
            "tree": {"sha": commit.tree, "url": f"{url}/git/trees/{commit.tree}"},
        },
    }


def push(found: GitRepository, branch: str, head: Commit, address: Address) -> dict[str, Any]:
    """Returns the event of a push of one commit to the branch."""
    url = f"{address.repository_page(found)}/commit/{head.sha}"
    person = {"name": head.author, "email": head.email}
    commit = {
        "id": head.sha,
        "tree_id": head.tree,
        "distinct": True,
        "message": head.message,
        "timestamp": head.date,
        "url": url,
        "author": person,
        "committer": person,
        "added": [],
        "modified": [],
        "removed": [],
    }
    return {
        "ref": f"refs/heads/{branch}",
        "before": head.parents[0] if head.parents else "0" * 40,
        "after": head.sha,
        "base_ref": None,
        "compare": url,
        "commits": [commit],
        "head_commit": commit,
        "pusher": person,
        **dict.fromkeys(("created", "deleted", "forced"), False),
    }


def issue(found: GitRepository, stored: StoredIssue, address: Address) -> dict[str, Any]:
    repository_url = address.repository_api(found)
    url = f"{repository_url}/issues/{stored.number}"
    return {
        "id": stable_id(url),
        "node_id": f"I_{stable_id(url)}",
        "number": stored.number,
        "title": stored.title,
        "body": stored.body,
        "state": stored.state,
        "state_reason": None,
        "locked": False,
        "active_lock_reason": None,
        "reactions": {"url": f"{url}/reactions", **dict.fromkeys(_REACTIONS, 0)},
        "comments": 0,
        "user": account(f"{APP_SLUG}[bot]", address, "Bot"),
        "labels": [_label(name, repository_url) for name in stored.labels],
        "assignee": None,
        "assignees": [],
        "milestone": None,
        "author_association": "NONE",
        "closed_at": moment(stored.updated_seconds) if stored.state == "closed" else None,
        "created_at": moment(stored.created_seconds),
        "updated_at": moment(stored.updated_seconds),
        "html_url": f"{address.repository_page(found)}/issues/{stored.number}",
        "url": url,
        "repository_url": repository_url,
        "labels_url": f"{url}/labels{{/name}}",
        "comments_url": f"{url}/comments",
        "events_url": f"{url}/events",
    }


def _label(name: str, repository_url: str) -> dict[str, Any]:
    url = f"{repository_url}/labels/{stable_id(name)}"
    return {
        "id": stable_id(url),
        "node_id": f"L_{stable_id(url)}",
        "url": url,
        "name": name,
        "description": None,
        "color": "ededed",
        "default": False,
    }


def app(app_id: int, permissions: dict[str, str], address: Address) -> dict[str, Any]:
    return {
        "id": app_id,
        "slug": APP_SLUG,
        "node_id": f"A_{app_id}",
        "owner": account(APP_SLUG, address),
        "name": APP_SLUG,
        "description": None,
        "external_url": address.html_url,
        "html_url": f"{address.html_url}/apps/{APP_SLUG}",
        "created_at": moment(0),
        "updated_at": moment(0),
        "permissions": permissions,
        "events": list(EVENTS),
    }


def installation(
    installation_id: int, app_id: int, owner: str, permissions: dict[str, str], address: Address
) -> dict[str, Any]:
    return {
        "id": installation_id,
        "account": account(owner, address),
        "app_id": app_id,
        "app_slug": APP_SLUG,
        "target_id": stable_id(owner),
        "target_type": "Organization",
        "repository_selection": "all",
        "access_tokens_url": f"{address.api_url}/app/installations/{installation_id}/access_tokens",
        "repositories_url": f"{address.api_url}/installation/repositories",
        "html_url": f"{address.html_url}/settings/installations/{installation_id}",
        "permissions": permissions,
        "events": [],
        "created_at": moment(0),
        "updated_at": moment(0),
        "single_file_name": None,
        "suspended_by": None,
        "suspended_at": None,
    }
