"""The organization that a person's requests act in if they don't name one.

The first membership saves it, so that an accepted invitation doesn't break scripts that name no organization.
"""

from contextlib import suppress

from controlplane.platform.core.errors import NotFound
from controlplane.platform.table import keys
from controlplane.platform.table.table import Check, Leg, LegFailed, Unrecorded, Update, table


class NotMember(NotFound):
    """The user isn't a member of the organization, or no longer is."""

    message = "You aren't a member of this organization."


def save(user_id: str, organization_id: str) -> None:
    """Saves the organization as the user's default. Raises NotMember."""
    legs: dict[str, Leg] = {
        "membership": Check(keys.membership(user_id, organization_id), "attribute_exists(pk)"),
        "profile": Update(
            keys.user(user_id), "SET #savedOrganizationId = :id", "attribute_exists(pk)", {"id": organization_id}
        ),
    }
    try:
        table.transact(legs, Unrecorded.ACCOUNT)
    except LegFailed as failure:
        if failure.leg != "membership":
            raise
        raise NotMember from None


def forget(user_id: str, organization_id: str) -> None:
    """Clears the user's default organization if it is this one and the user is no longer a member."""
    legs: dict[str, Leg] = {
        "membership": Check(keys.membership(user_id, organization_id), "attribute_not_exists(pk)"),
        "profile": Update(
            keys.user(user_id),
            "SET #savedOrganizationId = :none",
            "#savedOrganizationId = :organization",
            {"none": None, "organization": organization_id},
        ),
    }
    with suppress(LegFailed):
        table.transact(legs, Unrecorded.ACCOUNT)
