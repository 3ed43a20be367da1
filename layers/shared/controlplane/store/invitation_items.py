"""The two items of an invitation: the one that the organization lists, and the lock on the invited address."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from controlplane.core import clock
from controlplane.core.emails import normalize_email
from controlplane.core.ids import InvitationId
from controlplane.store import keys
from controlplane.store.keys import Key
from controlplane.store.organizations import Role


class Inviter(NamedTuple):
    """The user who sent an invitation, as of the time it was sent, by their stored names."""

    id: str
    name: str
    email: str

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> Self:
        return cls(item["id"], item["name"], item["email"])


@dataclass(frozen=True, slots=True, kw_only=True)
class InvitationItem:
    """An invitation as the organization lists it. `expires_at` is a Unix time."""

    invitation_id: InvitationId
    email: str
    role: Role
    created_at: str
    expires_at: int
    invited_by: Inviter

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> Self:
        return cls(
            invitation_id=InvitationId.stored(item["invitationId"]),
            email=item["email"],
            role=item["role"],
            created_at=item["createdAt"],
            expires_at=item["expiresAt"],
            invited_by=Inviter.from_item(item["invitedBy"]),
        )

    def to_item(self) -> dict[str, Any]:
        return {
            **self.key._asdict(),
            "invitationId": self.invitation_id,
            "email": self.email,
            "role": self.role,
            "createdAt": self.created_at,
            "expiresAt": self.expires_at,
            "invitedBy": self.invited_by._asdict(),
        }

    @property
    def key(self) -> Key:
        return keys.invitation(*self.invitation_id.location)

    @property
    def lock_key(self) -> Key:
        return keys.invitee(normalize_email(self.email), self.invitation_id.organization_id)

    @property
    def inviter_key(self) -> Key:
        """The key of the inviter's membership, whose role the invitation depends on."""
        return keys.membership(self.invited_by.id, self.invitation_id.organization_id)

    @property
    def is_pending(self) -> bool:
        """Returns True if the invitation hasn't expired. It may still be void."""
        return self.expires_at > clock.now()


@dataclass(frozen=True, slots=True, kw_only=True)
class InvitationLock:
    """The item that allows one pending invitation per organization and address, and names it."""

    invitation_id: InvitationId
    expires_at: int

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> Self:
        return cls(invitation_id=InvitationId.stored(item["invitationId"]), expires_at=item["expiresAt"])

    def to_item(self, address: str) -> dict[str, Any]:
        return {
            **keys.invitee(address, self.invitation_id.organization_id)._asdict(),
            "invitationId": self.invitation_id,
            "expiresAt": self.expires_at,
        }

    @property
    def invitation_key(self) -> Key:
        """The key of the item that the organization lists."""
        return keys.invitation(*self.invitation_id.location)

    @property
    def is_pending(self) -> bool:
        """Returns True if the invitation hasn't expired. It may still be void."""
        return self.expires_at > clock.now()
