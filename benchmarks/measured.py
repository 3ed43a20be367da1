"""The requests that are measured, one for each function's cold start and those that the goals name, and their items.

Items are written through the store, so that they are exactly as in production, and so is the peer's copy of them.

`tests/functional/test_round_trips.py` counts the round trips of every other operation, and its neighbor in `dashboard/`
those of every page.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any
from urllib.parse import quote, urlencode

from benchmarks.environment import DEPLOYED, PEER_TABLE
from benchmarks.peers.naive import sample_project
from controlplane.access import web_session
from controlplane.people import device, device_approvals, sessions
from controlplane.platform.table.legs import encode_item
from controlplane.platform.table.table import table
from controlplane.projects import store as projects
from controlplane.projects.items import Address
from local.gateway import HOST, Request, proxy_event
from tests.support import world as support
from tests.support.audits import make_issue, make_scan
from tests.support.table import create_table

PROJECTS = 55
PEER_KEY = "peer_0123456789abcdefghijklmnopqrstuv"
PEER_ORGANIZATION = "org_peer"
# A name and websites that make a project's item about 600 B, in our table and in the peer's.
HOSTS = ("shop-{n:04d}.production.example.com", "www.shop-{n:04d}.production.example.com")
NAME = "Benchmark project of a shop {n:04d}"


class World:
    """An enterprise organization with an API key, a scan with findings, and projects; its owner has a token."""

    def __init__(self, engine: str) -> None:
        """Fills a new table on the engine, to which it connects the store."""
        table.connect(engine, DEPLOYED["TABLE_NAME"])
        create_table(table.client, DEPLOYED["TABLE_NAME"])
        self.builder = support.World()
        self.company = self.builder.company("enterprise", "Benchmark")
        self.api_key = self.builder.key(self.company)
        self.repository = self.builder.connected_repository(self.company)
        self.scan = make_scan(self.repository, again="full", issues=[make_issue(number) for number in range(50)])
        self.projects = [_create_project(self.company.organization_id, n) for n in range(PROJECTS)]


def _create_project(organization_id: str, n: int) -> str:
    addresses = [Address(host.format(n=n), "domain") for host in HOSTS]
    name = NAME.format(n=n)
    made = projects.create_project(organization_id, name, region="eu-central", addresses=addresses, branding="assent")
    return str(made.project_id)


def populate_peer() -> str:
    """Creates the naive peer's table with a key and as many projects. Returns one project's id."""
    create_table(table.client, PEER_TABLE)
    digest = hashlib.sha256(PEER_KEY.encode()).hexdigest()
    key = {
        "organizationId": PEER_ORGANIZATION,
        "scopes": ["projects.read", "projects.write", "api-keys.read", "billing.read"],
        "rateLimit": 600,
        "calls": 0,
    }
    _put({"pk": f"KEY#{digest}", "sk": "KEY", **key})
    ids = [f"prj_{n:034d}" for n in range(PROJECTS)]
    for n, project_id in enumerate(ids):
        origins = [f"https://{host.format(n=n)}" for host in HOSTS]
        project = sample_project(PEER_ORGANIZATION, project_id, NAME.format(n=n), origins)
        _put({"pk": f"ORG#{PEER_ORGANIZATION}", "sk": f"PROJECT#{project_id}", **project})
    return ids[0]


def _put(item: dict[str, Any]) -> None:
    table.client.put_item(TableName=PEER_TABLE, Item=encode_item(item))


type Parts = dict[str, Any]

_CLIENT = "assent-cli"
_SCOPES = ["projects.read"]
_numbers = count(1)
PROJECT = "/v1/projects/{projectId}"


@dataclass(frozen=True)
class Measured:
    """One route of a function. `parts` makes what a request has besides its credential, and the items that it needs.

    credentials: those with which round trips are counted. A cold start has the first one, and None is no credential.
    """

    group: str
    method: str
    resource: str
    parts: Callable[[World], Parts] = lambda _world: {}
    credentials: tuple[str | None, ...] = ("api key", "user token")

    @property
    def label(self) -> str:
        return f"{self.method} {self.resource}"

    def event(self, world: World, credential: str | None) -> dict[str, Any]:
        token = {"api key": world.api_key, "user token": world.company.owner.token}.get(credential or "")
        return rest_event(self.method, self.resource, token=token, **self.parts(world))

    def two_events(self, world: World, credential: str | None) -> list[dict[str, Any]]:
        """Returns equivalent requests: the first one of a minute has an additional write. A read is the same twice."""
        first = self.event(world, credential)
        return [first, first if self.method == "GET" else self.event(world, credential)]


def rest_event(
    method: str,
    resource: str,
    *,
    token: str | None = None,
    path: dict[str, str] | None = None,
    query: dict[str, str] | None = None,
    body: Any = None,
    headers: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Returns the event of one request. `resource` is the route in the template; `path` fills its parameters."""
    target = resource.format_map({name: quote(value) for name, value in (path or {}).items()})
    target += f"?{urlencode(query)}" if query else ""
    sent = None if body is None else json.dumps(body).encode()
    given = {"Accept": "application/json", "Host": HOST, "User-Agent": "assent-event/1.0"}
    given |= {"Authorization": f"Bearer {token}"} if token else {}
    given |= {"Content-Type": "application/json"} if sent else {}
    request = Request(method, target, [*(given | (headers or {})).items()], sent or b"")
    return proxy_event(request, resource, f"request-{next(_numbers)}")


def _fifty(_world: World) -> Parts:
    return {"query": {"limit": "50"}}


def _project(world: World) -> Parts:
    return {"path": {"projectId": world.projects[0]}}


def _changed_project(world: World) -> Parts:
    return {**_project(world), "body": {"description": f"Changed {next(_numbers)}"}}


def _revocation(world: World) -> Parts:
    """The refresh token of a device that was approved and has redeemed its code."""
    issued = device.create(_CLIENT, "0" * 43, _SCOPES, "laptop", "192.0.2.7")
    device_approvals.approve(issued.user_code, world.company.owner.user_id, _SCOPES)
    approved = device.find(issued.device_code)
    assert approved is not None
    return {"body": {"token": device.redeem(approved).refresh_token}}


def _session(world: World) -> Parts:
    """The header of a browser with a new session."""
    user_id = world.company.owner.user_id
    cookies = web_session.session_cookies(sessions.create(user_id), user_id, sessions.LIFE_SECONDS)
    return {"headers": {"Cookie": "; ".join(cookie.partition(";")[0] for cookie in cookies)}}


def _scan(world: World) -> Parts:
    return {"path": {"scanId": world.scan.scan_id}}


def _item(world: World) -> Parts:
    """A finding in code."""
    return {"path": {"itemId": world.builder.finding(world.company, world.repository).item_id}}


def _feedback(_world: World) -> Parts:
    message = f"Creating a project with a wildcard website answers 400, for the {next(_numbers)}th time."
    return {"body": {"category": "bug", "message": message}}


# A function's cold start is a read, if it has one, by an existing caller.
COLD = (
    Measured("system", "GET", "/v1/me"),
    Measured(
        "organizations",
        "GET",
        "/v1/organizations/{organizationId}",
        lambda world: {"path": {"organizationId": world.company.organization_id}},
    ),
    Measured("members", "GET", "/v1/members", _fifty, ("user token", "api key")),
    Measured("projects", "GET", PROJECT, _project),
    Measured("api_keys", "GET", "/v1/api-keys", _fifty),
    Measured("billing", "GET", "/v1/billing"),
    Measured("device_auth", "POST", "/v1/auth/device/revoke", _revocation, (None,)),
    Measured("dashboard", "GET", "/organizations", _session, ("session",)),
    Measured("code_audit", "GET", "/v1/code-audit/scans/{scanId}", _scan, ("user token", "api key")),
    Measured("inbox", "GET", "/v1/inbox/{itemId}", _item),
    Measured("feedback", "POST", "/v1/feedback", _feedback),
)
COUNTED = (
    *COLD,
    Measured("projects", "GET", "/v1/projects", _fifty),
    Measured("projects", "PATCH", PROJECT, _changed_project),
    Measured("system", "GET", "/v1/regions", credentials=(None,)),
)
