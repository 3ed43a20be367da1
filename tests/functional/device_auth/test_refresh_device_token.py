"""POST /v1/auth/device/token with a refresh token."""

from controlplane.core import tokens
from controlplane.core.scopes import SCOPES
from controlplane.store import keys, token_families
from controlplane.store.table import table
from tests.functional.conftest import FakeClock
from tests.functional.device_auth.devices import (
    CLIENT,
    DEVICE_GRANT,
    refresh,
    refresh_by_form,
    request_code,
    works,
)
from tests.support.api import Api
from tests.support.world import Person, table_dump

DAY = 86_400
_SECRETS = ("accessToken", "refreshToken")


class Test200:
    def test_a_refresh_token_returns_the_next_pair(self, api: Api, person: Person, now: FakeClock):
        first = request_code(api).approved(person.user_id).redeem().data
        now.advance(3_600)
        assert not works(api, first["accessToken"])
        second = refresh(api, first["refreshToken"], clientId=CLIENT)
        assert second.status == 200
        assert set(second.data) == set(first)
        assert {second.data[name] for name in _SECRETS}.isdisjoint({first[name] for name in _SECRETS})
        assert second.data["expiresIn"] == 3600
        assert works(api, second.data["accessToken"])
        assert api.get("/v1/me", second.data["accessToken"]).data["scopes"] == ["projects.read"]

    def test_the_old_access_token_remains_valid_until_it_expires(self, api: Api, person: Person, now: FakeClock):
        first = request_code(api).approved(person.user_id).redeem().data
        refresh(api, first["refreshToken"])
        assert works(api, first["accessToken"])

    def test_repeating_a_refresh_within_a_minute_returns_the_same_pair(self, api: Api, person: Person, now: FakeClock):
        first = request_code(api).approved(person.user_id).redeem().data
        second = refresh(api, first["refreshToken"]).data
        before = table_dump()
        now.advance(59)
        again = refresh(api, first["refreshToken"])
        assert again.status == 200
        assert again.data == {**second, "expiresIn": 3_541}
        by_form = refresh_by_form(api, first["refreshToken"]).body
        assert (by_form["access_token"], by_form["refresh_token"]) == (second["accessToken"], second["refreshToken"])
        assert [item for item in table_dump() if not item["pk"]["S"].startswith("IP#")] == [
            item for item in before if not item["pk"]["S"].startswith("IP#")
        ]
        assert works(api, second["accessToken"])

    def test_a_family_can_be_refreshed_for_half_a_year(self, api: Api, person: Person, now: FakeClock):
        token = request_code(api).approved(person.user_id).redeem().data["refreshToken"]
        for _ in range(6):
            now.advance(29 * DAY)
            token = refresh(api, token).data["refreshToken"]
        now.advance(6 * DAY - 100)
        last = refresh(api, token).data
        assert last["expiresIn"] == 100
        now.advance(40)
        assert refresh(api, token).data == {**last, "expiresIn": 60}
        now.advance(60)
        assert not works(api, last["accessToken"])
        assert refresh(api, last["refreshToken"]).status == 401

    def test_an_unused_refresh_token_expires_after_30_days(self, api: Api, person: Person, now: FakeClock):
        late, later = (request_code(api).approved(person.user_id).redeem().data["refreshToken"] for _ in range(2))
        now.advance(30 * DAY - 1)
        assert refresh(api, late).status == 200
        now.advance(1)
        assert refresh(api, later).status == 401

    def test_scopes_can_be_reduced_and_restored(self, api: Api, person: Person):
        first = request_code(api).approved(person.user_id, ["billing.read", "projects.read"]).redeem().data
        second = refresh(api, first["refreshToken"], scope="billing.read").data
        assert second["scope"] == "billing.read"
        assert api.get("/v1/me", second["accessToken"]).data["scopes"] == ["billing.read"]
        assert refresh(api, first["refreshToken"]).data["scope"] == "billing.read"
        assert refresh(api, second["refreshToken"]).data["scope"] == "billing.read projects.read"

    def test_only_the_five_newest_access_tokens_are_valid(self, api: Api, person: Person):
        pairs = [request_code(api).approved(person.user_id).redeem().data]
        for _ in range(5):
            pairs.append(refresh(api, pairs[-1]["refreshToken"]).data)
        assert [works(api, pair["accessToken"]) for pair in pairs] == [False, True, True, True, True, True]

    def test_expired_access_tokens_dont_count_toward_the_limit(self, api: Api, person: Person, now: FakeClock):
        token = request_code(api).approved(person.user_id).redeem().data["refreshToken"]
        for _ in range(3):
            now.advance(3_600)
            token = refresh(api, token).data["refreshToken"]
        family = table.get(keys.token_family(tokens.family_of(token)))
        assert len(family["access"]) == 1

    def test_the_grant_can_be_named_in_json(self, api: Api, person: Person):
        device = request_code(api).approved(person.user_id)
        first = device.redeem(grantType=DEVICE_GRANT)
        assert refresh(api, first.data["refreshToken"], grantType="refresh_token").status == 200


class TestFamilies:
    def test_families_store_digests_and_their_access_tokens(self, api: Api, person: Person, now: FakeClock):
        device = request_code(api, scope=" ".join(SCOPES)).approved(person.user_id, sorted(SCOPES))
        pair = device.redeem().data
        family_id = tokens.family_of(pair["refreshToken"])
        family = table.get(keys.token_family(family_id))
        digest = tokens.digest(pair["accessToken"])
        assert family["current"] == tokens.digest(pair["refreshToken"])
        assert family["access"] == [{"digest": digest, "expiresAt": int(now()) + 3600}]
        assert family["expiresAt"] == int(now()) + token_families.REFRESH_SECONDS
        item = table.get(keys.user_token(digest))
        assert (item["kind"], item["familyId"], item["clientId"]) == ("oauth", family_id, CLIENT)
        assert table.get(keys.device_request(tokens.digest(device.device_code)))["familyId"] == family_id
