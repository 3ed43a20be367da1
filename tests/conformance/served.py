"""The whole API on a local port, for programs that know it only from its document.

`python -m tests.conformance.served` writes one line, `Served` as JSON, and serves until its input ends. For each line
of input, it writes how often each operation has returned each status. Every function runs as in `make run`; the queues
and the code host are the tests' in-memory versions: messages from one request are processed before the next response.
The clock advances by one minute per request. So requests never reach a limit per minute, hourly limits are reached and
expire. The same requests get the same responses: IDs and secrets are drawn with a fixed seed.
"""

import asyncio
import json
import os
import random
import socket
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest
import uvicorn
from starlette.types import ASGIApp

from controlplane.api_keys import store as api_keys
from controlplane.code_host import repositories
from controlplane.code_host.items import Link
from controlplane.organizations import store as organizations
from controlplane.people import credential_index
from controlplane.platform.core import clock, tokens
from controlplane.platform.core.ids import MemberId
from controlplane.platform.queues import messages
from controlplane.platform.queues.messages import Queue
from controlplane.platform.table import keys as store_keys
from controlplane.platform.table.table import Delete, table
from issue_creation.app import handler as create_issues
from local.gateway import Gateway, Request, Response, template_table
from local.server import Server, load_handlers
from tests.functional.conftest import FakeClock
from tests.support.audits import make_issue, make_scan, preparation_worker, scan_worker
from tests.support.code_host import SHA, FakeHost, archive
from tests.support.drawn import determined
from tests.support.endpoints import delivered
from tests.support.engines import sequential_engine
from tests.support.issue_host import IssueHost
from tests.support.sqs import FakeSqs, Handler
from tests.support.table import PREPARED, create_table
from tests.support.world import World

HOST = "127.0.0.1"
# Longer than any run lasts on its own clock.
_LIFETIME_SECONDS = 10 * 365 * 86_400
# The number of items that requests may delete: enough to leave some for later operations.
_SPARE = 8
_PAGE = '<html><head><script src="https://www.googletagmanager.com/gtag/js?id=G-1"></script></head></html>'


@dataclass(frozen=True)
class Served:
    """The address of the API, and the data in it."""

    base_url: str
    organization_id: str
    user_token: str
    api_key: str
    # The organization's IDs, by the parameter or field that takes them.
    ids: dict[str, list[str]]


class _Background:
    """Runs the workers on each message as soon as the request that sent it is over."""

    def __init__(self, sqs: FakeSqs, host: FakeHost) -> None:
        self._sqs = sqs
        self._workers: dict[Queue, Handler] = {
            Queue.SCAN_PREPARATION: preparation_worker(host),
            Queue.SCAN_EXECUTION: scan_worker(host),
            Queue.ISSUE_CREATION: create_issues,
        }

    def work(self) -> None:
        for queue, handler in self._workers.items():
            for letter in self._sqs.due(queue.url):
                self._sqs.deliver(letter, handler, queue.dead_letters_url)


def _fill(base_url: str) -> tuple[Served, FakeHost]:
    """Creates an organization that contains every kind of item, with credentials of its owner and an API key."""
    world = World()
    company = world.company()
    token = world.token(company.owner.user_id, lifetime_seconds=_LIFETIME_SECONDS)
    listed = credential_index.list_credentials(company.owner.user_id, 100).items
    (own,) = [entry for entry in listed if entry.digest == tokens.digest(token)]
    # Removes the run's own token from all lists, so that no request revokes it.
    table.delete(Delete(store_keys.credential(company.owner.user_id, own.local)), PREPARED)
    # The owner belongs to several organizations, so requests that name none use this default.
    organizations.save_default(company.owner.user_id, company.organization_id)
    world.credits(company, 10_000)
    for _ in range(_SPARE):
        world.token(company.owner.user_id, lifetime_seconds=_LIFETIME_SECONDS)
    spare_sessions = credential_index.list_credentials(company.owner.user_id, 100).items
    members = [world.member(company) for _ in range(_SPARE)]
    invitations = [world.invitation(company, f"spare{number}@example.com") for number in range(_SPARE)]
    keys = [api_keys.create_key(company.organization_id, "spare", company.owner.user_id, "test") for _ in range(_SPARE)]
    lasting = api_keys.create_key(company.organization_id, "lasting", company.owner.user_id, "test")
    repository = world.connected_repository(company)
    # Has no linked project, so it can't be scanned.
    unlinked = world.connected_repository(company, linked=False)
    spare_projects = [link.project_id for _ in range(_SPARE) for link in world.connected_repository(company).links]
    # Many, because requests disconnect them. Each is linked to all spare projects, or to none.
    spare_repositories = [world.connected_repository(company, linked=False) for _ in range(3 * _SPARE)]
    for linked in spare_repositories[_SPARE:]:
        for project_id in spare_projects:
            repositories.link_project(linked.repository_id, Link(project_id, None, None, False))
    scan = make_scan(repository, issues=[make_issue(number) for number in range(1, 8)])
    # Of several repositories, because an issue needs one that is still connected.
    items = [*(world.finding(company, it) for it in (repository, *spare_repositories[:_SPARE])), world.finding(company)]
    host = FakeHost({(repository.owner, repository.name, "main"): SHA}, {SHA: archive({"index.html": _PAGE})})
    deliveries = [delivered(company) for _ in range(3)]
    ids = {
        "organizationId": [company.organization_id],
        "repositoryId": [it.repository_id for it in (repository, unlinked, *spare_repositories)],
        # Separate projects: requests delete them early, and a repository without a project can't be scanned.
        "projectId": spare_projects,
        "memberId": [MemberId.of_user(company.organization_id, member.user_id) for member in members],
        "invitationId": [it.invitation_id for it in invitations],
        "keyId": [key.item.key_id for key in keys],
        "lastingKeyId": [lasting.item.key_id],
        "sessionId": [entry.session_id for entry in spare_sessions],
        "scanId": [scan.scan_id],
        "webhookId": [it.webhook_id for it in deliveries],
        "eventId": [it.event_id for it in deliveries],
        "itemId": [item.item_id for item in items],
        "version": [item.version for item in items],
    }
    return Served(base_url, company.organization_id, token, world.key(company), ids), host


@contextmanager
def _product(base_url: str) -> Iterator[tuple[Served, Callable[[Request], Response]]]:
    """Yields the functions on their own engine, with data in it."""
    now, sqs, drawn = FakeClock(), FakeSqs(), random.Random(0)
    with (
        determined(lambda: drawn),
        sequential_engine("fast") as client,
        pytest.MonkeyPatch.context() as patch,
        IssueHost().installed(patch),
    ):
        table.client = client
        create_table(client, table.name)
        patch.setitem(vars(messages.sender), "client", sqs)
        patch.setattr(clock, "source", now)
        served, host = _fill(base_url)
        background = _Background(sqs, host)

        async def pause(seconds: float) -> None:
            """Runs the workers instead of waiting."""
            background.work()

        patch.setattr(clock, "pause", pause)
        handlers = load_handlers()
        gateway = Gateway(lambda function, event: handlers[function](event, None))

        one_at_a_time = threading.Lock()

        def respond(request: Request) -> Response:
            with one_at_a_time:
                now.seconds += 60
                background.work()
                return gateway.respond(request)

        yield served, respond


class _Counted:
    """The gateway, with a count of each operation's response statuses."""

    def __init__(self, respond: Callable[[Request], Response]) -> None:
        self._respond = respond
        self.answers: dict[str, Counter[int]] = defaultdict(Counter)

    def respond(self, request: Request) -> Response:
        response = self._respond(request)
        route = template_table().find(request.method, request.target.partition("?")[0])
        if route is not None:
            self.answers[f"{request.method} {route.path}"][response.status] += 1
        return response


async def _serve(app: ASGIApp, listener: socket.socket, until: Callable[[], object]) -> None:
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off", access_log=False))
    serving = asyncio.create_task(server.serve([listener]))
    await asyncio.to_thread(until)
    server.should_exit = True
    await serving


def _listener() -> socket.socket:
    """Returns a local socket, which lets connections wait until it is served."""
    # If TCP is named, asyncio sends each response at once instead of 40 ms later.
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.bind((HOST, 0))
    made.listen()
    return made


def main() -> None:
    with (
        os.fdopen(os.dup(sys.stdout.fileno()), "w") as answer,
        Path(os.devnull).open("w") as nowhere,
        _listener() as listener,
        _product(f"http://{HOST}:{listener.getsockname()[1]}") as (served, respond),
    ):
        # Discards the metrics, which the functions write to standard output.
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
        counted = _Counted(respond)
        answer.write(json.dumps(asdict(served)) + "\n")
        answer.flush()

        def tell() -> None:
            for _ in sys.stdin:
                answer.write(json.dumps(counted.answers) + "\n")
                answer.flush()

        asyncio.run(_serve(Server(counted.respond), listener, tell))


if __name__ == "__main__":
    main()
