"""Request and response models of `members`."""

from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from controlplane.platform.core.naming import MAX_EMAIL_LENGTH, is_email
from controlplane.platform.core.roles import Role
from controlplane.platform.http.envelope import Wire
from controlplane.platform.http.fields import Timestamp


def _address(email: str) -> str:
    if not is_email(email):
        raise PydanticCustomError(
            "invalid_email",
            "Send an email address such as ada@example.com: without a name, spaces, or non-ASCII characters.",
        )
    return email


Email = Annotated[str, AfterValidator(_address)]


class MemberUser(Wire):
    """The user that a membership belongs to."""

    id: str = Field(description="The user's ID.", examples=["usr_5w1n8q2k7m3r9t4v"])
    name: str = Field(description="The user's name.", examples=["Ada Lovelace"])
    email: str = Field(
        description="The user's email address.", examples=["ada@example.com"], json_schema_extra={"format": "email"}
    )
    image: str | None = Field(
        description="The URL of the user's picture, or null.",
        examples=["https://images.example.com/ada.png"],
        json_schema_extra={"format": "uri"},
    )


class Member(Wire):
    """A user's membership in an organization."""

    id: str = Field(description="The membership's ID.", examples=["mem_3f8k2m9q7r1s5t6v5w1n8q2k7m3r9t4v"])
    role: Role = Field(description="The member's role.", examples=["admin"])
    joined_at: Timestamp = Field(description="The time the member joined.")
    user: MemberUser


class MemberUpdate(Wire):
    """A member's new role."""

    role: Role = Field(description="The new role. Only owners can grant `owner`.", examples=["admin"])


class UpdatedMember(Wire):
    """The result of a role change."""

    updated: bool = Field(description="False if the member already had the role.")


class DeletedMember(Wire):
    """The result of removing a member."""

    deleted: bool = Field(description="True: the member was removed.")


class InvitationCreate(Wire):
    """An invitation to create."""

    email: Email = Field(
        min_length=1,
        max_length=MAX_EMAIL_LENGTH,
        description="The email address to invite. Case-insensitive.",
        examples=["grace@example.com"],
        json_schema_extra={"format": "email"},
    )
    role: Role = Field(
        description="The role granted on acceptance. Only owners can invite owners.", examples=["member"]
    )


class Inviter(Wire):
    """The user who sent the invitation, as of the time it was sent."""

    id: str = Field(description="The user's ID.", examples=["usr_5w1n8q2k7m3r9t4v"])
    name: str = Field(description="The user's name.", examples=["Ada Lovelace"])
    email: str = Field(
        description="The user's email address.", examples=["ada@example.com"], json_schema_extra={"format": "email"}
    )


class Invitation(Wire):
    """A pending invitation."""

    id: str = Field(description="The invitation's ID.", examples=["inv_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v"])
    email: str = Field(
        description="The invited email address.",
        examples=["grace@example.com"],
        json_schema_extra={"format": "email"},
    )
    role: Role = Field(description="The role granted on acceptance.", examples=["member"])
    status: str = Field(description="Always `pending`: other invitations aren't returned.", examples=["pending"])
    created_at: Timestamp = Field(description="The time the invitation was created.")
    expires_at: Timestamp = Field(
        description="The time the invitation expires, seven days after it was created or sent again.",
        examples=["2026-03-11T05:06:07.000Z"],
    )
    invited_by: Inviter


class DeletedInvitation(Wire):
    """The result of canceling an invitation."""

    deleted: bool = Field(description="True: the invitation can no longer be accepted.")
