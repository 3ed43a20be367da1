"""Business rules of the dashboard: sign-in and sign-out, organizations, and projects.

A sign-in in progress isn't stored on the server. The browser keeps a signed note of it in a cookie; the PKCE verifier
and the nonce are derived from the note's state and the signing key.
"""

import hmac
import re
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from controlplane.core import clock, ids, keyring
from controlplane.core.errors import Forbidden, InvalidPayload, NotFound
from controlplane.core.keyring import SigningKey
from controlplane.core.settings import settings
from controlplane.core.urls import dashboard_base_url, sign_in_client_id
from controlplane.store import deletions, invitees, organizations, projects, sessions, sign_in, users
from controlplane.store.deletions import NotOwner
from controlplane.store.invitees import Received
from controlplane.store.organizations import Account, Membership, NotMember
from controlplane.store.project_items import ProjectItem
from dashboard.errors import ProviderUnavailable, SignInRejected

if TYPE_CHECKING:
    from dashboard.provider import Provider

SIGN_IN_SECONDS = 600
# The overview shows only the number of invitations. The second limit keeps a page far below Lambda's 6 MB.
OVERVIEW_INVITATIONS, PAGE_INVITATIONS = 20, 50
_STATE_LENGTH = 43
_STATE = re.compile(r"[A-Za-z0-9_-]{43}")
# The purpose of the key ring's digest.
_NOTE = "note of a sign-in"
# Paths that a sign-in can return to.
_PAGES = {"/", "/device", "/invitations", "/invitations/blocked", "/organizations", "/sessions"}
_SLUG = r"[a-z0-9-]{1,64}"
_PROJECT_SLUG = re.compile(_SLUG)
_PROJECT_PAGE = re.compile(rf"/organizations/{_SLUG}/projects/{_SLUG}(?:/consent)?")
_DELETION_PAGE = re.compile(rf"/organizations/{_SLUG}/delete")
_DEVICE_PAGE = re.compile(r"/device\?user_code=[A-Za-z]{4}-?[A-Za-z]{4}")


class SignInOff(NotFound):
    message = "Sign-in isn't available: no sign-in service is configured."


class SignInLost(InvalidPayload):
    """The sign-in was started in another browser, or has expired."""

    message = "This sign-in wasn't started in this browser, or took longer than ten minutes. Start again."

    def __init__(self) -> None:
        super().__init__(details=[])


class SignInCanceled(InvalidPayload):
    message = "The sign-in wasn't completed. You can try again."

    def __init__(self, reason: str) -> None:
        super().__init__(details=[], reason=reason)


class AddressUnverified(Forbidden):
    message = (
        "The sign-in service has not verified your email address. Verify it there, for instance by the link or code "
        "that it sent you, and sign in again."
    )


class AddressNotAccepted(Forbidden):
    message = (
        "The sign-in service gave no email address that can be used here. An address such as ada@example.com, without "
        "letters beyond A to Z, is needed. Change it there and sign in again."
    )


class AnotherIdentity(Forbidden):
    """The email address belongs to an account with another identity of this issuer. `user_id` is only logged."""

    def __init__(self, user_id: str) -> None:
        contact = settings.contact_email or "the operator of this service"
        super().__init__(
            "The account with this email address belongs to another sign-in of the same sign-in service, so this "
            f"sign-in can't open it. If the account is yours, ask {contact} to move it to your new sign-in. If it "
            "belongs to a former user of the address, ask for the address to be released.",
            account=user_id,
        )


class NotConfirmed(InvalidPayload):
    message = "That isn't the organization's name or slug. Nothing was deleted."

    def __init__(self) -> None:
        super().__init__(details=[])


class NoProject(NotFound):
    message = "This project doesn't exist, or you aren't a member of its organization. Its address follows its name."


class Begun(NamedTuple):
    """A sign-in in progress: the URL to redirect to, and the purpose and value of the cookie with the note."""

    url: str
    purpose: str
    note: str


class Standing(NamedTuple):
    """The content of the overview page."""

    account: Account
    received: Received


_providers: dict[tuple[str, str | None], "Provider"] = {}


def _provider() -> tuple["Provider", str]:
    """Returns the provider and our client ID there. Raises SignInOff."""
    client_id = sign_in_client_id()
    if settings.sign_in_issuer is None or client_id is None:
        raise SignInOff
    from dashboard.provider import Provider  # noqa: PLC0415 (70 ms that only a sign-in needs)

    place = settings.sign_in_issuer, settings.sign_in_metadata_url
    return _providers.setdefault(place, Provider(*place)), client_id


def _callback() -> str:
    return f"{dashboard_base_url()}/sign-in/callback"


def begin_sign_in(return_to: str | None) -> Begun:
    """Starts a sign-in. Raises SignInOff, ProviderUnavailable."""
    provider, client_id = _provider()
    state = secrets.token_urlsafe(32)[:_STATE_LENGTH]
    key = keyring.current()
    url = provider.authorization_url(client_id, _callback(), state, _nonce(key, state), _verifier(key, state))
    until = int(clock.now()) + SIGN_IN_SECONDS
    return Begun(url, _note_purpose(state), _seal_note(key, state, until, own_page(return_to)))


def finish_sign_in(
    state: str, code: str, issuer: str | None, note_of: Callable[[str], str], address: str
) -> tuple[str, str]:
    """Completes a sign-in. Returns the secret of the new session and the page to redirect to.

    `note_of` returns the browser's note by purpose. `address` is the browser's IP address, for the list of sessions.

    Raises SignInLost, SignInRejected, AddressUnverified, AddressNotAccepted, AnotherIdentity, ProviderUnavailable,
    SignInOff.
    """
    provider, client_id = _provider()
    return_to, key = _open_note(state, note_of)
    # RFC 9207: if the response has an issuer, it must be the expected one.
    if issuer is not None and not provider.is_named(issuer):
        raise SignInRejected(details=[], reason="another issuer answered")
    identity = provider.redeem(client_id, _callback(), code, _verifier(key, state), _nonce(key, state))
    try:
        profile = sign_in.sign_in(identity)
    except sign_in.AddressNotVerified:
        raise AddressUnverified from None
    except sign_in.AddressNotAccepted:
        raise AddressNotAccepted from None
    except sign_in.AnotherIdentity as refusal:
        raise AnotherIdentity(refusal.user_id) from None
    try:
        return sessions.create(profile["userId"], address or None), return_to
    except users.UnknownUser:
        raise SignInRejected(details=[], reason="the account was deleted during the sign-in") from None


def note_purpose(state: str) -> str | None:
    """Returns the cookie purpose for this sign-in's note, or None if the state isn't one of ours."""
    return _note_purpose(state) if _STATE.fullmatch(state) else None


def sign_out(secret: str) -> None:
    sessions.revoke(secret)


def provider_sign_out_url() -> str | None:
    """Returns the URL that ends the provider's session, or None if there isn't one or the provider is unavailable."""
    try:
        provider, client_id = _provider()
        return provider.end_session_url(client_id, f"{dashboard_base_url()}/signed-out")
    except (SignInOff, ProviderUnavailable):
        return None


def own_page(target: str | None) -> str:
    """Returns the target if it is a dashboard page, or else `/`, which prevents open redirects."""
    if target is not None and (
        target in _PAGES or any(page.fullmatch(target) for page in (_DEVICE_PAGE, _PROJECT_PAGE, _DELETION_PAGE))
    ):
        return target
    return "/"


def _note_purpose(state: str) -> str:
    # One cookie per sign-in, so that two tabs don't overwrite each other's.
    return f"sign-in-{state[:8]}"


def _verifier(key: SigningKey, state: str) -> str:
    return key.digest("proof key of a sign-in", state)


def _nonce(key: SigningKey, state: str) -> str:
    return key.digest("nonce of a sign-in", state)


def _seal_note(key: SigningKey, state: str, until: int, return_to: str) -> str:
    text = f"{state}.{until}.{return_to.encode().hex()}"
    return f"{text}.{key.digest(_NOTE, text)}"


def _open_note(state: str, note_of: Callable[[str], str]) -> tuple[str, SigningKey]:
    """Returns the page to return to and the signing key with which the sign-in was started. Raises SignInLost."""
    purpose = note_purpose(state)
    note = note_of(purpose) if purpose else ""
    text, _, seal = note.rpartition(".")
    key = keyring.signer_of(_NOTE, text, seal)
    if key is None:
        raise SignInLost
    noted_state, until, return_to = text.split(".")
    if not hmac.compare_digest(noted_state, state) or int(until) <= clock.now():
        raise SignInLost
    return own_page(bytes.fromhex(return_to).decode()), key


def get_standing(user_id: str, most: int) -> Standing:
    """Returns the user's account and at most `most` of the invitations they received."""
    account = organizations.get_account(user_id)
    return Standing(account, invitees.list_received(account.profile, most))


def devices_are_offered() -> bool:
    return settings.device_authorization_enabled


def save_organization(organization_id: str, user_id: str) -> Membership:
    """Saves the user's default organization, used if a request doesn't name one. Raises NotMember."""
    known = ids.is_root(ids.ORGANIZATION, organization_id)
    membership = organizations.find_membership(user_id, organization_id) if known else None
    if membership is None:
        raise NotMember
    organizations.save_organization(user_id, organization_id)
    return membership


def get_own_organization(organization_slug: str, user_id: str) -> Membership:
    """Returns the organization with this slug if the user owns it. Raises NotMember, NotOwner."""
    memberships = organizations.get_account(user_id).memberships
    membership = next((held for held in memberships if held.slug == organization_slug), None)
    if membership is None:
        raise NotMember
    if membership.role != "owner":
        raise NotOwner
    return membership


def delete_organization(organization: Membership, confirmation: str, user_id: str) -> None:
    """Deletes the organization if the user typed its name or slug and still owns it.

    Raises NotConfirmed, NotOwner, NotMember.
    """
    if confirmation.strip() not in (organization.name.strip(), organization.slug):
        raise NotConfirmed
    try:
        deletions.delete_organization(organization.organization_id, user_id)
    except organizations.UnknownOrganization:
        raise NotMember from None


def get_project(organization_slug: str, project_slug: str, user_id: str) -> tuple[Membership, ProjectItem]:
    """Returns a project of one of the user's organizations. Raises NoProject."""
    memberships = organizations.get_account(user_id).memberships
    membership = next((held for held in memberships if held.slug == organization_slug), None)
    if membership is None or not _PROJECT_SLUG.fullmatch(project_slug):
        raise NoProject
    try:
        return membership, projects.get_project_by_slug(membership.organization_id, project_slug)
    except projects.UnknownProject:
        raise NoProject from None
