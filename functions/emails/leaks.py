"""The email to a person whose token was found in public. It can't be turned off, because it is about security."""

from controlplane.api_keys import leaked
from controlplane.notify.mail_messages import SendLeakNotice
from controlplane.notify.mails import MailId, NotClaimed
from controlplane.people.users import UserItem
from controlplane.platform.core.observability import logger
from controlplane.platform.core.urls import dashboard_base_url
from controlplane.platform.table import keys
from controlplane.platform.table.table import Check, table
from emails.delivery import Draft, deliver
from emails.text import compose, shown_name


def send_leak_notice(message: SendLeakNotice) -> None:
    """Sends the email, unless the account was deleted. Raises Postponed, Delayed, Rejected."""
    known = leaked.find_leaked_token(message.user_id, message.leak)
    (profile_item,) = table.batch_get([keys.user(message.user_id)])
    if known is None or profile_item is None:
        return
    profile = UserItem.from_item(profile_item)
    draft = Draft(
        mail_id=MailId(message.user_id, message.leak),
        address=profile.email,
        about="leak",
        organization_id="",
        content=compose(
            "leak",
            client=shown_name(known.client),
            place=known.leak.url,
            link=f"{dashboard_base_url()}/sessions",
        ),
        unsubscribe=None,
        legs={"account": Check(keys.user(message.user_id), "#email = :email", {"email": profile.email})},
    )
    try:
        deliver(draft)
    except NotClaimed as change:
        logger.info("email not wanted", extra={"mail": str(draft.mail_id), "reason": change.leg})
