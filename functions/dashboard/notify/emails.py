"""The pages of emails: what a person receives, and the links in emails that stop them without signing in."""

from typing import Annotated, Final

from fastapi import Path, Response

from controlplane.access.web_session import WebSession
from controlplane.notify import subscriptions
from controlplane.notify.subscriptions import CHOICES, FOR_ADMINS, Choice
from controlplane.organizations.store import Membership, NotMember
from controlplane.platform.core.errors import ApiError
from controlplane.platform.core.naming import normalize_email
from controlplane.platform.core.roles import RANK
from controlplane.platform.core.settings import settings
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.table.parallel import read_both
from dashboard.pages import page, redirect
from dashboard.parameters import SignedIn, Submits, Unsubscribes

router = ControlRouter(tags=["Pages"], include_in_schema=False)

_PAGE = "/account/notifications"
_DONE: Final = {
    "saved": "Your choice is saved.",
    "resumed": "Emails to your address are on again.",
}
_KINDS: Final = {
    "finding": ("New P0 findings", "When a finding of the highest priority is new in the inbox."),
    "mention": ("Assignments and mentions", "When a finding is assigned to you, or a comment mentions you."),
    "credits": ("Low credits", "When the credits run low."),
    "webhook": ("Disabled webhooks", "When a webhook is disabled because its deliveries failed for a day."),
    "key": ("Leaked API keys", "When the secret of an API key is found in public, and the key is revoked."),
    "digest": ("Weekly digest", "On Mondays, if anything happened in the week before."),
}
_STOPPED: Final = {
    "returned": "The last email to this address came back, so we send no more. Check it, or turn emails on again.",
    "complained": "An email to this address was reported as spam, so we send no more.",
    "stopped": "You stopped all emails to this address.",
}

# From an email: it contains up to 200 characters of its own.
Link = Annotated[str, Path(alias="link", max_length=300)]


@router.get("/account/notifications")
async def show_notifications(session: SignedIn) -> Response:
    """Shows which emails the person receives, by organization."""
    return _notifications(session)


@router.post("/account/notifications")
async def save_notifications(session: Submits) -> Response:
    """Saves the choice for one organization."""
    held = {membership.organization_id: membership for membership in session.account.memberships}
    membership = held.get(session.form.get("organization_id", ""))
    if membership is None:
        return _notifications(session, NotMember())
    offered = _list_offered(membership)
    # Hidden choices keep their default, in case the role changes.
    on = [it for it in CHOICES if it not in offered or session.form.get(it) == "on"]
    subscriptions.save_choices(session.user_id, {membership.organization_id: on})
    return redirect(f"{_PAGE}?done=saved")


@router.post("/account/notifications/resume")
async def resume_emails(session: Submits) -> Response:
    """Turns emails to the person's address on again."""
    subscriptions.resume(session.profile.email)
    return redirect(f"{_PAGE}?done=resumed")


@router.get("/account/unsubscribe/{link}")
async def show_unsubscription(session: Unsubscribes, link: Link) -> Response:
    """Asks what to stop. Changes nothing, because programs that check emails open links, too."""
    return _unsubscription(session, link)


@router.post("/account/unsubscribe/{link}")
async def unsubscribe(session: Unsubscribes, link: Link) -> Response:
    """Stops emails of the link's kind. Email programs send this themselves (RFC 8058), so the form has no token."""
    return _unsubscription(session, link, everything=False)


@router.post("/account/unsubscribe/{link}/all")
async def unsubscribe_from_all(session: Unsubscribes, link: Link) -> Response:
    """Stops all emails to the address that the link was sent to."""
    return _unsubscription(session, link, everything=True)


def _unsubscription(session: WebSession, link: str, *, everything: bool | None = None) -> Response:
    """Shows what the link stops or, if `everything` is given, stops it and says so. Raises UnknownLink."""
    if everything is None:
        subscription = subscriptions.read_link(link)
    else:
        subscription = subscriptions.unsubscribe(link, everything=everything)
    kind = _KINDS[subscription.choice][0] if subscription.choice else None
    stopped = None if everything is None else "all" if everything or kind is None else "kind"
    return page("unsubscribe", session, link=link, kind=kind, stopped=stopped)


def _list_offered(membership: Membership) -> list[Choice]:
    """Returns the kinds of emails that a member with this role gets."""
    return [it for it in CHOICES if it not in FOR_ADMINS or RANK[membership.role] >= RANK["admin"]]


def _notifications(session: WebSession, failure: ApiError | None = None) -> Response:
    profile, held = session.profile, sorted(session.account.memberships, key=lambda it: it.name.lower())
    chosen, stops = read_both(
        lambda: subscriptions.find_choices(profile.user_id, [it.organization_id for it in held]),
        lambda: subscriptions.find_stops([profile.email]),
    )
    return page(
        "notifications",
        session,
        failure,
        done=_DONE,
        current=_PAGE,
        kinds=_KINDS,
        # For each organization, the kinds of emails that the person's role gets, and which of them are on.
        choices=[(it, _list_offered(it), chosen[it.organization_id]) for it in held],
        stop=stops.get(normalize_email(profile.email)),
        stopped=_STOPPED,
        sends_emails=settings.email_sender is not None,
    )
