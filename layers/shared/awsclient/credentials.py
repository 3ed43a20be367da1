"""Credentials of a function, and signatures with them (AWS Signature Version 4).

They are from its environment or, under SnapStart, from the address that the environment names.
"""

import hmac
import json
import os
import ssl
import threading
import time
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from awsclient.connection import NO_LIMIT, Connection, Response, TimeLimit
from awsclient.endpoints import Endpoint, parse_url
from awsclient.errors import CredentialsUnavailable, Misconfigured

# Plain HTTP may lead only to this machine and to the addresses that ECS and EKS document.
_CONTAINER_HOST = "169.254.170.2"
_HOSTS = {_CONTAINER_HOST, "169.254.170.23", "fd00:ec2::23", "localhost"}
_ATTEMPTS = 3
_PAUSE_SECONDS = 0.1
# New credentials are requested from this time before the end of the old ones, which are used until then.
_REFRESH_SECONDS = 600
# After a failed request, the next one is made this much later, while the old credentials are valid.
_RETRY_SECONDS = 30


class Credentials(NamedTuple):
    access_key: str
    secret_key: str
    token: str | None = None

    def __repr__(self) -> str:
        return "Credentials()"  # secrets must not get into a log by accident


class Scope(NamedTuple):
    """The region and service that a signature is valid for."""

    region: str
    service: str


@lru_cache(maxsize=8)
def canonical_path(path: str) -> str:
    """Returns the path as it is signed: without empty segments, `.`, and `..`, and percent-encoded."""
    segments: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            del segments[-1:]
        elif segment not in {"", "."}:
            segments.append(segment)
    closing = "/" if segments and path.endswith("/") else ""
    return quote(f"/{'/'.join(segments)}{closing}", safe="/~")


def authorization(credentials: Credentials, scope: Scope, path: str, headers: Mapping[str, str], body: bytes) -> str:
    """Returns the Authorization header of a POST without a query.

    path: from `canonical_path`.
    headers: all headers to sign, with lowercase names: host, x-amz-date (20260304T050607Z), and the token of
        temporary credentials.
    """
    names = sorted(headers)
    canonical = "\n".join([f"{name}:{' '.join(headers[name].split())}" for name in names])
    signed = ";".join(names)
    request = f"POST\n{path}\n\n{canonical}\n\n{signed}\n{sha256(body).hexdigest()}"
    timestamp = headers["x-amz-date"]
    place = f"{timestamp[:8]}/{scope.region}/{scope.service}/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{timestamp}\n{place}\n{sha256(request.encode()).hexdigest()}"
    key = _signing_key(credentials.secret_key, timestamp[:8], scope)
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    credential = f"{credentials.access_key}/{place}"
    return f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={signed}, Signature={signature}"


@lru_cache(maxsize=8)
def _signing_key(secret_key: str, date: str, scope: Scope) -> bytes:
    """Returns the key of a day, which is the same for all requests with the same credentials."""
    key = f"AWS4{secret_key}".encode()
    for part in (date, *scope, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key


class CredentialSource:
    """The credentials of this process. They are looked up when they are first used, never at import."""

    def __init__(self, limit: TimeLimit = NO_LIMIT) -> None:
        self._limit = limit
        self._fetched: Credentials | None = None
        self._ends_at = self._refresh_at = 0.0
        self._lock = threading.Lock()

    def current(self) -> Credentials:
        """Raises CredentialsUnavailable, Misconfigured."""
        access_key, secret_key = os.environ.get("AWS_ACCESS_KEY_ID"), os.environ.get("AWS_SECRET_ACCESS_KEY")
        if access_key and secret_key:
            return Credentials(access_key, secret_key, os.environ.get("AWS_SESSION_TOKEN"))
        now = time.time()
        if self._fetched is not None and now < self._refresh_at:
            return self._fetched
        # One thread requests new credentials. The others use the old ones, or wait for it if those have ended.
        if not self._lock.acquire(blocking=now >= self._ends_at):
            return self._fetched  # type: ignore[return-value]  # there are old ones
        try:
            return self._refresh()
        finally:
            self._lock.release()

    def _refresh(self) -> Credentials:
        now = time.time()
        if self._fetched is not None and now < self._refresh_at:
            return self._fetched  # another thread got them
        try:
            self._fetched, self._ends_at = _fetch(self._limit)
        except CredentialsUnavailable:
            if self._fetched is None or now >= self._ends_at:
                raise
            self._refresh_at = min(now + _RETRY_SECONDS, self._ends_at)
        else:
            self._refresh_at = max(self._ends_at - _REFRESH_SECONDS, min(now + _RETRY_SECONDS, self._ends_at))
        return self._fetched


def _fetch(limit: TimeLimit) -> tuple[Credentials, float]:
    """Returns credentials from the address in the environment, and the time when they end."""
    relative = os.environ.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
    url = f"http://{_CONTAINER_HOST}{relative}" if relative else os.environ.get("AWS_CONTAINER_CREDENTIALS_FULL_URI")
    if not url:
        raise CredentialsUnavailable("the environment has no credentials")
    # On Lambda, the address has no query.
    address, mark, query = url.partition("?")
    endpoint = parse_url(address)
    if not endpoint.is_tls and not _is_trusted(endpoint.host):
        raise Misconfigured("AWS_CONTAINER_CREDENTIALS_FULL_URI leads to a host that may not get credentials.")
    lines = [f"GET {endpoint.path}{mark}{query} HTTP/1.1", f"Host: {endpoint.host_header}", "Accept: application/json"]
    if token := _read_token():
        lines.append(f"Authorization: {token}")
    request = "\r\n".join([*lines, "Connection: close", "", ""]).encode()
    for attempt in range(_ATTEMPTS):
        try:
            return _read_credentials(_send(endpoint, request, limit))
        except (OSError, ValueError, KeyError, TypeError) as error:
            if attempt == _ATTEMPTS - 1 or limit.is_over():
                raise CredentialsUnavailable(type(error).__name__) from error
        time.sleep(_PAUSE_SECONDS * 2**attempt)
    raise AssertionError("the last attempt raises")


def _send(endpoint: Endpoint, request: bytes, limit: TimeLimit) -> Response:
    connection = Connection(endpoint, limit, ssl.create_default_context() if endpoint.is_tls else None)
    try:
        return connection.exchange(request)[0]
    finally:
        connection.close()


def _is_trusted(host: str) -> bool:
    try:
        return host in _HOSTS or ip_address(host).is_loopback
    except ValueError:
        return False


def _read_token() -> str | None:
    """Returns the token that proves at the address that this process may have the credentials."""
    file = os.environ.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
    try:
        token = Path(file).read_text() if file else os.environ.get("AWS_CONTAINER_AUTHORIZATION_TOKEN")
    except OSError as error:
        raise CredentialsUnavailable(type(error).__name__) from error
    if token and ("\r" in token or "\n" in token):
        raise Misconfigured("The container's authorization token isn't a valid header.")
    return token


def _read_credentials(response: Response) -> tuple[Credentials, float]:
    if response.status != 200:
        raise ValueError("no credentials")
    content = json.loads(response.body)
    credentials = Credentials(content["AccessKeyId"], content["SecretAccessKey"], content["Token"])
    ends_at = datetime.fromisoformat(content["Expiration"]).timestamp()
    if ends_at <= time.time():
        raise ValueError("expired credentials")
    return credentials, ends_at
