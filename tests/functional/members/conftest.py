"""An organization whose members and invitations tests change."""

from typing import Any

import pytest

from controlplane.organizations import store as organizations
from controlplane.platform.core.ids import MemberId
from controlplane.platform.core.roles import Role
from controlplane.platform.table import keys
from controlplane.platform.table.table import table
from tests.support import invariants
from tests.support.api import Api, Reply
from tests.support.world import Company, Person, World

DAY = 86_400
WEEK = 7 * DAY
GRACE = "grace@example.com"
ADMIN_REQUIRED = {"requiredRole": "admin", "role": "member"}
OWNER_REQUIRED = {"reason": "owner_required", "requiredRole": "owner", "role": "admin"}


class Organization:
    """An organization. Its owner sends the requests, unless another caller is given."""

    def __init__(self, api: Api, world: World, owner: Person | None = None) -> None:
        self.api, self.world = api, world
        self.company: Company = world.company(owner=owner)
        self.id, self.owner = self.company.organization_id, self.company.owner
        self.owner.token = world.token(self.owner.user_id, lifetime_seconds=9 * WEEK)

    def member(self, role: Role = "member") -> Person:
        """Adds a person with this role. Owners are other ones than the founder."""
        return self.world.member(self.company, role)

    def call(self, method: str, path: str, by: Person | None = None, query: str = "", **options: Any) -> Reply:
        target = f"/v1/{path}?organizationId={self.id}{query}"
        return self.api.call(method, target, (by or self.owner).token, **options)

    def give(self, person: Person, role: Any, by: Person | None = None) -> Reply:
        return self.call("PATCH", f"members/{self.member_id(person)}", by, json_body={"role": role})

    def remove(self, person: Person, by: Person | None = None) -> Reply:
        return self.call("DELETE", f"members/{self.member_id(person)}", by)

    def member_id(self, person: Person) -> str:
        return MemberId.of_user(self.id, person.user_id)

    def role_of(self, person: Person) -> Role | None:
        """Returns the role, which both sides of the membership agree on, or None without a membership."""
        check_invariants()
        membership = organizations.find_membership(person.user_id, self.id)
        return membership.role if membership else None

    def invite(self, email: Any = GRACE, role: Any = "member", by: Person | None = None, **headers: str) -> Reply:
        return self.call("POST", "invitations", by, json_body={"email": email, "role": role}, headers=headers)

    def invited(self, email: str = GRACE, role: Role = "member", by: Person | None = None) -> str:
        """Invites the address and returns the invitation's ID."""
        return str(self.invite(email, role, by).data["id"])

    def resend(self, invitation_id: str, by: Person | None = None) -> Reply:
        return self.call("POST", f"invitations/{invitation_id}/resend", by)

    def cancel(self, invitation_id: str, by: Person | None = None) -> Reply:
        return self.call("DELETE", f"invitations/{invitation_id}", by)

    def pending(self) -> list[str]:
        """Returns the IDs of the invitations that are listed."""
        return [invitation["id"] for invitation in self.call("GET", "invitations").data]

    def lock_of(self, email: str) -> dict[str, Any] | None:
        """Returns the item that keeps the address from being invited twice."""
        return table.get(keys.invitee(email, self.id))


def check_invariants() -> None:
    invariants.check_all(invariants.read_items(table.client, table.name))


@pytest.fixture
def acme(api, world):
    return Organization(api, world)
