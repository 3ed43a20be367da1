"""Reports of GitHub's secret scanning: their signature is the credential, and is verified before anything is parsed."""

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from controlplane.platform.core.acting import Actor
from controlplane.platform.core.errors import ServiceUnavailable, Unauthorized
from controlplane.platform.core.settings import settings
from controlplane.platform.http.callers import Caller, CallerRequirements
from controlplane.platform.http.reader import RequestReader

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
