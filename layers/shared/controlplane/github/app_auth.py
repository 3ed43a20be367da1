"""Who we are to the code host: a GitHub App that signs with its private key, and an installation of it.

The App's own token (a JWT of ten minutes) only buys installation tokens. Those last an hour, are kept in this process
alone until shortly before they end, and allow no more than one purpose in one repository. The App's private key is
read for each signature, and not kept.

Signing needs `cryptography`, which is not in the layer: a function that calls the code host includes
the group `github` of pyproject.toml in its own.
"""

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from controlplane import clock
from controlplane.github.errors import (
    AccessLost,
    AppKeyUnreadable,
    AppNotConfigured,
    HostUnavailable,
    InvalidName,
    Refused,
    RepositoryGone,
)
from controlplane.github.transport import Answer, Deadline, Request, Transport
from controlplane.settings import settings

# A purpose is the permissions it takes. GitHub refuses the token where the installation does not grant them all.
Purpose = tuple[tuple[str, str], ...]
READ_CODE: Purpose = (("contents", "read"), ("metadata", "read"))
WRITE_ISSUES: Purpose = (("issues", "write"), ("metadata", "read"))
_FIND: Purpose = (("metadata", "read"),)

# GitHub takes an App's token for ten minutes at most and not from the future: a minute is left for clocks that differ.
_BACKDATED_SECONDS = 60
_APP_TOKEN_SECONDS = 540
# An installation token is not used in its last minutes: an operation begun with it must be able to end.
_TOKEN_MARGIN_SECONDS = 300
_INSTALLATION_TOKENS = "/app/installations/{installation_id}/access_tokens"
_REPOSITORY = "/repos/{owner}/{repo}"


# An answer takes some ten milliseconds. What asks for the key has a bound on its own time.
_SECRETS_CONFIG = Config(connect_timeout=1, read_timeout=3, retries={"mode": "standard", "total_max_attempts": 2})


class Scope(NamedTuple):
    """What an installation token is for. The names are checked, and fit into a path."""

    installation_id: int
    owner: str
    repository: str
    purpose: Purpose


@dataclass(frozen=True, slots=True)
class _Token:
    value: str = field(repr=False)
    expires_seconds: float


class AppAuth:
    """The App, as this process knows it: the host's clock, and a token for each scope that is in use."""

    def __init__(
        self, transport: Transport, app_id: str | None, read_private_key: Callable[[], str] | None = None
    ) -> None:
        self._transport = transport
        self._app_id = app_id
        self._read_private_key = read_private_key or read_configured_key
        self._ahead_seconds = 0.0
        self._tokens: dict[Scope, _Token] = {}

    def authorization(self, scope: Scope, deadline: Deadline) -> str:
        """Returns the Authorization header of requests in that scope.

        Raises AccessLost, RepositoryGone, AppNotConfigured, AppKeyUnreadable and what `Transport.ask` raises.
        """
        now = clock.now() + self._ahead_seconds
        # Tokens that have ended are dropped, so that a process that scans many repositories holds few.
        self._tokens = {
            of: token for of, token in self._tokens.items() if token.expires_seconds - _TOKEN_MARGIN_SECONDS > now
        }
        if scope not in self._tokens:
            self._tokens[scope] = self._buy_narrow_token(scope, deadline)
        return f"Bearer {self._tokens[scope].value}"

    def forget(self, scope: Scope) -> None:
        """Drops the token: the host did not take it."""
        self._tokens.pop(scope, None)

    def ask_as_app(
        self, method: str, operation: str, url: str, deadline: Deadline, body: Mapping[str, Any] | None = None
    ) -> Answer:
        """The answer to a request that the App makes itself.

        A first 401 may mean that our clock is wrong, or that the key was replaced since it was read: the host's clock
        and the key as it is stored now are tried once.
        """
        answer = self._ask_signed(method, operation, url, deadline, body)
        if answer.status == 401:
            if answer.date_seconds is not None:
                self._ahead_seconds = answer.date_seconds - clock.now()
            answer = self._ask_signed(method, operation, url, deadline, body)
        return answer

    def _ask_signed(
        self, method: str, operation: str, url: str, deadline: Deadline, body: Mapping[str, Any] | None
    ) -> Answer:
        return self._transport.ask(Request(method, operation, url, f"Bearer {self._sign()}", body), deadline)

    def _buy_narrow_token(self, scope: Scope, deadline: Deadline) -> _Token:
        """Buys a token for one repository. GitHub knows it by its current name, so one that was renamed is found first.

        To find it takes a token for all repositories of the installation, with no permission but to see their names.
        """
        try:
            return self._buy_token(scope.installation_id, scope.purpose, {"repositories": [scope.repository]}, deadline)
        except AccessLost as lost:
            if lost.context.get("status") != 422:
                raise
        finder = self._buy_token(scope.installation_id, _FIND, {}, deadline)
        url = self._transport.url(_REPOSITORY.format(owner=scope.owner, repo=scope.repository))
        answer = self._transport.ask(Request("GET", _REPOSITORY, url, f"Bearer {finder.value}"), deadline)
        context = {"operation": _REPOSITORY, "status": answer.status, "requestId": answer.request_id}
        if answer.status == 404:
            raise RepositoryGone(**context)
        if answer.status != 200:
            raise AccessLost(**context)
        try:
            selection = {"repository_ids": [int(answer.content["id"])]}
        except (KeyError, TypeError, ValueError) as failure:
            raise HostUnavailable(reason="unexpected answer", **context) from failure
        return self._buy_token(scope.installation_id, scope.purpose, selection, deadline)

    def _buy_token(
        self, installation_id: int, purpose: Purpose, selection: Mapping[str, Any], deadline: Deadline
    ) -> _Token:
        if installation_id < 1:
            raise InvalidName("installation")
        url = self._transport.url(_INSTALLATION_TOKENS.format(installation_id=installation_id))
        # A second token does no harm, so this write is repeated like a read.
        wanted = {"permissions": dict(purpose), **selection}
        answer = self.ask_as_app("POST", _INSTALLATION_TOKENS, url, deadline, wanted)
        context = {"operation": _INSTALLATION_TOKENS, "requestId": answer.request_id}
        if answer.status in (403, 404, 422):  # suspended, removed, or without permission or repository
            raise AccessLost(status=answer.status, **context)
        if answer.status != 201:
            raise Refused(answer.status, **context)
        try:
            expires = datetime.fromisoformat(answer.content["expires_at"])
            return _Token(answer.content["token"], expires.timestamp())
        except (KeyError, TypeError, ValueError) as failure:
            raise HostUnavailable(reason="no token in the answer", **context) from failure

    def _sign(self) -> str:
        if not self._app_id:
            raise AppNotConfigured
        now = int(clock.now() + self._ahead_seconds)
        claims = {"iat": now - _BACKDATED_SECONDS, "exp": now + _APP_TOKEN_SECONDS, "iss": self._app_id}
        return sign(claims, self._read_private_key())


def sign(claims: Mapping[str, Any], private_key: str) -> str:
    """A JWT (RFC 7519) signed with RS256. Raises AppKeyUnreadable."""
    # Only functions that sign have it: see the module.
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
        key = load_pem_private_key(private_key.encode(), password=None)
    except (TypeError, ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, RSAPrivateKey):
        raise AppKeyUnreadable(reason="not an RSA key in PEM form")
    return key


def _segment(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def read_configured_key() -> str:
    """The App's private key in PEM form, from where the settings say. Raises AppNotConfigured, AppKeyUnreadable."""
    if settings.github_app_private_key_file:
        try:
            return Path(settings.github_app_private_key_file).read_text()
        except (OSError, ValueError) as failure:
            raise AppKeyUnreadable(reason=type(failure).__name__) from failure
    if not settings.github_app_secret_arn:
        raise AppNotConfigured
    from botocore.session import Session  # noqa: PLC0415 - loads the service's description

    try:
        client = Session().create_client("secretsmanager", config=_SECRETS_CONFIG)
        return str(client.get_secret_value(SecretId=settings.github_app_secret_arn)["SecretString"])
    except (BotoCoreError, ClientError, KeyError) as failure:
        raise AppKeyUnreadable(reason=type(failure).__name__) from failure
