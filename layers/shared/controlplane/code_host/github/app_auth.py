"""Authentication at the code host, as a GitHub App with a private key and as an installation of it.

The App's JWT, valid for ten minutes, obtains installation tokens. Those last an hour, are cached only in this process
until shortly before they expire, and are limited to one purpose in one repository. The App's private key is read for
each signature and not cached.

Signing needs `cryptography`, which isn't in the layer: a function that calls the code host packages the group `github`
of pyproject.toml itself.
"""

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from controlplane.code_host.github import errors
from controlplane.code_host.github.transport import Deadline, Request, Response, Transport
from controlplane.platform.core import clock, deadline
from controlplane.platform.core.settings import settings

# A purpose is a set of permissions. GitHub refuses the token if the installation doesn't grant all of them.
Purpose = tuple[tuple[str, str], ...]
READ_CODE: Purpose = (("contents", "read"), ("metadata", "read"))
WRITE_ISSUES: Purpose = (("issues", "write"), ("metadata", "read"))
_FIND: Purpose = (("metadata", "read"),)

# GitHub rejects App tokens that last over ten minutes or were issued in the future. One minute allows for clock skew.
_BACKDATED_SECONDS = 60
_APP_TOKEN_SECONDS = 540
# An installation token isn't used in its last minutes, so that an operation can finish before the token expires.
_TOKEN_MARGIN_SECONDS = 300
_INSTALLATION_TOKENS = "/app/installations/{installation_id}/access_tokens"
_REPOSITORY = "/repos/{owner}/{repo}"


class Scope(NamedTuple):
    """The scope of an installation token. The names are validated and safe in a URL path."""

    installation_id: int
    owner: str
    repository: str
    purpose: Purpose


@dataclass(frozen=True, slots=True)
class _Token:
    value: str = field(repr=False)
    expires_seconds: float


class AppAuth:
    """The App's state in this process: the host's clock offset, a token per active scope, and spent quotas."""

    def __init__(
        self, transport: Transport, app_id: str | None, read_private_key: Callable[[], str] | None = None
    ) -> None:
        self._transport = transport
        self._app_id = app_id
        self._read_private_key = read_private_key or read_configured_key
        self._ahead_seconds = 0.0
        self._tokens: dict[Scope, _Token] = {}
        self.quotas = Quotas()

    def authorization(self, scope: Scope, deadline: Deadline) -> str:
        """Returns the Authorization header for requests in the scope.

        Raises AccessLost, RepositoryGone, AppNotConfigured, AppKeyUnreadable, and the errors of
        `Transport.send_with_retries`.
        """
        now = clock.now() + self._ahead_seconds
        # Drops expired tokens, so that a process that scans many repositories doesn't accumulate them.
        self._tokens = {
            of: token for of, token in self._tokens.items() if token.expires_seconds - _TOKEN_MARGIN_SECONDS > now
        }
        if scope not in self._tokens:
            self._tokens[scope] = self._create_repository_token(scope, deadline)
        return f"Bearer {self._tokens[scope].value}"

    def metadata_authorization(self, installation_id: int, deadline: Deadline) -> str:
        """Returns the Authorization header to read the metadata of all repositories of the installation. Not cached.

        Raises as `authorization`.
        """
        return f"Bearer {self._create_token(installation_id, _FIND, {}, deadline).value}"

    def forget(self, scope: Scope) -> None:
        """Drops the scope's cached token, after the host rejected it."""
        self._tokens.pop(scope, None)

    def send_as_app(
        self, method: str, operation: str, url: str, deadline: Deadline, body: Mapping[str, Any] | None = None
    ) -> Response:
        """Sends a request authenticated as the App and returns the response.

        A first 401 can mean that our clock is wrong or that the key was rotated: it is retried once, with the host's
        clock and the currently stored key.
        """

        def send() -> Response:
            request = Request(method, operation, url, f"Bearer {self._sign()}", body)
            return self._transport.send_with_retries(request, deadline)

        response = send()
        if response.status == 401:
            if response.date_seconds is not None:
                self._ahead_seconds = response.date_seconds - clock.now()
            response = send()
        return response

    def _create_repository_token(self, scope: Scope, deadline: Deadline) -> _Token:
        """Obtains a token for one repository. GitHub requires its current name, so a renamed one is looked up first.

        The lookup uses a token for all repositories of the installation that only has permission to read metadata.
        """
        try:
            by_name = {"repositories": [scope.repository]}
            return self._create_token(scope.installation_id, scope.purpose, by_name, deadline)
        except errors.AccessLost as lost:
            if lost.context.get("status") != 422:
                raise
        finder = self._create_token(scope.installation_id, _FIND, {}, deadline)
        url = self._transport.url(_REPOSITORY.format(owner=scope.owner, repo=scope.repository))
        response = self._transport.send_with_retries(
            Request("GET", _REPOSITORY, url, f"Bearer {finder.value}"), deadline
        )
        response.require(200, {404: errors.RepositoryGone}, errors.AccessLost)
        selection = {"repository_ids": [response.read(lambda content: int(content["id"]))]}
        return self._create_token(scope.installation_id, scope.purpose, selection, deadline)

    def _create_token(
        self, installation_id: int, purpose: Purpose, selection: Mapping[str, Any], deadline: Deadline
    ) -> _Token:
        if installation_id < 1:
            raise errors.InvalidName("installation")
        url = self._transport.url(_INSTALLATION_TOKENS.format(installation_id=installation_id))
        # A second token does no harm, so this write is retried like a read.
        wanted = {"permissions": dict(purpose), **selection}
        response = self.send_as_app("POST", _INSTALLATION_TOKENS, url, deadline, wanted)
        # AccessLost: the installation is suspended or removed, or lacks the permission or the repository.
        return response.require(201, dict.fromkeys((403, 404, 422), errors.AccessLost)).read(_to_token)

    def _sign(self) -> str:
        if not self._app_id:
            raise errors.AppNotConfigured
        now = int(clock.now() + self._ahead_seconds)
        claims = {"iat": now - _BACKDATED_SECONDS, "exp": now + _APP_TOKEN_SECONDS, "iss": self._app_id}
        return sign(claims, self._read_private_key())


def _to_token(content: Any) -> _Token:
    return _Token(content["token"], datetime.fromisoformat(content["expires_at"]).timestamp())


def sign(claims: Mapping[str, Any], private_key: str) -> str:
    """Returns a JWT (RFC 7519) signed with RS256. Raises AppKeyUnreadable."""
    # Only functions that sign include `cryptography`: see the module docstring.
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15  # noqa: PLC0415
    from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415

    signed = ".".join(_segment(json.dumps(part).encode()) for part in ({"alg": "RS256", "typ": "JWT"}, claims))
    signature = _load_key(private_key).sign(signed.encode(), PKCS1v15(), SHA256())
    return f"{signed}.{_segment(signature)}"


def _load_key(private_key: str) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415

    try:
        # The operator's own key: testing that its numbers are prime, for every signature, would take 50 ms of CPU time.
        key = load_pem_private_key(private_key.encode(), password=None, unsafe_skip_rsa_key_validation=True)
    except (TypeError, ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, RSAPrivateKey):
        raise errors.AppKeyUnreadable(reason="not an RSA key in PEM form")
    return key


def _segment(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def read_configured_key() -> str:
    """Returns the App's private key (PEM) from the configured location. Raises AppNotConfigured, AppKeyUnreadable."""
    return _read_secret(settings.github_app_private_key_file, settings.github_app_secret_arn)


def read_client_secret() -> str:
    """Returns the App's client secret from the configured location. Raises AppNotConfigured, AppKeyUnreadable."""
    return _read_secret(settings.github_client_secret_file, settings.github_client_secret_arn).strip()


def _read_secret(file: str | None, arn: str | None) -> str:
    if file:
        try:
            return Path(file).read_text()
        except (OSError, ValueError) as failure:
            raise errors.AppKeyUnreadable(reason=type(failure).__name__) from failure
    if not arn:
        raise errors.AppNotConfigured
    import boto3  # noqa: PLC0415 (slow to import, and needed once an hour)
    from botocore.config import Config  # noqa: PLC0415
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

    timeouts = {"connect_timeout": deadline.bounded(1), "read_timeout": deadline.bounded(3)}
    client = boto3.client("secretsmanager", config=Config(**timeouts, retries={"total_max_attempts": 2}))
    try:
        return str(client.get_secret_value(SecretId=arn)["SecretString"])
    except (BotoCoreError, ClientError, KeyError) as failure:
        raise errors.AppKeyUnreadable(reason=type(failure).__name__) from failure


class Quotas:
    """The installations that have no request left, and until when, in Unix seconds, by the responses to this process.

    `code_host.requests` tells other processes. Each response has both:
    https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api
    """

    def __init__(self) -> None:
        self._until: dict[int, int] = {}

    def note(self, installation_id: int, response: Response) -> None:
        """Remembers that, by this response, the installation has no request left."""
        reset = response.headers.get("X-RateLimit-Reset", "")
        if response.headers.get("X-RateLimit-Remaining") == "0" and reset.isdecimal():
            now = int(clock.now())
            seconds = int(reset) - int(response.date_seconds or now)
            if seconds > 0:
                self._until[installation_id] = now + seconds

    def seconds_left(self, installation_id: int) -> int:
        """Returns the seconds until the rate limit resets, or 0 if no limit is known to be reached."""
        seconds = self._until.get(installation_id, 0) - int(clock.now())
        if seconds <= 0:
            self._until.pop(installation_id, None)
        return max(0, seconds)

    def require(self, installation_id: int) -> None:
        """Raises RateLimitedByHost if the installation is known to have no request left."""
        if seconds := self.seconds_left(installation_id):
            raise errors.RateLimitedByHost(seconds, reason="no request left")
