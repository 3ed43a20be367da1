"""Settings from environment variables, parsed at cold start. An invalid variable fails there, not in a request."""

import ipaddress
import json
import os
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from controlplane.platform.core.plans import PLANS
from controlplane.platform.core.regions import Region, parse_regions


def _remove_trailing_slash(url: str) -> str:
    return url.rstrip("/")


Url = Annotated[str, Field(pattern=r"^https?://[^\s?#]+$"), AfterValidator(_remove_trailing_slash)]
# An empty template parameter becomes an empty variable.
OptionalUrl = Annotated[Url | None, BeforeValidator(lambda value: value or None)]
OptionalText = Annotated[str | None, BeforeValidator(lambda value: value or None)]
Contact = Annotated[str, Field(pattern=r"^([^@\s]+@[^@\s]+|https://[^\s]+)$")]

SigningKeyText = Annotated[str, Field(min_length=32)]


class SigningSecret(BaseModel):
    """The signing key, and during a rotation the next or previous key, which only verifies."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    current: SigningKeyText = Field(repr=False)
    next: SigningKeyText | None = Field(None, repr=False)
    previous: SigningKeyText | None = Field(None, repr=False)

    @property
    def keys(self) -> tuple[str, ...]:
        """All keys, the current key first."""
        return tuple(key for key in (self.current, self.next, self.previous) if key is not None)

    @model_validator(mode="after")
    def _check_keys(self) -> Self:
        if len(self.keys) > 2 or len(set(self.keys)) < len(self.keys):
            raise ValueError("it takes the current key and at most one other: either next or previous")
        return self


def read_signing_secret(text: Any) -> Any:
    """Parses the secret: plain text is one key, a JSON object is {"current": …} with "next" or "previous"."""
    if not isinstance(text, str) or not text:
        return text or None
    if not text.startswith("{"):
        return {"current": text}
    try:
        return json.loads(text)
    except ValueError:
        raise ValueError("it starts like a JSON object, but can't be parsed") from None


def _parse_networks(value: str | tuple[Any, ...]) -> tuple[Any, ...]:
    """Parses a comma-separated list of addresses and networks. Raises ValueError if an entry is neither."""
    if not isinstance(value, str):
        return value
    # Not strict: host bits are ignored, so an address with a prefix length means its network.
    return tuple(ipaddress.ip_network(text, strict=False) for text in value.split(",") if value)


# Elements are ipaddress.IPv4Network and IPv6Network.
Networks = Annotated[tuple[Any, ...], BeforeValidator(_parse_networks)]


def _parse_prices(value: str | dict[str, str]) -> dict[str, str]:
    """Parses `starter=$29 a month, pro=$99 a month`. Raises ValueError for a plan that doesn't exist."""
    if not isinstance(value, str):
        return value
    pairs = (it.strip().partition("=") for it in value.split(",") if it.strip())
    prices = {plan: price for plan, _, price in pairs}
    if unknown := prices.keys() - PLANS.keys():
        raise ValueError(f"there is no plan {', '.join(sorted(unknown))}")
    return prices


class Settings(BaseModel):
    """One attribute per environment variable, which has the attribute's name in uppercase."""

    # An error names the variable but never shows its value, which may be a secret.
    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    table_name: str = Field(min_length=3)
    # None: this function doesn't sign or verify anything. See controlplane.platform.core.keyring.
    signing_secret: Annotated[SigningSecret | None, BeforeValidator(read_signing_secret)] = Field(None, repr=False)
    # None: see controlplane.platform.core.urls.
    public_base_url: OptionalUrl = None
    dashboard_base_url: OptionalUrl = None
    service_brand: str = Field("assent", pattern=r"^[a-z][a-z0-9-]{1,30}$")
    library_brand: str = Field("openassent", pattern=r"^[a-z][a-z0-9-]{1,30}$")
    # The email address or the page (https) of the operator, who changes plans and answers questions. None: not shown.
    contact: Annotated[Contact | None, BeforeValidator(lambda value: value or None)] = None
    # The prices of plans, as text to show: starter=$29 a month,pro=$99 a month. A plan without one: on request.
    plan_prices: Annotated[dict[str, str], BeforeValidator(_parse_prices)] = Field(default_factory=dict)
    # The regions that projects can be created in. Empty: the AWS region of this deployment.
    regions: Annotated[tuple[Region, ...], BeforeValidator(parse_regions)] = Field("", validate_default=True)
    # Requests per minute for one consent instance's configuration, from all visitors of its websites.
    configuration_requests_per_minute: int = Field(6_000, ge=100)
    requests_per_minute_user_token: int = Field(600, ge=1)
    # Per person, across all tokens and sessions.
    requests_per_minute_user: int = Field(1_200, ge=1)
    # An organization's requests per minute, as a multiple of the rate of one API key on its plan.
    organization_rate_factor: int = Field(20, ge=1)
    # Unknown or expired credentials per minute and address. Beyond that, the response is 429 instead of 401.
    rejected_credentials_per_minute: int = Field(300, ge=1)
    # Requests for sign-in pages per minute and address. A sign-in takes two.
    sign_in_requests_per_minute: int = Field(60, ge=2)
    # Concurrent Lambda executions available to this deployment. At most a tenth of them may wait for a worker.
    account_concurrency: int = Field(1_000, ge=10)
    # The header in which a trusted proxy sends the client's address, and the proxy's own addresses. None: no proxy.
    trusted_proxy_header: OptionalText = None
    trusted_proxy_addresses: Networks = ()
    # The header value by which a request proves that it came through the front door: a ring like the signing secret.
    # None: there is no front door.
    front_door_secret: Annotated[SigningSecret | None, BeforeValidator(read_signing_secret)] = Field(None, repr=False)
    # Rejects requests that didn't come through the front door.
    front_door_required: bool = False
    # Maximum organizations that one person may own, and maximum pending invitations per organization and per email
    # address.
    organizations_per_person: int = Field(20, ge=1)
    invitations_per_organization: int = Field(100, ge=1)
    invitations_per_address: int = Field(20, ge=1)
    # Enables device authorization. If False, its paths return 404.
    device_authorization_enabled: bool = True
    # Comma-separated ids of the OAuth clients that may request device authorization. None: only the service's own CLI.
    device_client_ids: OptionalText = None
    # The OpenID Connect issuer that people sign in with, and our client id there. None: sign-in is disabled.
    sign_in_issuer: OptionalUrl = None
    # Whether people can create an account at the issuer. If not, the pages don't offer it.
    self_sign_up: bool = True
    # None: see controlplane.platform.core.urls.
    sign_in_client_id: OptionalText = None
    # URL of the issuer's metadata, if it isn't the one OpenID Connect defines. For emulators at another address.
    sign_in_metadata_url: OptionalUrl = None
    # Queues and their dead-letter queues, for the functions that send to them. None: messages stay in the outbox.
    scan_preparation_queue_url: OptionalUrl = None
    scan_preparation_dead_letters_url: OptionalUrl = None
    scan_execution_queue_url: OptionalUrl = None
    scan_execution_dead_letters_url: OptionalUrl = None
    issue_creation_queue_url: OptionalUrl = None
    issue_creation_dead_letters_url: OptionalUrl = None
    finding_intake_queue_url: OptionalUrl = None
    finding_intake_dead_letters_url: OptionalUrl = None
    github_events_queue_url: OptionalUrl = None
    github_events_dead_letters_url: OptionalUrl = None
    # How many workers the function's queue has. An organization gets half of them. None: any number.
    worker_concurrency: int | None = Field(None, ge=1)
    # The address that emails come from, and SES's configuration set, which reports bounces. None: no emails are sent.
    email_sender: OptionalText = None
    email_configuration_set: OptionalText = None
    # How often the invitations of an organization can be sent again on a day, and the most invitation emails on a day,
    # by organization and by address.
    invitation_resends_per_day: int = Field(50, ge=1)
    invitation_emails_per_organization: int = Field(200, ge=1)
    invitation_emails_per_address: int = Field(10, ge=1)
    notifications_queue_url: OptionalUrl = None
    notifications_dead_letters_url: OptionalUrl = None
    emails_queue_url: OptionalUrl = None
    emails_dead_letters_url: OptionalUrl = None
    website_audits_queue_url: OptionalUrl = None
    website_audits_dead_letters_url: OptionalUrl = None
    audit_reports_queue_url: OptionalUrl = None
    audit_reports_dead_letters_url: OptionalUrl = None
    # Lets webhooks go to http URLs and to private addresses. Only for local runs: no template sets it.
    webhooks_to_this_machine: bool = False
    # Limits on the part of a repository that a scan reads, which is incomplete beyond the first three: the compressed
    # archive of all folders, the size on disk of the scanned folder's files, and their number. A file that exceeds
    # the last one is skipped.
    scan_archive_megabytes: int = Field(256, ge=1)
    scan_stored_bytes: int = Field(1536 * 1024**2, ge=1)
    scan_stored_files: int = Field(40_000, ge=1)
    scan_file_bytes: int = Field(8 * 1024**2, ge=1)
    # How long starting a scan waits for the scan before the response returns the scan request instead.
    scan_start_wait_seconds: float = Field(3, ge=0, le=15)
    # How long a request with `Prefer: wait` waits for a scan at most. With the time of its calls
    # (`dependency_seconds`), it must fit into the function's timeout.
    scan_wait_seconds: float = Field(20, ge=0, le=22)
    # How long opening an issue waits for it before the response says that it is still in progress.
    issue_wait_seconds: float = Field(8, ge=0, le=15)
    # The code host's REST API: GitHub, GitHub Enterprise Server (https://<host>/api/v3), or the local emulator.
    github_api_url: Url = "https://api.github.com"
    # Our GitHub App, and the location of its private key (PEM): a Secrets Manager secret or a local file.
    github_app_id: OptionalText = None
    github_app_secret_arn: OptionalText = None
    github_app_private_key_file: OptionalText = None
    # The name in the App's URL, the App's client ID, and the location of its client secret, with which people prove
    # which installations they have access to. None: people can't connect repositories, only the operator can.
    github_app_slug: Annotated[
        str | None, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,99}$"), BeforeValidator(lambda value: value or None)
    ] = None
    github_client_id: OptionalText = None
    github_client_secret_arn: OptionalText = None
    github_client_secret_file: OptionalText = None
    # The secret of the App's webhooks: a ring like the signing secret. None: webhooks aren't received.
    github_webhook_secret: Annotated[SigningSecret | None, BeforeValidator(read_signing_secret)] = Field(
        None, repr=False
    )
    # Total time that one request may spend on calls to the table, queues, and the sign-in issuer, including retries.
    # It makes a request end within 6 seconds even if they never respond.
    dependency_seconds: float = Field(4.5, gt=0, le=15)
    # The client of DynamoDB and SQS: our own (layers/shared/awsclient), or boto3.
    aws_client: Literal["own", "boto3"] = "own"
    # Days until data expires; 0 keeps it forever.
    finding_retention_days: int = Field(90, ge=0)
    resolved_item_retention_days: int = Field(365, ge=0)
    audit_run_retention_days: int = Field(400, ge=0)
    feedback_retention_days: int = Field(400, ge=0)
    ledger_retention_days: int = Field(3650, ge=0)
    audit_log_retention_days: int = Field(400, ge=0)
    log_level: str = "INFO"

    @property
    def device_clients(self) -> tuple[str, ...]:
        """Ids of the OAuth clients that may request device authorization."""
        return tuple((self.device_client_ids or f"{self.service_brand}-cli").split(","))

    def name_operator(self, text: str) -> str:
        """Returns the text with the operator, and the contact if there is one, in place of `{operator}`."""
        contact = f" ({self.contact})" if self.contact else ""
        return text.replace("{operator}", f"the operator of this service{contact}")


def load(environment: Mapping[str, str] | None = None) -> Settings:
    """Reads settings from the environment. Raises pydantic's ValidationError, which names every invalid variable.

    The variable SETTINGS has some in the form `NAME=value;OTHER=value`, which are used instead of variables of their
    own. Raises ValueError for a name that no setting has.
    """
    source = os.environ if environment is None else environment
    given = dict(it.split("=", 1) for it in source.get("SETTINGS", "").split(";") if it)
    if unknown := given.keys() - {name.upper() for name in Settings.model_fields}:
        raise ValueError(f"SETTINGS has unknown names: {', '.join(sorted(unknown))}")
    found = {**source, **given}
    return Settings.model_validate(
        {name: found[name.upper()] for name in Settings.model_fields if name.upper() in found}
    )


settings = load()
