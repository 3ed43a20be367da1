"""The items of an organization: itself and its billing item, which are created and deleted together, and its ledger.

An invitation has two: the one that the organization lists, and the lock on the invited address.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Literal, Self

from controlplane.platform.core import clock
from controlplane.platform.core.actions import Action
from controlplane.platform.core.ids import InvitationId
from controlplane.platform.core.naming import normalize_email
from controlplane.platform.core.roles import Role
from controlplane.platform.table import keys
from controlplane.platform.table.keys import Key
from controlplane.platform.table.legs import Put, Recorded
from controlplane.platform.table.stored import SPARSE, Derived, StoredItem, StoredMap


@dataclass(frozen=True, slots=True, kw_only=True)
class OrganizationItem(StoredItem):
    """An organization. `key_version` changes whenever its set of API keys changes."""

    organization_id: str
    name: str
    slug: str
    plan: str
    owners: int
    keys: int
    key_version: int
    projects: int
    created_at: str

    @property
    def key(self) -> Key:
        return keys.organization(self.organization_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopUpItem(StoredMap):
    """The settings of the automatic top-up, and how many there were in `month`, such as 2026-03.

    If a charge would leave fewer than `threshold` credits, `amount` credits are added, at most `monthly_limit` times in
    a calendar month (UTC).
    """

    enabled: bool = False
    threshold: int | None = None
    amount: int | None = None
    monthly_limit: Annotated[int | None, SPARSE] = None
    month: Annotated[str | None, SPARSE] = None
    used: Annotated[int, SPARSE] = 0

    def used_in(self, month: str) -> int:
        return self.used if self.month == month else 0


_NO_TOP_UP = TopUpItem()

LedgerKind = Literal["unlock", "top-up", "operator"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerItem(StoredMap):
    """A change of an organization's balance. An automatic top-up has the scan whose charge needed it."""

    key: Annotated[Key, Derived(lambda item: Key(item["pk"], item["sk"]))]
    kind: LedgerKind
    credits: int
    at: str
    scan_id: Annotated[str | None, SPARSE] = None
    by: Annotated[str | None, SPARSE] = None

    @property
    def leg(self) -> Put:
        """Returns the leg that adds the entry to the ledger."""
        return Put({**self.key._asdict(), **self.to_map()}, "attribute_not_exists(pk)")


@dataclass(frozen=True, slots=True, kw_only=True)
class BillingItem(StoredItem):
    """An organization's credits."""

    organization_id: Annotated[str, Derived(lambda item: keys.organization_of(item["pk"]))]
    credits: int = 0
    top_up: TopUpItem = _NO_TOP_UP

    @property
    def key(self) -> Key:
        return keys.billing(self.organization_id)


@dataclass(frozen=True, slots=True)
class Inviter(StoredMap):
    """The user who sent an invitation, as of the time it was sent, by their stored names."""

    id: str
    name: str
    email: str


@dataclass(frozen=True, slots=True)
class Resends(StoredMap):
    """How often an invitation was sent again: in all, and on `day` (UTC), such as 2026-03-04."""

    total: int = 0
    day: str = ""
    on_day: int = 0

    def next_on(self, day: str) -> Self:
        """Returns the numbers after sending again on that day."""
        return replace(self, total=self.total + 1, day=day, on_day=self.on_day + 1 if day == self.day else 1)


NOT_RESENT = Resends()
# The outcome of the last email: see `controlplane.store.mail_items`.
MailOutcome = Literal["sent", "failed", "returned", "complained", "stopped", "limited"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InvitationItem(StoredItem):
    """An invitation as the organization lists it. `expires_at` is a Unix time.

    mail: the outcome of the last email, or None if it wasn't sent yet.
    """

    invitation_id: InvitationId
    email: str
    role: Role
    created_at: str
    expires_at: int
    invited_by: Inviter
    resends: Annotated[Resends, SPARSE] = NOT_RESENT
    mail: Annotated[MailOutcome | None, SPARSE] = None

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

    def recorded(self, action: Action) -> Recorded:
        """Returns the entry of its creation or end in the audit log, without the address."""
        role = {"role": self.role}
        is_new = action is Action.INVITATION_CREATE
        before, after = ({}, role) if is_new else (role, {})
        return Recorded(action, self.invitation_id.organization_id, self.invitation_id, before=before, after=after)


@dataclass(frozen=True, slots=True, kw_only=True)
class InvitationLock(StoredMap):
    """The item that allows one pending invitation per organization and address, and names it."""

    invitation_id: InvitationId
    expires_at: int
    inviter_id: str

    @property
    def invitation_key(self) -> Key:
        """The key of the item that the organization lists."""
        return keys.invitation(*self.invitation_id.location)

    @property
    def is_pending(self) -> bool:
        """Returns True if the invitation hasn't expired. It may still be void."""
        return self.expires_at > clock.now()
