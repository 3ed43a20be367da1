"""Sets up the table for a measurement: an organization with everything in it, credentials, and the peer's copy.

Items are written through the store, so that they are exactly as in production.
"""

from __future__ import annotations

import hashlib
from typing import Any

from benchmarks.environment import DEPLOYED, PEER_TABLE
from benchmarks.peers.naive import sample_project
from controlplane.platform.table.legs import encode_item
from controlplane.platform.table.table import table
from controlplane.projects import store as projects
from controlplane.projects.items import Address
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
