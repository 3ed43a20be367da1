"""Signatures of requests: AWS Signature Version 4."""

import hmac
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import quote


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
    signature = _mac(_signing_key(credentials.secret_key, timestamp[:8], scope), text).hex()
    credential = f"{credentials.access_key}/{place}"
    return f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={signed}, Signature={signature}"


@lru_cache(maxsize=8)
def _signing_key(secret_key: str, date: str, scope: Scope) -> bytes:
    """Returns the key of a day, which is the same for all requests with the same credentials."""
    key = f"AWS4{secret_key}".encode()
    for part in (date, *scope, "aws4_request"):
        key = _mac(key, part)
    return key


def _mac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")
