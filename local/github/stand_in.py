"""The state of the stand-in: repositories, issues, tokens, and who may do what. It speaks no HTTP; `app` does."""

import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

from fastapi import Request, Response
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import RSAKey

from controlplane.platform.core import clock
from controlplane.platform.core.errors import known
from local.github.records import Denied, PullRequest, Store, StoredIssue
from local.github.repositories import GitRepository, Repositories, stable_id
from local.github.setup import APP_ID, CLIENT_ID, client_secret_file, key_file

PERMISSIONS = {
    "checks": "write",
    "contents": "read",
    "issues": "write",
    "metadata": "read",
    "pull_requests": "write",
}
_TOKEN_SECONDS = 3600
_PERSONS_TOKEN_SECONDS = 8 * 3600
# GitHub's codes expire after ten minutes, and it takes an App's token for ten minutes at most.
_CODE_SECONDS = _APP_TOKEN_LIMIT_SECONDS = 600
type Respond = Callable[[Request], Awaitable[Response]]
_LEVELS = {"read": 1, "write": 2, "admin": 3}


@dataclass(frozen=True, slots=True)
class Token:
    """An installation token. It has access to all repositories of one owner, or to selected ones."""

    value: str = field(repr=False)
    installation_id: int
    owner: str
    permissions: dict[str, str]
    # None: all of them.
    repository_ids: frozenset[int] | None
    expires_seconds: float


class PullRequestChange(NamedTuple):
    """A pull request, and the commit that its branch is at."""

    pull_request: PullRequest
    head: str


class Accounts:
    """The person at the pages, who has write access to every repository unless a test takes it away.

    strangers: owners to whose repositories the person has no access. read_only: repositories (owner/name) that the
    person can only read. callback_url: the one that is registered for the App; None for the server that was asked.
    """

    def __init__(self) -> None:
        self.strangers: set[str] = set()
        self.read_only: set[str] = set()
        self.callback_url: str | None = None
        self._codes: dict[str, float] = {}
        self._tokens: dict[str, float] = {}

    def issue_code(self) -> str:
        """Returns a code that identifies the person once."""
        code = secrets.token_hex(10)
        self._codes[code] = clock.now() + _CODE_SECONDS
        return code

    def redeem(self, code: str) -> str | None:
        """Returns a token for the code, or None if it is unknown, used, or expired."""
        if self._codes.pop(code, 0.0) <= clock.now():
            return None
        # The form of GitHub's own, with letters that say what this one is.
        token = f"ghu_local{secrets.token_hex(18)}"
        self._tokens[token] = clock.now() + _PERSONS_TOKEN_SECONDS
        return token

    def check(self, authorization: str) -> None:
        """Raises Denied unless it is a token of the person that hasn't expired."""
        if self._tokens.get(authorization.removeprefix("Bearer "), 0.0) <= clock.now():
            raise Denied(401, "Bad credentials")


class StandIn:
    """One stand-in over one folder. Each owner of repositories has installed the App: see `setup.installation_id`."""

    def __init__(self, root: Path) -> None:
        self.repositories = Repositories(root / "repositories")
        self.reviews = Store(root / "records")
        self.accounts = Accounts()
        self.download_url: str | None = None
        """Where archives are served from. None: by the host that was asked."""

        self._root = root
        self._tokens: dict[str, Token] = {}

    async def respond(self, request: Request, operation: str, respond: Respond) -> Response:  # noqa: ARG002
        """Responds to each request of the REST API. Tests record them and cause faults here."""
        return await respond(request)

    def check_app(self, authorization: str) -> None:
        """Raises Denied unless it is a token that the App signed, and that is valid now."""
        try:
            # Read on demand: `make run` creates the file after imports.
            key = _read_key(key_file(self._root).read_bytes())
            claims = jwt.decode(authorization.removeprefix("Bearer "), key, algorithms=["RS256"]).claims
            issued, expires = int(claims["iat"]), int(claims["exp"])
        except (JoseError, ValueError, KeyError, TypeError):
            raise Denied(401, "A JSON web token could not be decoded") from None
        now = clock.now()
        if str(claims.get("iss")) != APP_ID:
            raise Denied(401, "Integration not found")
        if not issued <= now < expires <= now + _APP_TOKEN_LIMIT_SECONDS:
            raise Denied(401, "'Issued at' ('iat') or 'Expiration time' ('exp') is too far in the future or past")

    def is_client(self, client_id: str, client_secret: str) -> bool:
        """Returns whether they are those of the App."""
        return (client_id, client_secret) == (CLIENT_ID, client_secret_file(self._root).read_text())

    def find_owner(self, installation_id: int) -> str:
        """Returns the account with this installation of the App. Raises Denied."""
        for repository in self.repositories.list():
            if stable_id(repository.owner) == installation_id:
                return repository.owner
        raise Denied

    def list_accessible(self) -> list[GitRepository]:
        """Returns the repositories that the person has access to."""
        return [it for it in self.repositories.list() if it.owner not in self.accounts.strangers]

    def issue_token(
        self,
        installation_id: int,
        permissions: dict[str, str] | None,
        names: list[str] | None = None,
        repository_ids: list[int] | None = None,
    ) -> Token:
        owner = self.find_owner(installation_id)
        if self.is_suspended(installation_id):
            raise Denied(403, "This installation has been suspended")
        granted = self.permissions(installation_id)
        wanted = granted if permissions is None else permissions
        if any(_LEVELS.get(level, 9) > _LEVELS.get(granted.get(name, ""), 0) for name, level in wanted.items()):
            raise Denied(422, "The permissions requested are not granted to this installation.")
        selected = self._select(owner, names, repository_ids)
        # The form of GitHub's own, with letters that say what this one is.
        value = f"ghs_local{secrets.token_hex(18)}"
        token = Token(value, installation_id, owner, wanted, selected, clock.now() + _TOKEN_SECONDS)
        self._tokens[token.value] = token
        return token

    def _select(self, owner: str, names: list[str] | None, repository_ids: list[int] | None) -> frozenset[int] | None:
        """Returns the ids of the repositories requested by current name or id. Raises Denied if one is missing."""
        if names is None and repository_ids is None:
            return None
        found = {it.repository_id: it.name for it in self.repositories.list() if it.owner == owner}
        selected = {number for number, name in found.items() if name in (names or [])} | set(repository_ids or [])
        if len(selected) < len(names or []) or not selected <= found.keys():
            raise Denied(422, "There is at least one repository that does not exist or is not accessible.")
        return frozenset(selected)

    def is_suspended(self, installation_id: int) -> bool:  # noqa: ARG002
        return False

    def permissions(self, installation_id: int) -> dict[str, str]:  # noqa: ARG002
        return PERMISSIONS

    def list_granted(self, token: Token) -> list[GitRepository]:
        return [it for it in self.repositories.list() if it.owner == token.owner]

    def list_issues(self, owner: str, name: str) -> list[StoredIssue]:
        """Returns the issues, oldest first."""
        return self.reviews.read(owner, name).issues

    def create_issue(self, owner: str, name: str, title: str, body: str | None, labels: Sequence[str]) -> StoredIssue:
        with self.reviews.change(owner, name) as records:
            return records.add_issue(title, body, labels)

    def set_issue_state(self, owner: str, name: str, number: int, state: str) -> StoredIssue:
        """Closes or reopens the issue. Raises Denied if it doesn't exist."""
        with self.reviews.change(owner, name) as records:
            return records.set_issue_state(number, state)

    def revoke_tokens(self) -> None:
        self._tokens.clear()

    def check_token(self, authorization: str) -> Token:
        """Returns the installation token. Raises Denied if it doesn't exist or has expired."""
        token = self.find_token(authorization)
        if token is None or token.expires_seconds <= clock.now():
            raise Denied(401, "Bad credentials")
        return token

    def find_token(self, authorization: str) -> Token | None:
        return self._tokens.get(authorization.removeprefix("Bearer "))

    def get_repository(self, token: Token, owner: str, name: str, permission: str, level: str) -> GitRepository:
        """Returns the repository if the token has access to it. Raises Denied."""
        found = self.find_repository(owner, name)
        if found not in self.list_granted(token):
            raise Denied
        if token.repository_ids is not None and found.repository_id not in token.repository_ids:
            raise Denied
        if _LEVELS.get(token.permissions.get(permission, ""), 0) < _LEVELS[level]:
            raise Denied(403, "Resource not accessible by integration")
        return found

    def find_repository(self, owner: str, name: str) -> GitRepository:
        """Returns the repository. Raises Denied."""
        return known(self.repositories.find(owner, name), Denied)

    def open_pull_request(
        self, owner: str, name: str, title: str, files: Mapping[str, str], *, fork: str | None = None
    ) -> PullRequestChange:
        """Opens a pull request to the default branch, from a branch of its own with these files changed."""
        repository = self.find_repository(owner, name)
        with self.reviews.change(owner, name) as records:
            number, base = records.next_number(), repository.default_branch()
            head = repository.commit_files(_ref(number), files, title, start=f"refs/heads/{base}")
            opened = PullRequest(number, title, f"change-{number}", base, int(clock.now()), fork=fork)
            records.pull_requests.append(opened)
        return PullRequestChange(opened, head)

    def push(self, owner: str, name: str, number: int, files: Mapping[str, str]) -> PullRequestChange:
        """Adds a commit with these files to the pull request. Raises Denied if it doesn't exist."""
        repository, found = self.find_repository(owner, name), self.reviews.read(owner, name).get_pull_request(number)
        return PullRequestChange(found, repository.commit_files(_ref(number), files, "Change it again"))

    def set_pull_request_state(self, owner: str, name: str, number: int, state: str) -> PullRequest:
        """Closes or reopens the pull request. Raises Denied if it doesn't exist."""
        with self.reviews.change(owner, name) as records:
            return records.set_pull_request_state(number, state)


@cache
def _read_key(pem: bytes) -> RSAKey:
    return RSAKey.import_key(pem)


def _ref(number: int) -> str:
    """Returns the name under which GitHub has the head of a pull request, also if it comes from a fork."""
    return f"refs/pull/{number}/head"
