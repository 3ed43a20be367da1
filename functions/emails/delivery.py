"""Hands an email to SES, once: `controlplane.store.mails` describes how, and the remaining risk."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from controlplane.aws.clients import create_client
from controlplane.aws.errors import AwsError, ServiceError, is_outcome_unknown
from controlplane.aws.retries import is_throttling
from controlplane.core.observability import logger
from controlplane.core.settings import settings
from controlplane.queues.worker import Delayed, Postponed, Rejected
from controlplane.store import mail_addresses, mails
from controlplane.store.mails import UNSETTLED_SECONDS, AlreadySent, MailId, Unsettled
from controlplane.store.table import Leg
from emails.text import Content

# Longer than an email's outcome is waited for.
_RETRY_SECONDS = UNSETTLED_SECONDS + 10
_THROTTLED_SECONDS = 60
# A retry gets the same answer.
_PERMANENT = {"BadRequestException", "ValidationException"}


class Mailer:
    """Holds SES's client, which is created on first use."""

    def __init__(self) -> None:
        self._client: Any = None

    @property
    def client(self) -> Any:
        if self._client is None:
            self._client = create_client("sesv2")
        return self._client


mailer = Mailer()


class Draft(NamedTuple):
    """An email to send. about: its kind. unsubscribe: the link for email programs, or None. legs: its conditions."""

    mail_id: MailId
    address: str
    about: str
    organization_id: str
    content: Content
    unsubscribe: str | None
    legs: Mapping[str, Leg]


def deliver(draft: Draft) -> None:
    """Sends the email, unless it was sent.

    Raises NotClaimed if it isn't wanted anymore; Postponed, Delayed, and Rejected.
    """
    legs = {**draft.legs, "address": mail_addresses.open_check(draft.address)}
    try:
        mails.claim(draft.mail_id, draft.address, draft.about, draft.organization_id, legs)
    except AlreadySent:
        return
    except Unsettled as unsettled:
        raise Postponed(unsettled.seconds + 1, "the email's outcome is not known yet") from unsettled
    try:
        mailer.client.send_email(**_request(draft))
    except AwsError as failure:
        _fail(draft, failure)
    mails.settle(draft.mail_id, "sent")
    logger.info("email sent", extra={"mail": str(draft.mail_id), "about": draft.about})


def _fail(draft: Draft, failure: AwsError) -> None:
    """Raises the exception that retries or rejects the message. The reason contains SES's code, never its text."""
    if is_outcome_unknown(failure):
        raise Postponed(_RETRY_SECONDS, "SES did not answer") from failure
    mails.settle(draft.mail_id, "failed")
    code = failure.code if isinstance(failure, ServiceError) else type(failure).__name__
    if is_throttling(failure):
        raise Delayed(_THROTTLED_SECONDS, "SES limits requests") from failure
    if code in _PERMANENT:
        raise Rejected(f"SES: {code}") from failure
    raise Postponed(_RETRY_SECONDS, f"SES: {code}") from failure


def _request(draft: Draft) -> dict[str, Any]:
    content = draft.content
    headers = [{"Name": "Auto-Submitted", "Value": "auto-generated"}]
    if draft.unsubscribe is not None:
        headers += [
            {"Name": "List-Unsubscribe", "Value": f"<{draft.unsubscribe}>"},
            {"Name": "List-Unsubscribe-Post", "Value": "List-Unsubscribe=One-Click"},
        ]
    configuration = settings.email_configuration_set
    return {
        "FromEmailAddress": f"{settings.service_brand.capitalize()} <{settings.email_sender}>",
        "Destination": {"ToAddresses": [draft.address]},
        "Content": {
            "Simple": {
                "Subject": _text(content.subject),
                "Body": {"Text": _text(content.text), "Html": _text(content.html)},
                "Headers": headers,
            }
        },
        # By which SES's reports name the email.
        "EmailTags": [{"Name": "mail", "Value": str(draft.mail_id)}],
        **({"ConfigurationSetName": configuration} if configuration else {}),
    }


def _text(value: str) -> dict[str, str]:
    return {"Data": value, "Charset": "UTF-8"}
