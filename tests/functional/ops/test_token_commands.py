"""`assent-ops token`."""

import pytest

from controlplane.core import clock
from controlplane.core.scopes import SCOPES
from tests.functional.conftest import FakeClock
from tests.functional.ops.conftest import Ops
from tests.support.api import Api
from tests.support.world import World, table_dump


class TestCreate:
    def test_the_token_works_with_the_chosen_scopes_and_no_others(self, ops: Ops, api: Api, world: World):
        person = world.person()
        scopes = ["--scope", "projects.read", "--scope", "billing.read", "--scope", "projects.read"]
        made = ops("token", "create", "--user", person.email, *scopes).document
        me = api.get("/v1/me", made["accessToken"]).data
        assert me["principal"]["userId"] == person.user_id == made["userId"]
        assert me["scopes"] == made["scopes"] == ["billing.read", "projects.read"]

    def test_all_is_every_scope(self, ops: Ops, world: World):
        made = ops("token", "create", "--user", world.person().user_id, "--scope", "all").document
        assert made["scopes"] == sorted(SCOPES)

    @pytest.mark.parametrize(("life", "seconds"), [("90s", 90), ("30m", 1800), ("1h", 3600), ("7d", 604_800)])
    def test_a_life_is_a_number_and_a_unit(self, ops: Ops, world: World, life: str, seconds: int):
        email = world.person().email
        made = ops("token", "create", "--user", email, "--scope", "projects.read", "--life", life).document
        assert made["expiresAt"] == clock.timestamp(clock.now() + seconds)

    def test_it_stops_working_at_the_end_of_its_life(self, ops: Ops, api: Api, world: World, now: FakeClock):
        email = world.person().email
        made = ops("token", "create", "--user", email, "--scope", "projects.read", "--life", "90s").document
        now.advance(89)
        assert api.get("/v1/me", made["accessToken"]).status == 200
        now.advance(1)
        assert api.get("/v1/me", made["accessToken"]).status == 401

    def test_it_lives_an_hour_where_nothing_is_said(self, ops: Ops, world: World, now: FakeClock):
        made = ops("token", "create", "--user", world.person().email, "--scope", "projects.read").document
        assert made["expiresAt"] == clock.timestamp(now.seconds + 3600)

    def test_people_see_it_once_on_a_line_of_its_own(self, plain: Ops, world: World):
        shown = plain("token", "create", "--user", world.person().email, "--scope", "all")
        assert shown.exit_code == 0
        lines = [line for line in shown.stdout.splitlines() if "assent_at_" in line]
        assert len(lines) == 1
        assert len(lines[0].split()[-1]) == len("assent_at_") + 36
        assert "not shown again" in shown.stderr

    def test_only_its_hash_is_stored(self, ops: Ops, world: World):
        made = ops("token", "create", "--user", world.person().email, "--scope", "projects.read").document
        assert made["accessToken"] not in str(table_dump())

    @pytest.mark.parametrize("life", ["0h", "1", "h", "-1h", "1.5h", "1w", "4000d", "9999999999s", ""])
    def test_a_life_that_is_none_is_a_wrong_command_line(self, ops: Ops, world: World, life: str):
        person = world.person()
        before = table_dump()
        outcome = ops("token", "create", "--user", person.email, "--scope", "projects.read", "--life", life)
        assert outcome.exit_code == 2
        assert table_dump() == before

    def test_an_unknown_scope_is_refused_with_those_there_are(self, ops: Ops, world: World):
        outcome = ops("token", "create", "--user", world.person().email, "--scope", "projects.admin")
        assert outcome.exit_code == 2
        assert "projects.write" in outcome.error["message"]

    def test_scopes_must_be_named(self, ops: Ops, world: World):
        assert ops("token", "create", "--user", world.person().email).exit_code == 2

    def test_exit_code_3_for_an_unknown_user(self, ops: Ops):
        outcome = ops("token", "create", "--user", "unknown@example.com", "--scope", "all")
        assert outcome.exit_code == 3
        assert table_dump() == []
