"""The entries of an audit log as stored, and the organization whose operations tests record."""

from functools import cached_property
from typing import Any

from controlplane.code_host.items import RepositoryItem
from controlplane.platform.table import codec, keys
from controlplane.projects.items import ProjectItem
from controlplane.projects.store import get_project
from tests.support.api import Api
from tests.support.browser import Browser
from tests.support.world import Company, Person, World, table_dump


def all_entries() -> list[dict[str, Any]]:
    """Returns the entries of all organizations."""
    items = [codec.decode_item(item) for item in table_dump() if item["pk"]["S"].startswith(keys.LOG_PREFIX)]
    return sorted(items, key=lambda item: item["sk"])


class Subject:
    """An organization on which a test performs operations. Its parts are created when a case first asks for them."""

    def __init__(self, world: World, api: Api) -> None:
        self.world = world
        self.api = api
        self.company: Company = world.company()

    @property
    def organization_id(self) -> str:
        return self.company.organization_id

    @property
    def owner(self) -> Person:
        return self.company.owner

    @cached_property
    def repository(self) -> RepositoryItem:
        return self.world.connected_repository(self.company)

    @property
    def project(self) -> ProjectItem:
        return get_project(self.repository.links[0].project_id)

    @cached_property
    def member(self) -> Person:
        return self.world.member(self.company)

    @cached_property
    def key_id(self) -> str:
        return str(self.post("/v1/api-keys", {"name": "deploy"})["keyId"])

    @cached_property
    def invitation_id(self) -> str:
        return str(self.post("/v1/invitations", {"email": "invited@example.com", "role": "member"})["id"])

    @cached_property
    def browser(self) -> Browser:
        """The owner's browser."""
        return Browser(self.api).signed_in(self.owner.user_id)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        return self.api.post(path, self.owner.token, json_body=body).data
