"""Responses to concurrent requests about each counter, quota, slug, and version: some order of them explains all."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from types import FunctionType
from typing import Any, NamedTuple

import pytest

from controlplane.core.ids import MemberId
from controlplane.core.plans import PLANS
from controlplane.core.tokens import digest
from controlplane.store import api_keys, billing, credentials, feedback, inbox, keys, members, organizations, projects
from controlplane.store.feedback import NEW_PER_HOUR
from controlplane.store.table import Update, table
from tests.races.stage import Stage
from tests.support.calls import Call, Proceed, intercepted
from tests.support.each import each
from tests.support.histories import History, Operation
from tests.support.mutants import mutant
from tests.support.table import PREPARED

pytestmark = pytest.mark.races

THREADS = 4
# More than the limits that a test can't choose, divided by the threads.
TIMES = 3
_WAITS_SECONDS = 60


class Requests:
    """Requests of one organization's people, and a history of what the responses say."""

    def __init__(self, stage: Stage, plan: str = "pro") -> None:
        self.api, self.client, self.world = stage.api, stage.client, stage.fresh()
        self.company = self.world.company(plan)
        self.organization_id, self.token = self.company.organization_id, self.company.owner.token
        self.query = f"?organizationId={self.organization_id}"
        self.history = History()

    def send(
        self, name: str, method: str, path: str, body: Any = None, *, argument: Any = None, token: str = ""
    ) -> Any:
        return self.history.run(
            name, argument, lambda: self.api.call(method, path, token or self.token, json_body=body)
        )

    def run(self, act: Callable[[], Any], times: int = TIMES) -> None:
        self.history.run_threads([act] * THREADS, times=times)


@contextmanager
def writing_together(client: Any, writes: Callable[[Call], bool]) -> Iterator[None]:
    """While open, each thread's first such write waits until every thread has decided about its own."""
    decided, own = threading.Barrier(THREADS), threading.local()

    def around(call: Call, proceed: Proceed) -> Any:
        if writes(call) and not hasattr(own, "waited"):
            own.waited = decided.wait(_WAITS_SECONDS)
        return proceed()

    with intercepted(client, around):
        yield


def counter(limit: int, refused: int) -> Callable[[int, Operation], int | None]:
    """Returns the model of a counter that creations raise up to the limit, and deletions lower."""

    def step(number: int, done: Operation) -> int | None:
        if done.name == "count":
            return number if done.result == number else None
        status = done.result.status
        if done.name == "delete":
            return number - 1 if status == 200 else None
        if number < limit:
            return number + 1 if status == 201 else None
        return number if status == refused else None

    return step


def check_keys(stage: Stage) -> None:
    requests, path = Requests(stage), "/v1/api-keys"

    def stored() -> int:
        return len(api_keys.list_keys(requests.organization_id, 100, None, consistent=True).keys)

    def act() -> None:
        reply = requests.send("create", "POST", path + requests.query, {"name": "deploy"})
        requests.history.run("count", None, stored)
        if reply.status == 201:
            requests.send("delete", "DELETE", f"{path}/{reply.data['keyId']}{requests.query}")

    requests.run(act)
    requests.history.check(0, counter(2, 409))


def check_projects(stage: Stage) -> None:
    requests = Requests(stage, "free")
    body = {"name": "Shop", "region": "eu-central", "websites": ["shop.example.com"]}
    requests.run(lambda: requests.send("create", "POST", f"/v1/projects{requests.query}", body))
    requests.history.check(0, counter(PLANS["free"].projects, 402))


def check_reports(stage: Stage) -> None:
    requests, numbers = Requests(stage), count()

    def act() -> None:
        requests.send("create", "POST", "/v1/feedback", {"category": "bug", "message": f"It is slow: {next(numbers)}"})

    requests.run(act)
    requests.history.check(0, counter(NEW_PER_HOUR, 429))


def check_rate(stage: Stage) -> None:
    requests, limit = Requests(stage), 7
    secret = requests.world.key(requests.company)
    key = keys.key_secret(digest(secret))
    table.update(Update(key, "SET #rateLimit = :limit", values={"limit": limit}), PREPARED)
    requests.api.get("/v1/me", secret)  # opens the window

    def step(used: int, done: Operation) -> int | None:
        if used == limit:
            return used if done.result.status == 429 else None
        left = done.result.headers.get("x-ratelimit-remaining")
        return used + 1 if done.result.status == 200 and left == str(limit - used - 1) else None

    with writing_together(
        requests.client, lambda call: call.parameters.get("Key", {}).get("pk", {}).get("S") == key.pk
    ):
        requests.run(lambda: requests.send("request", "GET", "/v1/me", token=secret))
    requests.history.check(1, step)


def check_slugs(stage: Stage) -> None:
    requests = Requests(stage)

    def step(taken: frozenset[str], done: Operation) -> frozenset[str] | None:
        if done.argument in taken:
            return taken if done.result.status == 409 else None
        return taken | {done.argument} if done.result.status == 201 else None

    def act() -> None:
        token = requests.world.person().token
        for slug in ("atlas", "borealis"):
            requests.send(
                "create", "POST", "/v1/organizations", {"name": "Acme", "slug": slug}, argument=slug, token=token
            )

    requests.run(act, times=1)
    requests.history.check(frozenset(), step)


def check_versions(stage: Stage) -> None:
    requests = Requests(stage)
    item = requests.world.finding(requests.company)
    path, numbers = f"/v1/inbox/{item.item_id}", count()

    def step(version: str, done: Operation) -> str | None:
        if done.name == "read":
            return version if done.result.data["version"] == version else None
        if done.result.status == 409:
            current = done.result.error["details"]["currentVersion"]
            return version if done.argument != version == current else None
        return str(done.result.data["version"]) if done.argument == version else None

    def act() -> None:
        version = requests.send("read", "GET", path).data["version"]
        number = next(numbers)
        # Two equal requests with one version are one request that is repeated.
        body = {"status": ("accepted", "dismissed", "open")[number % 3], "version": version, "reason": f"{number}"}
        requests.send("change", "PATCH", path, body, argument=version)

    with writing_together(requests.client, lambda call: call.operation == "TransactWriteItems"):
        requests.run(act)
    requests.history.check(item.version, step)


def check_credits(stage: Stage) -> None:
    requests = Requests(stage)
    billing.add_credits(requests.organization_id, 7)

    def step(balance: int, done: Operation) -> int | None:
        if done.name == "read":
            return balance if done.result == balance else None
        after = balance + done.argument
        return (after if after >= 0 else balance) if done.result == (after >= 0) else None

    def add(amount: int) -> bool:
        try:
            billing.add_credits(requests.organization_id, amount)
        except billing.NotEnoughCredits:
            return False
        return True

    def act() -> None:
        requests.history.run("add", -3, lambda: add(-3))
        requests.history.run("read", None, lambda: billing.get_billing(requests.organization_id)[1].credits)
        requests.history.run("add", 1, lambda: add(1))

    requests.run(act)
    requests.history.check(7, step)


def check_owners(stage: Stage) -> None:
    requests = Requests(stage)
    owners = [requests.company.owner, *(requests.world.member(requests.company, "owner") for _ in range(THREADS - 1))]
    stepping_down = iter(owners)

    def step(number: int, done: Operation) -> int | None:
        last = number == 1
        return number - (not last) if done.result.status == (403 if last else 200) else None

    def act() -> None:
        person = next(stepping_down)
        member_id = MemberId.of_user(requests.organization_id, person.user_id)
        requests.send("step down", "PATCH", f"/v1/members/{member_id}", {"role": "member"}, token=person.token)

    requests.run(act, times=1)
    requests.history.check(len(owners), step)


class Bug(NamedTuple):
    """A change of the product that a check notices."""

    function: FunctionType
    text: str
    replacement: str


CHECKS: dict[Callable[[Stage], None], Bug] = {
    check_keys: Bug(api_keys.create_key, "#keys < :cap", "(#keys < :cap OR attribute_exists(pk))"),
    check_projects: Bug(
        projects._increment_count, "#projects < :{plan}_limit", "(#projects < :{plan}_limit OR attribute_exists(pk))"
    ),
    check_reports: Bug(feedback.submit_report, "attribute_not_exists(#taken) OR", "attribute_exists(pk) OR"),
    check_rate: Bug(
        credentials._count,
        '"SET #hits = #hits + :one", "#win = :minute", {"one": 1,',
        '"SET #hits = :one", "#win = :minute", {"one": table.get(key)["hits"] + 1,',
    ),
    check_slugs: Bug(
        organizations._creation, '"organizationId": organization_id}, absent', '"organizationId": organization_id}'
    ),
    check_versions: Bug(inbox.status_leg, "#version = :expected", "#version = :expected OR attribute_exists(pk)"),
    check_credits: Bug(billing.add_credits, "#credits >= :least", "(#credits >= :least OR attribute_exists(pk))"),
    check_owners: Bug(members._count_owners, "#owners >= :least", "#owners >= :least OR attribute_exists(pk)"),
}


@pytest.fixture(autouse=True)
def _two_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_keys, "API_KEYS_PER_ORGANIZATION", 2)


@each("check", CHECKS, ids=lambda check: check.__name__)
def test_every_history_is_linearizable(check: Callable[[Stage], None], stage: Stage) -> None:
    check(stage)


@each("check", CHECKS, ids=lambda check: check.__name__)
def test_a_planted_bug_makes_no_order_possible(check: Callable[[Stage], None], stage: Stage) -> None:
    with mutant(*CHECKS[check]), pytest.raises(AssertionError, match="no order explains"):
        check(stage)
