"""Every command that changes something of an organization writes one entry in the audit log."""

from collections.abc import Callable, Iterator

import typer.main

from controlplane.core.actions import Action
from controlplane.store import audits, issue_attempts
from ops.cli import app
from tests.functional.ops.conftest import Ops
from tests.support.api import Api
from tests.support.audit_log import Subject, all_entries
from tests.support.each import each
from tests.support.table import restored
from tests.support.world import World


def _audit(it: Subject) -> str:
    return audits.create_audit(it.project.project_id, it.project.websites[0].website_id, 7).audit_id


def _attempt(it: Subject) -> list[str]:
    item = it.world.finding(it.company, it.repository)
    issue_attempts.begin_attempt(item.item_id, it.owner.user_id)
    return ["issue", "reconcile", item.item_id]


CASES: dict[str, tuple[Action, Callable[[Subject], list[str]]]] = {
    "organization create": (
        Action.ORGANIZATION_CREATE,
        lambda it: ["organization", "create", "--name", "Second", "--owner", it.owner.user_id],
    ),
    "organization delete": (
        Action.ORGANIZATION_DELETE,
        lambda it: ["organization", "delete", it.organization_id, "--yes"],
    ),
    "member add": (
        Action.MEMBER_ADD,
        lambda it: ["member", "add", it.organization_id, it.world.person().user_id, "--role", "owner"],
    ),
    "member set-role": (
        Action.MEMBER_CHANGE_ROLE,
        lambda it: ["member", "set-role", it.organization_id, it.member.user_id, "admin"],
    ),
    "member remove": (
        Action.MEMBER_REMOVE,
        lambda it: ["member", "remove", it.organization_id, it.member.user_id, "--yes"],
    ),
    "plan set": (Action.ORGANIZATION_CHANGE_PLAN, lambda it: ["plan", "set", it.organization_id, "starter"]),
    "credits add": (Action.BILLING_ADD_CREDITS, lambda it: ["credits", "add", it.organization_id, "5"]),
    "credits take": (
        Action.BILLING_ADD_CREDITS,
        lambda it: (it.world.credits(it.company, 5), ["credits", "take", it.organization_id, "5"])[1],
    ),
    "top-up enable": (
        Action.BILLING_CHANGE_TOP_UP,
        lambda it: [
            *("top-up", "enable", it.organization_id),
            *("--threshold", "5", "--amount", "50", "--monthly-limit", "2"),
        ],
    ),
    "top-up disable": (Action.BILLING_CHANGE_TOP_UP, lambda it: ["top-up", "disable", it.organization_id]),
    "key create": (
        Action.API_KEY_CREATE,
        lambda it: ["key", "create", it.organization_id, "--name", "deploy", "--created-by", it.owner.user_id],
    ),
    "key delete": (Action.API_KEY_DELETE, lambda it: ["key", "delete", it.key_id, "--yes"]),
    "audit create": (
        Action.AUDIT_CREATE,
        lambda it: ["audit", "create", it.project.project_id, it.project.websites[0].website_id],
    ),
    "audit delete": (
        Action.AUDIT_DELETE,
        lambda it: ["audit", "delete", it.project.project_id, _audit(it), "--yes"],
    ),
    "audit record": (
        Action.AUDIT_RUN,
        lambda it: ["audit", "record", it.project.project_id, _audit(it), "--result", "passed"],
    ),
    "repository connect": (
        Action.REPOSITORY_CONNECT,
        lambda it: ["repository", "connect", it.organization_id, "acme/blog", "--installation", "4711"],
    ),
    "repository link": (
        Action.LINK_UPDATE,
        lambda it: ["repository", "link", it.repository.repository_id, it.project.project_id, "--branch", "next"],
    ),
    "repository unlink": (
        Action.LINK_DELETE,
        lambda it: ["repository", "unlink", it.repository.repository_id, it.project.project_id, "--yes"],
    ),
    "repository disconnect": (
        Action.REPOSITORY_DISCONNECT,
        lambda it: ["repository", "disconnect", it.repository.repository_id, "--yes"],
    ),
}
# They read, send messages to workers, which record what they change, or change what belongs to no organization.
OTHERS = {
    "audit list", "credits list", "credits show", "dead-letters discard", "dead-letters list",
    "dead-letters redrive", "feedback cluster", "feedback list", "feedback pause", "feedback resume", "feedback show",
    "github check", "inbox list", "inbox show", "intake advisory", "intake detection", "intake send",
    "issue list", "key list", "member list", "organization list", "organization show",
    "repository list", "repository show", "signing-key add", "signing-key drop", "signing-key show",
    "signing-key switch", "table check", "table restore", "token create",
    "top-up show", "user create", "user export", "user identities",
    "user move-identity", "user revoke", "user set-email", "user set-organization",
    "user show",
}  # fmt: skip
# It ends memberships and invitations, each with an entry; and it records or refuses an issue, as the worker does.
SEVERAL = {"user delete", "issue reconcile"}


def _commands() -> Iterator[str]:
    root = typer.main.get_command(app)
    for name, group in root.commands.items():  # type: ignore[attr-defined]
        for inner in getattr(group, "commands", {}):
            yield f"{name} {inner}"


def test_every_command_has_a_case():
    assert {*_commands()} == CASES.keys() | OTHERS | SEVERAL


@each("name", CASES, around=restored)
def test_a_command_writes_one_entry(name: str, ops: Ops, api: Api, world: World):
    action, prepare = CASES[name]
    subject = Subject(world, api)
    words = prepare(subject)
    if name == "top-up disable":
        ops("top-up", "enable", subject.organization_id, "--threshold", "5", "--amount", "9", "--monthly-limit", "2")
    before = all_entries()
    outcome = ops(*words)
    assert outcome.exit_code == 0, outcome.stderr
    (entry,) = [entry for entry in all_entries() if entry not in before]
    assert entry["action"] == action
    assert (entry["actorKind"], entry["actorId"], entry["source"]) == ("operator", "operator", "operator")
    assert entry["before"] or entry["after"]
    assert not any(text in str(entry).lower() for text in ("@", "assent_", "lovelace"))


def test_deleting_a_person_records_what_each_organization_loses(ops: Ops, api: Api, world: World):
    subject = Subject(world, api)
    person = subject.member
    subject.post("/v1/invitations", {"email": "other@example.com", "role": "member"})
    elsewhere = world.company()
    body = {"email": person.email, "role": "member"}
    api.post("/v1/invitations", elsewhere.owner.token, json_body=body)
    before = all_entries()
    assert ops("user", "delete", person.email, "--yes").exit_code == 0
    written = [(it["action"], it["pk"].split("#")[1]) for it in all_entries() if it not in before]
    assert sorted(written) == sorted(
        [
            (Action.MEMBER_REMOVE, subject.organization_id),
            (Action.INVITATION_DECLINE, elsewhere.organization_id),
        ]
    )


def test_reconciling_an_attempt_without_an_issue_records_the_refusal(ops: Ops, api: Api, world: World):
    subject = Subject(world, api)
    words = _attempt(subject)
    before = all_entries()
    outcome = ops(*words, "--absent", "--yes")
    assert outcome.exit_code == 0, outcome.stderr
    (entry,) = [entry for entry in all_entries() if entry not in before]
    assert (entry["action"], entry["actorKind"]) == (Action.ISSUE_REFUSE, "operator")
