"""The state of the stand-in: repositories, issues, tokens, and who may do what. It speaks no HTTP; `app` does."""

import base64
import binascii
import json
import secrets
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from controlplane.platform.core import clock
from local.github.accounts import Accounts
from local.github.faults import Faults
from local.github.issues import Issues
from local.github.pull_requests import PullRequest, PullRequests
from local.github.repositories import GitRepository, Repositories, stable_id
from local.github.setup import APP_ID, client_secret_file, key_file

PERMISSIONS = {
    "checks": "write",
    "contents": "read",
    "issues": "write",
    "metadata": "read",
    "pull_requests": "read",
}
_TOKEN_SECONDS = 3600
# GitHub takes an App's token for ten minutes at most.
_APP_TOKEN_LIMIT_SECONDS = 600
_LEVELS = {"read": 1, "write": 2, "admin": 3}


class Denied(Exception):
    """The request is rejected with that status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


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


@dataclass(frozen=True, slots=True)
class Recorded:
    """A received request."""

    operation: str
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str] = field(repr=False)
    body: Any = field(repr=False)


class PullRequestChange(NamedTuple):
    """A pull request, and the commit that its branch is at."""

    pull_request: PullRequest
    head: str


class StandIn:
    """One stand-in over one folder. Each owner of repositories has installed the App: see `setup.installation_id`."""

    def __init__(self, root: Path) -> None:
        self.repositories = Repositories(root / "repositories")
        self.issues = Issues(root / "issues")
        self.reviews = PullRequests(root / "reviews")
        self.faults = Faults()
        self.accounts = Accounts()
        self.requests: deque[Recorded] = deque(maxlen=200)
        """The last requests, oldest first."""

        self.download_url: str | None = None
        """Where archives are served from. None: by the host that was asked."""

        self._key_file = key_file(root)
        self._client_secret_file = client_secret_file(root)
        self._public_key: RSAPublicKey | None = None
        self._tokens: dict[str, Token] = {}
        self._downloads: dict[str, tuple[GitRepository, str]] = {}

    def check_app(self, authorization: str) -> None:
        """Raises Denied unless it is a token that the App signed, and that is valid now."""
        try:
            signed, _, signature = authorization.removeprefix("Bearer ").rpartition(".")
            header, claims = (json.loads(_decode(part)) for part in signed.split("."))
            self._key().verify(_decode(signature), signed.encode(), PKCS1v15(), SHA256())
            issued, expires, issuer = int(claims["iat"]), int(claims["exp"]), claims["iss"]
        except (InvalidSignature, ValueError, KeyError, TypeError, binascii.Error):
            raise Denied(401, "A JSON web token could not be decoded") from None
        now = clock.now()
        if header.get("alg") != "RS256" or str(issuer) != APP_ID:
            raise Denied(401, "Integration not found")
        if issued > now:
            raise Denied(401, "'Issued at' claim ('iat') must be an Integer representing a time in the past")
        if not now < expires <= now + _APP_TOKEN_LIMIT_SECONDS:
            raise Denied(401, "'Expiration time' claim ('exp') is too far in the future or in the past")

    def find_owner(self, installation_id: int) -> str | None:
        """Returns the account with this installation of the App."""
        owners = {it.owner for it in self.repositories.list()}
        return next((owner for owner in owners if stable_id(owner) == installation_id), None)

    def issue_token(
        self,
        installation_id: int,
        permissions: dict[str, str] | None,
        names: list[str] | None = None,
        repository_ids: list[int] | None = None,
    ) -> Token:
        owner = self.find_owner(installation_id)
        if owner is None:
            raise Denied(404, "Not Found")
        if installation_id in self.faults.suspended:
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

    def permissions(self, installation_id: int) -> dict[str, str]:
        withheld = self.faults.withheld.get(installation_id, set())
        return {name: level for name, level in PERMISSIONS.items() if name not in withheld}

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
        found = self.repositories.find(owner, name)
        if found is None or found.owner != token.owner or found.full_name in self.faults.removed:
            raise Denied(404, "Not Found")
        if token.repository_ids is not None and found.repository_id not in token.repository_ids:
            raise Denied(404, "Not Found")
        if _LEVELS.get(token.permissions.get(permission, ""), 0) < _LEVELS[level]:
            raise Denied(403, "Resource not accessible by integration")
        return found

    def open_pull_request(
        self, owner: str, name: str, title: str, files: Mapping[str, str], *, fork: str | None = None
    ) -> PullRequestChange:
        """Opens a pull request to the default branch, from a branch of its own with these files changed."""
        repository = self._existing(owner, name)
        with self.reviews.change(owner, name) as reviews:
            number = self.issues.next_number(owner, name, [it.number for it in reviews.pull_requests])
            base = repository.default_branch()
            opened = PullRequest(number, title, f"change-{number}", base, fork=fork)
            head = repository.commit_files(_ref(number), files, title, start=f"refs/heads/{base}")
            reviews.put_pull_request(opened)
        return PullRequestChange(opened, head)

    def push(self, owner: str, name: str, number: int, files: Mapping[str, str]) -> PullRequestChange:
        """Adds a commit with these files to the pull request. Raises Denied if it doesn't exist."""
        repository = self._existing(owner, name)
        found = self.find_pull_request(owner, name, number)
        return PullRequestChange(found, repository.commit_files(_ref(number), files, "Change it again"))

    def set_pull_request_state(self, owner: str, name: str, number: int, state: str) -> PullRequest:
        """Closes or reopens the pull request. Raises Denied if it doesn't exist."""
        changed = replace(self.find_pull_request(owner, name, number), state=state)
        with self.reviews.change(owner, name) as reviews:
            reviews.put_pull_request(changed)
        return changed

    def find_pull_request(self, owner: str, name: str, number: int) -> PullRequest:
        """Returns the pull request. Raises Denied."""
        found = self.reviews.read(owner, name).find_pull_request(number)
        if found is None:
            raise Denied(404, "Not Found")
        return found

    def _existing(self, owner: str, name: str) -> GitRepository:
        found = self.repositories.find(owner, name)
        if found is None:
            raise Denied(404, "Not Found")
        return found

    def offer_download(self, repository: GitRepository, sha: str) -> str:
        """Returns a ticket for the archive, because the host that serves it gets no token."""
        ticket = secrets.token_urlsafe(18)
        self._downloads[ticket] = repository, sha
        return ticket

    def take_download(self, ticket: str) -> tuple[GitRepository, str]:
        """Raises Denied."""
        found = self._downloads.pop(ticket, None)
        if found is None or found[0].find_commit(found[1]) is None:
            raise Denied(404, "Not Found")
        return found

    def client_secret(self) -> str:
        """Returns the App's client secret. Read on demand, like the key."""
        return self._client_secret_file.read_text()

    def _key(self) -> RSAPublicKey:
        """Returns the public half of the App's key. Read on demand: `make run` creates the file after imports."""
        if self._public_key is None:
            pem = self._key_file.read_bytes()  # of our own making, so that its numbers needn't be validated
            private_key = load_pem_private_key(pem, password=None, unsafe_skip_rsa_key_validation=True)
            public_key = private_key.public_key()
            if not isinstance(public_key, RSAPublicKey):
                raise Denied(401, "Integration not found")
            self._public_key = public_key
        return self._public_key


def _ref(number: int) -> str:
    """Returns the name under which GitHub has the head of a pull request, also if it comes from a fork."""
    return f"refs/pull/{number}/head"


def _decode(segment: str) -> bytes:
    return base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4))
