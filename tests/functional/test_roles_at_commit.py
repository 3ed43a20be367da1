"""A caller who loses the role while a write runs writes nothing (docs/decisions/0010).

Between the caller's admission and the write, the caller is demoted below the required role or removed, or the
organization is deleted. Every route that writes in an organization has a case, so a new one can't be forgotten.
"""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from controlplane.erasure import deletions
from controlplane.organizations import members
from controlplane.platform.core.roles import RANK, Role
from controlplane.platform.table.table import table
from tests.support.api import Reply
from tests.support.calls import Call, before
from tests.support.cleanup import finish_deletions
from tests.support.each import each
from tests.support.operations import Operation, operations
from tests.support.populated_organization import id_part, kinds_containing
from tests.support.subject import Subject
from tests.support.table import restored
from tests.support.valid_forms import FORMS, Form, PostedForm
from tests.support.valid_requests import CASES, Case, Request
from tests.support.world import Person, uncounted

# The first write after the ones that count a request or a credential's use, or record a refusal.
_COUNTING = ("RATE#", "REFUSALS#", "TH#", "KH#", "IP#")
_WRITES = {"PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "BatchWriteItem"}
_OF_ORGANIZATIONS: list[Case | Form] = [it for it in (*CASES, *FORMS) if it.role]
CHECKED = [it for it in _OF_ORGANIZATIONS if it.role != "member"]
# What any member may do, and a member could have done a moment before: checked once, at admission.
ADMITTED = [it for it in _OF_ORGANIZATIONS if it.role == "member"]


def _writes(call: Call) -> bool:
    if call.operation in {"PutItem", "UpdateItem", "DeleteItem"}:
        key = call.parameters.get("Key") or call.parameters["Item"]
        return not key["pk"]["S"].startswith(_COUNTING)
    return call.operation in _WRITES


def _interrupted(send: Callable[[], Reply], change: Callable[[], None]) -> tuple[Reply, list[dict[str, Any]]]:
    """Sends the request, and makes the change before its first write. Returns the response, and the state after it."""
    after: list[dict[str, Any]] = []

    def act() -> None:
        change()
        after.extend(uncounted())

    with before(table.client, _writes, act):
        reply = send()
    return reply, after


def _changes(least: Role) -> list[str]:
    """Returns what may happen to a caller who needs this role."""
    return [*(role for role in RANK if RANK[role] < RANK[least]), "removed", "organization deleted"]


def _change(subject: Subject, person: Person, change: str) -> None:
    """Lets this happen to the caller: a change to that role, or what it says."""
    organization_id, owner_id = subject.organization_id, subject.owner.user_id
    if change == "organization deleted":
        deletions.delete_organization(organization_id)
        return
    caller, _ = members.find_member_and_caller(organization_id, person.user_id, owner_id)
    assert caller is not None
    if change == "removed":
        members.end_membership(caller, owner_id, "owner")
    else:
        members.change_role(caller, change, owner_id, "owner")


def _admitted_role(operation: Operation) -> Role | None:
    """Returns the role that the route requires, or None if that depends on what is changed."""
    requires = operation.requires or operation.requires_session
    return requires.role if requires else None


# The role that authors need to change what is theirs. The cases change what is another's.
_OF_AUTHORS: dict[str, Role] = {"DELETE /v1/inbox/{itemId}/comments/{commentId}": "member"}


def test_every_write_in_an_organization_is_listed_with_its_role():
    required = {
        operation.name: _admitted_role(operation)
        for operation in operations()
        if operation.method != "GET"
        and (
            (operation.requires is not None and (operation.requires.organization or operation.requires.resource))
            or operation.path.startswith("/organizations/{")
        )
    }
    assert required.keys() == {it.operation.name for it in _OF_ORGANIZATIONS}
    for name, least in required.items():
        listed = [it.role for it in _OF_ORGANIZATIONS if it.operation.name == name and it.role]
        assert least in {None, _OF_AUTHORS.get(name), min(listed, key=RANK.__getitem__)}, name


def _check_gone(organization_id: str) -> None:
    """Checks that nothing stays of a deleted organization except what it leaves, and messages that are not sent yet."""
    finish_deletions()
    left = kinds_containing(id_part(organization_id))
    assert left <= {"SLUG", "LEDGER", "OUTBOX"}


def _attempt(subject: Subject, prepared: Request | PostedForm, role: Role, change: str) -> tuple[int, bool]:
    """Returns the status of a request during which that happens to its caller, and whether it wrote anything."""
    caller = subject.world.member(subject.company, role)
    reply, before = _interrupted(prepared.of(caller), lambda: _change(subject, caller, change))
    wrote = uncounted() != before
    if change == "organization deleted":
        _check_gone(subject.organization_id)
    return reply.status, wrote


# A test for each write, so that `make mutate` finds the ones of a line.
@pytest.mark.parametrize("case", CHECKED, ids=[f"{number} {it.name}" for number, it in enumerate(CHECKED)])
def test_nothing_is_written_for_a_caller_who_lost_the_role(case, world, api):
    assert case.role
    subject, least, failures = Subject(world, api), RANK[case.role], []
    prepared = case.prepared(subject)
    for role, change in product((role for role in RANK if RANK[role] >= least), _changes(case.role)):
        with restored():
            status, wrote = _attempt(subject, prepared, role, change)
        if wrote or status not in {403, 404}:
            failures.append(f"{case.name} by {role}, now {change}: {status}, wrote: {wrote}")
    assert failures == []


@each("case", ADMITTED, ids=str, around=restored)
def test_what_is_written_into_a_deleted_organization_is_deleted_with_it(case, world, api):
    subject = Subject(world, api)
    status, _ = _attempt(subject, case.prepared(subject), "member", "organization deleted")
    assert status in {200, 201, 202, 303, 403, 404}
