"""`assent-ops token`."""

from controlplane.core import clock
from controlplane.core.scopes import SCOPES
from tests.functional.conftest import FakeClock
from tests.functional.ops.conftest import Ops
from tests.support.api import Api
from tests.support.each import each
from tests.support.world import World, table_dump


class TestCreate:
    def test_token_create_grants_exactly_the_chosen_scopes(self, ops: Ops, api: Api, world: World):
        person = world.person()
        scopes = ["--scope", "projects.read", "--scope", "billing.read", "--scope", "projects.read"]
        made = ops("token", "create", "--user", person.email, *scopes).document
        me = api.get("/v1/me", made["accessToken"]).data
        assert me["principal"]["userId"] == person.user_id == made["userId"]
        assert me["scopes"] == made["scopes"] == ["billing.read", "projects.read"]

    def test_token_create_all_grants_every_scope(self, ops: Ops, world: World):
        made = ops("token", "create", "--user", world.person().user_id, "--scope", "all").document
        assert made["scopes"] == sorted(SCOPES)

    @each(("life", "seconds"), [("90s", 90), ("30m", 1800), ("1h", 3600), ("7d", 604_800)])
    def test_token_create_takes_a_lifetime_with_a_unit(self, ops: Ops, world: World, life: str, seconds: int):
        email = world.person().email
        made = ops("token", "create", "--user", email, "--scope", "projects.read", "--life", life).document
        assert made["expiresAt"] == clock.timestamp(clock.now() + seconds)

    def test_a_token_expires_at_the_end_of_its_lifetime(self, ops: Ops, api: Api, world: World, now: FakeClock):
        email = world.person().email
        made = ops("token", "create", "--user", email, "--scope", "projects.read", "--life", "90s").document
        now.advance(89)
        assert api.get("/v1/me", made["accessToken"]).status == 200
        now.advance(1)
        assert api.get("/v1/me", made["accessToken"]).status == 401

    def test_a_token_lasts_an_hour_by_default(self, ops: Ops, world: World, now: FakeClock):
        made = ops("token", "create", "--user", world.person().email, "--scope", "projects.read").document
        assert made["expiresAt"] == clock.timestamp(now.seconds + 3600)

    def test_token_create_prints_the_token_once_on_its_own_line(self, ops_text: Ops, world: World):
        shown = ops_text("token", "create", "--user", world.person().email, "--scope", "all")
        assert shown.exit_code == 0
        lines = [line for line in shown.stdout.splitlines() if "assent_at_" in line]
        assert len(lines) == 1
        assert len(lines[0].split()[-1]) == len("assent_at_") + 36
        assert "can't be shown again" in shown.stderr

    def test_token_create_stores_only_a_hash(self, ops: Ops, world: World):
        made = ops("token", "create", "--user", world.person().email, "--scope", "projects.read").document
        assert made["accessToken"] not in str(table_dump())

    @each("life", ["0h", "1", "h", "-1h", "1.5h", "1w", "4000d", "9999999999s", ""])
    def test_token_create_exits_2_for_an_invalid_lifetime(self, ops: Ops, world: World, life: str):
        person = world.person()
        before = table_dump()
        outcome = ops("token", "create", "--user", person.email, "--scope", "projects.read", "--life", life)
        assert outcome.exit_code == 2
        assert table_dump() == before

    def test_an_unknown_scope_is_refused_with_the_list_of_scopes(self, ops: Ops, world: World):
        outcome = ops("token", "create", "--user", world.person().email, "--scope", "projects.admin")
        assert outcome.exit_code == 2
        assert "projects.write" in outcome.error["message"]

    def test_token_create_requires_scopes(self, ops: Ops, world: World):
        assert ops("token", "create", "--user", world.person().email).exit_code == 2

    def test_token_create_exits_3_for_an_unknown_user(self, ops: Ops):
        outcome = ops("token", "create", "--user", "unknown@example.com", "--scope", "all")
        assert outcome.exit_code == 3
        assert table_dump() == []
