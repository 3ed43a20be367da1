"""Clients of a deployed stack that send requests and messages without pause, and record what must not be lost."""

import itertools
import random
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.e2e.deployment import Stack
from tests.e2e.people import Caller
from tests.e2e.story import Scans, eventually, send_event
from tests.support.api import Reply

KINDS = ("project", "scan", "advisory", "decision")
# Between two operations of a client, so that the local AWS also has time to deploy.
_PAUSE_SECONDS = 2
_UNAVAILABLE = "The database is unavailable."
# Fewer than the plan allows.
_MAX_PROJECTS = 150


@dataclass
class Client(Caller):
    """Repeats what the table was unavailable for.

    MiniStack doesn't respond for seconds while it deploys. On AWS, a deployment doesn't affect the table.
    """

    def ask(self, expected: int, method: str, target: str, body: Any = None, **headers: str) -> Reply:
        if method == "POST":
            headers = {"Idempotency-Key": secrets.token_hex(8)} | headers

        def send() -> Reply | None:
            reply = self.stack.call(method, target, self.token, json_body=body, headers=headers)
            return None if _UNAVAILABLE in reply.text else reply

        reply = eventually(send, "a response of the table", self.stack)
        assert reply.status == expected, f"{method} {target}: {reply.status} {reply.text}"
        return reply


@dataclass
class Traffic:
    """Four clients at the same time, what they wrote, and what went wrong.

    machine: has an API key and writes projects. call: a person's, which does the rest.
    """

    machine: Client
    call: Client
    organization_id: str
    repository_id: str
    phase: str
    done: set[tuple[str, str]] = field(default_factory=set)
    """The phases and kinds of completed operations."""

    problems: list[str] = field(default_factory=list)
    written: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The answers that confirmed states of projects and decisions, by the path that reads them."""

    advisories: list[str] = field(default_factory=list)
    """The titles of those that were sent to the intake."""

    scans: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._numbers = itertools.count(1)
        self._projects: list[str] = []
        self._stopped = threading.Event()
        # Held during a write until its result is recorded.
        self._writing = threading.Lock()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Sends requests while the block runs. Operations that have begun are completed."""
        operations = {
            "project": self._project,
            "scan": self._scan,
            "advisory": self._advisory,
            "decision": self._decide,
        }
        threads = [threading.Thread(target=self._repeat, args=item) for item in operations.items()]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            for thread in threads:
                thread.join()

    def wait_for_each(self, phase: str) -> None:
        """Starts the phase. Returns once the clients have begun and completed an operation of each kind in it."""
        self.phase = phase

        def poll() -> bool | None:
            return bool(self.problems) or all((phase, kind) in self.done for kind in KINDS) or None

        eventually(poll, f"traffic of {phase}", self.call.stack)

    def lost(self) -> list[str]:
        """Reads all projects and decisions, whatever wrote them. Returns those that aren't as they were written."""
        found = []
        with self._writing:
            for path, written in self.written.items():
                read = self.call(200, "GET", path)
                left = {name: read.get(name) for name in written}
                if left != written:
                    found.append(f"{path}: {written} is {left}")
        return found

    def use(self, stack: Stack) -> None:
        """Sends the next requests to the stack as it is deployed now."""
        self.call.stack = self.machine.stack = stack

    def missing(self) -> list[str]:
        """Returns the titles of the sent advisories that have no finding in the inbox."""
        missing, cursor = set(self.advisories), ""
        while True:
            page = self.call.ask(200, "GET", f"/v1/inbox?limit=100{cursor}").body
            missing -= {item["title"] for item in page["data"]}
            if not page["pagination"]["hasMore"]:
                return sorted(missing)
            cursor = f"&cursor={page['pagination']['nextCursor']}"

    def _repeat(self, kind: str, operation: Callable[[str], None]) -> None:
        while not self._stopped.wait(_PAUSE_SECONDS):
            phase = self.phase
            try:
                operation(phase)
            except Exception as error:  # noqa: BLE001 - a test reports it
                self.problems.append(f"{kind} in {phase}: {error!r}")
            else:
                self.done.add((phase, kind))

    def _project(self, phase: str) -> None:
        """Creates a project, twice with the same key, and changes one, which may be from an earlier phase."""
        if len(self._projects) < _MAX_PROJECTS:
            name = f"Shop {next(self._numbers)}"
            body = {"name": name, "region": "eu-central", "websites": ["shop.example.com"]}
            created = self.machine(201, "POST", "/v1/projects", body, **{"Idempotency-Key": name})
            assert self.machine(201, "POST", "/v1/projects", body, **{"Idempotency-Key": name}) == created
            self._projects.append(f"/v1/projects/{created['id']}")
            self._write(self.machine, self._projects[-1], {"projectName": f"{name} of {phase}"})
        self._write(self.machine, random.choice(self._projects), {"description": f"Changed in {phase}"})

    def _decide(self, phase: str) -> None:
        """Changes the status of an advisory in the inbox."""
        items = eventually(lambda: self._advisories() or None, "an advisory in the inbox", self.call.stack)
        path = f"/v1/inbox/{random.choice(items)['id']}"
        item = self.call(200, "GET", path)
        status = "accepted" if item["status"] == "dismissed" else "dismissed"
        self._write(self.call, path, {"status": status}, version=item["version"])

    def _advisories(self) -> list[dict[str, Any]]:
        return [it for it in self.call(200, "GET", "/v1/inbox?limit=100") if it["source"] == "advisory"]

    def _write(self, call: Client, path: str, state: dict[str, Any], **more: str) -> None:
        with self._writing:
            call(200, "PATCH", path, state | more)
            self.written[path] = self.written.get(path, {}) | state

    def _advisory(self, phase: str) -> None:
        number = next(self._numbers)
        about = {"advisoryId": f"ADV-{number}", "organizationId": self.organization_id, "projectId": None}
        send_event(self.call.stack, "finding_intake_advisory", title=f"Advisory {number}", **about)
        self.advisories.append(f"Advisory {number}")

    def _scan(self, phase: str) -> None:
        """Requests a scan, and waits for its end."""
        scans = Scans(self.call, self.repository_id)
        self.scans.append(scans.wait_for_end(scans.start()))
