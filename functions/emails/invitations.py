"""The email of an invitation, and what the members' page says about it."""

from controlplane.notify import subscriptions
from controlplane.notify.mail_messages import SendInvitation
from controlplane.notify.mails import MailId, NotClaimed
from controlplane.organizations import invitations, invitees, sending
from controlplane.organizations import store as organizations
from controlplane.organizations.items import InvitationItem, MailOutcome, OrganizationItem
from controlplane.platform.core import ids
from controlplane.platform.core.ids import InvitationId
from controlplane.platform.core.settings import settings
from controlplane.platform.core.urls import dashboard_base_url
from controlplane.platform.table.table import Check
from emails.delivery import Draft, deliver
from emails.text import compose, shown_day, shown_name

_ROLES = {"owner": "an owner", "admin": "an admin", "member": "a member"}
# The counters of a day.
_LIMITS = {"organizationDay", "addressDay"}


def send_invitation(message: SendInvitation) -> None:
    """Sends the email, if the invitation can still be accepted and wasn't sent again since.

    If the address belongs to a person who has blocked the organization, nothing is sent, and the organization isn't
    told. Raises Postponed, Delayed, Rejected.
    """
    found = invitees.find_invited(InvitationId.stored(message.invitation_id))
    if found is None or found.invitation.resends.total != message.number:
        return
    invitation = found.invitation
    if found.is_blocked:
        sending.record_mail(invitation, "sent")
        return
    try:
        deliver(_draft(invitation, found.organization))
    except NotClaimed as change:
        if outcome := _outcome_of(change, invitation):
            sending.record_mail(invitation, outcome)
    else:
        sending.record_mail(invitation, "sent")


def mail_id_of(invitation: InvitationItem) -> MailId:
    """Returns the ID of the invitation's last email."""
    return MailId(invitation.invitation_id, ids.derived_local("invitation", str(invitation.resends.total)))


def _draft(invitation: InvitationItem, organization: OrganizationItem) -> Draft:
    mail_id, organization_id = mail_id_of(invitation), organization.organization_id
    unsubscribe = subscriptions.link_of_mail(mail_id)
    content = compose(
        "invitation",
        organization=shown_name(organization.name),
        inviter=shown_name(invitation.invited_by.name) or "A member",
        role=_ROLES[invitation.role],
        link=f"{dashboard_base_url()}/invitations/{invitation.invitation_id}",
        until=shown_day(invitation.expires_at),
        unsubscribe=unsubscribe,
    )
    least = invitations.least_inviter(invitation.role)
    return Draft(
        mail_id=mail_id,
        address=invitation.email,
        about="invitation",
        organization_id=organization_id,
        content=content,
        # One click would stop all emails to the address, so it takes the page.
        unsubscribe=None,
        legs={
            "invitation": Check(
                invitation.key, "attribute_exists(pk) AND #expiresAt = :until", {"until": invitation.expires_at}
            ),
            "inviter": organizations.role_check(invitation.invited_by.id, organization_id, least),
            **subscriptions.count_invitation(
                organization_id,
                invitation.email,
                settings.invitation_emails_per_organization,
                settings.invitation_emails_per_address,
            ),
        },
    )


def _outcome_of(change: NotClaimed, invitation: InvitationItem) -> MailOutcome | None:
    """Returns why an email wasn't sent, for the members' page, or None if there is no invitation."""
    if change.leg in _LIMITS:
        return "limited"
    if change.leg != "address":
        return None
    return next((stop.reason for stop in subscriptions.find_stops([invitation.email]).values()), "stopped")
