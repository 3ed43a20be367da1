"""The values of emails to members, read when each is sent. None if it is outdated by then.

The email about a token that was found in public can't be turned off, because it is about security.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import date, timedelta
from typing import Any

from controlplane.api_keys import leaked
from controlplane.billing import store as billing
from controlplane.findings import conversations, inbox
from controlplane.findings.items import InboxItem
from controlplane.notify import mail_messages, subscriptions
from controlplane.notify.mail_messages import SendLeakNotice, SendNotification
from controlplane.notify.mails import MailId, NotClaimed
from controlplane.notify.subscriptions import FOR_ADMINS, Choice
from controlplane.organizations import members
from controlplane.organizations import store as organizations
from controlplane.organizations.store import Membership
from controlplane.people.users import UserItem
from controlplane.platform.core import ids
from controlplane.platform.core.ids import InboxItemId, KeyId
from controlplane.platform.core.observability import logger
from controlplane.platform.core.plans import LOW_CREDITS, SCAN_UNLOCK_CREDITS
from controlplane.platform.core.urls import dashboard_base_url
from controlplane.platform.table import keys
from controlplane.platform.table.table import Check, table
from controlplane.scans import reads
from emails.delivery import Draft, deliver
from emails.text import compose, shown_name, shown_title

# Counted and listed in a digest, at most.
_MOST_OPEN, _MOST_SCANS, _MOST_URGENT = 500, 100, 5

type Values = dict[str, Any]


def send_notification(message: SendNotification) -> None:
    """Sends the email to one member, if they still are one and want it. Raises Postponed, Delayed, Rejected."""
    user_id, organization_id, about = message.user_id, message.organization_id, message.about
    profile_item, held = table.batch_get([keys.user(user_id), keys.membership(user_id, organization_id)])
    if profile_item is None or held is None:
        return
    profile, membership = UserItem.from_item(profile_item), Membership.from_item(held)
    values = _VALUES[about](membership, message)
    if values is None:
        return
    unsubscribe = subscriptions.link_of_choice(user_id, organization_id, about)
    draft = Draft(
        mail_id=MailId(user_id, ids.derived_local(organization_id, about, message.subject)),
        address=profile.email,
        about=about,
        organization_id=organization_id,
        content=compose(
            about,
            organization=shown_name(membership.name),
            unsubscribe=unsubscribe,
            notifications=f"{dashboard_base_url()}/account/notifications",
            **values,
        ),
        unsubscribe=unsubscribe,
        legs={
            "account": Check(keys.user(user_id), "#email = :email", {"email": profile.email}),
            "membership": organizations.role_check(
                user_id, organization_id, "admin" if about in FOR_ADMINS else "member"
            ),
            "choice": subscriptions.wanted_check(user_id, organization_id, about),
            **({"day": subscriptions.count_mention(profile.email)} if about == "mention" else {}),
        },
    )
    _deliver(draft)


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
    _deliver(draft)


def _deliver(draft: Draft) -> None:
    try:
        deliver(draft)
    except NotClaimed as change:
        logger.info("email not wanted", extra={"mail": str(draft.mail_id), "reason": change.leg})


def _page_of(membership: Membership, area: str) -> str:
    return f"{dashboard_base_url()}/organizations/{membership.slug}/{area}"


def _finding(membership: Membership, message: SendNotification) -> Values | None:
    batch = mail_messages.find_batch(membership.organization_id, message.subject)
    if batch is None:
        return None
    found = inbox.find_items(map(InboxItemId.stored, batch.item_ids))
    shown = [it for it in found.values() if it.status == "open"]
    if not shown:
        return None  # all of them were decided in the meantime
    more = batch.size - len(batch.item_ids)
    link = _page_of(membership, "inbox?priority=P0")
    findings = _findings(membership, shown)
    return {"count": len(shown) + more, "findings": findings, "more": more, "link": link}


def _findings(membership: Membership, items: Iterable[InboxItem]) -> list[dict[str, str]]:
    return [
        {
            "title": shown_title(item.title),
            "place": shown_name(item.repository_name or ""),
            "link": _page_of(membership, f"inbox/{item.item_id}"),
        }
        for item in items
    ]


def _mention(membership: Membership, message: SendNotification) -> Values | None:
    """Returns the values of a mention's or an assignment's email. The subject is that of `conversations.announce`."""
    item_id, cause, number = (*message.subject.split("-"), "1")[:3]
    item = inbox.find_items([InboxItemId.stored(item_id)]).get(item_id)
    if item is None:
        return None
    try:
        comment = conversations.find_cause(item, cause, message.user_id)
    except LookupError:
        return None  # deleted, or assigned to another person since
    names = members.find_names(membership.organization_id, [comment.by]) if comment else {}
    who = shown_name(names.get(comment.by, "A member")) if comment else None
    findings, count = _findings(membership, [item]), int(number)
    link = findings[0]["link"] if count == 1 else _page_of(membership, "inbox?assignee=me")
    return {"who": who, "count": count, "findings": findings, "more": count - 1, "link": link}


def _credits(membership: Membership, _message: SendNotification) -> Values | None:
    _, balance = billing.get_billing(membership.organization_id)
    if balance.credits >= LOW_CREDITS:
        return None  # topped up since
    unlocks = balance.credits // SCAN_UNLOCK_CREDITS
    scans = "none" if unlocks == 0 else "one more scan" if unlocks == 1 else f"{unlocks} more scans"
    values = {"credits": balance.credits, "price": SCAN_UNLOCK_CREDITS, "scans": scans}
    return {**values, "link": _page_of(membership, "billing")}


def _webhook(membership: Membership, _message: SendNotification) -> Values | None:
    return {"link": _page_of(membership, "webhooks")}


def _key(membership: Membership, message: SendNotification) -> Values | None:
    known = leaked.find_leaked_key(KeyId.stored(message.subject))
    if known is None:
        return None
    values = {"name": shown_name(known.name), "start": known.start, "place": known.leak.url}
    return {**values, "link": _page_of(membership, "keys")}


def _digest(membership: Membership, message: SendNotification) -> Values | None:
    organization_id, end = membership.organization_id, date.fromisoformat(message.subject)
    start = end - timedelta(days=7)
    opened = inbox.read_positions(organization_id, "open", _MOST_OPEN, None)
    scans = [
        scan
        for scan in reads.list_scans(organization_id, _MOST_SCANS, None).items
        if scan.status == "completed" and f"{start}" <= scan.created_at < f"{end}"
    ]
    counted = Counter(item.priority for item in opened.items)
    compared = [scan.comparison for scan in scans if scan.comparison is not None]
    lines = [
        ("Completed scans", str(len(scans))),
        ("New findings", str(sum(it.new_count or 0 for it in compared))),
        ("Fixed findings", str(sum(it.fixed_count for it in compared))),
        ("Open P0 findings", str(counted["P0"])),
        ("Open findings", f"{_MOST_OPEN} or more" if opened.next_position else str(len(opened.items))),
    ]
    urgent = [item for item in opened.items if item.priority == "P0"][:_MOST_URGENT]
    week = f"{_day(start)} to {_day(end - timedelta(days=1))}"
    findings = _findings(membership, urgent)
    return {"week": week, "lines": lines, "findings": findings, "link": _page_of(membership, "inbox")}


def _day(day: date) -> str:
    return f"{day:%B} {day.day}"


_VALUES: dict[Choice, Callable[[Membership, SendNotification], Values | None]] = {
    "finding": _finding,
    "mention": _mention,
    "credits": _credits,
    "webhook": _webhook,
    "key": _key,
    "digest": _digest,
}
