"""`assent-ops user export`, `user revoke`, and `user delete`, compared with a search of the whole table."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from controlplane.access import sign_in
from controlplane.erasure import deletions
from controlplane.erasure.personal_data import Subject
from controlplane.feedback import store as feedback
from controlplane.findings import conversations, inbox
from controlplane.notify import subscriptions
from controlplane.organizations import invitees
from controlplane.organizations import store as organizations
from controlplane.organizations.store import Account
from controlplane.people import credential_index, revocations, sessions, token_families, users
from controlplane.people.credential_index import CredentialItem
from controlplane.platform.core import tokens
from controlplane.platform.core.actions import Action
from controlplane.platform.table import keys
from controlplane.platform.table.legs import encode_item
from controlplane.platform.table.table import Put, table
from ops import accounts, personal_data
from tests.functional.ops.full_account import ADDRESS, CANARIES, CHALLENGE, DEVICE, EMAIL, NAME, TEXT
from tests.support.audit_log import all_entries
from tests.support.calls import Call, Proceed, intercepted
from tests.support.cleanup import finish_deletions
from tests.support.each import each
from tests.support.populated_organization import kinds_containing, kinds_of, populate_organization
from tests.support.table import PREPARED
from tests.support.world import table_dump


class TestExport:
    def test_has_every_item_that_a_search_finds_and_all_that_is_known_but_secrets(self, ops, full_account):
        before = table_dump()
        text = ops("user", "export", full_account.user_id).stdout
        # Dumps exclude request counters, which expire within minutes.
        items = [it for it in ops("user", "export", EMAIL).document["items"] if it["kind"] != "rate"]
        # The export shows a long report's texts with their report.
        found = [item for item in full_account.naming() if not item["pk"]["S"].startswith("FEEDBACKTEXT#")]
        assert len(items) == len(found) > 15
        assert {item["kind"] for item in items} >= {
            "account", "address", "identity", "token", "device", "device request", "counter", "feedback", "invitation",
            "membership", "kept answer", "key", "inbox",
        }  # fmt: skip
        for known in (NAME, EMAIL, f"{TEXT} {TEXT}", DEVICE, ADDRESS, "canary-subject", "https://issuer.example"):
            assert known in text
        for secret in full_account.secrets:
            assert secret not in text
            assert tokens.digest(secret) not in text
        assert CHALLENGE not in text
        assert table_dump() == before

    def test_contains_nothing_about_others(self, ops, world, full_account):
        world.finding(full_account.company, summary="A secret of the organization")
        users.create_user(f"not.{EMAIL}", "Someone Else")
        exported = ops("user", "export", EMAIL)
        for other in ("secret of the organization", "Someone Else", "It should not be so."):  # the item they decided on
            assert other not in exported.stdout
        # Of others' records it shows who acted, and when.
        items = exported.document["items"]
        (key,) = [it["attributes"] for it in items if it["kind"] == "key"]
        assert key.keys() == {"pk", "sk", "createdBy", "createdAt"}
        entries = [it["attributes"] for it in items if it["kind"] == "auditlog"]
        assert entries
        for entry in entries:
            assert entry.keys() == {"pk", "sk", "actorId", "at"}

    def test_contains_only_the_decisions_that_the_person_made_about_a_finding(self, ops, full_account):
        user_id, owner = full_account.user_id, full_account.company.owner.user_id
        for number, by in enumerate((owner, user_id)):
            before = inbox.get_item(full_account.item_id)
            inbox.change_status(before, ("accepted", "dismissed")[number], before.version, by, f"Reason {number}")
            items = ops("user", "export", user_id).document["items"]
            (shown,) = [it["attributes"] for it in items if it["kind"] == "inbox"]
            assert [entry["by"] for entry in shown["history"]] == [user_id]
            own = {"statusBy": user_id, "statusReason": "Reason 1"} if by == user_id else {}
            key = keys.inbox_item(*full_account.item_id.location)._asdict()
            assert shown == {**key, **own, "history": shown["history"], "statusAt": shown["statusAt"]}


class TestDelete:
    def test_leaves_nothing_but_the_id_in_records_of_who_did_something(self, ops, world, full_account):
        populated = populate_organization(world)
        part = populated.company.organization_id.removeprefix("org_")
        others = [item for item in table_dump() if part in str(item)]
        subscriptions.save_choices(full_account.user_id, {full_account.company.organization_id: []})
        subscriptions.stop(EMAIL, "returned")
        table.put(Put({**keys.mail(full_account.user_id, "3q8")._asdict(), "about": "invitation"}), PREPARED)
        report = {"category": "bug", "message": "I invited a person, and nothing happened"}
        reference = feedback.submit_report(full_account.company.owner.user_id, report).reference
        assert ops("user", "delete", EMAIL, "--yes").exit_code == 0
        text = str(table_dump()).lower()
        for canary in CANARIES:
            assert canary.lower() not in text
        assert not [item for item in table_dump() if item["pk"]["S"].startswith("MAIL")]
        assert kinds_of(full_account.naming()) == {"AUDITLOG", "KEY", "KH", "INBOX"}
        items = ops("user", "export", full_account.user_id).document["items"]
        assert len([it for it in items if it["kind"] != "rate"]) == len(full_account.naming())
        assert [item for item in table_dump() if part in str(item)] == others
        assert feedback.get_report(reference).fields == report
        assert invitees.list_for_address("friend@example.com") == []
        with pytest.raises(token_families.UnknownRefreshToken):
            token_families.rotate(full_account.pair.refresh_token)

    def test_keeps_their_decision_without_its_reason_and_what_others_wrote_about_them(self, ops, full_account):
        report = {"category": "bug", "message": f"I invited {EMAIL}, and nothing happened"}
        reference = feedback.submit_report(full_account.company.owner.user_id, report).reference
        before = inbox.get_item(full_account.item_id)
        inbox.change_status(before, "accepted", before.version, full_account.user_id, TEXT)
        others, _ = (
            conversations.add_comment(before, TEXT, by, {})
            for by in (full_account.company.owner.user_id, full_account.user_id)
        )
        before = inbox.get_item(full_account.item_id)
        ops("user", "delete", EMAIL, "--yes")
        unreasoned = tuple(change._replace(reason=None) for change in before.history)
        assert [change.by for change in unreasoned] == [None, full_account.user_id, full_account.user_id]
        assert inbox.get_item(full_account.item_id) == replace(
            before, status_reason=None, history=unreasoned, comments=(others,)
        )
        assert "COMMENTER" not in kinds_of(full_account.naming())
        assert feedback.get_report(reference).fields == report

    def test_removes_stored_responses_whose_retries_still_take_effect_once(self, ops, api, world, full_account):
        inviting = world.company()
        request = {"json_body": {"email": EMAIL, "role": "member"}, "headers": {"Idempotency-Key": "k"}}
        assert api.post("/v1/invitations", inviting.owner.token, **request).status == 201
        ops("user", "delete", EMAIL, "--yes")
        assert api.post("/v1/invitations", inviting.owner.token, **request).status == 409
        assert invitees.list_for_address(EMAIL) == []


class TestWithOrganizations:
    def test_with_organizations_deletes_those_without_another_owner(self, ops, api, world):
        person = world.person("sole@example.com", "Canary Sole")
        sole, shared, joined = world.company(owner=person), world.company(owner=person), world.company()
        world.member(shared, "owner")
        world.member(joined, "member", person)
        key = world.key(sole)
        refused = ops("user", "delete", person.email, "--yes")
        assert refused.exit_code == 1
        assert "--with-organizations" in refused.error["message"]
        assert ops("user", "delete", person.email, "--yes", "--with-organizations").document["deleted"] is True
        assert api.get("/v1/me", key).status == 401
        found = [organizations.find_organization(it.organization_id) for it in (sole, shared, joined)]
        assert [it is not None for it in found] == [False, True, True]
        finish_deletions()
        assert "canary sole" not in str(table_dump()).lower()
        assert sole.organization_id.removeprefix("org_") not in str(
            [it for it in table_dump() if not it["pk"]["S"].startswith(("SLUG#", "ORG#", "OUTBOX#"))]
        )


class TestAddress:
    @each(
        ("text", "named"),
        [
            ("ada@example.com", True),
            ("INVITEE#ada@example.com", True),
            ('{"email":"Ada@Example.com"}', True),
            ("write to ada@example.com.", True),
            ("<ada@example.com>", True),
            ("xada@example.com", False),
            ("x.ada@example.com", False),
            ("ada@example.com.evil.example", False),
            ("ada@example.company", False),
            ("ada", False),
            ("xada@example.com, ada@example.com", True),
        ],
    )
    def test_user_delete_matches_whole_addresses_only(self, text, named):
        assert Subject("usr_0123456789abcdef", "ada@example.com").is_named_by(text) is named

    def test_user_delete_matches_international_addresses_also_as_stored_responses_have_them(self):
        subject = Subject("usr_0123456789abcdef", "jörg@example.com")
        for text in ("to jörg@example.com", '{"email":"j\\u00f6rg@example.com"}'):
            assert subject.is_named_by(text)


def test_user_delete_removes_what_requests_in_flight_leave(full_account, monkeypatch):
    user_id, delete = full_account.user_id, deletions.delete_own_account

    def delete_with_requests_in_flight(account: Account, user_id: str) -> int:
        sessions.create(user_id)
        ended = delete(account, user_id)
        feedback.submit_report(user_id, {"category": "friction", "message": f"{TEXT}, once more"})
        return ended

    monkeypatch.setattr(deletions, "delete_own_account", delete_with_requests_in_flight)
    accounts.delete_account(user_id, users.find_user(user_id))
    assert "canary" not in str(table_dump()).lower()
    assert credential_index.list_credentials(user_id, 1).items == []
    assert kinds_of(full_account.naming()) == {"AUDITLOG", "KEY", "KH", "INBOX"}


def test_a_credential_that_appears_during_a_revocation_is_revoked(full_account, monkeypatch):
    revoke, appearing = revocations.revoke_credential, iter([None])

    def revoke_and_sign_in(credential: CredentialItem, reason: str) -> None:
        revoke(credential, reason)
        for _ in appearing:
            sessions.create(full_account.user_id)

    monkeypatch.setattr(revocations, "revoke_credential", revoke_and_sign_in)
    accounts.revoke_credentials(full_account.user_id)
    assert credential_index.list_credentials(full_account.user_id, 1).items == []


def test_erasing_keeps_a_membership_that_grants_access(full_account):
    member = keys.member(full_account.company.organization_id, full_account.user_id)
    before = table.get(member)
    personal_data.erase(Subject(full_account.user_id, EMAIL))
    assert before is not None
    assert table.get(member) == before


def around_scans(act: Callable[[], Any]) -> Callable[[Call, Proceed], Any]:
    """Returns an interceptor of the table's calls that acts before each scan."""

    def around(call: Call, proceed: Proceed) -> Any:
        if call.operation == "Scan":
            act()
        return proceed()

    return around


def test_revoke_ends_every_credential_without_a_scan(ops, api, world, full_account):
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


class TestEndOfAccess:
    def test_the_account_and_every_credential_are_gone_before_the_search_for_texts_and_organizations_are_told(
        self, ops, api, full_account
    ):
        before, entries, checked = table_dump(), all_entries(), []

        def check() -> None:
            if not checked:
                checked.append(None)
                full_account.assert_out(api)
                assert "FAMILY" not in kinds_containing(full_account.user_id)

        assert "--yes" in ops("user", "delete", EMAIL).error["message"]
        assert table_dump() == before
        with intercepted(table.client, around_scans(check)):
            done = ops("user", "delete", EMAIL, "--yes").document
        assert checked
        counted = {"tokens": 2, "devices": 2, "signIns": 1, "memberships": 1, "invitations": 1}
        assert done == {"deleted": True, "userId": full_account.user_id, **counted, "erased": done["erased"]}
        assert Counter((it["action"], it["actorKind"]) for it in all_entries() if it not in entries) == {
            (Action.MEMBER_REMOVE, "operator"): 1,
            (Action.INVITATION_CANCEL, "operator"): 1,
            (Action.INVITATION_DECLINE, "operator"): 1,
        }
        full_account.assert_out(api)
        assert api.get("/v1/me", full_account.company.owner.token).status == 200
        assert sign_in.sign_in(full_account.identity).user_id != full_account.user_id

    def test_a_last_owner_is_refused_and_told_the_organizations(self, ops, api, world, full_account):
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

    def test_an_interrupted_deletion_is_finished_by_id(self, ops, api, full_account):
        for key in (keys.user(full_account.user_id), keys.user_email(EMAIL)):
            table.client.delete_item(TableName=table.name, Key=encode_item(key._asdict()))
        assert ops("user", "delete", EMAIL, "--yes").exit_code == 3
        assert ops("user", "delete", full_account.user_id, "--yes").document["signIns"] == 1
        full_account.assert_out(api)
        assert ops("user", "delete", full_account.user_id, "--yes").exit_code == 3
