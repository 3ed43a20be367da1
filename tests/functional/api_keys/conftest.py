"""An organization whose API keys tests use."""

from typing import Any

import pytest

from controlplane.platform.core import tokens
from controlplane.platform.core.ids import KeyId
from controlplane.platform.table import keys
from controlplane.platform.table.table import table
from tests.support.api import Api, Reply
from tests.support.world import Company, Person, World

type Key = dict[str, Any]

DAY = 86_400


class Organization:
    """An organization whose owner sends the requests, with a token that outlives the tests' changes of the clock."""

    def __init__(self, api: Api, world: World, plan: str = "pro", owner: Person | None = None) -> None:
        self.api, self.world = api, world
        self.company: Company = world.company(plan, owner=owner)
        self.id, self.owner = self.company.organization_id, self.company.owner
        self.token = world.token(self.owner.user_id, lifetime_seconds=30 * DAY)

    def call(self, method: str, path: str = "", token: str | None = None, **options: Any) -> Reply:
        target = f"/v1/api-keys{path}?organizationId={self.id}"
        return self.api.call(method, target, token or self.token, **options)

    def post(self, **body: Any) -> Reply:
        """Asks for a key with these fields."""
        return self.call("POST", json_body={"name": "deploy", **body})

    def create(self, **body: Any) -> Key:
        made: Key = self.post(**body).data
        return made

    def get(self, key: Key) -> Key:
        found: Key = self.call("GET", f"/{key['keyId']}").data
        return found

    def update(self, key: Key, /, **body: Any) -> Reply:
        return self.call("PATCH", f"/{key['keyId']}", json_body=body)

    def roll(self, key: Key, grace_seconds: Any = 0, **options: Any) -> Reply:
        body = {"gracePeriodSeconds": grace_seconds}
        return self.call("POST", f"/{key['keyId']}/roll", json_body=body, **options)

    def delete(self, key: Key) -> Reply:
        return self.call("DELETE", f"/{key['keyId']}")

    def listed(self) -> list[Key]:
        found: list[Key] = self.call("GET").data
        return found

    def works(self, *made: Key) -> list[bool]:
        """Returns for each key whether its secret is accepted."""
        return [self.api.get("/v1/me", key["key"]).status == 200 for key in made]

    def stored(self) -> dict[str, Any]:
        organization = table.get(keys.organization(self.id))
        assert organization is not None
        return organization

    def count(self) -> tuple[int, int]:
        """Returns the counter's value and the number of stored keys."""
        listed = table.query(keys.organization_pk(self.id), prefix=keys.KEY_PREFIX, consistent=True)
        return self.stored()["keys"], len(listed.items)


def id_of(key: Key) -> KeyId:
    return KeyId.stored(key["keyId"])


def stored_secret(key: Key) -> dict[str, Any] | None:
    return table.get(keys.key_secret(tokens.digest(key["key"])))


def problems(reply: Reply) -> list[tuple[list[str], str]]:
    """Returns the path and the code of each problem with a request's body."""
    assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD"), reply.text
    return [(it["path"], it["code"]) for it in reply.error["details"]]


@pytest.fixture
def acme(api, world):
    return Organization(api, world)
