"""The API as a simple model: who may do what, what exists, and how much of it.

Who may send a request is what docs/openapi.json says: the kind of credential, the scopes, and the roles. What the
operations do is in `api_operations.py`.
"""

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from unittest import mock

from controlplane.core import clock
from controlplane.core.ids import MemberId
from controlplane.core.plans import PLANS
from controlplane.store import keys
from controlplane.store.table import table
from tests.races.stage import Stage
from tests.support.api import Reply
from tests.support.calls import Call, Proceed, intercepted
from tests.support.faults import Crashed, faults_of
from tests.support.outcomes import Outcome
from tests.support.world import ALL_SCOPES, Person

DOCUMENT = Path(__file__).parents[2] / "docs" / "openapi.json"
OPERATIONS: dict[str, dict[str, Any]] = {
    operation["operationId"]: {"method": method.upper(), "path": path, **operation}
    for path, methods in json.loads(DOCUMENT.read_text())["paths"].items()
    for method, operation in methods.items()
}
LIFETIME_SECONDS = 10**9
READ_SCOPES = [scope for scope in ALL_SCOPES if scope.endswith(".read")]
# Longer than a crashed request holds its Idempotency-Key.
LEASE_SECONDS = 31
ATTEMPTS = 3


@dataclass(eq=False)
class Org:
    """An organization: the roles of its people by number, and the IDs of what it has."""

    org_id: str
    plan: str
    roles: dict[int, str]
    keys: dict[str, "Key"] = field(default_factory=dict)
    projects: dict[str, list[str]] = field(default_factory=dict)
    hooks: list[str] = field(default_factory=list)
    # By address: the ID, the person who sent it, and when it expires.
    invitations: dict[str, tuple[str, int, float]] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    repository: str | None = None
    links: list[str] = field(default_factory=list)

    @property
    def query(self) -> str:
        return f"?organizationId={self.org_id}"

    @property
    def owners(self) -> int:
        return [*self.roles.values()].count("owner")

    def valid_invitation(self, email: str) -> bool:
        _, inviter, expires = self.invitations.get(email, ("", -1, 0.0))
        return expires > clock.now() and self.roles.get(inviter) in {"admin", "owner"}


@dataclass(frozen=True)
class Key:
    """An API key. `secret` is None if the response that contained it is lost."""

    secret: str | None
    scopes: tuple[str, ...]


@dataclass(frozen=True)
class Caller:
    """A person, by number, or an API key of an organization. `key` is None for one that was deleted or rolled."""

    token: str
    scopes: tuple[str, ...]
    person: int | None = None
    org: Org | None = None
    is_dead: bool = False


@dataclass
class Request:
    """Holds what an operation sends, the response if the caller may, and what a success changes.

    repeated: the status of a repetition after a success whose response was lost. found: what a client reads instead if
    the creation took effect, and its response is lost for good.
    """

    path: str
    status: int
    body: Any = None
    apply: Callable[[Any], None] = lambda data: None
    repeated: int | None = None
    org: Org | None = None
    found: Callable[[], Any] = lambda: None


type Modeled = Callable[["ApiModel", Caller, Org, int], Request | None]
MODELED: dict[str, Modeled] = {}


def modeled(function: Modeled) -> Modeled:
    """Registers the model of the operation that the function is named after."""
    first, *words = function.__name__.split("_")
    MODELED["".join([first, *(word.title() for word in words)])] = function
    return function


class ApiModel:
    """Three organizations and four people. `call` sends a request and compares the response with the model."""

    def __init__(self, stage: Stage, set_clock: Callable[[float], None], start: float) -> None:
        self.stage, self.set_clock = stage, set_clock
        set_clock(start)
        world = stage.fresh()
        self.people: list[Person] = [world.person() for _ in range(4)]
        self.tokens = [
            {
                "all": world.token(person.user_id, ALL_SCOPES, LIFETIME_SECONDS),
                "read": world.token(person.user_id, READ_SCOPES, LIFETIME_SECONDS),
            }
            for person in self.people
        ]
        self.numbers = count(1)
        self.orgs: list[Org] = []
        self.dead_secrets: list[str] = []
        self.reports: dict[tuple[int, int], int] = {}
        for owner, plan in enumerate(("pro", "starter", "free")):
            company = world.company(plan, owner=self.people[owner])
            org = Org(company.organization_id, plan, {owner: "owner"})
            for offset, role in enumerate(("admin", "member"), 1):
                number = (owner + offset) % 4
                world.member(company, role, self.people[number])  # type: ignore[arg-type]
                org.roles[number] = role
            for _ in range(2):
                item = world.finding(company)
                org.versions[item.item_id] = item.version
            org.repository = world.connected_repository(company, linked=False).repository_id
            self.orgs.append(org)

    # Who calls

    def caller(self, org: Org, pick: int) -> Caller:
        """Returns a caller: mostly an owner, so that most requests succeed."""
        if pick < 6:
            owner = next(number for number, role in org.roles.items() if role == "owner")
            return Caller(self.tokens[owner]["all"], (*ALL_SCOPES,), owner)
        people = [
            Caller(tokens[kind], (*scopes,), number)
            for number, tokens in enumerate(self.tokens)
            for kind, scopes in (("all", ALL_SCOPES), ("read", READ_SCOPES))
        ]
        secrets = [
            Caller(key.secret, key.scopes, org=own) for own in self.orgs for key in own.keys.values() if key.secret
        ]
        dead = [Caller(secret, (), is_dead=True) for secret in self.dead_secrets[-2:]]
        callers = [*secrets, *dead, *people]
        return callers[pick % len(callers)]

    def refusals(self, operation: dict[str, Any], caller: Caller, org: Org | None) -> set[int]:
        """Returns the statuses with which the caller is refused, by what the document says. None: the caller may."""
        kinds = {kind for one in operation["security"] for kind in one}
        if not kinds:
            return set()
        if caller.is_dead:
            return {401}
        found = set()
        scopes = operation.get("x-required-scopes")
        if scopes and not {*scopes} & {*caller.scopes}:
            found.add(403)
        if caller.org is not None:
            found |= {403} if "organizationApiKey" not in kinds else set()
            found |= {402} if not PLANS[caller.org.plan].api_access else set()
            found |= {403, 404} if org not in {None, caller.org} else set()
        elif org is not None:
            role = None if caller.person is None else org.roles.get(caller.person)
            found |= {403, 404} if role is None else set()
            found |= {403} if role not in operation.get("x-required-roles", [role]) else set()
        return found

    # One request

    def call(self, name: str, caller_pick: int, org_pick: int, pick: int, fault: tuple[int, int] | None) -> None:
        operation, org = OPERATIONS[name], self.orgs[org_pick % len(self.orgs)]
        caller = self.caller(org, caller_pick)
        request = MODELED[name](self, caller, org, pick)
        if request is None:
            return
        refusals = self.refusals(operation, caller, request.org)
        reply, is_repeated = self._send(operation, caller, request, fault)
        if is_repeated and reply.status == 409 and _is_answer_lost(reply):
            request.apply(request.found())
            self.check_counters()
            return
        expected = {request.status} | ({request.repeated} if is_repeated and request.repeated else set())
        if refusals:  # that something doesn't exist is said before that the caller's role is too low
            expected = refusals | (expected & {404})
        assert reply.status in expected, f"{name}: {reply.status} instead of {expected}: {reply.text}"
        if not refusals and (request.status < 300):
            request.apply(reply.body.get("data") if reply.status < 300 else None)  # documents have no envelope
        self.check_counters()

    def _send(
        self, operation: dict[str, Any], caller: Caller, request: Request, fault: tuple[int, int] | None
    ) -> tuple[Reply, bool]:
        """Returns the response, and whether an earlier attempt may have taken effect."""
        takes_key = any("IdempotencyKey" in it.get("$ref", "") for it in operation.get("parameters", []))
        headers = {"Idempotency-Key": f"model-{next(self.numbers):030}"} if takes_key else {}

        def send() -> Reply:
            token = caller.token if operation["security"] else None
            return self.stage.api.call(
                operation["method"], request.path, token, json_body=request.body, headers=headers
            )

        if fault is None:
            first = send()
            if headers and first.status < 300:
                second = send()
                assert (second.status, second.data) == (first.status, first.data), "a repetition differs"
            return first, False
        outcome = self._send_with_fault(send, *fault)
        for _ in range(ATTEMPTS):
            if not isinstance(outcome.error, Crashed) and outcome.get().status not in {429, 500, 503}:
                return outcome.get(), True
            if outcome.error is None and outcome.get().status == 429 and request.status == 429:
                return outcome.get(), True
            assert outcome.error is not None or outcome.get().status != 500, outcome.get().text
            self.set_clock(clock.now() + LEASE_SECONDS)
            outcome = Outcome.of(send)
        return outcome.get(), True

    def _send_with_fault(self, send: Callable[[], Reply], position: int, choice: int) -> Outcome:
        """Sends the request, and breaks one of its calls, if it makes so many."""
        made = count()
        crashed = False

        def around(call: Call, proceed: Proceed) -> Any:
            nonlocal crashed
            if crashed:
                raise Crashed
            if next(made) != position:
                return proceed()
            faults = [*faults_of(call)]
            try:
                return faults[choice % len(faults)].strikes[0](self.stage.client, call, proceed)
            except Crashed:
                crashed = True
                raise

        with intercepted(self.stage.client, around), mock.patch.object(time, "sleep"):
            outcome = Outcome.of(send)
        return Outcome(error=Crashed()) if crashed else outcome

    # Comparison

    def owner_token(self, org: Org) -> str:
        return self.tokens[next(number for number, role in org.roles.items() if role == "owner")]["all"]

    def new_one(self, org: Org, path: str, known: Iterable[str], name: str = "id") -> Any:
        """Returns the listed item that the model doesn't know."""
        listed = self.stage.api.get(path, self.owner_token(org)).data
        (new,) = [item for item in listed if item[name] not in {*known}]
        return new

    def kill(self, key: Key) -> None:
        self.dead_secrets.extend([key.secret] if key.secret else [])

    def check_counters(self) -> None:
        """Compares the counters of every organization."""
        found = table.batch_get([keys.organization(org.org_id) for org in self.orgs])
        for org, item in zip(self.orgs, found, strict=True):
            assert item is not None
            counted = {name: item[name] for name in ("keys", "projects", "owners")}
            assert counted == {"keys": len(org.keys), "projects": len(org.projects), "owners": org.owners}

    def check_everything(self) -> None:
        """Compares all lists of every organization, and checks the invariants of the whole table."""
        for org in self.orgs:

            def ids(path: str, name: str = "id", org: Org = org) -> set[str]:
                return {item[name] for item in self.stage.api.get(path + org.query, self.owner_token(org)).data}

            assert ids("/v1/api-keys", "keyId") == {*org.keys}
            assert ids("/v1/projects", "projectId") == {*org.projects}
            assert ids("/v1/webhook-endpoints") == {*org.hooks}
            assert ids("/v1/invitations", "email") == {it for it in org.invitations if org.valid_invitation(it)}
            assert ids("/v1/members") == {self.member_id(org, number) for number in org.roles}
            for key in filter(lambda key: key.secret, org.keys.values()):
                status = self.stage.api.get("/v1/me", key.secret).status
                assert status == (200 if PLANS[org.plan].api_access else 402)
        for secret in self.dead_secrets:
            assert self.stage.api.get("/v1/me", secret).status == 401
        self.stage.check_invariants()

    def member_id(self, org: Org, number: int) -> str:
        return MemberId.of_user(org.org_id, self.people[number].user_id)


def _is_answer_lost(reply: Reply) -> bool:
    details = reply.error.get("details")
    return isinstance(details, dict) and details.get("reason") == "answer_lost"
