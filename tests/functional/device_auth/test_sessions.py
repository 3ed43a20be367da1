"""Sessions: those that a sign-in on the pages creates, and bearer tokens with every scope."""

import re

import pytest

from controlplane.people import sessions
from controlplane.people.users import UnknownUser
from controlplane.platform.core.scopes import SCOPES
from controlplane.platform.core.tokens import digest
from controlplane.platform.table import keys
from controlplane.platform.table.table import Update, table
from tests.functional.conftest import FakeClock
from tests.functional.device_auth.devices import works
from tests.support.api import Api
from tests.support.table import PREPARED
from tests.support.world import Person, World, table_dump


def test_a_session_acts_for_the_user_with_every_scope_even_a_newer_one(api: Api, person: Person, world: World):
    company = world.company(owner=person)
    secret = sessions.create(person.user_id)
    assert re.fullmatch(r"assent_st_[0-9A-Za-z]{36}", secret)
    assert secret not in str(table_dump())
    older = Update(keys.user_token(digest(secret)), "SET #scopes = :older", None, {"older": ["projects.read"]})
    table.update(older, PREPARED)
    me = api.get("/v1/me", secret).data
    assert me["scopes"] == sorted(SCOPES)
    assert me["principal"] == {
        "type": "session",
        "userId": person.user_id,
        "activeOrganizationId": company.organization_id,
    }
    assert api.post("/v1/organizations", secret, json_body={"name": "Second one"}).status == 201


def test_an_unknown_user_gets_no_session():
    with pytest.raises(UnknownUser):
        sessions.create("usr_" + "0" * 16)
    assert table_dump() == []


def test_a_session_expires_after_12_hours(api: Api, person: Person, now: FakeClock):
    secret = sessions.create(person.user_id)
    now.advance(12 * 3_600 - 1)
    assert works(api, secret)
    now.advance(1)
    assert not works(api, secret)


def test_only_the_given_session_is_revoked(api: Api, person: Person):
    first, second = sessions.create(person.user_id), sessions.create(person.user_id)
    for secret in (first, first, person.token, "nonsense"):
        sessions.revoke(secret)
    assert [works(api, secret) for secret in (first, second, person.token)] == [False, True, True]
