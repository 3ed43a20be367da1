"""Records SES's reports about emails: they were accepted, came back, or were reported as spam.

The template's rules reduce SES's events to the kind and the email's ID, so no address passes through a queue.
"""

from controlplane.notify import mails, subscriptions
from controlplane.notify.mail_messages import MailReport
from controlplane.notify.mails import MailId, MailItem
from controlplane.notify.subscriptions import StopReason
from controlplane.organizations import invitations, sending
from controlplane.organizations.items import MailOutcome
from controlplane.platform.core.ids import InvitationId
from controlplane.platform.core.observability import logger
from emails.invitations import mail_id_of


def record(report: MailReport) -> None:
    """Settles the email or, after a permanent bounce or a complaint, stops all further ones to its address."""
    mail_id = MailId.parse(report.mail[0]) if report.mail else None
    mail = mails.find_mail(mail_id) if mail_id else None
    if mail is None:
        logger.info("report about an unknown email", extra={"event": report.event})
        return
    if report.event == "sent":
        mails.settle(mail.mail_id, "sent")
        _record_outcome(mail, "sent")
    elif report.event == "complained":
        _stop(mail, "complained")
    elif report.bounce_type == "Permanent":
        _stop(mail, "returned")


def _stop(mail: MailItem, reason: StopReason) -> None:
    subscriptions.stop(mail.address, reason)
    _record_outcome(mail, reason)
    logger.info("address stopped", extra={"mail": str(mail.mail_id), "reason": reason})


def _record_outcome(mail: MailItem, outcome: MailOutcome) -> None:
    """Records the outcome in the invitation, if this was its last email."""
    invitation_id = InvitationId.parse(mail.mail_id.recipient_id)
    invitation = invitations.find_invitation(invitation_id) if invitation_id else None
    if invitation is not None and mail_id_of(invitation) == mail.mail_id:
        sending.record_mail(invitation, outcome)
