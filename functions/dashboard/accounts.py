"""Business rules of the account's pages."""

from controlplane.erasure import accounts as rules
from controlplane.erasure.deletions import LastOwnerOf
from controlplane.organizations.store import Account, Membership
from controlplane.platform.core.errors import Conflict, InvalidPayload


class NotConfirmed(InvalidPayload):
    message = "That isn't the account's email address. Nothing was deleted."


class LastOwner(Conflict):
    def __init__(self, slugs: list[str]) -> None:
        named = ", ".join(slugs)
        super().__init__(
            f"You are the last owner of {named}. Make another member an owner, or delete the organization."
        )


def list_last_owned(account: Account) -> list[Membership]:
    """Returns the account's organizations that have no other owner, which prevent its deletion."""
    slugs = rules.list_last_owned(account.memberships)
    return [held for held in account.memberships if held.slug in slugs]


def delete_account(account: Account, user_id: str, confirmation: str) -> None:
    """Deletes the account if the person typed its address. Raises NotConfirmed, LastOwner."""
    # Without a profile, an earlier deletion was interrupted, and is finished here.
    if account.profile is not None and confirmation.strip().lower() != account.profile.email.lower():
        raise NotConfirmed
    try:
        rules.delete_own_account(account, user_id)
    except LastOwnerOf as failure:
        raise LastOwner(failure.slugs) from None
