"""`assent-ops user revoke` and `user delete`: the end of a person's access."""

from collections.abc import Callable
from typing import Any

from controlplane.access import sign_in
from controlplane.organizations import store as organizations
from controlplane.platform.table import keys
from controlplane.platform.table.legs import encode_item
from controlplane.platform.table.table import table
from tests.functional.ops.conftest import Ops
from tests.functional.ops.full_account import EMAIL, FullAccount
from tests.support.api import Api
from tests.support.calls import Call, Proceed, intercepted
from tests.support.populated_organization import kinds_containing
from tests.support.world import World, table_dump


def around_scans(act: Callable[[], Any]) -> Callable[[Call, Proceed], Any]:
    """Returns an interceptor of the table's calls that acts before each scan."""

    def around(call: Call, proceed: Proceed) -> Any:
        if call.operation == "Scan":
            act()
        return proceed()

    return around


def test_revoke_ends_every_credential_without_a_scan(ops: Ops, api: Api, world: World, full_account: FullAccount):
    company = world.company()
    key, scans, before = world.key(company), [], table_dump()
    assert "--yes" in ops("user", "revoke", EMAIL).error["message"]
    assert table_dump() == before
    with intercepted(table.client, around_scans(lambda: scans.append(None))):
        done = ops("user", "revoke", EMAIL, "--yes").document
    # A session and a token; a device that redeemed its code, and one that hasn't yet.
    assert done == {"userId": full_account.user_id, "email": EMAIL, "tokens": 2, "devices": 2, "signIns": 0}
    assert scans == []
    full_account.assert_out(api)
    assert api.get("/v1/me", company.owner.token).status == api.get("/v1/me", key).status == 200
    before = table_dump()
    again = ops("user", "revoke", full_account.user_id, "--yes").document
    assert (again["tokens"], again["devices"]) == (0, 0)
    assert table_dump() == before
    assert sign_in.sign_in(full_account.identity).user_id == full_account.user_id


class TestDelete:
    def test_the_account_and_every_credential_are_gone(self, ops: Ops, api: Api, full_account: FullAccount):
        before = table_dump()
        assert "--yes" in ops("user", "delete", EMAIL).error["message"]
        assert table_dump() == before
        done = ops("user", "delete", EMAIL, "--yes").document
        counted = {"tokens": 2, "devices": 2, "signIns": 1, "memberships": 1, "invitations": 1}
        assert done == {"deleted": True, "userId": full_account.user_id, **counted, "erased": done["erased"]}
        full_account.assert_out(api)
        assert api.get("/v1/me", full_account.company.owner.token).status == 200
        assert sign_in.sign_in(full_account.identity).user_id != full_account.user_id

    def test_every_credential_is_gone_before_the_search_for_texts(self, ops: Ops, api: Api, full_account: FullAccount):
        checked = []

        def check() -> None:
            if not checked:
                checked.append(None)
                full_account.assert_out(api)
                assert "FAMILY" not in kinds_containing(full_account.user_id)

        with intercepted(table.client, around_scans(check)):
            ops("user", "delete", EMAIL, "--yes")
        assert checked

    def test_a_last_owner_is_refused_and_told_the_organizations(
        self, ops: Ops, api: Api, world: World, full_account: FullAccount
    ):
        first, second = world.company(owner=full_account.person), world.company(owner=full_account.person)
        shared = world.company(owner=full_account.person)
        world.member(shared, "owner")
        before = table_dump()
        outcome = ops("user", "delete", EMAIL, "--yes")
        assert outcome.exit_code == 1
        assert f"last owner of {', '.join(sorted((first.slug, second.slug)))}." in outcome.error["message"]
        assert table_dump() == before
        assert full_account.statuses(api) == [200, 200, 200]
        for company in (first, second):
            world.member(company, "owner")
        ops("user", "delete", EMAIL, "--yes")
        assert organizations.get_organization(shared.organization_id).owners == 1
        assert table.get(keys.member(shared.organization_id, full_account.user_id)) is None

    def test_an_interrupted_deletion_is_finished_by_id(self, ops: Ops, api: Api, full_account: FullAccount):
        for key in (keys.user(full_account.user_id), keys.user_email(EMAIL)):
            table.client.delete_item(TableName=table.name, Key=encode_item(key._asdict()))
        assert ops("user", "delete", EMAIL, "--yes").exit_code == 3
        assert ops("user", "delete", full_account.user_id, "--yes").document["signIns"] == 1
        full_account.assert_out(api)
        assert ops("user", "delete", full_account.user_id, "--yes").exit_code == 3
