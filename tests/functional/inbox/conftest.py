"""An organization with its inbox, and one way to send each request about its findings."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from controlplane.findings import inbox
from controlplane.findings.discoveries import Discovery
from controlplane.findings.items import InboxItem, Status
from tests.support.api import Api, Reply
from tests.support.world import World, publish_finding, table_dump

STATUSES: tuple[Status, ...] = ("open", "accepted", "dismissed", "resolved")
LATER = "2026-03-04T06:00:00.000Z"


class Organization:
    """An organization on Pro. Its owner sends the requests, unless `who` is another caller's token."""

    def __init__(self, api: Api, world: World) -> None:
        self.api, self.world, self.company = api, world, world.company()
        self.id, self.owner = self.company.organization_id, self.company.owner

    def find(self, repository: Any = None, **changes: Any) -> InboxItem:
        return self.world.finding(self.company, repository, **changes)

    def connect(self, **changes: Any) -> Any:
        return self.world.connected_repository(self.company, **changes)

    def move(self, item: InboxItem, status: Status) -> InboxItem:
        """Changes the status in the owner's name, from the current version."""
        current = inbox.get_item(item.item_id)
        return inbox.change_status(current, status, current.version, self.owner.user_id, None)

    def get(self, item: InboxItem, who: str | None = None) -> Any:
        return self.api.get(f"/v1/inbox/{item.item_id}", who or self.owner.token).data

    def listed(self, query: str = "", who: str | None = None) -> Reply:
        return self.api.get(f"/v1/inbox?organizationId={self.id}{query}", who or self.owner.token)

    def ids(self, query: str = "") -> list[str]:
        return [item["id"] for item in self.listed(query).data]

    def walk(self, query: str, between: Callable[[], None] = lambda: None) -> list[str]:
        """Returns the ids of all pages in order. Runs `between` before each further page."""
        found = []
        for page in self.api.pages(f"/v1/inbox?organizationId={self.id}{query}", self.owner.token):
            found += [item["id"] for item in page.data]
            if page.body["pagination"]["hasMore"]:
                between()
        return found

    def change(self, item: InboxItem, status: Any, who: str | None = None, **body: Any) -> Reply:
        sent = {"status": status, "version": item.version, **body}
        return self.api.patch(f"/v1/inbox/{item.item_id}", who or self.owner.token, json_body=sent)

    def change_all(self, *changes: dict[str, Any], **options: Any) -> Reply:
        path = f"/v1/inbox?organizationId={self.id}"
        return self.api.patch(path, self.owner.token, json_body={"items": changes}, **options)


def cursor_of(reply: Reply) -> str:
    """Returns the parameter with which the next page is requested."""
    return f"&cursor={quote(reply.body['pagination']['nextCursor'])}"


def publish(found: Discovery, **changes: Any) -> InboxItem:
    return publish_finding(found._replace(**changes))


def stored() -> list[dict[str, Any]]:
    """Returns the items of all inboxes."""
    return [item for item in table_dump() if item["sk"]["S"].startswith("INBOX#")]


@pytest.fixture
def acme(api, world):
    return Organization(api, world)
