"""The whole API on a port of this machine, for programs that know it by its document alone.

`python -m tests.conformance.served` writes one line, `Served` as JSON, and serves until its input ends. To each line of
it, it writes how often each operation has answered with which status. Every function is there as in `make run`; queues
and the code host are those of the tests, in memory: what a request sent is worked off before the next one is answered.
Each request comes a minute after the last one. So no limit of requests a minute is met, those by the hour are met and
pass, and a run with the same requests has the same answers, but for ids.
"""

import asyncio
import json
import os
import socket
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest
import uvicorn
from pydantic import TypeAdapter
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from controlplane import clock, queues, tokens
from controlplane.ids import member_id
from controlplane.queues import ExecuteScan, PrepareScan, Queue
from controlplane.store import api_keys, credential_index, organizations
from controlplane.store import keys as store_keys
from controlplane.store.table import Delete, table
from controlplane.worker import create_worker
from issue_creation.app import handler as create_issues
from local.server import Gateway, load_apps
from scan_execution.messages import ACCEPTED, ScanMessage
from scan_execution.service import execute_scan, publish_scan
from scan_preparation.service import prepare_scan
from tests.support.audits import make_issue, make_scan
from tests.support.code_host import SHA, FakeHost, archive
from tests.support.engines import sequential_client
from tests.support.issue_host import IssueHost
from tests.support.mailbox import Handler, Mailbox
from tests.support.table import create_table
from tests.support.world import World

HOST = "127.0.0.1"
# Longer than any run lasts by its own clock.
_LIFETIME_SECONDS = 10 * 365 * 86_400
# Of what requests delete: enough that some is left for the operations after them.
_SPARE = 8
_PAGE = '<html><head><script src="https://www.googletagmanager.com/gtag/js?id=G-1"></script></head></html>'


@dataclass(frozen=True)
class Served:
    """Where the API is, and what is in it."""

    base_url: str
    organization_id: str
    user_token: str
    api_key: str
    # What the organization has, by the parameter or field that takes it.
    ids: dict[str, list[str]]


class _Clock:
    """Stands still until moved."""

    def __init__(self) -> None:
        self.seconds = 1_772_600_767.0

    def __call__(self) -> float:
        return self.seconds


class _Background:
    """The workers, each message as soon as the request that sent it is over."""

    def __init__(self, mailbox: Mailbox, host: FakeHost) -> None:
        self._mailbox = mailbox
        prepare = create_worker(
            Queue.SCAN_PREPARATION, TypeAdapter(PrepareScan), lambda message: prepare_scan(message, host.connect)
        )

        def scan(message: ScanMessage) -> None:
            if isinstance(message, ExecuteScan):
                execute_scan(message, host.connect)
            else:
                publish_scan(message)

        self._workers: dict[Queue, Handler] = {
            Queue.SCAN_PREPARATION: prepare,
            Queue.SCAN_EXECUTION: create_worker(Queue.SCAN_EXECUTION, ACCEPTED, scan),
            Queue.ISSUE_CREATION: create_issues,
        }

    def work(self) -> None:
        for queue, handler in self._workers.items():
            for letter in self._mailbox.due(queue.url):
                self._mailbox.deliver(letter, handler, queue.dead_letters_url)


def _fill(base_url: str) -> tuple[Served, FakeHost]:
    """One organization with something of every kind in it, seen by its owner and by a key."""
    world = World()
    company = world.company()
    token = world.token(company.owner.user_id, lifetime_seconds=_LIFETIME_SECONDS)
    listed = credential_index.list_credentials(company.owner.user_id, 100).credentials
    (own,) = [entry for entry in listed if entry.digest == tokens.digest(token)]
    # The run's own token is listed nowhere, so that no request revokes it.
    table.delete(Delete(store_keys.credential(company.owner.user_id, own.local)))
    # The owner will belong to several: requests that name none go here.
    organizations.save_organization(company.owner.user_id, company.organization_id)
    world.credits(company, 10_000)
    for _ in range(_SPARE):
        world.token(company.owner.user_id, lifetime_seconds=_LIFETIME_SECONDS)
    spare_sessions = credential_index.list_credentials(company.owner.user_id, 100).credentials
    members = [world.member(company) for _ in range(_SPARE)]
    keys = [api_keys.create_key(company.organization_id, "spare", company.owner.user_id, "test") for _ in range(_SPARE)]
    repository = world.connected_repository(company)
    # Without a linked project, so that nothing of it can be scanned.
    unlinked = world.connected_repository(company, linked=False)
    scan = make_scan(repository, issues=[make_issue(number) for number in range(1, 8)])
    items = [world.finding(company, repository), world.finding(company)]
    host = FakeHost({(repository.owner, repository.name, "main"): SHA}, {SHA: archive({"index.html": _PAGE})})
    ids = {
        "organizationId": [company.organization_id],
        "repositoryId": [repository.repository_id, unlinked.repository_id],
        # Others, for they are deleted before long, and a repository without a project is scanned no more.
        "projectId": [link.project_id for _ in range(_SPARE) for link in world.connected_repository(company).links],
        "memberId": [member_id(company.organization_id, member.user_id) for member in members],
        "keyId": [key.item["keyId"] for key in keys],
        "sessionId": [entry.session_id for entry in spare_sessions],
        "scanId": [scan.scan_id],
        "itemId": [item.item_id for item in items],
        "version": [item.version for item in items],
    }
    return Served(base_url, company.organization_id, token, world.key(company), ids), host


@contextmanager
def _product(base_url: str) -> Iterator[tuple[Served, ASGIApp]]:
    """The functions over an engine of their own, with something in it."""
    now, mailbox = _Clock(), Mailbox()
    with sequential_client() as client, pytest.MonkeyPatch.context() as patch, IssueHost().installed(patch):
        table._client = client
        create_table(client, table.name)
        patch.setattr(queues.sender, "_client", mailbox)
        patch.setattr(clock, "source", now)
        served, host = _fill(base_url)
        background = _Background(mailbox, host)

        async def pause(seconds: float) -> None:
            """Whoever waits for a worker has waited."""
            background.work()

        patch.setattr(clock, "pause", pause)
        gateway = Gateway(load_apps())

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            now.seconds += 60
            background.work()
            await gateway(scope, receive, send)

        yield served, app


class _Counted:
    """The app, and how often each of its operations answered with which status."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.answers: dict[str, Counter[int]] = defaultdict(Counter)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def counting_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.answers[scope["controlplane"].operation][message["status"]] += 1
            await send(message)

        await self._app(scope, receive, counting_send)


async def _serve(app: ASGIApp, listener: socket.socket, until: Callable[[], object]) -> None:
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off", access_log=False))
    serving = asyncio.create_task(server.serve([listener]))
    await asyncio.to_thread(until)
    server.should_exit = True
    await serving


def _listener() -> socket.socket:
    """A port of this machine. With TCP named, asyncio sends each answer at once, and not 40 ms later."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.bind((HOST, 0))
    return made


def main() -> None:
    with (
        os.fdopen(os.dup(sys.stdout.fileno()), "w") as answer,
        Path(os.devnull).open("w") as nowhere,
        _listener() as listener,
        _product(f"http://{HOST}:{listener.getsockname()[1]}") as (served, app),
    ):
        # The product writes its metrics there.
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
        counted = _Counted(app)
        answer.write(json.dumps(asdict(served)) + "\n")
        answer.flush()

        def tell() -> None:
            for _ in sys.stdin:
                answer.write(json.dumps(counted.answers) + "\n")
                answer.flush()

        asyncio.run(_serve(counted, listener, tell))


if __name__ == "__main__":
    main()
