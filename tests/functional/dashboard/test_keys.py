"""The pages of API keys: list, create, roll, and revoke."""

import re

import pytest

from controlplane.core import ids
from controlplane.store import api_keys, billing
from controlplane.store.api_key_items import ApiKeyItem
from tests.support.browser import Browser, text_of
from tests.support.world import Company, Person, World, table_dump

HOSTILE = "\"><script>alert(1)</script>{{739*911}}'&"


@pytest.fixture
def company(world: World, person: Person) -> Company:
    return world.company(owner=person)


def path(company: Company, below: str = "") -> str:
    return f"/organizations/{company.slug}/keys{below}"


def stored(company: Company) -> list[ApiKeyItem]:
    return api_keys.list_keys(company.organization_id, 50, None).keys


def secret_in(browser: Browser) -> str:
    assert browser.last is not None
    (secret,) = re.findall(r'<code id="secret">(assent_\w+)</code>', browser.last.text)
    return secret


def create(browser: Browser, company: Company, name: str = "Deploys") -> str:
    browser.get(path(company))
    assert browser.submit(path(company), name=name).status == 200
    return secret_in(browser)


class TestCreate:
    def test_the_secret_works_and_is_shown_only_in_the_response(self, visitor: Browser, company: Company):
        secret = create(visitor, company)
        assert visitor.api.get("/v1/projects", secret).status == 200
        (key,) = stored(company)
        assert (key.name, key.created_by, key.created_from) == ("Deploys", company.owner.user_id, "dashboard")
        for shown in ("", f"/{key.key_id}"):
            assert secret not in visitor.get(path(company, shown)).text
        assert secret not in str(table_dump())

    def test_a_form_that_is_sent_again_shows_the_same_secret_and_creates_nothing(
        self, visitor: Browser, company: Company
    ):
        visitor.get(path(company))
        form = {**visitor.forms()[path(company)][0], "name": "Deploys"}
        visitor.post(path(company), form)
        secret = secret_in(visitor)
        visitor.post(path(company), form)
        assert secret_in(visitor) == secret
        reply = visitor.post(path(company), {**form, "name": "Another"})
        assert (reply.status, len(stored(company))) == (409, 1)
        assert "This form was already used." in text_of(reply)

    def test_an_unusable_form_creates_nothing_and_keeps_what_was_entered(self, visitor: Browser, company: Company):
        for changes, message in (
            ({"name": "  "}, "Enter a name"),
            ({"name": "x" * 101}, "Enter a name"),
            ({"name": HOSTILE, "once": "short"}, "This form is incomplete"),
        ):
            visitor.get(path(company))
            reply = visitor.submit(path(company), **changes)
            assert reply.status == 400
            assert message in text_of(reply)
            assert visitor.forms()[path(company)][0]["name"] == changes["name"]
            assert "<script>alert" not in reply.text
        assert stored(company) == []

    def test_a_plan_without_api_access_says_whom_to_ask(self, visitor: Browser, company: Company):
        visitor.get(path(company))
        billing.change_plan(company.organization_id, "free")
        reply = visitor.submit(path(company), name="Deploys")
        assert reply.status == 402
        assert "The Free plan has no API access. Keys need the Starter plan or higher. To change the plan" in text_of(
            reply
        )
        assert path(company) not in visitor.forms()

    def test_a_key_beyond_the_limit_is_not_offered_or_created(self, visitor: Browser, company: Company, monkeypatch):
        visitor.get(path(company))
        for module in ("store.api_keys", "core.plans"):
            monkeypatch.setattr(f"controlplane.{module}.API_KEYS_PER_ORGANIZATION", 1)
        monkeypatch.setattr("dashboard.key_routes.API_KEYS_PER_ORGANIZATION", 1)
        form = visitor.forms()[path(company)][0]
        assert visitor.submit(path(company), name="First").status == 200
        reply = visitor.post(path(company), {**form, "once": "x" * 32, "name": "Second"})
        assert reply.status == 409
        assert "the most that an organization can have" in text_of(reply)
        assert path(company) not in visitor.forms()


class TestRollAndRevoke:
    def test_a_rolled_key_is_replaced_once(self, visitor: Browser, company: Company):
        old_secret = create(visitor, company)
        (old,) = stored(company)
        visitor.get(path(company, f"/{old.key_id}"))
        form = visitor.forms()[path(company, f"/{old.key_id}/roll")][0]
        for _ in range(2):
            assert visitor.post(path(company, f"/{old.key_id}/roll"), form).status == 200
            secret = secret_in(visitor)
            assert visitor.api.get("/v1/projects", secret).status == 200
        assert visitor.api.get("/v1/projects", old_secret).status == 401
        (new,) = stored(company)
        assert (new.name, secret.startswith(new.start)) == (old.name, True)
        assert visitor.get(path(company, f"/{old.key_id}")).status == 404

    def test_a_revoked_key_stops_working(self, visitor: Browser, company: Company):
        secret = create(visitor, company)
        (key,) = stored(company)
        visitor.get(path(company, f"/{key.key_id}"))
        reply = visitor.submit(path(company, f"/{key.key_id}/revoke"))
        assert (reply.status, reply.headers["location"]) == (303, path(company, "?done=revoked"))
        assert "The key is revoked." in text_of(visitor.get(reply.headers["location"]))
        assert visitor.api.get("/v1/projects", secret).status == 401
        assert visitor.post(path(company, f"/{key.key_id}/revoke"), {"form_token": visitor.form_token}).status == 404

    def test_shows_the_last_use_and_the_requests_of_each_day(self, visitor: Browser, company: Company):
        secret = create(visitor, company)
        visitor.api.get("/v1/projects", secret)
        assert "March 4, 2026, between 05:00 and 05:59 UTC" in text_of(visitor.get(path(company)))
        (key,) = stored(company)
        assert '<th scope="row">Mar 4</th><td>1</td><td>0</td>' in visitor.get(path(company, f"/{key.key_id}")).text


class TestAccess:
    def test_a_member_sees_keys_without_forms_and_cannot_change_them(
        self, browser: Browser, company: Company, world: World
    ):
        world.key(company)
        (key,) = stored(company)
        browser.signed_in(world.member(company).user_id)
        for shown in ("", f"/{key.key_id}"):
            reply = browser.get(path(company, shown))
            assert "Admins and owners can" in text_of(reply)
            assert set(browser.forms()) == {"/sign-out"}
        token = {"form_token": browser.form_token, "name": "x", "once": "x" * 32}
        for below in ("", f"/{key.key_id}/roll", f"/{key.key_id}/revoke"):
            assert browser.post(path(company, below), token).status == 403
        assert stored(company) == [key]

    def test_another_organizations_keys_look_like_missing_ones(self, visitor: Browser, company: Company, world: World):
        other = world.company()
        world.key(other)
        (key,) = stored(other)
        missing = f"key_{company.organization_id[4:]}{ids.new_local()}"
        token = {"form_token": visitor.form_token, "once": "x" * 32}
        for at in (path(other), path(other, f"/{key.key_id}"), path(company, f"/{key.key_id}"), path(company, "/x")):
            assert visitor.get(at).status == 404
        for key_id in (key.key_id, missing, "x"):
            for change in ("roll", "revoke"):
                assert visitor.post(path(company, f"/{key_id}/{change}"), token).status == 404
        assert stored(other) == [key]
