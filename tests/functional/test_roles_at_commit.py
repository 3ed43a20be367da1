"""A caller who loses the role while a write runs writes nothing (docs/decisions/0010).

Between the caller's admission and the write, the caller is demoted below the required role or removed, or the
organization is deleted. Every route that writes in an organization is listed here, so a new one can't be forgotten.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count, product
from typing import Any

import pytest

from controlplane.code_host.items import HostedRepository, RepositoryItem
from controlplane.erasure import deletions
from controlplane.findings import intake
from controlplane.organizations import members
from controlplane.organizations import store as organizations
from controlplane.platform.core.ids import MemberId
from controlplane.platform.core.roles import RANK, Role
from controlplane.platform.table.table import table
from dashboard.code_host import connecting
from tests.functional.projects.builders import COUNTERS, make_project
from tests.support.api import Api, Reply
from tests.support.audits import make_issue, make_scan
from tests.support.browser import Browser
from tests.support.calls import Call, Proceed, intercepted
from tests.support.cleanup import finish_deletions
from tests.support.endpoints import delivered, endpoint
from tests.support.operations import operations
from tests.support.populated_organization import detection, id_part, kinds_containing
from tests.support.table import own_table
from tests.support.world import Company, Person, World, table_dump

# The first write after the ones that count a request or a credential's use, or record a refusal.
_COUNTING = ("RATE#", "REFUSALS#", "TH#", "KH#", "IP#")
PAGES = "POST /organizations/{organizationSlug}"
ONCE = "once" * 8
_WRITES = {"PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "BatchWriteItem"}
_NUMBERS = count(1)


@dataclass
class Scene:
    """An organization with its owner, and the caller, who has the role."""

    world: World
    company: Company
    caller: Person
    api: Api

    @property
    def query(self) -> str:
        return f"?organizationId={self.company.organization_id}"

    @property
    def pages(self) -> str:
        return f"/organizations/{self.company.slug}"

    def call(self, method: str, path: str, body: Any = None) -> Callable[[], Reply]:
        return lambda: self.api.call(method, path, self.caller.token, json_body=body)

    def form(self, path: str, **fields: str) -> Callable[[], Reply]:
        browser = Browser(self.api).signed_in(self.caller.user_id)
        return lambda: browser.forge(f"{self.pages}{path}", fields)

    def connected(self, *, linked: bool = True) -> RepositoryItem:
        return self.world.connected_repository(self.company, linked=linked)

    def key_id(self) -> str:
        self.world.key(self.company)
        return str(self.api.get(f"/v1/api-keys{self.query}", self.company.owner.token).data[0]["keyId"])


type Prepare = Callable[[Scene], Callable[[], Reply]]


def _change_key(method: str, suffix: str = "") -> Prepare:
    body = {"name": "deploys"} if method == "PATCH" else {} if suffix else None
    return lambda scene: scene.call(method, f"/v1/api-keys/{scene.key_id()}{suffix}{scene.query}", body)


def _locked_scan(scene: Scene) -> str:
    scene.world.credits(scene.company, 100)
    return make_scan(scene.connected(), issues=[make_issue(number) for number in range(1, 6)]).scan_id


def _unlock(scene: Scene) -> Callable[[], Reply]:
    return scene.call("POST", f"/v1/code-audit/scans/{_locked_scan(scene)}/unlock")


def _link(scene: Scene) -> Callable[[], Reply]:
    repository, project = scene.connected(linked=False), make_project(scene.company)
    path = f"/v1/code-audit/repositories/{repository.repository_id}/links"
    return scene.call("POST", path, {"projectId": project.project_id})


def _change_link(method: str) -> Prepare:
    def prepare(scene: Scene) -> Callable[[], Reply]:
        repository = scene.connected()
        path = f"/v1/code-audit/repositories/{repository.repository_id}/links/{repository.links[0].project_id}"
        return scene.call(method, path, {"schedule": "daily"} if method == "PATCH" else None)

    return prepare


def _disconnect(scene: Scene) -> Callable[[], Reply]:
    return scene.call("DELETE", f"/v1/code-audit/repositories/{scene.connected().repository_id}")


def _open_issue(scene: Scene) -> Callable[[], Reply]:
    found = scene.world.finding(scene.company, scene.connected())
    return scene.call("POST", f"/v1/inbox/{found.item_id}/github-issue")


def _change_member(method: str, role: Role, to: Role | None = None) -> Prepare:
    def prepare(scene: Scene) -> Callable[[], Reply]:
        other = scene.world.member(scene.company, role)
        path = f"/v1/members/{MemberId.of_user(scene.company.organization_id, other.user_id)}"
        return scene.call(method, path, {"role": to} if to else None)

    return prepare


def _invite(role: Role) -> Prepare:
    body = {"email": "new@example.com", "role": role}
    return lambda scene: scene.call("POST", f"/v1/invitations{scene.query}", body)


def _invitation(scene: Scene) -> str:
    return World().invitation(scene.company, f"invited{next(_NUMBERS)}@example.com").invitation_id


def _revoke(scene: Scene) -> Callable[[], Reply]:
    return scene.call("DELETE", f"/v1/invitations/{_invitation(scene)}")


def _resend(scene: Scene) -> Callable[[], Reply]:
    return scene.call("POST", f"/v1/invitations/{_invitation(scene)}/resend")


def _delete_project(scene: Scene) -> Callable[[], Reply]:
    return scene.call("DELETE", f"/v1/projects/{make_project(scene.company).project_id}")


def _delete_website(scene: Scene) -> Callable[[], Reply]:
    project = make_project(scene.company, origins=("a.example.com", "b.example.com"))
    return scene.call("DELETE", f"/v1/projects/{project.project_id}/websites/{project.websites[0].website_id}")


def _decide(scene: Scene) -> Callable[[], Reply]:
    path = f"/v1/projects/{make_project(scene.company).project_id}/vendors/segment/decision"
    return scene.call("POST", path, {"decision": "approve"})


def _create_project(scene: Scene) -> Callable[[], Reply]:
    return scene.call("POST", f"/v1/projects{scene.query}", {"name": "Shop", "region": "eu-central"})


def _update_project(scene: Scene) -> Callable[[], Reply]:
    return scene.call("PATCH", f"/v1/projects/{make_project(scene.company).project_id}", {"description": "a shop"})


def _start_scan(scene: Scene) -> Callable[[], Reply]:
    return scene.call("POST", f"/v1/code-audit/scans{scene.query}", {"repositoryId": scene.connected().repository_id})


def _review(scene: Scene) -> Callable[[], Reply]:
    found = scene.world.finding(scene.company)
    body = {"status": "accepted", "version": found.version}
    return scene.call("PATCH", f"/v1/inbox/{found.item_id}", body)


def _review_list(scene: Scene) -> Callable[[], Reply]:
    found = scene.world.finding(scene.company)
    change = {"id": found.item_id, "status": "accepted", "version": found.version}
    path = f"/v1/inbox?organizationId={scene.company.organization_id}"
    return scene.call("PATCH", path, {"items": [change]})


def _delete_organization(scene: Scene) -> Callable[[], Reply]:
    return scene.form("/delete", confirmation=scene.company.slug)


def _save_link(scene: Scene) -> Callable[[], Reply]:
    repository, project = scene.connected(linked=False), make_project(scene.company)
    fields = {"project_id": project.project_id, "failure_threshold": "P1"}
    return scene.form(f"/repositories/{repository.repository_id}/links", **fields)


def _unlink(scene: Scene) -> Callable[[], Reply]:
    repository = scene.connected()
    fields = {"project_id": repository.links[0].project_id, "action": "unlink"}
    return scene.form(f"/repositories/{repository.repository_id}/links", **fields)


def _confirm_disconnection(scene: Scene) -> Callable[[], Reply]:
    return scene.form(f"/repositories/{scene.connected().repository_id}/disconnect")


def _project_form(suffix: str, **fields: str) -> Prepare:
    def prepare(scene: Scene) -> Callable[[], Reply]:
        project = make_project(scene.company, origins=("a.example.com", "b.example.com"))
        values = {"project": project.slug, "website": project.websites[0].website_id}
        sent = {name: value.format(**values) for name, value in fields.items()}
        return scene.form(f"/projects/{project.slug}{suffix}", **sent)

    return prepare


def _member_form(held: Role, **fields: str) -> Prepare:
    """Returns the form that changes or removes another member, who holds that role."""

    def prepare(scene: Scene) -> Callable[[], Reply]:
        other = scene.world.member(scene.company, held)
        member_id = MemberId.of_user(scene.company.organization_id, other.user_id)
        return scene.form("/members/change", member_id=member_id, **fields)

    return prepare


def _review_form(scene: Scene) -> Callable[[], Reply]:
    found = scene.world.finding(scene.company)
    return scene.form(f"/inbox/{found.item_id}", action="accepted", version=found.version)


def _review_many(scene: Scene) -> Callable[[], Reply]:
    found = scene.world.finding(scene.company)
    return scene.form("/inbox", action="accepted", **{f"item-{found.item_id}": found.version})


def _vendor_form(scene: Scene) -> Callable[[], Reply]:
    made = detection(make_project(scene.company).project_id)
    intake.record_detection(made)
    finding = made.as_discovery()
    return scene.form(f"/inbox/{finding.item_id}/vendor", decision="approve")


def _scan_form(scene: Scene) -> Callable[[], Reply]:
    repository = scene.connected()
    return scene.form("/scans", subject=f"{repository.repository_id} {repository.links[0].project_id}")


def _connect(scene: Scene) -> Callable[[], Reply]:
    hosted = HostedRepository(
        hosted_id=1,
        installation_id=4711,
        owner="acme",
        name="shop",
        html_url="https://github.com/acme/shop",
        default_branch="main",
        visibility="private",
    )
    browser = Browser(scene.api).signed_in(scene.caller.user_id)
    own = organizations.find_membership(scene.caller.user_id, scene.company.organization_id)
    assert own is not None
    fields = {
        "offers": connecting._seal_offers(own.organization_id, [hosted], browser.secret).sealed,
        "repository": "1",
    }
    path = f"{scene.pages}/repositories"
    return lambda: browser.forge(path, fields)


def connect_again(scene: Scene) -> Callable[[], Reply]:
    scene.world.connected_repository(scene.company, name="shop")
    return _connect(scene)


ENDPOINT = {"name": "Alerts", "url": "https://hooks.example.com/", "format": "standard"}
CHOSEN = {"credits.low": "yes"}


def _change_webhook(method: str, suffix: str = "", body: dict[str, Any] | None = None) -> Prepare:
    return lambda scene: scene.call(method, f"/v1/webhook-endpoints/{endpoint(scene.company).webhook_id}{suffix}", body)


def _webhook_form(suffix: str, **fields: str) -> Prepare:
    return lambda scene: scene.form(f"/webhooks/{endpoint(scene.company).webhook_id}{suffix}", **fields)


def _replay(scene: Scene) -> Callable[[], Reply]:
    sent = delivered(scene.company)
    return scene.call("POST", f"/v1/webhook-endpoints/{sent.webhook_id}/deliveries/{sent.event_id}/replay")


def _replay_form(scene: Scene) -> Callable[[], Reply]:
    sent = delivered(scene.company)
    return scene.form(f"/webhooks/{sent.webhook_id}/deliveries/{sent.event_id}/replay")


# Each write with its least role, which is checked again at commit. An operation whose least role depends on what it
# changes has several.
CHECKED: tuple[tuple[str, Role, Prepare], ...] = (
    ("POST /v1/api-keys", "admin", lambda it: it.call("POST", f"/v1/api-keys{it.query}", {"name": "deploy"})),
    ("POST /v1/api-keys/{keyId}/roll", "admin", _change_key("POST", "/roll")),
    ("PATCH /v1/api-keys/{keyId}", "admin", _change_key("PATCH")),
    ("DELETE /v1/api-keys/{keyId}", "admin", _change_key("DELETE")),
    ("POST /v1/code-audit/scans/{scanId}/unlock", "owner", _unlock),
    ("POST /v1/code-audit/repositories/{repositoryId}/links", "admin", _link),
    ("PATCH /v1/code-audit/repositories/{repositoryId}/links/{projectId}", "admin", _change_link("PATCH")),
    ("DELETE /v1/code-audit/repositories/{repositoryId}/links/{projectId}", "admin", _change_link("DELETE")),
    ("DELETE /v1/code-audit/repositories/{repositoryId}", "admin", _disconnect),
    ("POST /v1/inbox/{itemId}/github-issue", "admin", _open_issue),
    ("PATCH /v1/members/{memberId}", "admin", _change_member("PATCH", "member", "admin")),
    ("PATCH /v1/members/{memberId}", "owner", _change_member("PATCH", "member", "owner")),
    ("PATCH /v1/members/{memberId}", "owner", _change_member("PATCH", "owner", "member")),
    ("DELETE /v1/members/{memberId}", "admin", _change_member("DELETE", "member")),
    ("DELETE /v1/members/{memberId}", "owner", _change_member("DELETE", "owner")),
    ("POST /v1/invitations", "admin", _invite("member")),
    ("POST /v1/invitations", "owner", _invite("owner")),
    ("DELETE /v1/invitations/{invitationId}", "admin", _revoke),
    ("POST /v1/invitations/{invitationId}/resend", "admin", _resend),
    ("POST /organizations/{organizationSlug}/delete", "owner", _delete_organization),
    ("POST /organizations/{organizationSlug}/repositories/{repositoryId}/links", "admin", _save_link),
    ("POST /organizations/{organizationSlug}/repositories/{repositoryId}/links", "admin", _unlink),
    ("POST /organizations/{organizationSlug}/repositories/{repositoryId}/disconnect", "admin", _confirm_disconnection),
    ("POST /organizations/{organizationSlug}/repositories", "admin", _connect),
    ("POST /organizations/{organizationSlug}/repositories", "admin", connect_again),
    (
        "POST /organizations/{organizationSlug}/projects/{projectSlug}/delete",
        "admin",
        _project_form("/delete", confirmation="{project}"),
    ),
    (
        "POST /organizations/{organizationSlug}/projects/{projectSlug}/settings",
        "admin",
        _project_form("/settings", action="remove-website", website_id="{website}"),
    ),
    (
        "POST /organizations/{organizationSlug}/projects/{projectSlug}/vendors",
        "admin",
        _project_form("/vendors", vendor_id="segment", decision="approve"),
    ),
    (f"{PAGES}/keys", "admin", lambda it: it.form("/keys", once=ONCE, name="deploy")),
    (f"{PAGES}/keys/{{keyId}}/roll", "admin", lambda it: it.form(f"/keys/{it.key_id()}/roll", once=ONCE)),
    (f"{PAGES}/keys/{{keyId}}/revoke", "admin", lambda it: it.form(f"/keys/{it.key_id()}/revoke")),
    (f"{PAGES}/members", "admin", lambda it: it.form("/members", email="new@example.com", role="member")),
    (f"{PAGES}/members", "owner", lambda it: it.form("/members", email="new@example.com", role="owner")),
    (f"{PAGES}/members/change", "admin", _member_form("member", role="admin")),
    (f"{PAGES}/members/change", "owner", _member_form("owner", action="remove")),
    (f"{PAGES}/members/resend", "admin", lambda it: it.form("/members/resend", invitation_id=_invitation(it))),
    (f"{PAGES}/members/withdraw", "admin", lambda it: it.form("/members/withdraw", invitation_id=_invitation(it))),
    (f"{PAGES}/scans/{{scanId}}/unlock", "owner", lambda it: it.form(f"/scans/{_locked_scan(it)}/unlock")),
    (
        f"{PAGES}/inbox/{{itemId}}/issue",
        "admin",
        lambda it: it.form(f"/inbox/{it.world.finding(it.company, it.connected()).item_id}/issue"),
    ),
    (f"{PAGES}/inbox/{{itemId}}/vendor", "admin", _vendor_form),
    ("DELETE /v1/projects/{projectId}", "admin", _delete_project),
    (
        "POST /v1/webhook-endpoints",
        "admin",
        lambda it: it.call("POST", f"/v1/webhook-endpoints{it.query}", dict(ENDPOINT, events=["credits.low"])),
    ),
    ("PATCH /v1/webhook-endpoints/{webhookId}", "admin", _change_webhook("PATCH", "", {"name": "Other"})),
    ("DELETE /v1/webhook-endpoints/{webhookId}", "admin", _change_webhook("DELETE")),
    ("POST /v1/webhook-endpoints/{webhookId}/rotate-secret", "admin", _change_webhook("POST", "/rotate-secret", {})),
    ("POST /v1/webhook-endpoints/{webhookId}/deliveries/{eventId}/replay", "admin", _replay),
    (f"{PAGES}/webhooks", "admin", lambda it: it.form("/webhooks", once=ONCE, **ENDPOINT, **{"credits.low": "yes"})),
    (
        f"{PAGES}/webhooks/{{webhookId}}",
        "admin",
        _webhook_form("", **{**ENDPOINT, "name": "Other", "credits.low": "yes"}),
    ),
    (f"{PAGES}/webhooks/{{webhookId}}/status", "admin", _webhook_form("/status", status="disabled")),
    (f"{PAGES}/webhooks/{{webhookId}}/rotate", "admin", _webhook_form("/rotate", once=ONCE)),
    (f"{PAGES}/webhooks/{{webhookId}}/delete", "admin", _webhook_form("/delete")),
    (f"{PAGES}/webhooks/{{webhookId}}/deliveries/{{eventId}}/replay", "admin", _replay_form),
    ("DELETE /v1/projects/{projectId}/websites/{websiteId}", "admin", _delete_website),
    ("POST /v1/projects/{projectId}/vendors/{vendorId}/decision", "admin", _decide),
)
# What any member may do, and a member could have done a moment before: checked once, at admission.
ADMITTED: tuple[tuple[str, Prepare], ...] = (
    ("POST /v1/projects", _create_project),
    ("PATCH /v1/projects/{projectId}", _update_project),
    ("POST /v1/code-audit/scans", _start_scan),
    ("PATCH /v1/inbox/{itemId}", _review),
    ("PATCH /v1/inbox", _review_list),
    (f"{PAGES}/inbox", _review_many),
    (f"{PAGES}/inbox/{{itemId}}", _review_form),
    (
        f"{PAGES}/projects/new",
        lambda it: it.form("/projects/new", once=ONCE, name="Shop", region="eu-central", websites="shop.example.com"),
    ),
    (f"{PAGES}/scans", _scan_form),
    (f"{PAGES}/settings", lambda it: it.form("/settings")),
)


def _state() -> list[str]:
    """Returns the items that no request changes only by being counted."""
    return [
        json.dumps({name: value for name, value in item.items() if name not in COUNTERS}, sort_keys=True)
        for item in table_dump()
        if not item["pk"]["S"].startswith(_COUNTING)
    ]


def _writes(call: Call) -> bool:
    if call.operation in {"PutItem", "UpdateItem", "DeleteItem"}:
        key = call.parameters.get("Key") or call.parameters["Item"]
        return not key["pk"]["S"].startswith(_COUNTING)
    return call.operation in _WRITES


def _interrupted(send: Callable[[], Reply], change: Callable[[], None]) -> tuple[Reply, list[str]]:
    """Sends the request, and makes the change before its first write. Returns the response, and the state after it."""
    after: list[str] = []
    made: list[Call] = []

    def around(call: Call, proceed: Proceed) -> Any:
        if not made and _writes(call):
            made.append(call)
            change()
            after.extend(_state())
        return proceed()

    with intercepted(table.client, around):
        reply = send()
    assert made, "the request wrote nothing"
    return reply, after


def _changes(least: Role) -> list[str]:
    """Returns what may happen to a caller who needs this role."""
    return [*(role for role in RANK if RANK[role] < RANK[least]), "removed", "organization deleted"]


def _change(scene: Scene, change: str) -> None:
    """Lets this happen to the caller: a change to that role, or what it says."""
    organization_id, owner_id = scene.company.organization_id, scene.company.owner.user_id
    if change == "organization deleted":
        deletions.delete_organization(organization_id)
        return
    caller, _ = members.find_member_and_caller(organization_id, scene.caller.user_id, owner_id)
    assert caller is not None
    if change == "removed":
        members.delete_member(caller, owner_id, "owner")
    else:
        members.change_role(caller, change, owner_id, "owner")


def _scene(world: World, api: Api, role: Role) -> Scene:
    company = world.company()
    return Scene(world, company, world.member(company, role), api)


def test_every_write_in_an_organization_is_listed_with_its_role():
    required = {
        operation.name: operation.requires.role if operation.requires else None
        for operation in operations()
        if operation.method != "GET"
        and (
            (operation.requires is not None and (operation.requires.organization or operation.requires.resource))
            or operation.path.startswith("/organizations/{")
        )
    }
    assert required.keys() == {name for name, *_ in (*CHECKED, *ADMITTED)}
    for name, least in required.items():
        listed = {role for checked, role, _ in CHECKED if checked == name}
        assert least in listed or least is None or (least, listed) == ("member", set()), name


def _check_gone(scene: Scene) -> None:
    """Checks that nothing stays of a deleted organization except what it leaves, and messages that are not sent yet."""
    finish_deletions()
    left = kinds_containing(id_part(scene.company.organization_id))
    assert left <= {"SLUG", "LEDGER", "OUTBOX"}


def _attempt(world: World, api: Api, role: Role, prepare: Prepare, change: str) -> tuple[int, bool]:
    """Returns the status of a request during which that happens to its caller, and whether it wrote anything."""
    scene = _scene(world, api, role)
    reply, before = _interrupted(prepare(scene), lambda: _change(scene, change))
    wrote = _state() != before
    if change == "organization deleted":
        _check_gone(scene)
    return reply.status, wrote


# A test for each write, so that `make mutate` finds the ones of a line.
@pytest.mark.parametrize(
    ("name", "least", "prepare"), CHECKED, ids=[f"{number} {name}" for number, (name, *_) in enumerate(CHECKED)]
)
def test_nothing_is_written_for_a_caller_who_lost_the_role(
    name: str, least: Role, prepare: Prepare, world: World, api: Api
):
    failures = []
    for role, change in product((role for role in RANK if RANK[role] >= RANK[least]), _changes(least)):
        with own_table():
            status, wrote = _attempt(world, api, role, prepare, change)
        if wrote or status not in {403, 404}:
            failures.append(f"{name} by {role}, now {change}: {status}, wrote: {wrote}")
    assert failures == []


def test_what_is_written_into_a_deleted_organization_is_deleted_with_it(world: World, api: Api):
    for name, prepare in ADMITTED:
        with own_table():
            status, _ = _attempt(world, api, "member", prepare, "organization deleted")
        assert status in {200, 202, 303, 403, 404}, name
