"""A transaction is applied once, and so is a creation with an Idempotency-Key, despite lost, late, or repeated calls.

A creation's repetition may reach a function of another version: during a rotation of the signing secret, functions
with the old and the new current key run concurrently.
"""

from collections.abc import Callable
from typing import Any

import pytest

from controlplane.platform.core.settings import SigningSecret
from controlplane.platform.table.keys import Key
from controlplane.platform.table.table import Put, Throttled, table
from tests.races.faults import HIDDEN, Crashed, Kind, check_first
from tests.races.stage import RACE_TIME, Stage, faults, race
from tests.support.api import Reply
from tests.support.rings import ADDED, BEFORE, SWITCHED, use_ring_of_thread
from tests.support.table import PREPARED
from tests.support.world import World

# Longer than the lease of an attempt, shorter than the lifetime of a token.
LATER_SECONDS = 120
# Only its key is like an organization's.
KEY = Key("ORG#org_0123456789abcdef", "META")
# Of the first request and its repetition. Before the switch, functions sign alike.
VERSIONS = [(BEFORE, BEFORE), (ADDED, SWITCHED), (SWITCHED, ADDED)]


def put_once() -> None:
    table.transact({"item": Put(KEY._asdict(), "attribute_not_exists(pk)")}, PREPARED)


@faults(invariants=False)
def test_no_attempt_at_a_transaction_is_refused_by_an_earlier_one(world):
    case = yield put_once
    if case.fault.kind is Kind.CRASH:
        assert isinstance(case.first.error, Crashed)
    else:
        case.first.get()
    assert table.get(KEY) is not None


@faults(1, invariants=False, kinds=frozenset({Kind.CONFLICT, Kind.THROTTLED}), every_time=True)
def test_endless_contention_is_given_up_within_a_second(world):
    case = yield put_once
    if case.fault.kind is not Kind.NONE:
        assert isinstance(case.first.error, Throttled)
        assert sum(case.paused_seconds) < 1
        case.second.get()


class Client:
    """A client that repeats the same key creation with the same Idempotency-Key. Functions may differ in their keys."""

    def __init__(self, world: World, stage: Stage, set_clock: Any, set_secret: Any) -> None:
        self.api, self.company = stage.api, world.company()
        self.path = f"/v1/api-keys?organizationId={self.company.organization_id}"
        self._set_clock, self._set_secret = set_clock, set_secret
        set_clock(RACE_TIME)

    def create(self) -> Reply:
        headers = {"Idempotency-Key": "one-of-mine"}
        return self.api.post(self.path, self.company.owner.token, json_body={"name": "deploy"}, headers=headers)

    def creates(self, secret: SigningSecret, later: int = 0) -> Callable[[], Reply]:
        return lambda: (self._set_clock(RACE_TIME + later), self._set_secret(secret), self.create())[2]

    def made(self) -> list[str]:
        return [shown["keyId"] for shown in self.api.get(self.path, self.company.owner.token).data]

    def check(self, *replies: Reply) -> None:
        """Checks that at most one key was created, that all 201 replies are equal, and that the others ask to retry."""
        created = [reply.data for reply in replies if reply.status == 201]
        assert all(shown == created[0] for shown in created)
        assert {reply.code for reply in replies if reply.status not in {201, 429, 503}} <= {"CONFLICT"}
        made = self.made()
        assert len(made) <= 1
        assert {shown["keyId"] for shown in created} <= {*made}


@pytest.fixture
def fresh(stage: Stage, thread_clock: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[[World], Client]:
    set_secret = use_ring_of_thread(monkeypatch)
    return lambda world: Client(world, stage, thread_clock, set_secret)


@pytest.mark.parametrize("later", [0, LATER_SECONDS], ids=["at once", "after the lease"])
@pytest.mark.parametrize("versions", VERSIONS)
@race()
def test_a_creation_and_its_repetition_create_one(world, fresh, versions, later):
    client = fresh(world)
    replies = yield [client.creates(versions[0]), client.creates(versions[1], later)]
    assert later or 201 in {reply.status for reply in replies}
    client.check(*replies)


@pytest.mark.parametrize("later", [0, LATER_SECONDS], ids=["at once", "after the lease"])
@pytest.mark.parametrize("versions", VERSIONS)
@faults()
def test_under_every_fault_a_retry_never_creates_a_second_one(world, fresh, versions, later):
    client = fresh(world)
    case = yield client.creates(versions[0]), client.creates(versions[1], later)
    first, second = check_first(case, 201), case.second.get()
    client.check(*filter(None, [first, second]))
    if case.fault.kind in HIDDEN:
        assert second.status == 201
    assert not later or client.made() or second.status != 409


@pytest.mark.parametrize("later", [0, LATER_SECONDS], ids=["at once", "after the lease"])
@faults(kinds=frozenset({Kind.LOST, Kind.SERVER_ERROR}), every_time=True)
def test_a_retry_never_creates_a_second_one_if_every_response_is_lost(world, fresh, later):
    client = fresh(world)
    case = yield client.creates(BEFORE), client.creates(BEFORE, later)
    client.check(case.first.get(), case.second.get())
