"""Each command does what it says, records it, asks before it destroys, and refuses what is wrong."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import typer.main

from controlplane.access import sign_in
from controlplane.access.sign_in import AnotherIdentity
from controlplane.code_host import repositories
from controlplane.feedback import store as feedback
from controlplane.findings import inbox, issue_attempts
from controlplane.organizations.store import Membership, membership_legs
from controlplane.people import identities, sessions
from controlplane.people.identities import Subject as IdentitySubject
from controlplane.people.users import UserItem
from controlplane.platform.core.ids import InboxItemId
from controlplane.platform.queues import messages
from controlplane.platform.queues.messages import PublishScan
from controlplane.platform.table.table import table
from controlplane.projects import store as projects
from controlplane.scans import unlocks
from ops.cli import app
from tests.functional.ops.cases import AT, CASES, REFUSALS
from tests.functional.ops.conftest import Queue
from tests.functional.ops.shop import ISSUER, Shop, identity
from tests.functional.projects.builders import make_project
from tests.support.audit_log import all_entries
from tests.support.audits import make_issue, make_scan
from tests.support.table import PREPARED
from tests.support.world import World, table_dump

# These have tests of their own.
ELSEWHERE = {
    "dead-letters discard", "dead-letters list", "dead-letters redrive", "github check",
    "signing-key add", "signing-key drop", "signing-key show", "signing-key switch", "table check", "table restore",
    "user delete", "user export", "user revoke",
}  # fmt: skip


@pytest.fixture
def queue(make_queue: Callable[[str], Queue]) -> Queue:
    return make_queue("ISSUE_CREATION_QUEUE_URL")


@pytest.fixture
def shop(world: World, queue: Queue) -> Shop:
    return Shop.create(world)


def commands() -> Iterator[str]:
    root: Any = typer.main.get_command(app)
    for name, group in root.commands.items():
        yield from (f"{name} {inner}" for inner in group.commands)


def filled(value: Any, names: dict[str, str]) -> Any:
    """Returns the value with names instead of their placeholders."""
    if isinstance(value, str):
        return value.format(**names)
    if isinstance(value, dict):
        return {key: filled(inner, names) for key, inner in value.items()}
    return [filled(inner, names) for inner in value] if isinstance(value, list) else value


def matches(found: Any, expected: Any) -> bool:
    """Returns True if the found value has the expected fields, and rows in any order."""
    if isinstance(expected, dict):
        return all(matches(found[key], expected[key]) for key in expected)
    if isinstance(expected, list):
        return len(found) == len(expected) and all(any(matches(row, it) for row in found) for it in expected)
    return bool(found == expected)


def test_every_command_has_a_case():
    assert {*commands()} == {" ".join(case.line.split()[:2]) for case in CASES} | ELSEWHERE


@pytest.mark.parametrize("case", CASES, ids=str)
def test_does_what_it_says_and_records_it(case, shop, ops):
    words = case.line.format(**shop.names).split()
    later, effect = filled([*(case.then or ("", None))], shop.names)
    before, entries = table_dump(), all_entries()
    if "--yes" in words:
        refusal = ops(*(word for word in words if word != "--yes"))
        assert (refusal.exit_code, "--yes" in refusal.error["message"]) == (2, True)
        assert table_dump() == before
    shown = ops(*words).document
    assert matches(shown, filled(case.document, shop.names)), shown
    written = [entry for entry in all_entries() if entry not in entries]
    assert [entry["action"] for entry in written] == ([case.entry] if case.entry else [])
    for entry in written:
        assert (entry["actorKind"], entry["actorId"], entry["source"]) == ("operator", "operator", "operator")
        assert entry["before"] or entry["after"]
        assert not any(text in str(entry).lower() for text in ("@", "assent_", "lovelace"))
    if later:
        assert matches(ops(*later.split()).document, effect)
    elif not case.entry:
        assert table_dump() == before


@pytest.mark.parametrize("exit_code", REFUSALS)
def test_refuses_what_is_wrong_and_changes_nothing(exit_code, shop, ops, monkeypatch):
    for variable in ("FINDING_INTAKE_DEAD_LETTERS_URL", "SIGNING_SECRET_ARN"):
        monkeypatch.delenv(variable, raising=False)
    before = table_dump()
    for line, said in REFUSALS[exit_code]:
        outcome = ops(*line.format(**shop.names).split())
        assert outcome.exit_code == exit_code, line
        assert outcome.error["code"] == {1: "REFUSED", 2: "USAGE", 3: "NOT_FOUND", 4: "CONFLICT"}[exit_code], line
        assert said.format(**shop.names) in outcome.error["message"], line
        assert table_dump() == before, line


def test_the_ledger_lists_every_change_by_month_and_kind(ops, world, now):
    company = world.company("free")
    ops("top-up", "enable", company.slug, "--threshold", "10", "--amount", "100", "--monthly-limit", "1")
    ops("credits", "add", company.slug, "20")
    now.seconds += 31 * 86_400
    scan = make_scan(world.connected_repository(company), issues=[make_issue(number) for number in range(5)])
    publish = messages.entry(messages.Queue.SCAN_EXECUTION, PublishScan(scan_id=scan.scan_id))
    unlocks.charge(scan, company.owner.user_id, publish)
    operator = {"at": AT, "kind": "operator", "credits": 20, "scanId": None, "by": None}
    unlock = {"at": "2026-04-04T05:06:07.000Z", "kind": "unlock", "credits": -50, "scanId": scan.scan_id}
    unlock["by"] = company.owner.user_id
    top_up = {**unlock, "kind": "top-up", "credits": 100, "by": None}
    assert ops("credits", "list", company.slug).document == [operator, unlock, top_up]
    assert ops("credits", "list", company.slug, "--month", "2026-03").document == [operator]
    invoiced = ops("credits", "list", company.slug, "--month", "2026-04", "--kind", "top-up").document
    assert invoiced == [top_up]
    assert ops("organization", "show", company.slug).document["topUp"]["usedThisMonth"] == 1


def test_a_token_acts_for_the_person_and_is_printed_once(ops_text, api, world, now):
    person = world.person()
    shown = ops_text("token", "create", "--user", person.email, "--scope", "projects.read", "--life", "90s")
    (line,) = [line for line in shown.stdout.splitlines() if "assent_at_" in line]
    token = line.split()[-1]
    assert len(token) == len("assent_at_") + 36
    assert "can't be shown again" in shown.stderr
    assert token not in str(table_dump())
    now.advance(89)
    me = api.get("/v1/me", token).data
    assert (me["principal"]["userId"], me["scopes"]) == (person.user_id, ["projects.read"])
    now.advance(1)
    assert api.get("/v1/me", token).status == 401


def test_members_are_listed_beyond_a_page_and_see_their_new_role(ops, api, world):
    company = world.company()
    membership = Membership(
        organization_id=company.organization_id, slug=company.slug, name=company.name, role="member"
    )
    for number in range(100):
        profile = UserItem(
            user_id=f"usr_{number:016}", email=f"max{number}@example.com", name="Max", image=None, created_at=AT
        )
        table.put(membership_legs(membership, profile)[0], PREPARED)
    person = world.person()
    ops("member", "add", company.slug, person.email, "--role", "owner")
    assert len({it["userId"] for it in ops("member", "list", company.slug).document}) == 102
    assert api.get("/v1/me", person.token).data["organizations"][0]["role"] == "owner"
    ops("member", "set-role", company.slug, company.owner.email, "member")
    assert api.get("/v1/me", company.owner.token).data["organizations"][0]["role"] == "member"
    assert ops("organization", "show", company.slug).document["owners"] == 1


class TestIdentities:
    def test_a_moved_identity_signs_in_with_the_new_subject_alone(self, ops, api, shop):
        user_id = shop.names["owner"]
        session = sessions.create(user_id)
        move = ("user", "move-identity", user_id, "old", "--to-subject", "new", "--yes")
        assert ops(*move).exit_code == 0
        assert api.get("/v1/me", session).status == 401
        assert sign_in.sign_in(identity("new")).user_id == user_id
        with pytest.raises(AnotherIdentity):
            sign_in.sign_in(identity("old"))
        before = table_dump()
        assert ops(*move).document["tokens"] == 0
        assert table_dump() == before

    def test_an_identity_moved_to_a_user_signs_in_to_that_account(self, ops, shop):
        move = ("user", "move-identity", shop.names["owner"], "old", "--to-user", "mary@example.com", "--yes")
        assert ops(*move).document["userId"] == ops(*move).document["userId"] == shop.names["stranger"]
        assert sign_in.sign_in(identity("old", "mary@example.com")).user_id == shop.names["stranger"]

    def test_an_identity_that_several_issuers_have_requires_the_issuer(self, ops, shop):
        other = IdentitySubject("https://other.example", "old")
        table.transact(identities.first_legs(other, shop.names["owner"]), PREPARED)
        move = ("user", "move-identity", shop.names["owner"], "old", "--to-subject", "new", "--yes")
        assert ops(*move).exit_code == 3
        assert ops(*move, "--issuer", ISSUER).exit_code == 0

    def test_an_identity_is_moved_neither_over_another_one_nor_to_an_account_that_has_one(self, ops, shop):
        sign_in.sign_in(identity("new", "mary@example.com"))
        before = table_dump()
        for to in (("--to-subject", "new"), ("--to-user", "mary@example.com")):
            assert ops("user", "move-identity", shop.names["owner"], "old", *to, "--yes").exit_code == 4
        assert table_dump() == before

    def test_a_freed_address_gets_an_account_of_its_own(self, ops, shop):
        ops("user", "set-email", shop.names["owner"], "former@example.com", "--yes")
        addresses = {it["userId"]: it["email"] for it in ops("member", "list", shop.names["org"]).document}
        assert addresses[shop.names["owner"]] == "former@example.com"
        assert sign_in.sign_in(identity("new")).user_id != shop.names["owner"]


def test_a_repository_has_ten_links_to_projects_that_exist(ops, world):
    company = world.company()
    repository = world.connected_repository(company, linked=False)
    made = [make_project(company, f"P{number}") for number in range(repositories.MAX_LINKS + 2)]
    link = ("repository", "link", repository.repository_id)
    codes = [ops(*link, project.project_id).exit_code for project in made[:-1]]
    assert codes == [0] * repositories.MAX_LINKS + [4]
    projects.delete_project(made[0])
    linked = ops(*link, made[-2].project_id).document["projects"]
    assert [it["projectId"] for it in linked] == [project.project_id for project in made[1:-1]]
    assert ops(*link, made[-1].project_id).exit_code == 4


class TestIssues:
    def test_the_worker_is_told_to_search_again(self, ops, shop, queue):
        ops("issue", "reconcile", shop.names["item"])
        (sent,) = queue.bodies()
        assert json.loads(sent) == {"kind": "create-issue", "version": 1, "itemId": shop.names["item"]}

    def test_an_issue_is_recorded_once(self, ops, shop):
        url = "https://github.com/acme/shop/issues/42"
        record = ("issue", "reconcile", shop.names["item"], "--number", "42", "--url", url, "--yes")
        assert [ops(*record).exit_code for _ in range(2)] == [0, 4]
        assert inbox.get_item(InboxItemId.stored(shop.names["item"])).github_issue == (42, url, AT, "open")

    def test_an_attempt_isnt_ended_while_an_issue_may_still_appear(self, ops, shop, now):
        (attempt,) = issue_attempts.list_attempts()
        issue_attempts.start_sending(attempt)
        now.advance(599)
        absent = ("issue", "reconcile", shop.names["item"], "--absent", "--yes")
        assert ops("issue", "list").document[0]["sentAt"] == AT
        assert "2026-03-04T05:16:07.000Z" in ops(*absent).error["message"]
        now.advance(1)
        assert ops(*absent).exit_code == 0


class TestFeedback:
    def test_reports_are_listed_newest_first_and_shortened(self, ops, now):
        def submit(message: str, caller: str = "usr_0123456789abcdef") -> str:
            return feedback.submit_report(caller, {"category": "bug", "message": message}).reference

        made = {submit("It fails.", f"usr_{number:016d}") for number in range(120)}
        now.advance(86_400)
        last = submit("x" * 101)
        now.advance(1)
        newest = submit("x" * 100)
        today = ops("feedback", "list").document
        assert [(it["reference"], it["message"]) for it in today] == [(newest, "x" * 100), (last, "x" * 99 + "…")]
        listed = [it["reference"] for it in ops("feedback", "list", "--days", "2").document]
        assert (listed[:2], {*listed[2:]}) == ([newest, last], made)
        assert ops("feedback", "show", last.lower()).document["message"] == "x" * 101

    def test_a_pause_is_shown_and_ends(self, ops, ops_text, shop):
        assert "paused" not in ops_text("feedback", "list").stderr
        ops("feedback", "pause")
        assert f"New reports have been paused since {AT}." in ops_text("feedback", "list").stderr
        with pytest.raises(feedback.IntakePaused):
            feedback.submit_report(shop.names["owner"], {"category": "bug", "message": "It fails."})
        ops("feedback", "resume")
        assert feedback.submit_report(shop.names["owner"], {"category": "bug", "message": "It fails."})
