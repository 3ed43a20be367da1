"""Sign-in: maps an issuer's claims about a user to the user's account.

An identity (issuer and subject) belongs to one account. A new identity creates an account, or joins the account that
has its verified address, but only if that account has no identity from the same issuer: an address can be reassigned to
another person, who must not get the account.
"""

from dataclasses import dataclass

from controlplane.organizations import store as organizations
from controlplane.people import identities, users
from controlplane.people.identities import Subject
from controlplane.people.users import UserItem
from controlplane.platform.core.errors import Forbidden, known
from controlplane.platform.core.naming import normalize_email
from controlplane.platform.table import keys
from controlplane.platform.table.retry import WriteConflict, retry_on_conflict
from controlplane.platform.table.table import Check, ConditionFailed, LegFailed, Unrecorded, Update, table


class AddressNotVerified(Forbidden):
    """The issuer hasn't verified the address, so it can't identify an account."""

    title = "Your address isn't verified"
    message = (
        "The sign-in service has not verified your email address. Verify it there, for instance by the link or code "
        "that it sent you, and sign in again."
    )


class AddressNotAccepted(Forbidden):
    """The issuer returned no address, or one that this service doesn't accept."""

    title = "Your address can't be used"
    message = (
        "The sign-in service gave no email address that can be used here. An address such as ada@example.com, without "
        "letters beyond A to Z, is needed. Change it there and sign in again."
    )


class AnotherIdentity(Forbidden):
    """The account of this address has, or may have, another identity from this issuer. `user_id` is only logged."""

    title = "This sign-in can't open the account"

    def __init__(self, user_id: str) -> None:
        super().__init__(
            "The account with this email address belongs to another sign-in of the same sign-in service, so this "
            "sign-in can't open it. If the account is yours, ask {operator} to move it to your new sign-in. If it "
            "belongs to a former user of the address, ask for the address to be released.",
            account=user_id,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """An issuer's claims about a user. `email`, `name`, and `image` are None if missing or unusable."""

    issuer: str
    subject: str
    email: str | None
    email_verified: bool
    name: str | None
    image: str | None


def sign_in(claims: Claims) -> UserItem:
    """Returns the profile of the user's account, which the first sign-in creates.

    Updates the account's address to the issuer's verified one, unless another account has it. Also updates the name and
    image; rosters show all three. Raises AddressNotAccepted, AddressNotVerified, AnotherIdentity.
    """
    subject = Subject(claims.issuer, claims.subject)
    address_is_current = False

    def attempt() -> UserItem:
        nonlocal address_is_current
        known = identities.find_identity(subject)
        profile = _get_account(known.user_id) if known else _join(subject, claims)
        if not address_is_current:
            profile = _follow_address(profile, claims)
        # Changes the address only once: two concurrent sign-ins could otherwise overwrite each other forever.
        address_is_current = True
        return refresh(profile, claims.name, claims.image)

    return retry_on_conflict(attempt, "the account of this address")


def _get_account(user_id: str) -> UserItem:
    """Returns the account of a known identity. Raises WriteConflict if it was just deleted."""
    return known(users.find_user(user_id), WriteConflict)


def _join(subject: Subject, claims: Claims) -> UserItem:
    """Returns the account of a new identity. Raises WriteConflict if a concurrent request changed the read items."""
    if claims.email is None:
        raise AddressNotAccepted
    if not claims.email_verified:
        raise AddressNotVerified
    profile = users.find_user_by_email(claims.email)
    try:
        if profile is None:
            return users.create_user(
                claims.email,
                claims.name or claims.email.partition("@")[0],
                claims.image,
                extra_legs=lambda user_id: identities.first_legs(subject, user_id),
            )
        user_id = profile.user_id
        _, listed = identities.get_account(subject, user_id)
        if listed:
            # A concurrent request may have just added this identity.
            if identities.find_identity(subject) is not None:
                raise WriteConflict
            raise AnotherIdentity(user_id)
        pointer = keys.user_email(normalize_email(claims.email))
        address = Check(pointer, "#userId = :user", {"user": user_id})
        table.transact(
            {"profile": users.exists_check(user_id), "email": address, **identities.first_legs(subject, user_id)},
            Unrecorded.ACCOUNT,
        )
    except (LegFailed, users.EmailTaken):
        raise WriteConflict from None
    return profile


def _follow_address(profile: UserItem, claims: Claims) -> UserItem:
    """Returns the profile with the issuer's verified address. Raises WriteConflict if it must be read again."""
    if claims.email is None or not claims.email_verified:
        return profile
    if normalize_email(claims.email) == profile.email:
        return profile
    try:
        return users.change_address(profile, claims.email)
    except users.EmailTaken:
        return profile


def refresh(profile: UserItem, name: str | None, image: str | None) -> UserItem:
    """Updates name and image in the profile and rosters. Returns the profile.

    Rosters are written first and the profile last, so the next sign-in sees and finishes an interrupted refresh.
    Raises WriteConflict if the account is gone or its address has changed.
    """
    user_id, email = profile.user_id, profile.email
    shown = {"name": name or profile.name, "image": image or profile.image}
    if shown == {"name": profile.name, "image": profile.image} and not profile.rosters_pending:
        return profile
    # Makes each write conditional on the address that was read: a slow request must not restore an older one.
    same_address = Check(keys.user(user_id), "#email = :email", {"email": email})
    for membership in organizations.get_account(user_id).memberships:
        entry = Update(
            keys.member(membership.organization_id, user_id),
            "SET #name = :name, #image = :image, #email = :email",
            "attribute_exists(pk)",
            {**shown, "email": email},
        )
        try:
            table.transact({"profile": same_address, "member": entry}, Unrecorded.ACCOUNT)
        except LegFailed as failure:
            if failure.leg == "profile":
                raise WriteConflict from None
            continue  # the user has just left the organization
    change = "SET #name = :name, #image = :image REMOVE #rostersPending"
    try:
        updated = table.update(
            Update(keys.user(user_id), change, "#email = :email", {**shown, "email": email}), Unrecorded.ACCOUNT
        )
    except ConditionFailed:
        raise WriteConflict from None
    return UserItem.from_item(updated)
