"""The environment, parsed once at cold start: a missing or wrong variable fails there, loudly, and not in a request."""

import ipaddress
import json
import os
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator


def _without_slash(url: str) -> str:
    return url.rstrip("/")


Url = Annotated[str, Field(pattern=r"^https?://[^\s?#]+$"), AfterValidator(_without_slash)]
# A template's parameter that is left empty arrives as an empty variable.
OptionalUrl = Annotated[Url | None, BeforeValidator(lambda value: value or None)]
OptionalText = Annotated[str | None, BeforeValidator(lambda value: value or None)]


SigningKeyText = Annotated[str, Field(min_length=32)]


class SigningSecret(BaseModel):
    """The key that signs, and at most one more that verifies: the next key or the previous key of a rotation."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    current: SigningKeyText = Field(repr=False)
    next: SigningKeyText | None = Field(None, repr=False)
    previous: SigningKeyText | None = Field(None, repr=False)

    @property
    def keys(self) -> tuple[str, ...]:
        """The current key first."""
        return tuple(key for key in (self.current, self.next, self.previous) if key is not None)

    @model_validator(mode="after")
    def _has_two_different_keys_at_most(self) -> Self:
        if len(self.keys) > 2 or len(set(self.keys)) < len(self.keys):
            raise ValueError("it takes the current key and at most one other: either next or previous")
        return self


def read_signing_secret(text: Any) -> Any:
    """Plain text is one key. A JSON object is a ring: {"current": …, "next": …} or {"current": …, "previous": …}."""
    if not isinstance(text, str) or not text:
        return text or None
    if not text.startswith("{"):
        return {"current": text}
    try:
        return json.loads(text)
    except ValueError:
        raise ValueError("it starts like a JSON object, but isn't one") from None


def _networks(value: str | tuple[Any, ...]) -> tuple[Any, ...]:
    """The addresses and networks of a list separated by commas. Raises ValueError for anything else."""
    if not isinstance(value, str):
        return value
    # Not strict: an address inside a network names the network.
    return tuple(ipaddress.ip_network(text, strict=False) for text in value.split(",") if value)


# Of ipaddress.IPv4Network and IPv6Network.
Networks = Annotated[tuple[Any, ...], BeforeValidator(_networks)]


class Settings(BaseModel):
    """One attribute a variable; the variable's name is the attribute's in upper case."""

    # An error about a variable names it and never shows its value, which may be a secret.
    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    table_name: str = Field(min_length=3)
    # None: this function signs and verifies nothing. See controlplane.keyring.
    signing_secret: Annotated[SigningSecret | None, BeforeValidator(read_signing_secret)] = Field(None, repr=False)
    # None: see controlplane.addresses.
    public_base_url: OptionalUrl = None
    dashboard_base_url: OptionalUrl = None
    service_brand: str = Field("assent", pattern=r"^[a-z][a-z0-9-]{1,30}$")
    library_brand: str = Field("openassent", pattern=r"^[a-z][a-z0-9-]{1,30}$")
    # Who answers questions about the API by mail, as its description says. None: an address that is an example.
    contact_email: OptionalText = None
    consent_runtime_version: str = "2.0.0"
    # Where the consent runtime is served; an instance answers at this address plus its id. None: not served yet.
    consent_runtime_base_url: OptionalUrl = None
    requests_per_minute_user_token: int = Field(600, ge=1)
    # A person's requests with all tokens and sessions together.
    requests_per_minute_user: int = Field(1_200, ge=1)
    # An organization's requests a minute, as a multiple of the rate of one of its plan's keys.
    organization_rate_factor: int = Field(20, ge=1)
    # How many unknown or expired credentials an address may send a minute before it gets 429 instead of 401.
    rejected_credentials_per_minute: int = Field(300, ge=1)
    # How many requests for sign-in pages an address may send a minute; a sign-in takes two.
    sign_in_requests_per_minute: int = Field(60, ge=2)
    # Concurrent Lambda executions available to this deployment. A tenth of them may wait for a worker.
    account_concurrency: int = Field(1_000, ge=10)
    # The header that a trusted proxy names the client's address in, and the proxy's own addresses. None: no proxy.
    trusted_proxy_header: OptionalText = None
    trusted_proxy_addresses: Networks = ()
    # How many organizations one person may own, and how many invitations may be pending in one organization and for one
    # email address.
    organizations_per_person: int = Field(20, ge=1)
    invitations_per_organization: int = Field(100, ge=1)
    invitations_per_address: int = Field(20, ge=1)
    # Whether devices may be let in by a person's approval. Off: its addresses are unknown paths.
    device_authorization_enabled: bool = True
    # Ids of the OAuth clients that may ask, separated by commas. None: the service's own command line alone.
    device_client_ids: OptionalText = None
    # Whom people sign in with: an OpenID Connect issuer, and what it calls us. None: nobody can.
    sign_in_issuer: OptionalUrl = None
    # None: see controlplane.addresses.
    sign_in_client_id: OptionalText = None
    # Where the issuer's metadata stands, if elsewhere than OpenID Connect says: an emulator is not at its address.
    sign_in_metadata_url: OptionalUrl = None
    # Queues and their dead letters, for the functions that send there. None: a message waits in the outbox.
    scan_preparation_queue_url: OptionalUrl = None
    scan_preparation_dead_letters_url: OptionalUrl = None
    scan_execution_queue_url: OptionalUrl = None
    scan_execution_dead_letters_url: OptionalUrl = None
    issue_creation_queue_url: OptionalUrl = None
    issue_creation_dead_letters_url: OptionalUrl = None
    finding_intake_queue_url: OptionalUrl = None
    finding_intake_dead_letters_url: OptionalUrl = None
    # What a scan reads of a repository: beyond the first four it fails, beyond the last it leaves the file out.
    scan_archive_bytes: int = Field(256 * 1024**2, ge=1)
    scan_unpacked_bytes: int = Field(2 * 1024**3, ge=1)
    scan_stored_bytes: int = Field(384 * 1024**2, ge=1)
    scan_stored_files: int = Field(40_000, ge=1)
    scan_file_bytes: int = Field(8 * 1024**2, ge=1)
    # How long the start of a scan waits for the scan before it answers with the request for one.
    scan_start_wait_seconds: float = Field(3, ge=0, le=15)
    # How long the opening of an issue waits for it before it answers that it is still being opened.
    issue_wait_seconds: float = Field(8, ge=0, le=15)
    # The code host's REST API: GitHub's, an Enterprise server's (https://<host>/api/v3), or the local stand-in's.
    github_api_url: Url = "https://api.github.com"
    # The GitHub App we are there, and where its private key (PEM) is: a secret in Secrets Manager, or a local file.
    github_app_id: OptionalText = None
    github_app_secret_arn: OptionalText = None
    github_app_private_key_file: OptionalText = None
    # How long all calls of one request to the table, a queue or the sign-in issuer may take together, with their
    # retries. A request then ends within 6 seconds even if they never answer.
    dependency_seconds: float = Field(4.5, gt=0, le=15)
    # Days after which data is removed by itself; 0 keeps it.
    finding_retention_days: int = Field(90, ge=0)
    resolved_item_retention_days: int = Field(365, ge=0)
    audit_run_retention_days: int = Field(400, ge=0)
    feedback_retention_days: int = Field(400, ge=0)
    ledger_retention_days: int = Field(3650, ge=0)
    log_level: str = "INFO"

    @property
    def device_clients(self) -> tuple[str, ...]:
        """The clients that may ask to be let in."""
        return tuple((self.device_client_ids or f"{self.service_brand}-cli").split(","))


def load(environment: dict[str, str] | None = None) -> Settings:
    """Settings from the environment. Raises pydantic's ValidationError, which names every variable that is wrong."""
    source = os.environ if environment is None else environment
    return Settings.model_validate(
        {name: source[name.upper()] for name in Settings.model_fields if name.upper() in source}
    )


settings = load()
