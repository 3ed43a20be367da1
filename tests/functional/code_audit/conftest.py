"""Organizations with repositories and scans, and one way to send each request about them."""

from typing import Any

import pytest

from controlplane.billing import store as billing
from controlplane.code_host.items import RepositoryItem
from controlplane.platform.queues.messages import Queue
from controlplane.platform.table import keys
from controlplane.platform.table.table import Update, table
from controlplane.scans.items import ScanItem
from tests.support.api import Api, Reply
from tests.support.audits import make_issue, make_scan, preparation_worker, serving
from tests.support.sqs import FakeSqs
from tests.support.table import PREPARED
from tests.support.world import World

SCANS, REPOSITORIES = "/v1/code-audit/scans", "/v1/code-audit/repositories"
ISSUES = ONE, TWO, THREE, FOUR, FIVE = [make_issue(number) for number in range(1, 6)]
KEY = {"Idempotency-Key": "8f14e45f-ceea-467f-a9b7-0d5b2c3a1e77"}


class Organization:
    """An organization whose owner sends the requests, unless `who` is another caller's token."""

    def __init__(self, api: Api, world: World, plan: str = "pro") -> None:
        self.api, self.world, self.company = api, world, world.company(plan)
        self.id, self.owner = self.company.organization_id, self.company.owner

    def connect(self, **options: Any) -> RepositoryItem:
        return self.world.connected_repository(self.company, **options)

    def scan(self, repository: RepositoryItem | None = None, **options: Any) -> ScanItem:
        """Makes a scan, of a new repository unless one is given."""
        return make_scan(repository or self.connect(), **options)

    def send(self, method: str, path: str, body: Any = None, who: str | None = None, **headers: str) -> Reply:
        return self.api.call(method, path, who or self.owner.token, json_body=body, headers=headers)

    def get(self, scan: ScanItem | str, report: str = "", who: str | None = None, **headers: str) -> Reply:
        """Requests a scan, or what `report` is of it, such as `/issues`."""
        return self.send("GET", f"{SCANS}/{getattr(scan, 'scan_id', scan)}{report}", None, who, **headers)

    def start(self, repository: Any, who: str | None = None, headers: dict[str, str] | None = None, **body: Any) -> Any:
        return self.send("POST", SCANS, {"repositoryId": repository.repository_id, **body}, who, **headers or {})

    def unlock(self, scan: ScanItem, who: str | None = None) -> Reply:
        return self.send("POST", f"{SCANS}/{scan.scan_id}/unlock", None, who)

    def unlocks(self, scan: ScanItem) -> str:
        """Unlocks the scan. Returns the status in the response."""
        status: str = self.unlock(scan).data["status"]
        return status

    @property
    def balance(self) -> int:
        """Returns the credits, which are the sum of the ledger's entries."""
        balance = billing.get_billing(self.id)[1].credits
        assert balance == sum(entry["credits"] for entry in self.ledger)
        return balance

    @property
    def ledger(self) -> list[dict[str, Any]]:
        page = table.query(keys.organization_pk(self.id), prefix=keys.LEDGER_PREFIX, consistent=True)
        return page.items


class AtOnce(FakeSqs):
    """Prepares a scan as soon as it is requested, like a fast worker."""

    def __init__(self, repository: RepositoryItem) -> None:
        super().__init__()
        self._handler = preparation_worker(serving(repository))

    def send_message(self, **message: Any) -> dict[str, Any]:
        super().send_message(**message)
        if message["QueueUrl"] == Queue.SCAN_PREPARATION.url:
            self.deliver(self.letters[-1], self._handler, Queue.SCAN_PREPARATION.dead_letters_url)
        return {}


def change(scan: ScanItem, **values: Any) -> None:
    """Changes the stored attributes."""
    assignments = ", ".join(f"#{name} = :{name}" for name in values)
    table.update(Update(scan.key, f"SET {assignments}", None, values), PREPARED)


def fingerprints(issues: list[Any]) -> list[str]:
    """Returns those of findings, or of findings in a response."""
    return [issue["fingerprint"] if isinstance(issue, dict) else issue.fingerprint for issue in issues]


@pytest.fixture
def acme(api: Api, world: World) -> Organization:
    return Organization(api, world)


@pytest.fixture
def free(api: Api, world: World) -> Organization:
    """Returns an organization on the free plan with credits for one report."""
    made = Organization(api, world, "free")
    world.credits(made.company, 80)
    return made
