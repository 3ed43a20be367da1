"""Hands an email to SES, once: `controlplane.notify.mails` describes how, and the remaining risk."""

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from controlplane.notify import mails, subscriptions
from controlplane.notify.mails import UNSETTLED_SECONDS, AlreadySent, MailId, Unsettled
from controlplane.platform.core.observability import logger
from controlplane.platform.core.settings import settings
from controlplane.platform.queues.worker import Delayed, Postponed, Rejected
from controlplane.platform.table.table import Leg
from emails.text import Content

# Longer than an email's outcome is waited for.
_RETRY_SECONDS = UNSETTLED_SECONDS + 10
_THROTTLED_SECONDS = 60
# A retry gets the same answer.
_PERMANENT = {"BadRequestException", "ValidationException"}
_THROTTLING = {"LimitExceededException", "Throttling", "ThrottlingException", "TooManyRequestsException"}


@cache
def ses() -> Any:
    """Returns SES's client. It makes one attempt: an email that SES may have accepted must not be sent again."""
    import boto3  # noqa: PLC0415 (slow to import)
    from botocore.config import Config  # noqa: PLC0415

    return boto3.client("sesv2", config=Config(connect_timeout=1, read_timeout=3, retries={"total_max_attempts": 1}))


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
    legs = {**draft.legs, "address": subscriptions.open_check(draft.address)}
    try:
        mails.claim(draft.mail_id, draft.address, draft.about, draft.organization_id, legs)
    except AlreadySent:
        return
    except Unsettled as unsettled:
        raise Postponed(unsettled.seconds + 1, "the email's outcome is not known yet") from unsettled
    _send(draft)
    mails.settle(draft.mail_id, "sent")
    logger.info("email sent", extra={"mail": str(draft.mail_id), "about": draft.about})


def _send(draft: Draft) -> None:
    """Raises the exception that retries or rejects the message. The reason contains SES's code, never its text."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

    try:
        ses().send_email(**_request(draft))
    except BotoCoreError as failure:
        raise Postponed(_RETRY_SECONDS, "SES did not answer") from failure
    except ClientError as failure:
        code, status = failure.response["Error"]["Code"], failure.response["ResponseMetadata"]["HTTPStatusCode"]
        if status >= 500:
            raise Postponed(_RETRY_SECONDS, "SES did not answer") from failure
        mails.settle(draft.mail_id, "failed")
        if status == 429 or code in _THROTTLING:
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
