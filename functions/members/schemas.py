"""What `members` takes and answers."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from controlplane.emails import MAX_LENGTH, is_email
from controlplane.envelope import Wire
from controlplane.store.organizations import Role


def _address(email: str) -> str:
    if not is_email(email):
        raise PydanticCustomError("invalid_email", "This is not an email address.")
    return email


Email = Annotated[str, AfterValidator(_address)]


class MemberUser(Wire):
    """The person behind a membership."""

    id: str = Field(description="The person's id.", examples=["usr_5w1n8q2k7m3r9t4v"])
    name: str = Field(description="The person's name.", examples=["Ada Lovelace"])
    email: str = Field(
        description="The person's address.", examples=["ada@example.com"], json_schema_extra={"format": "email"}
    )
    image: str | None = Field(
        description="A picture of the person, or null.",
        examples=["https://images.example.com/ada.png"],
        json_schema_extra={"format": "uri"},
    )


class Member(Wire):
    """A membership of a person in an organization."""

    id: str = Field(description="The membership's id.", examples=["mem_3f8k2m9q7r1s5t6v5w1n8q2k7m3r9t4v"])
    role: Role = Field(description="What the member may do.", examples=["admin"])
    joined_at: str = Field(
        description="When the membership began.",
        examples=["2026-03-04T05:06:07.000Z"],
        json_schema_extra={"format": "date-time"},
    )
    user: MemberUser


class MemberUpdate(Wire):
    """A member's new role."""

    role: Role = Field(description="The new role. Only owners can grant `owner`.", examples=["admin"])


class UpdatedMember(Wire):
    """Whether a role changed."""

    updated: bool = Field(description="False where the member had the role already.", examples=[True])


class DeletedMember(Wire):
    """That a membership ended."""

    deleted: bool = Field(description="True: the membership ended.", examples=[True])


class InvitationCreate(Wire):
    """Whom to invite, and as what."""

    email: Email = Field(
        min_length=1,
        max_length=MAX_LENGTH,
        description="Compared without regard to case.",
        examples=["grace@example.com"],
        json_schema_extra={"format": "email"},
    )
    role: Role = Field(description="Granted on acceptance. Only owners can invite owners.", examples=["member"])


class Inviter(Wire):
    """Who invited, as they were then."""

    id: str = Field(description="The person's id.", examples=["usr_5w1n8q2k7m3r9t4v"])
    name: str = Field(description="The person's name.", examples=["Ada Lovelace"])
    email: str = Field(
        description="The person's address.", examples=["ada@example.com"], json_schema_extra={"format": "email"}
    )


class Invitation(Wire):
    """An invitation that waits for an answer."""

    id: str = Field(description="The invitation's id.", examples=["inv_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v"])
    email: str = Field(
        description="The address that is invited.",
        examples=["grace@example.com"],
        json_schema_extra={"format": "email"},
    )
    role: Role = Field(description="Granted on acceptance.", examples=["member"])
    status: Literal["pending"] = Field(description="Where it stands: others are not listed.", examples=["pending"])
    created_at: str = Field(
        description="When it was made.",
        examples=["2026-03-04T05:06:07.000Z"],
        json_schema_extra={"format": "date-time"},
    )
    expires_at: str = Field(
        description="Seven days after its creation.",
        examples=["2026-03-11T05:06:07.000Z"],
        json_schema_extra={"format": "date-time"},
    )
    invited_by: Inviter


class DeletedInvitation(Wire):
    """That an invitation is canceled."""

    deleted: bool = Field(description="True: it cannot be accepted any more.", examples=[True])
