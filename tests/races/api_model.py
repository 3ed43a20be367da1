"""The API as a simple model: who may do what, what exists, and how much of it.

`MODELED` has one function for each operation of docs/openapi.json that a request alone completes. It returns the
request, what the response has to be, and what a success changes. Who may send it is what the document says: the kind of
credential, the scopes, and the roles. So a new operation fails a test until it has a function here, or a reason.
"""

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from unittest import mock

from controlplane.core import clock
from controlplane.core.ids import MemberId
from controlplane.core.plans import PLANS
from controlplane.core.scopes import API_KEY_SCOPES
from controlplane.store import api_keys, keys, webhooks
from controlplane.store.feedback import NEW_PER_HOUR
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
_LEASE_SECONDS = 31
_ATTEMPTS = 3

_DEVICE = "Needs a device's codes and a person's approval: tests/races/test_device_requests.py."
_SCAN = "Needs the workers of a scan: tests/races/test_scans.py, test_scan_recovery.py, test_unlocks.py."
NOT_MODELED = {
    "createDeviceCode": _DEVICE,
    "createDeviceToken": _DEVICE,
    "revokeDeviceToken": _DEVICE,
    "revokeSession": _DEVICE,
    "startScan": _SCAN,
    "getScanRequest": _SCAN,
    "getScan": _SCAN,
    "compareScans": _SCAN,
    "listScanIssues": _SCAN,
    "getScanSarif": _SCAN,
    "unlockScan": _SCAN,
    "createGithubIssue": "Has a state machine of its own: tests/races/test_issue_states.py.",
    "replayWebhookDelivery": "Needs the worker's deliveries: tests/races/test_webhooks.py.",
    "getRequest": "Reads the record of a refusal, which is best effort: tests/races/test_refusals.py.",
}


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
        for _ in range(_ATTEMPTS):
            if not isinstance(outcome.error, Crashed) and outcome.get().status not in {429, 500, 503}:
                return outcome.get(), True
            if outcome.error is None and outcome.get().status == 429 and request.status == 429:
                return outcome.get(), True
            assert outcome.error is not None or outcome.get().status != 500, outcome.get().text
            self.set_clock(clock.now() + _LEASE_SECONDS)
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


def _chosen(ids: Any, pick: int) -> str | None:
    """Returns one of the IDs, or None. They are in order of creation, because a run must be repeatable."""
    listed = [*ids]
    return listed[pick % len(listed)] if listed else None


def _gone(org: Org, prefix: str) -> str:
    """Returns a well-formed ID of nothing."""
    return f"{prefix}_{org.org_id.removeprefix('org_')}{'0' * 18}"


# Operations without an organization


def _public(path: str) -> Modeled:
    return lambda model, caller, org, pick: Request(path, 200)


for _name, _path in {
    "getAgentFeedback": "/.well-known/agent-feedback.json",
    "getAuthorizationServer": "/.well-known/oauth-authorization-server",
    "getHealth": "/health",
    "getOpenapi": "/openapi.json",
    "listRegions": "/v1/regions",
    "getMe": "/v1/me",
    "listOrganizations": "/v1/organizations",
    "listSessions": "/v1/me/sessions",
}.items():
    MODELED[_name] = _public(_path)


@modeled
def create_organization(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    if len(model.orgs) > 4 or caller.person is None:
        return None
    person = caller.person
    body = {"name": "Acme", "slug": f"made-{next(model.numbers)}"}

    def apply(data: Any) -> None:
        model.orgs.append(Org(data["id"], "free", {person: "owner"}))

    def found() -> Any:
        listed = model.stage.api.get("/v1/organizations", model.tokens[person]["all"]).data
        (new,) = [item for item in listed if item["organizationSlug"] == body["slug"]]
        return {"id": new["organizationId"]}

    return Request("/v1/organizations", 201, body, apply, found=found)


@modeled
def save_active_organization(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    return Request("/v1/me/active-organization", 200, {"organizationId": org.org_id}, org=org)


@modeled
def create_feedback(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    hour, second = divmod(int(clock.now()), 3_600)
    if caller.person is None or second > 3_600 - _ATTEMPTS * _LEASE_SECONDS:
        return None
    quota = (caller.person, hour)

    def apply(data: Any) -> None:
        model.reports[quota] = model.reports.get(quota, 0) + 1

    status = 201 if model.reports.get(quota, 0) < NEW_PER_HOUR else 429
    return Request("/v1/feedback", status, {"category": "bug", "message": f"Bug {next(model.numbers)}"}, apply)


# Lists and single items


def _lists(path: str) -> Modeled:
    return lambda model, caller, org, pick: Request(path + org.query, 200, org=org)


for _name, _path in {
    "listApiKeys": "/v1/api-keys",
    "listAuthKeys": "/v1/auth/keys",
    "listAuditLog": "/v1/audit-log",
    "getBilling": "/v1/billing",
    "listRepositories": "/v1/code-audit/repositories",
    "listScans": "/v1/code-audit/scans",
    "listInboxItems": "/v1/inbox",
    "listInvitations": "/v1/invitations",
    "listMembers": "/v1/members",
    "listProjects": "/v1/projects",
    "listWebhookEndpoints": "/v1/webhook-endpoints",
}.items():
    MODELED[_name] = _lists(_path)


def _reads(path: str, prefix: str, ids: Callable[[Org], Any]) -> Modeled:
    """Returns the model of a read by ID: that of an item that exists, or sometimes of none."""

    def read(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request:
        found = _chosen(ids(org), pick) if pick % 5 else None
        return Request(path.format(found or _gone(org, prefix)), 200 if found else 404, org=org)

    return read


MODELED |= {
    "getApiKey": _reads("/v1/api-keys/{}", "key", lambda org: org.keys),
    "getInboxItem": _reads("/v1/inbox/{}", "inb", lambda org: org.versions),
    "getProject": _reads("/v1/projects/{}", "prj", lambda org: org.projects),
    "getProjectConsent": _reads("/v1/projects/{}/consent", "prj", lambda org: org.projects),
    "listVendors": _reads("/v1/projects/{}/vendors", "prj", lambda org: org.projects),
    "getWebhookEndpoint": _reads("/v1/webhook-endpoints/{}", "whk", lambda org: org.hooks),
    "listWebhookDeliveries": _reads("/v1/webhook-endpoints/{}/deliveries", "whk", lambda org: org.hooks),
    "listLinks": _reads(
        "/v1/code-audit/repositories/{}/links", "rep", lambda org: [org.repository] if org.repository else []
    ),
}


@modeled
def get_organization(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    return Request(f"/v1/organizations/{org.org_id}", 200, org=org)


# API keys


@modeled
def create_api_key(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    scopes = (*API_KEY_SCOPES,) if pick % 2 else ("projects.read",)

    def apply(data: Any) -> None:
        org.keys[data["keyId"]] = Key(data.get("key"), scopes)

    # The name that the tests set.
    full = len(org.keys) >= api_keys.API_KEYS_PER_ORGANIZATION  # type: ignore[attr-defined]
    status = 402 if not PLANS[org.plan].api_access else 409 if full else 201
    path = f"/v1/api-keys{org.query}"
    body = {"name": "deploy", "scopes": scopes}
    return Request(path, status, body, apply, org=org, found=partial(model.new_one, org, path, org.keys, "keyId"))


@modeled
def roll_api_key(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    if (key_id := _chosen(org.keys, pick)) is None:
        return None

    def apply(data: Any) -> None:
        rolled = org.keys.pop(key_id)
        model.kill(rolled)
        org.keys[data["keyId"]] = Key(data.get("key"), rolled.scopes)

    path = f"/v1/api-keys{org.query}"
    return Request(
        f"/v1/api-keys/{key_id}/roll{org.query}",
        200,
        {},
        apply,
        org=org,
        found=partial(model.new_one, org, path, org.keys, "keyId"),
    )


@modeled
def update_api_key(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    if (key_id := _chosen(org.keys, pick)) is None:
        return None

    def apply(data: Any) -> None:
        org.keys[key_id] = Key(org.keys[key_id].secret, ("inbox.read",))

    status = 200 if "inbox.read" in org.keys[key_id].scopes else 400
    return Request(f"/v1/api-keys/{key_id}", status, {"scopes": ["inbox.read"]}, apply, org=org)


@modeled
def delete_api_key(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    if (key_id := _chosen(org.keys, pick)) is None:
        return None

    def apply(data: Any) -> None:
        model.kill(org.keys.pop(key_id))

    return Request(f"/v1/api-keys/{key_id}{org.query}", 200, None, apply, 404, org)


# Members and invitations


@modeled
def update_member(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    number, role = [*org.roles][pick % len(org.roles)], ("member", "admin", "owner")[pick % 3]
    held = org.roles[number]
    is_owner = caller.person is not None and org.roles.get(caller.person) == "owner"
    is_last = held == "owner" != role and org.owners == 1
    is_refused = is_last or ("owner" in {held, role} and not is_owner)

    def apply(data: Any) -> None:
        org.roles[number] = role

    path = f"/v1/members/{model.member_id(org, number)}"
    # Who gave up the role isn't admitted again.
    repeated = 403 if number == caller.person else None
    return Request(path, 403 if is_refused else 200, {"role": role}, apply, repeated, org)


@modeled
def delete_member(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    number = [*org.roles][pick % len(org.roles)]
    is_owner = caller.person is not None and org.roles.get(caller.person) == "owner"
    is_refused = number == caller.person or (org.roles[number] == "owner" and not is_owner)

    def apply(data: Any) -> None:
        del org.roles[number]

    return Request(f"/v1/members/{model.member_id(org, number)}", 403 if is_refused else 200, None, apply, 404, org)


@modeled
def create_invitation(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    email = f"invited{pick % 3}@example.com"
    inviter = caller.person
    if inviter is None:
        return None

    def apply(data: Any) -> None:
        org.invitations[email] = (data["id"], inviter, clock.now() + 7 * 86_400)

    status = 409 if org.valid_invitation(email) else 201
    path, known = f"/v1/invitations{org.query}", [it[0] for it in org.invitations.values()]
    body = {"email": email, "role": "member"}
    return Request(path, status, body, apply, org=org, found=partial(model.new_one, org, path, known))


@modeled
def delete_invitation(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    if (email := _chosen(filter(org.valid_invitation, org.invitations), pick)) is None:
        return None

    def apply(data: Any) -> None:
        del org.invitations[email]

    return Request(f"/v1/invitations/{org.invitations[email][0]}", 200, None, apply, 404, org)


@modeled
def resend_invitation(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    return Request(f"/v1/invitations/{_gone(org, 'inv')}/resend", 404, org=org)


# Projects


@modeled
def create_project(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    def apply(data: Any) -> None:
        org.projects[data["id"]] = [website["id"] for website in data["websites"]]

    body = {"name": "Shop", "region": "eu-central", "websites": ["a.example.com", "b.example.com"]}
    status = 201 if len(org.projects) < PLANS[org.plan].projects else 402
    path = f"/v1/projects{org.query}"

    def found() -> Any:
        project = model.new_one(org, path, org.projects, "projectId")["projectId"]
        return model.stage.api.get(f"/v1/projects/{project}", model.owner_token(org)).data

    return Request(path, status, body, apply, org=org, found=found)


@modeled
def update_project(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    if (project := _chosen(org.projects, pick)) is None:
        return None
    return Request(f"/v1/projects/{project}", 200, {"description": f"Shop {pick}"}, org=org)


@modeled
def delete_project(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    if (project := _chosen(org.projects, pick)) is None:
        return None

    def apply(data: Any) -> None:
        del org.projects[project]
        org.links = [link for link in org.links if link != project]

    return Request(f"/v1/projects/{project}", 200, None, apply, 404, org)


@modeled
def delete_website(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    if (project := _chosen(org.projects, pick)) is None:
        return None
    websites = org.projects[project]
    website = websites[pick % len(websites)]

    def apply(data: Any) -> None:
        websites.remove(website)

    status = 200 if len(websites) > 1 else 409
    return Request(f"/v1/projects/{project}/websites/{website}", status, None, apply, 404, org)


@modeled
def decide_vendor(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    if (project := _chosen(org.projects, pick)) is None:
        return None
    return Request(f"/v1/projects/{project}/vendors/segment/decision", 200, {"decision": "approve"}, org=org)


# Findings


@modeled
def update_inbox_item(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    if (item := _chosen(org.versions, pick)) is None:
        return None
    version = org.versions[item] if pick % 4 else "x"

    def apply(data: Any) -> None:
        org.versions[item] = data["version"]

    body = {"status": ("open", "accepted", "dismissed")[pick % 3], "version": version, "reason": f"{pick}"}
    return Request(f"/v1/inbox/{item}", 200 if pick % 4 else 409, body, apply, org=org)


@modeled
def update_inbox_items(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    if not org.versions:
        return None

    def apply(data: Any) -> None:
        for result in data["results"]:
            assert result["statusCode"] == 200, result
            org.versions[result["id"]] = result["item"]["version"]

    def found() -> Any:
        items = model.stage.api.get(f"/v1/inbox{org.query}", model.owner_token(org)).data
        return {"results": [{"id": item["id"], "statusCode": 200, "item": item} for item in items]}

    changes = [{"id": item, "status": "accepted", "version": version} for item, version in org.versions.items()]
    return Request(f"/v1/inbox{org.query}", 200, {"items": changes}, apply, org=org, found=found)


# Repositories


@modeled
def disconnect_repository(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    if org.repository is None or pick % 4:
        return None

    def apply(data: Any) -> None:
        org.repository = None
        org.links.clear()

    return Request(f"/v1/code-audit/repositories/{org.repository}", 200, None, apply, 404, org)


@modeled
def create_link(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    project = _chosen(org.projects, pick)
    if org.repository is None or project is None:
        return None

    def apply(data: Any) -> None:
        org.links.append(project)

    path, status = f"/v1/code-audit/repositories/{org.repository}/links", 409 if project in org.links else 201
    return Request(path, status, {"projectId": project}, apply, org=org)


def _link(org: Org, pick: int) -> tuple[str, str] | None:
    project = _chosen(org.links, pick)
    if org.repository is None or project is None:
        return None
    return f"/v1/code-audit/repositories/{org.repository}/links/{project}", project


@modeled
def update_link(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    found = _link(org, pick)
    return found and Request(found[0], 200, {"failureThreshold": "P1"}, org=org)


@modeled
def delete_link(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    if (found := _link(org, pick)) is None:
        return None
    return Request(found[0], 200, None, lambda data: org.links.remove(found[1]), 404, org)


# Webhooks


@modeled
def create_webhook_endpoint(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    body = {"name": "Alerts", "url": "https://hooks.example.com/", "events": ["credits.low"]}
    status = 201 if len(org.hooks) < webhooks.WEBHOOKS_PER_ORGANIZATION else 409
    path = f"/v1/webhook-endpoints{org.query}"
    found = partial(model.new_one, org, path, org.hooks)
    return Request(path, status, body, lambda data: org.hooks.append(data["id"]), org=org, found=found)


@modeled
def update_webhook_endpoint(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    if (hook := _chosen(org.hooks, pick)) is None:
        return None
    return Request(f"/v1/webhook-endpoints/{hook}", 200, {"status": ("enabled", "disabled")[pick % 2]}, org=org)


@modeled
def delete_webhook_endpoint(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    if (hook := _chosen(org.hooks, pick)) is None:
        return None
    return Request(f"/v1/webhook-endpoints/{hook}", 200, None, lambda data: org.hooks.remove(hook), 404, org)


@modeled
def rotate_webhook_secret(model: ApiModel, caller: Caller, org: Org, pick: int) -> Request | None:
    if (hook := _chosen(org.hooks, pick)) is None:
        return None
    return Request(f"/v1/webhook-endpoints/{hook}/rotate-secret", 200, {}, org=org)


def _is_answer_lost(reply: Reply) -> bool:
    details = reply.error.get("details")
    return isinstance(details, dict) and details.get("reason") == "answer_lost"
