"""Operations of the code host, as one installation of the App.

    host = connect(installation_id)
    sha = host.get_branch_head("demo-shop", "storefront", "main")

Every operation has a total timeout that includes waits and retries. Every failure is one of `errors`. Names are checked
before they become part of a URL.
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from controlplane.code_host.github import errors
from controlplane.code_host.github.app_auth import READ_CODE, WRITE_ISSUES, AppAuth, Purpose, Scope
from controlplane.code_host.github.transport import Deadline, Request, Response, RetryPolicy, Transport
from controlplane.platform.core.naming import is_branch
from controlplane.platform.core.settings import settings

# GitHub's maximum length; longer texts get 422.
ISSUE_BODY_LIMIT = 65_536

TARBALL_LIMIT_BYTES = 256 * 1024 * 1024
_TARBALL_SECONDS = 120
# Timeouts of a write that isn't repeated: for a token, if one is needed, and for the write. They fit a worker's 30 s.
_TOKEN_SECONDS = 8
_WRITE_SECONDS = 15
_PAGE_SIZE = 100
# Allows for clock skew with the host: an issue created just after `since` must not be missed.
_CLOCK_MARGIN_SECONDS = 120

_APP = "/app"
_REPOSITORY = "/repos/{owner}/{repo}"
_INSTALLATION = "/repos/{owner}/{repo}/installation"
_BRANCH = "/repos/{owner}/{repo}/branches/{branch}"
_TARBALL = "/repos/{owner}/{repo}/tarball/{ref}"
_ISSUES = "/repos/{owner}/{repo}/issues"
_ISSUE = "/repos/{owner}/{repo}/issues/{issue_number}"

_NEXT_PAGE = re.compile(r'<([^<>]+)>\s*;[^,<]*\brel="?next"?')
_OWNER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_NAME = re.compile(r"(?!\.\.?$)[A-Za-z0-9._-]{1,100}")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class App:
    """The App that we authenticate as. `permissions` maps the permissions that it requests to their levels.

    events: what its webhook is subscribed to. GitHub doesn't list events of installations, which it always sends.
    """

    app_id: int
    name: str
    html_url: str
    permissions: Mapping[str, str]
    events: frozenset[str]


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository's current state at the code host, with its new name if it was renamed."""

    repository_id: int
    owner: str
    name: str
    default_branch: str
    html_url: str
    is_private: bool
    is_archived: bool
    has_issues: bool


@dataclass(frozen=True, slots=True)
class Issue:
    """An issue. `created_at` is RFC 3339 in the host's format; `body` includes any hidden marker."""

    number: int
    url: str
    created_at: str
    title: str
    body: str
    is_open: bool = True
    is_pull_request: bool = False


class CodeHost:
    """The code host with the permissions of one installation."""

    def __init__(self, transport: Transport, auth: AppAuth, installation_id: int) -> None:
        self._transport = transport
        self._auth = auth
        self._installation_id = installation_id

    def get_repository(self, owner: str, name: str) -> Repository:
        """Returns the repository. Raises RepositoryGone, AccessLost, and the errors common to all operations."""
        return self._send("GET", READ_CODE, _REPOSITORY, repository_names(owner, name)).read(_to_repository)

    def check_access(self, owner: str, name: str, purpose: Purpose) -> None:
        """Requests a token with these permissions. Raises AccessLost if the installation doesn't grant all of them."""
        names = repository_names(owner, name)
        scope = Scope(self._installation_id, names["owner"], names["repo"], purpose)
        self._auth.authorization(scope, self._deadline())

    def get_branch_head(self, owner: str, name: str, branch: str) -> str:
        """Returns the SHA of the branch's head commit. Raises BranchGone, RepositoryGone, AccessLost."""
        names = repository_names(owner, name) | {"branch": checked_branch(branch)}
        return self._send("GET", READ_CODE, _BRANCH, names, gone=errors.BranchGone).read(_to_head)

    def stream_tarball(
        self, owner: str, name: str, sha: str, *, limit_bytes: int = TARBALL_LIMIT_BYTES
    ) -> Iterator[bytes]:
        """Streams the repository at the commit as a gzipped tar, without holding all of it in memory.

        Raises CommitGone, RepositoryGone, AccessLost. While streaming, raises TarballTooLarge after `limit_bytes` of
        the compressed archive, and HostUnavailable if the stream is cut off: retry with a new stream.
        """
        deadline = Deadline(_TARBALL_SECONDS)
        names = repository_names(owner, name) | {"ref": checked_commit(sha)}
        url = self._transport.url(_TARBALL.format(**names))

        def send(authorization: str) -> Response:
            return self._transport.download(Request("GET", _TARBALL, url, authorization), deadline, limit_bytes)

        response = self._authorized(READ_CODE, names, send, deadline)
        stream: Iterator[bytes] = self._require(200, response, names, deadline, errors.CommitGone).content
        return stream

    def create_issue(self, owner: str, name: str, title: str, body: str, labels: Sequence[str] = ()) -> Issue:
        """Creates an issue. The request is never retried.

        Raises OutcomeUnknown if the issue may have been created: use `list_issues_since` to check. With every other
        error no issue was created: RepositoryGone, AccessLost, RateLimitedByHost, HostUnavailable (the host was not
        reached), and Refused, with 410 if the repository has issues disabled and 422 if the text was rejected.
        """
        content = {"title": title, "body": body, "labels": list(labels)}
        names = repository_names(owner, name)
        response = self._send("POST", WRITE_ISSUES, _ISSUES, names, body=content, is_repeated=False, status=201)
        return response.read(_to_issue, errors.OutcomeUnknown)

    def get_issue(self, owner: str, name: str, number: int) -> Issue:
        """Returns the issue, which can be a pull request. Raises IssueGone, RepositoryGone, AccessLost.

        An issue that was transferred is returned with its new number and URL.
        """
        names = repository_names(owner, name) | {"issue_number": str(number)}
        try:
            response = self._send("GET", WRITE_ISSUES, _ISSUE, names, gone=errors.IssueGone)
        except errors.Refused as refused:
            if refused.status == 410:  # it was deleted
                raise errors.IssueGone(**refused.context) from refused
            raise
        return response.read(_to_issue)

    def list_issues_since(self, owner: str, name: str, since: float) -> Iterator[Issue]:
        """Yields open and closed issues created or changed since the Unix time `since`, oldest first.

        Reads page by page. The result is complete only if the iteration ends without an error, and the host's list can
        lag behind the latest writes. Raises RepositoryGone, AccessLost.
        """
        deadline = self._deadline()
        names = repository_names(owner, name)
        moment = datetime.fromtimestamp(int(since) - _CLOCK_MARGIN_SECONDS, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        # Oldest first: an issue that enters the list during pagination only moves others back, so none is skipped.
        query = {"state": "all", "sort": "created", "direction": "asc", "since": moment, "per_page": str(_PAGE_SIZE)}
        while True:
            response = self._send("GET", WRITE_ISSUES, _ISSUES, names, query=query, deadline=deadline)
            yield from response.read(_to_issues)
            following = _NEXT_PAGE.search(response.headers.get("Link", ""))
            if following is None:
                return
            # Uses only the link's query, never its host, which would receive the token.
            query = dict(parse_qsl(urlsplit(following[1]).query))

    def _deadline(self) -> Deadline:
        return Deadline(self._transport.policy.total_timeout_seconds)

    def _send(
        self,
        method: str,
        purpose: Purpose,
        operation: str,
        names: Mapping[str, str],
        *,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
        deadline: Deadline | None = None,
        is_repeated: bool = True,
        status: int = 200,
        gone: type[errors.CodeHostError] = errors.RepositoryGone,
    ) -> Response:
        """Returns the response with this status. `gone`: see `_require`.

        is_repeated: False for a write that must not be repeated. Repeating another one has no further effect.
        """
        deadline = deadline or (self._deadline() if is_repeated else Deadline(_TOKEN_SECONDS))
        url = self._transport.url(operation.format(**names), **query or {})

        def send(authorization: str) -> Response:
            request = Request(method, operation, url, authorization, body)
            if is_repeated:
                return self._transport.send_with_retries(request, deadline)
            # A deadline of its own: a write sent with almost no time left would likely have an unknown outcome.
            return self._transport.send_once(request, Deadline(_WRITE_SECONDS))

        return self._require(status, self._authorized(purpose, names, send, deadline), names, deadline, gone)

    def _authorized(
        self, purpose: Purpose, names: Mapping[str, str], send: Callable[[str], Response], deadline: Deadline
    ) -> Response:
        """Returns the response to `send`. After a 401 (a token revoked early), retries once with a new token.

        Sends nothing if the installation has no request left.
        """
        quotas = self._auth.quotas
        quotas.require(self._installation_id)
        scope = Scope(self._installation_id, names["owner"], names["repo"], purpose)
        response = send(self._auth.authorization(scope, deadline))
        if response.status == 401:
            self._auth.forget(scope)
            response = send(self._auth.authorization(scope, deadline))
        quotas.note(self._installation_id, response)
        return response

    def _require(
        self,
        status: int,
        response: Response,
        names: Mapping[str, str],
        deadline: Deadline,
        gone: type[errors.CodeHostError],
    ) -> Response:
        """Returns the response. Raises the error of another status: for 404, `gone` if the repository still exists."""
        if response.status == 404 and gone is not errors.RepositoryGone:
            # The host doesn't say which of the two is missing.
            self._send("GET", READ_CODE, _REPOSITORY, names, deadline=deadline)
        return response.require(status, {401: errors.AccessLost, 403: errors.AccessLost, 404: gone})


def connect(installation_id: int) -> CodeHost:
    """Returns the configured code host as the installation. Sends no request."""
    return CodeHost(*get_transport(), installation_id)


def get_app() -> App:
    """Returns the App as registered at the code host. Raises Refused with 401 if its id and key don't match."""
    return _get_as_app(_APP, {}).require(200).read(_to_app)


def find_installation(owner: str, name: str) -> int:
    """Returns the id of the installation with access to the repository. Raises RepositoryGone if none has it."""
    response = _get_as_app(_INSTALLATION, repository_names(owner, name)).require(200, {404: errors.RepositoryGone})
    return response.read(lambda content: int(content["id"]))


def _get_as_app(operation: str, names: Mapping[str, str]) -> Response:
    transport, auth = get_transport()
    url, deadline = transport.url(operation.format(**names)), Deadline(transport.policy.total_timeout_seconds)
    return auth.send_as_app("GET", operation, url, deadline)


@cache
def get_transport() -> tuple[Transport, AppAuth]:
    """Returns the process-wide transport and authentication, which hold the connections and the tokens."""
    transport = Transport(settings.github_api_url, RetryPolicy(), time.sleep)
    return transport, AppAuth(transport, settings.github_app_id)


def _to_app(content: Any) -> App:
    permissions, events = dict(content["permissions"]), frozenset(content["events"])
    return App(int(content["id"]), content["name"], content["html_url"], permissions, events)


def _to_repository(content: Any) -> Repository:
    return Repository(
        repository_id=content["id"],
        owner=content["owner"]["login"],
        name=content["name"],
        default_branch=content["default_branch"],
        html_url=content["html_url"],
        is_private=content["private"],
        is_archived=content["archived"],
        has_issues=content["has_issues"],
    )


def _to_head(content: Any) -> str:
    sha = content["commit"]["sha"]
    if not is_commit(sha):
        raise TypeError
    return str(sha)


def _to_issue(content: Any) -> Issue:
    return Issue(
        number=content["number"],
        url=content["html_url"],
        created_at=content["created_at"],
        title=content["title"],
        body=content.get("body") or "",
        is_open=content["state"] == "open",
        is_pull_request="pull_request" in content,
    )


def _to_issues(content: Any) -> list[Issue]:
    """Returns the issues without pull requests, which GitHub lists as issues."""
    if not isinstance(content, list):
        raise TypeError
    return [issue for issue in map(_to_issue, content) if not issue.is_pull_request]


def repository_names(owner: str, name: str) -> dict[str, str]:
    """Returns the names as parts of a path. Raises InvalidName."""
    if not _OWNER.fullmatch(owner):
        raise errors.InvalidName("owner")
    if not _NAME.fullmatch(name):
        raise errors.InvalidName("repository")
    return {"owner": owner, "repo": name}


def is_commit(sha: str) -> bool:
    """Tells whether it is a whole SHA-1 or SHA-256 in hexadecimal."""
    return _COMMIT.fullmatch(sha) is not None


def checked_commit(sha: str) -> str:
    """Returns the commit's SHA. Raises InvalidName."""
    if not is_commit(sha):
        raise errors.InvalidName("commit")
    return sha


def checked_branch(branch: str) -> str:
    """Returns the branch quoted as one path segment. Raises InvalidName."""
    if not is_branch(branch):
        raise errors.InvalidName("branch")
    try:
        return quote(branch, safe="")
    except UnicodeEncodeError as failure:
        raise errors.InvalidName("branch") from failure
