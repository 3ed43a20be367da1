"""Requests that GitHub signs: deliveries of webhooks, and reports of secret scanning.

Their signature is the credential, and is verified before anything is parsed.
"""

import hmac
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from controlplane.platform.core.acting import Actor
from controlplane.platform.core.errors import RouteNotFound, ServiceUnavailable, Unauthorized
from controlplane.platform.core.settings import settings
from controlplane.platform.http.callers import Caller, CallerRequirements, Dialect
from controlplane.platform.http.reader import RequestReader

# GitHub sends up to 25 MB, but Lambda takes an event of 6 MB. The gateway rejects larger ones before us.
_BODY_LIMIT_BYTES = 6 * 1024**2
_SCHEME = "sha256="


if TYPE_CHECKING:
    from controlplane.code_host.github.scanning_keys import ScanningKeys


class UnsignedReport(Unauthorized):
    """The signature is missing, or doesn't match the body with a key of GitHub."""

    message = "The report's signature is missing, or GitHub didn't make it."


class KeysUnavailable(ServiceUnavailable):
    """GitHub's public keys couldn't be read."""

    message = "The public keys of GitHub can't be read now, so the report can't be verified. Send it again."

    def __init__(self) -> None:
        super().__init__(headers={"Retry-After": "60"})


@dataclass(frozen=True, slots=True)
class LeakReport(Caller):
    """A report that GitHub has signed. Its body contains secrets."""

    body: bytes = field(repr=False)

    @property
    def actor(self) -> Actor | None:
        return Actor("service", "secret_scanning", "api")

    @property
    def rate_group(self) -> str:
        return "secret scanning"


@dataclass(frozen=True, slots=True)
class SignedBySecretScanning(CallerRequirements[LeakReport]):
    """Requirements of the reports' route: `Annotated[LeakReport, SignedBySecretScanning()]`.

    Reports have no rate limit: only GitHub can sign them.
    """

    def identify(self, request: RequestReader) -> LeakReport:
        """Returns the report. Raises UnsignedReport, KeysUnavailable."""
        identifier = request.headers.get("github-public-key-identifier")
        signature = request.headers.get("github-public-key-signature")
        if not identifier or not signature:
            raise UnsignedReport
        from controlplane.code_host.github.errors import HostUnavailable  # noqa: PLC0415 (only this route needs the package)

        try:
            is_signed = _keys().verify(identifier, signature, request.raw_body)
        except HostUnavailable:
            raise KeysUnavailable from None
        if not is_signed:
            raise UnsignedReport
        return LeakReport(request.raw_body)


@cache
def _keys() -> "ScanningKeys":
    from controlplane.code_host.github.scanning_keys import ScanningKeys  # noqa: PLC0415 (as above)

    return ScanningKeys(settings.github_api_url)


class UnsignedDelivery(Unauthorized):
    """The signature is missing, or doesn't match the body with a key of the ring."""

    message = "The webhook's signature is missing or doesn't match. Check the secret of the GitHub App."


@dataclass(frozen=True, slots=True)
class Delivery(Caller):
    """A webhook that GitHub has signed. `delivery_id` is the same if GitHub delivers it again."""

    delivery_id: str
    event: str
    body: bytes = field(repr=False)

    @property
    def rate_group(self) -> str:
        return "webhooks"


@dataclass(frozen=True, slots=True)
class SignedByGithub(CallerRequirements[Delivery]):
    """Requirements of the webhooks' route: `Annotated[Delivery, SignedByGithub()]`. Without a secret it doesn't exist.

    Deliveries have no rate limit, because GitHub doesn't repeat a rejected one by itself.
    """

    @property
    def body_limit_bytes(self) -> int:
        return _BODY_LIMIT_BYTES

    def select_dialect(self, request: RequestReader) -> Dialect | None:  # noqa: ARG002
        if settings.github_webhook_secret is None:
            raise RouteNotFound
        return None

    def identify(self, request: RequestReader) -> Delivery:
        """Returns the delivery. Raises UnsignedDelivery."""
        if not _is_signed(request.raw_body, request.headers.get("x-hub-signature-256", "")):
            raise UnsignedDelivery
        headers = request.headers
        return Delivery(headers.get("x-github-delivery", ""), headers.get("x-github-event", ""), request.raw_body)


def _is_signed(body: bytes, signature: str) -> bool:
    """Returns whether a key of the ring signed the body. Takes the same time for every signature."""
    secret = settings.github_webhook_secret
    given = signature.encode()
    matches = [
        hmac.compare_digest(f"{_SCHEME}{hmac.digest(key.encode(), body, 'sha256').hex()}".encode(), given)
        for key in (secret.keys if secret else ())
    ]
    return any(matches)
