"""A company whose members and guests get emails."""

from typing import Any

import pytest

from controlplane.organizations import invitations
from controlplane.platform.queues import events
from controlplane.platform.table.table import table
from tests.support.api import Api
from tests.support.browser import Browser
from tests.support.mailbox import PostOffice
from tests.support.table import PREPARED
from tests.support.world import Company, Person, World

DAY = 86_400
GRACE = "Grace.Hopper@example.com"


class Office:
    """The company's owner, who invites people, and the post office that sends the emails."""

    def __init__(self, api: Api, world: World, post: PostOffice, company: Company | None = None) -> None:
        self.api, self.world, self.post = api, world, post
        self.company = company or world.company()
        self.id, self.owner = self.company.organization_id, self.company.owner
        self.owner.token = world.token(self.owner.user_id, lifetime_seconds=30 * DAY)

    def invite(self, email: str = GRACE, role: str = "member", by: Person | None = None) -> str:
        body = {"email": email, "role": role}
        return str(self.api.post("/v1/invitations", (by or self.owner).token, json_body=body).data["id"])

    def cancel(self, invitation_id: str) -> None:
        self.api.delete(f"/v1/invitations/{invitation_id}", self.owner.token)

    def resend(self, invitation_id: str) -> None:
        self.api.post(f"/v1/invitations/{invitation_id}/resend", self.owner.token)

    @property
    def outcome(self) -> str | None:
        """Returns the outcome of the email of the only invitation."""
        (invitation,) = invitations.list_invitations(self.id, 50, None).items
        return invitation.mail

    def tell(self, event: events.EventName) -> None:
        """Makes an event of the organization happen."""
        table.transact({"event": events.entry(self.id, event).leg}, PREPARED)

    def find(self, **fields: Any) -> Any:
        """Creates a finding, by default a P0."""
        return self.world.finding(self.company, **{"priority": "P0", **fields})

    def browser(self, person: Person | None = None) -> Browser:
        return Browser(self.api).signed_in((person or self.owner).user_id)

    def members_page(self) -> Any:
        return self.browser().get(f"/organizations/{self.company.slug}/members")


@pytest.fixture
def office(api, world, post_office):
    return Office(api, world, post_office)
