"""Sets up the table for a measurement: an organization with everything in it, credentials, and the peer's copy.

Items are written through the store and the API, so that they are exactly as in production.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from benchmarks.environment import AT_ONCE, PEER_TABLE
from benchmarks.events import rest_event
from benchmarks.package import Package
from benchmarks.peers.naive import sample_project
from benchmarks.process import TargetFailed, Worker
from benchmarks.project import TABLE, Function, table_definition
from controlplane.api_keys import store as api_keys
from controlplane.billing import store as billing
from controlplane.organizations import store as organizations
from controlplane.people import tokens as user_tokens
from controlplane.people import users
from controlplane.platform.core.scopes import SCOPES
from controlplane.platform.table import keys
from controlplane.platform.table.codec import encode_item
from controlplane.platform.table.table import Update, table
from tests.support.table import PREPARED

PROJECTS = 55
PEER_KEY = "peer_0123456789abcdefghijklmnopqrstuv"
PEER_ORGANIZATION = "org_peer"
# A name and websites that make a project's item about 600 B, in our table and in the peer's.
ORIGINS = ("https://shop-{n}.production.example.com", "https://www.shop-{n}.production.example.com")
NAME = "Benchmark project of a shop {n:04d}"
_UNLIMITED = 10**9


@dataclass(eq=False)
class World:
    """An enterprise organization, its owner with a token of every scope, an API key, and its projects."""

    organization_id: str
    user_id: str
    token: str
    api_key: str
    workers: dict[str, Worker]
    routes: dict[tuple[str, str], str]
    projects: list[str] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def call(self, method: str, resource: str, token: str | None = None, **request: Any) -> Any:
        """Sends a request with the owner's token (or another), and returns `data`. Raises TargetFailed for an error."""
        answer = self.answer(method, resource, token=token or self.token, **request)
        if answer["statusCode"] >= 300:
            raise TargetFailed(f"{method} {resource} answered {answer['statusCode']}: {answer['body'][:500]}")
        return json.loads(answer["body"])["data"]

    def answer(self, method: str, resource: str, **request: Any) -> Any:
        """Returns the function's response to the gateway."""
        return self.workers[self.routes[method, resource]].invoke(rest_event(method, resource, **request))

    def create_project(self) -> Any:
        n = next(self.numbers)
        body = {
            "name": NAME.format(n=n),
            "region": "eu-central",
            "websites": [origin.format(n=f"{n:04d}") for origin in ORIGINS],
        }
        return self.call("POST", "/v1/projects", body=body)


def create_table(url: str, name: str = TABLE) -> Any:
    """Creates the template's table on the engine at `url`, and connects the store to it. Returns the store's client."""

    table.connect(url, TABLE)
    table.client.create_table(**table_definition(name))
    return table.client


@contextmanager
def populated(package: Package, functions: dict[str, Function], engine: str, address: str) -> Iterator[World]:
    """Yields a world in a new table, with a worker of every function that uses DynamoDB at `address`."""

    create_table(engine)
    owner = users.create_user("owner@example.com", "Benchmark Owner")
    organization = organizations.create_organization("Benchmark", "benchmark", owner.user_id)
    billing.change_plan(organization.organization_id, "enterprise")
    token = user_tokens.create_token(owner.user_id, sorted(SCOPES), 86_400)
    key = api_keys.create_key(organization.organization_id, "benchmark", owner.user_id, "benchmark").secret
    # The limit itself isn't measured, only its counter and its check.
    for secret in (keys.user_token(_digest(token)), keys.key_secret(_digest(key))):
        table.update(Update(secret, "SET #rateLimit = :many", None, {"many": _UNLIMITED}), PREPARED)
    with ExitStack() as stack:
        workers = {
            group: stack.enter_context(
                Worker(
                    function.target(package).with_environment(
                        AWS_ENDPOINT_URL_DYNAMODB=address, AWS_ENDPOINT_URL_SQS=address, **AT_ONCE
                    ),
                    rest_event(*function.routes[0], path=_parameters(function.routes[0][1]), token=key),
                )
            )
            for group, function in functions.items()
            if group in package.functions
        }
        routes = {route: group for group, function in functions.items() for route in function.routes}
        world = World(organization.organization_id, owner.user_id, token, key, workers, routes)
        if "projects" in workers:
            created = [world.create_project() for _ in range(PROJECTS)]
            world.projects = [project["id"] for project in created]
        yield world


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _parameters(resource: str) -> dict[str, str]:
    names = [part[1:-1] for part in resource.split("/") if part.startswith("{")]
    return dict.fromkeys(names, "none")


def populate_peer(engine: str) -> str:
    """Creates the naive peer's table with a key and as many projects. Returns one project's id."""

    client = create_table(engine, PEER_TABLE)
    key = {
        "pk": f"KEY#{_digest(PEER_KEY)}",
        "sk": "KEY",
        "organizationId": PEER_ORGANIZATION,
        "scopes": ["projects.read", "projects.write", "api-keys.read", "billing.read"],
        "rateLimit": 600,
        "calls": 0,
    }
    client.put_item(TableName=PEER_TABLE, Item=encode_item(key))
    for n in range(PROJECTS):
        project_id = peer_project_id(n)
        origins = [origin.format(n=f"{n:04d}") for origin in ORIGINS]
        project = sample_project(PEER_ORGANIZATION, project_id, NAME.format(n=n), origins)
        item = {"pk": f"ORG#{PEER_ORGANIZATION}", "sk": f"PROJECT#{project_id}", **project}
        client.put_item(TableName=PEER_TABLE, Item=encode_item(item))
    return peer_project_id(0)


def peer_project_id(number: int) -> str:
    return f"prj_{number:034d}"
