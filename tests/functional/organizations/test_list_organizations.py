"""GET /v1/organizations: the organizations the caller belongs to."""

from controlplane.store import billing, default_organizations
from tests.support.api import Api
from tests.support.each import each
from tests.support.world import ALL_SCOPES, World, table_dump

PATH = "/v1/organizations"


class Test200:
    def test_lists_each_organization_with_id_slug_name_and_the_callers_role(self, api: Api, world: World):
        company = world.company(name="Acme Shops")
        reply = api.get(PATH, company.owner.token)
        assert reply.status == 200
        assert reply.data == [
            {
                "organizationId": company.organization_id,
                "organizationSlug": company.slug,
                "organizationName": "Acme Shops",
                "role": "owner",
            }
        ]

    def test_lists_all_organizations_by_slug_on_one_page(self, api: Api, world: World):
        person = world.person()
        companies = [world.company(owner=person) for _ in range(3)]
        companies.append(world.company())
        world.member(companies[3], "admin", person)
        reply = api.get(PATH, person.token)
        assert [item["organizationSlug"] for item in reply.data] == sorted(company.slug for company in companies)
        assert {item["organizationId"]: item["role"] for item in reply.data} == {
            **{company.organization_id: "owner" for company in companies[:3]},
            companies[3].organization_id: "admin",
        }
        assert reply.body["pagination"] == {"nextCursor": None, "hasMore": False}

    def test_a_key_sees_its_own_organization_as_an_admin(self, api: Api, world: World):
        company = world.company()
        world.company(owner=company.owner)
        reply = api.get(PATH, world.key(company))
        assert [(item["organizationId"], item["role"]) for item in reply.data] == [(company.organization_id, "admin")]

    def test_a_user_without_organizations_gets_an_empty_list(self, api: Api, world: World):
        reply = api.get(PATH, world.person().token)
        assert reply.body == {"success": True, "data": [], "pagination": {"nextCursor": None, "hasMore": False}}

    def test_omits_other_organizations(self, api: Api, world: World):
        mine, other = world.company(), world.company()
        assert other.organization_id not in api.get(PATH, mine.owner.token).text

    def test_a_left_organization_is_missing_from_the_next_call(self, api: Api, world: World):
        company = world.company()
        person = world.member(company)
        assert len(api.get(PATH, person.token).data) == 1
        world.leave(company, person)
        assert api.get(PATH, person.token).data == []

    def test_a_changed_role_is_visible_in_the_next_call(self, api: Api, world: World):
        company = world.company()
        person = world.member(company)
        member_id = f"mem_{company.organization_id[4:]}{person.user_id[4:]}"
        api.patch(f"/v1/members/{member_id}", company.owner.token, json_body={"role": "admin"})
        assert api.get(PATH, person.token).data[0]["role"] == "admin"

    def test_a_saved_organization_hides_no_other(self, api: Api, world: World):
        company = world.company()
        world.company(owner=company.owner)
        default_organizations.save(company.owner.user_id, company.organization_id)
        assert len(api.get(PATH, company.owner.token).data) == 2

    def test_the_rate_limit_is_in_the_headers(self, api: Api, world: World):
        company = world.company(plan="starter")
        reply = api.get(PATH, world.key(company))
        assert reply.headers["x-ratelimit-limit"] == "600"
        assert reply.headers["x-ratelimit-remaining"] == "599"


class Test400:
    def test_returns_400_for_a_repeated_parameter(self, api: Api, world: World):
        assert api.get(f"{PATH}?limit=1&limit=2", world.person().token).code == "INVALID_PAYLOAD"


class Test401:
    @each("token", [None, "", "assent_at_forged", "a b"])
    def test_returns_401_without_a_valid_token(self, api: Api, token: str | None):
        assert api.get(PATH, token).status == 401


class Test402:
    def test_returns_402_for_a_key_without_api_access(self, api: Api, world: World):
        company = world.company()
        key = world.key(company)
        billing.change_plan(company.organization_id, "free")
        assert api.get(PATH, key).code == "PLAN_REQUIRED"


class Test403:
    def test_returns_403_without_the_scope(self, api: Api, world: World):
        company = world.company()
        scopes = [scope for scope in ALL_SCOPES if scope != "organizations.read"]
        before = len(table_dump())
        reply = api.get(PATH, world.token(company.owner.user_id, scopes))
        assert (reply.status, reply.code) == (403, "INSUFFICIENT_SCOPE")
        assert reply.error["details"] == {"requiredScope": "organizations.read"}
        assert reply.challenge == 'Bearer error="insufficient_scope", scope="organizations.read"'
        assert len(table_dump()) == before + 2  # the token and its entry


class Test405:
    def test_returns_405_for_an_unsupported_method(self, api: Api, world: World):
        reply = api.call_app("DELETE", PATH)
        assert reply.status == 405
        assert reply.headers["allow"] == "GET, HEAD, POST"
