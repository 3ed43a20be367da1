"""Sign-in: maps an issuer's claims about a user to the user's account.

An identity (issuer and subject) belongs to one account. A new identity creates an account, or joins the account that
has its verified address, but only if that account has no identity from the same issuer: an address can be reassigned to
another person, who must not get the account.
"""

from typing import Any, NamedTuple

from controlplane.core.emails import normalize_email
from controlplane.store import identities, keys, organizations, users
from controlplane.store.identities import Subject
from controlplane.store.table import Check, ConditionFailed, LegFailed, StoreError, Throttled, Update, table

_TRIES = 8


class AddressNotAccepted(StoreError):
    """The issuer returned no address, or one that this service doesn't accept."""


class AddressNotVerified(StoreError):
    """The issuer hasn't verified the address, so it can't identify an account."""


class AnotherIdentity(StoreError):
    """The account of this address, `user_id`, has another identity from this issuer, or may have one."""

    def __init__(self, user_id: str) -> None:
        super().__init__("the account has another identity")
        self.user_id = user_id


class Identity(NamedTuple):
    """An issuer's claims about a user. `email`, `name`, and `image` are None if missing or unusable."""

    issuer: str
    subject: str
    email: str | None
    email_verified: bool
    name: str | None
    image: str | None


def sign_in(identity: Identity) -> dict[str, Any]:
    """Returns the profile of the user's account, which the first sign-in creates.

    Updates the account's address to the issuer's verified one, unless another account has it. Also updates the name and
    image; rosters show all three. Raises AddressNotAccepted, AddressNotVerified, AnotherIdentity.
    """
    subject = Subject(identity.issuer, identity.subject)
    follows = True
    for _ in range(_TRIES):
        known = identities.find(subject)
        profile = _find_account(subject, known["userId"]) if known else _join(subject, identity)
        if profile is not None and follows:
            profile = _follow_address(profile, identity)
        if profile is not None:
            # Changes the address only once: two concurrent sign-ins could otherwise overwrite each other forever.
            follows = False
            profile = refresh(profile, identity.name, identity.image)
        if profile is not None:
            return profile
    raise Throttled("the account of this address keeps changing")


def _find_account(subject: Subject, user_id: str) -> dict[str, Any] | None:
    profile, listed = identities.get_account(subject, user_id)
    if profile is not None and subject.digest not in listed:
        identities.record(subject, user_id)
    return profile


def _join(subject: Subject, identity: Identity) -> dict[str, Any] | None:
    """Returns the account of a new identity, or None if a concurrent request requires re-reading everything."""
    if identity.email is None:
        raise AddressNotAccepted
    if not identity.email_verified:
        raise AddressNotVerified
    profile = users.find_user_by_email(identity.email)
    try:
        if profile is None:
            return users.create_user(
                identity.email,
                identity.name or identity.email.partition("@")[0],
                identity.image,
                extra_legs=lambda user_id: identities.first_legs(subject, user_id),
            )
        user_id = profile["userId"]
        _, listed = identities.get_account(subject, user_id)
        # An account created by an earlier version may have identities that aren't listed.
        if listed or not profile.get("identitiesRecorded"):
            # A concurrent request may have just added this identity.
            if identities.find(subject) is not None:
                return None
            raise AnotherIdentity(user_id)
        pointer = keys.user_email(normalize_email(identity.email))
        account = Check(keys.user(user_id), "#identitiesRecorded = :yes", {"yes": True})
        address = Check(pointer, "#userId = :user", {"user": user_id})
        table.transact({"profile": account, "email": address, **identities.first_legs(subject, user_id)})
    except (LegFailed, users.EmailTaken):
        return None
    return profile


def _follow_address(profile: dict[str, Any], identity: Identity) -> dict[str, Any] | None:
    """Returns the profile with the issuer's verified address, or None if it must be read again."""
    if identity.email is None or not identity.email_verified:
        return profile
    if normalize_email(identity.email) == profile["email"]:
        return profile
    try:
        return users.change_address(profile, identity.email)
    except users.EmailTaken:
        return profile
    except users.AccountChanged:
        return None


def refresh(profile: dict[str, Any], name: str | None, image: str | None) -> dict[str, Any] | None:
    """Updates name and image in the profile and rosters. Returns the profile, or None if its address changed.

    Rosters are written first and the profile last, so the next sign-in sees and finishes an interrupted refresh.
    """
    user_id, email = profile["userId"], profile["email"]
    shown = {"name": name or profile["name"], "image": image or profile["image"]}
    if all(profile[field] == value for field, value in shown.items()) and not profile.get("rostersPending"):
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
            table.transact({"profile": same_address, "member": entry})
        except LegFailed as refusal:
            if refusal.leg == "profile":
                return None
            continue  # the user has just left the organization
    change = "SET #name = :name, #image = :image REMOVE #rostersPending"
    try:
        return table.update(Update(keys.user(user_id), change, "#email = :email", {**shown, "email": email}))
    except ConditionFailed:
        return None
