"""An organization with a project, and the requests of its clients, for races."""

from collections.abc import Callable
from typing import Any

from controlplane.core.ids import ProjectId
from controlplane.store import audits, keys
from controlplane.store.projects import get_project
from controlplane.store.table import table
from controlplane.store.websites import UnknownWebsite
from ops.audits import delete_audit
from tests.support.api import Reply
from tests.support.asgi import DirectApi
from tests.support.world import World


class Shop:
    """An organization with one project and its websites."""

    def __init__(self, world: World, api: DirectApi, websites: int = 2, plan: str = "pro") -> None:
        self.api = api
        self.world = world
        self.company = world.company(plan)
        self.token = self.company.owner.token
        self.origins = [f"shop{number}.example.com" for number in range(websites)]
        reply = self.create("Shop", self.origins)
        self.project_id = ProjectId.stored(reply.data["id"])
        self.website_ids: list[str] = [website["id"] for website in reply.data["websites"]]
        self.path = f"/v1/projects/{self.project_id}"

    def create(self, name: str, websites: list[str]) -> Reply:
        region = self.api.get("/v1/regions").data[0]["id"]
        body = {"name": name, "region": region, "websites": websites}
        return self.api.post(f"/v1/projects?organizationId={self.company.organization_id}", self.token, json_body=body)

    def creates(self, name: str) -> Callable[[], Reply]:
        return lambda: self.create(name, ["new.example.com"])

    def deletes_website(self, number: int) -> Callable[[], Reply]:
        return lambda: self.api.delete(f"{self.path}/websites/{self.website_ids[number]}", self.token)

    def patches(self, **fields: Any) -> Callable[[], Reply]:
        return lambda: self.api.patch(self.path, self.token, json_body=fields)

    def trusts(self, *origins: str) -> Callable[[], Reply]:
        """Returns the request of a client that knows only `trustedOrigins`."""
        return self.patches(consent={"trustedOrigins": origins})

    def audited_only(self, number: int) -> str:
        """Audits the website, and removes it from the consent entries. Returns the audit's ID."""
        audit_id = audits.create_audit(self.project_id, self.website_ids[number], 7).audit_id
        assert self.trusts(*(origin for origin in self.origins if origin != self.origins[number]))().status == 200
        return audit_id

    def deletes_audit(self, audit_id: str) -> Callable[[], str | None]:
        return lambda: delete_audit(get_project(self.project_id), audit_id)

    def deletes(self) -> Reply:
        return self.api.delete(self.path, self.token)

    def decides(self) -> Reply:
        return self.api.post(f"{self.path}/vendors/segment/decision", self.token, json_body={"decision": "approve"})

    def audits(self, number: int) -> Callable[[], bool]:
        """Returns the operator's act of creating an audit. The act returns True if the website still exists."""

        def act() -> bool:
            try:
                audits.create_audit(self.project_id, self.website_ids[number], 7)
            except UnknownWebsite:
                return False
            return True

        return act

    def children(self) -> list[str]:
        """Returns the sort keys of the project's items, except the project itself and its slug."""
        page = table.query(keys.organization_pk(self.project_id.organization_id), consistent=True)
        own = keys.project(*self.project_id.location).sk
        return [item["sk"] for item in page.items if self.project_id.local in item["sk"] and item["sk"] != own]

    def read(self) -> Reply:
        return self.api.get(self.path, self.token)

    def shown(self) -> list[tuple[str, str]]:
        """Returns the ids and origins of the websites, in order."""
        return [(website["id"], website["origin"]) for website in self.read().data["websites"]]

    def stored(self) -> dict[str, Any] | None:
        return table.get(keys.project(*self.project_id.location))
