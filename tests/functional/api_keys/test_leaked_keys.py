"""POST /v1/github/leaked-keys: secrets that GitHub found in public are revoked if they are API keys or tokens."""

import json
import logging
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from controlplane.core import tokens
from controlplane.core.settings import settings
from controlplane.http import secret_scanning
from controlplane.store import (
    api_keys,
    codec,
    key_changes,
    keys,
    leaked_keys,
    leaked_tokens,
    sessions,
    token_families,
)
from controlplane.store.table import table
from local.github.faults import Fault
from local.github.secret_scanning import TOKEN_TYPE, SecretScanning
from tests.functional.conftest import FakeClock
from tests.functional.device_auth.devices import refresh, request_code, works
from tests.support.api import Api, Reply
from tests.support.audit_log import all_entries
from tests.support.calls import Call, Proceed, before_the_transaction, intercepted
from tests.support.each import each
from tests.support.github import GitHub, github
from tests.support.world import Company, World, table_dump

PATH = "/v1/github/leaked-keys"
PLACE = "https://github.com/octocat/hello-world/blob/1f0c2b9e/.env"


@pytest.fixture
def code_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHub]:
    with github(tmp_path / "github") as served:
        configured = settings.model_copy(update={"github_api_url": f"{served.url}/api/v3"})
        monkeypatch.setattr(secret_scanning, "settings", configured)
        secret_scanning._keys.cache_clear()
        yield served
    secret_scanning._keys.cache_clear()


def report(api: Api, signer: SecretScanning, content: Any, **headers: str | None) -> Reply:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    sent = {"Content-Type": "application/json", **signer.sign(body), **headers}
    return api.post(PATH, raw_body=body, headers={name: value for name, value in sent.items() if value is not None})


def found(token: str, **more: Any) -> dict[str, Any]:
    return {"token": token, "type": TOKEN_TYPE, "url": PLACE, "source": "commit", **more}


def labels(reply: Reply) -> list[str]:
    listed: list[dict[str, str]] = reply.body  # type: ignore[assignment]
    return [it["label"] for it in listed]


class Test200:
    def test_a_leaked_key_is_revoked_and_the_response_has_githubs_format(self, api: Api, world: World, code_host):
        company = world.company()
        key, kept = world.key(company), world.key(company)
        unknown = tokens.mint("assent")
        reply = report(api, code_host.scanning, [found(key), found(unknown), found("assent_nonsense"), found(key)])
        assert reply.status == 200
        assert reply.body == [
            {"token_raw": token, "token_type": TOKEN_TYPE, "label": label}
            for token, label in [
                (key, "true_positive"),
                (unknown, "false_positive"),
                ("assent_nonsense", "false_positive"),
                (key, "true_positive"),
            ]
        ]
        assert [api.get("/v1/me", it).status for it in (key, kept)] == [401, 200]
        assert table.get(keys.organization(company.organization_id))["keys"] == 1

    def test_the_audit_log_names_the_service_and_the_place(self, api: Api, world: World, code_host):
        company = world.company()
        made = api_keys.create_key(company.organization_id, "deploy", company.owner.user_id, "test")
        report(api, code_host.scanning, [found(made.secret, url=f"{PLACE}?x={made.secret}#L3")])
        (entry,) = [it for it in all_entries() if it["action"] == "api_key.revoke_leaked"]
        assert (entry["actorKind"], entry["actorId"], entry["source"]) == ("service", "secret_scanning", "api")
        assert (entry["resource"], entry["name"]) == (made.item.key_id, "deploy")
        assert entry["after"] == {"source": "commit", "url": f"{PLACE}#L3"}

    def test_the_members_are_told(self, api: Api, world: World, code_host):
        company = world.company()
        made = api_keys.create_key(company.organization_id, "deploy", company.owner.user_id, "test")
        report(api, code_host.scanning, [found(made.secret)])
        stored = [codec.decode_item(it) for it in table_dump() if it["pk"]["S"].startswith("OUTBOX#")]
        (event,) = [it["message"] for it in stored if it["message"].get("event") == "key.leaked"]
        assert event["subjects"] == [made.item.key_id]

    def test_of_a_rolled_key_only_the_leaked_secret_ends(self, api: Api, world: World, code_host):
        company = world.company()
        old = api_keys.create_key(company.organization_id, "deploy", company.owner.user_id, "test")
        new = api_keys.roll_key(old.item.key_id, company.owner.user_id, "test", grace_seconds=3600)
        before = table.get(keys.organization(company.organization_id))
        assert labels(report(api, code_host.scanning, [found(old.secret)])) == ["true_positive"]
        after = table.get(keys.organization(company.organization_id))
        assert (after["keys"], after["keyVersion"]) == (before["keys"], before["keyVersion"] + 1)
        leaked = leaked_keys.find_leaked_key(old.item.key_id)
        assert leaked is not None
        assert leaked.start == old.item.start
        assert [api.get("/v1/me", it.secret).status for it in (old, new)] == [401, 200]
        assert api.get(f"/v1/api-keys/{new.item.key_id}", new.secret).data["previous"] is None

    def test_a_change_of_the_key_during_the_report_counts_as_one(self, world: World):
        company = world.company()
        old = api_keys.create_key(company.organization_id, "deploy", company.owner.user_id, "test")
        new = api_keys.roll_key(old.item.key_id, company.owner.user_id, "test", grace_seconds=3600).item

        def rename() -> None:
            key_changes.update_key(new.key_id, lambda key: replace(key, name="deploys"), admin_id=company.owner.user_id)

        with before_the_transaction(table.client, rename):
            assert leaked_keys.revoke(tokens.digest(old.secret), leaked_keys.Leak("commit", None))
        _, key = api_keys.get_key(new.key_id)
        assert (key.name, key.previous, key.revision) == ("deploys", None, 2)

    def test_of_two_reports_at_once_one_ends_the_grace_period(self, world: World):
        company = world.company()
        old = api_keys.create_key(company.organization_id, "deploy", company.owner.user_id, "test")
        new = api_keys.roll_key(old.item.key_id, company.owner.user_id, "test", grace_seconds=3600).item
        digest, leak = tokens.digest(old.secret), leaked_keys.Leak("commit", None)
        listed, reports = keys.api_key(*new.key_id.location).sk, list[bool]()

        def around(call: Call, proceed: Proceed) -> Any:
            if call.operation == "GetItem" and call.parameters["Key"]["sk"]["S"] == listed and not reports:
                reports.append(True)
                reports.append(leaked_keys.revoke(digest, leak))
            return proceed()

        with intercepted(table.client, around):
            assert not leaked_keys.revoke(digest, leak)
        assert reports == [True, True]
        assert [it["action"] for it in all_entries()].count("api_key.end_grace_period") == 1

    def test_a_leaked_successor_ends_both_secrets(self, api: Api, world: World, code_host, now: FakeClock):
        company = world.company()
        old = api_keys.create_key(company.organization_id, "deploy", company.owner.user_id, "test")
        new = api_keys.roll_key(old.item.key_id, company.owner.user_id, "test", grace_seconds=3600)
        report(api, code_host.scanning, [found(new.secret)])
        assert [api.get("/v1/me", it.secret).status for it in (old, new)] == [401, 401]
        leaked = leaked_keys.find_leaked_key(new.item.key_id)
        assert leaked is not None
        assert leaked.start == new.item.start
        stored = table.get(keys.leaked_key(*new.item.key_id.location))
        assert stored["expiresAt"] == now() + 90 * 86_400

    @each(
        ("fields", "expected"),
        [
            ({"url": None, "source": None}, {"source": "unknown"}),
            ({"url": ""}, {"source": "commit"}),
            ({"url": "http://example.com/"}, {"source": "commit"}),
            ({"url": "https://u:p@example.com/"}, {"source": "commit"}),
            ({"url": "https://example.com/>|<"}, {"source": "commit"}),
            ({"url": "https://[example.com/"}, {"source": "commit"}),
            ({"url": "https://example.com/" + "x" * 300}, {"source": "commit"}),
            ({"source": "<b>Commit</b>"}, {"source": "unknown", "url": PLACE}),
            ({"source": "commit <b>"}, {"source": "unknown", "url": PLACE}),
        ],
    )
    def test_only_a_public_address_and_a_known_form_of_source_are_kept(self, fields, expected, api, world, code_host):
        company = world.company()
        report(api, code_host.scanning, [found(world.key(company), **fields)])
        entries = [it for it in all_entries() if company.organization_id in it["pk"]]
        (entry,) = [it for it in entries if it["action"] == "api_key.revoke_leaked"]
        assert entry["after"] == expected


class TestTokens:
    @each("kind", ["accessToken", "refreshToken"])
    def test_a_leaked_token_of_a_device_ends_the_device(self, kind: str, api: Api, world: World, code_host):
        person = world.person()
        first = request_code(api).approved(person.user_id).redeem().data
        second = refresh(api, first["refreshToken"]).data
        for token in (first[kind], second[kind]):
            reply = report(api, code_host.scanning, [found(token)])
            assert reply.body == [{"token_raw": token, "token_type": TOKEN_TYPE, "label": labels(reply)[0]}]
            # With the first report, all tokens of the device have ended.
            assert labels(reply) == ["true_positive" if token == first[kind] else "false_positive"]
        assert [works(api, it["accessToken"]) for it in (first, second)] == [False, False]
        assert refresh(api, second["refreshToken"]).status == 401
        assert works(api, person.token)
        assert [it["kind"] for it in api.get("/v1/me/sessions", person.token).data] == ["token"]

    def test_a_leaked_session_or_operators_token_ends_alone(self, api: Api, world: World, code_host):
        person = world.person()
        session, other = sessions.create(person.user_id), sessions.create(person.user_id)
        reply = report(api, code_host.scanning, [found(session), found(person.token)])
        assert labels(reply) == ["true_positive", "true_positive"]
        assert [works(api, it) for it in (session, person.token, other)] == [False, False, True]
        assert [it["kind"] for it in api.get("/v1/me/sessions", other).data] == ["session"]
        assert labels(report(api, code_host.scanning, [found(session)])) == ["false_positive"]

    def test_the_message_about_it_has_only_ids(self, api: Api, world: World, code_host):
        person = world.person()
        report(api, code_host.scanning, [found(sessions.create(person.user_id))])
        stored = [codec.decode_item(it) for it in table_dump() if it["pk"]["S"].startswith("OUTBOX#")]
        (message,) = [it["message"] for it in stored]
        assert message == {"kind": "send-leak-notice", "version": 1, "userId": person.user_id, "leak": message["leak"]}
        leaked = leaked_tokens.find_leaked_token(person.user_id, message["leak"])
        assert leaked == ("dashboard", leaked_keys.Leak("commit", PLACE))

    def test_expired_and_foreign_tokens_are_false_positives(self, api: Api, world: World, code_host, now: FakeClock):
        person = world.person()
        pair = request_code(api).approved(person.user_id).redeem().data
        world.token(person.user_id, lifetime_seconds=60)
        now.advance(token_families.ACCESS_SECONDS)
        secrets = [person.token, pair["accessToken"], pair["refreshToken"][:-1] + "~", "whsec_" + "A" * 43]
        assert {*labels(report(api, code_host.scanning, [found(it) for it in secrets]))} == {"false_positive"}
        assert refresh(api, pair["refreshToken"]).status == 200
        now.advance(token_families.REFRESH_SECONDS)
        assert labels(report(api, code_host.scanning, [found(pair["refreshToken"])])) == ["false_positive"]
        assert not [it for it in table_dump() if it["pk"]["S"].startswith(("MAILS#", "OUTBOX#"))]

    def test_of_two_reports_of_a_session_at_once_one_ends_it(self, world: World):
        session, leak = sessions.create(world.person().user_id), leaked_keys.Leak("commit", None)
        with before_the_transaction(table.client, lambda: leaked_tokens.revoke_token(session, leak)):
            assert not leaked_tokens.revoke_token(session, leak)
        assert len([it for it in table_dump() if it["pk"]["S"].startswith("OUTBOX#")]) == 1


class Test401:
    @each(
        "headers",
        [
            {"Github-Public-Key-Identifier": None},
            {"Github-Public-Key-Signature": None},
            {"Github-Public-Key-Identifier": "0" * 64},
            {"Github-Public-Key-Signature": "MEUCIQ=="},
            {"Github-Public-Key-Signature": "not Base64"},
        ],
    )
    def test_an_unsigned_report_revokes_nothing(self, headers, api: Api, world: World, code_host):
        key = world.key(world.company())
        before = table_dump()
        assert report(api, code_host.scanning, [found(key)], **headers).code == "UNAUTHORIZED"
        assert table_dump() == before

    def test_the_signature_covers_every_byte(self, api: Api, world: World, code_host):
        key = world.key(world.company())
        headers = code_host.scanning.sign(json.dumps([found("x")]).encode())
        assert report(api, code_host.scanning, [found(key)], **headers).code == "UNAUTHORIZED"

    def test_a_key_that_github_does_not_list_signs_nothing(self, api: Api, world: World, code_host):
        other = SecretScanning()
        for identifier in (other.identifier, code_host.scanning.identifier):
            headers = {"Github-Public-Key-Identifier": identifier}
            reply = report(api, other, [found(world.key(world.company()))], **headers)
            assert reply.code == "UNAUTHORIZED"


class Test400:
    @each(
        "content",
        [
            b"",
            b"{",
            b"[" * 100_000,
            {},
            [],
            "x",
            [1],
            [{}],
            [{"token": 1, "type": "x"}],
            [{"token": "x"}],
            [found("x")] * 101,
        ],
    )
    def test_what_is_not_a_report_is_rejected_without_being_quoted(self, content, api: Api, world: World, code_host):
        reply = report(api, code_host.scanning, content)
        assert reply.code == "INVALID_PAYLOAD"
        assert PLACE not in reply.text


class TestKeys:
    def asked(self, code_host: GitHub) -> int:
        return sum(it.operation.endswith("secret_scanning") for it in code_host.stand_in.requests)

    def test_the_public_keys_are_kept_for_an_hour(self, api: Api, world: World, code_host, now):
        for _ in range(3):
            report(api, code_host.scanning, [found("x")])
        assert self.asked(code_host) == 1
        now.advance(3600)
        report(api, code_host.scanning, [found("x")])
        assert self.asked(code_host) == 2

    def test_public_keys_of_other_kinds_sign_nothing_and_are_left_out(self, api: Api, code_host: GitHub):
        own, other = code_host.scanning, SecretScanning()
        other._key = ec.generate_private_key(ec.SECP384R1())
        made = (own._key, other._key, ed25519.Ed25519PrivateKey.generate())
        listed = [it.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo) for it in made]
        # With the last byte of the algorithm's identifier changed, it is of an algorithm that we don't know.
        listed.append(listed[0].replace(bytes.fromhex("2a8648ce3d0201"), bytes.fromhex("2a8648ce3d0209")))
        pems = [f"-----BEGIN PUBLIC KEY-----\n{b64encode(it).decode()}\n-----END PUBLIC KEY-----" for it in listed]
        names = [own.identifier, "1", "2", "3"]
        keys = [{"key_identifier": name, "key": pem} for name, pem in zip(names, pems, strict=True)]
        code_host.stand_in.faults.add(
            "GET /meta/public_keys/secret_scanning", Fault(200, content={"public_keys": keys})
        )
        assert report(api, own, [found("x")]).status == 200
        for name in names[1:]:
            reply = report(api, other, [found("x")], **{"Github-Public-Key-Identifier": name})
            assert reply.code == "UNAUTHORIZED"
        assert self.asked(code_host) == 1

    def test_kept_keys_verify_while_github_has_an_outage(self, api: Api, world: World, code_host, now):
        assert report(api, code_host.scanning, [found("x")]).status == 200
        now.advance(3600)
        code_host.stand_in.faults.add("GET /meta/public_keys/secret_scanning", Fault(), Fault())
        assert report(api, code_host.scanning, [found("x")]).status == 200

    def test_github_is_asked_once_a_minute_while_it_never_answered(self, api: Api, world: World, code_host, now):
        code_host.stand_in.faults.add("GET /meta/public_keys/secret_scanning", Fault(), Fault(), Fault(), Fault())
        assert {report(api, SecretScanning(), [found("x")]).code for _ in range(5)} == {"SERVICE_UNAVAILABLE"}
        # Each attempt is repeated once.
        assert self.asked(code_host) == 2
        now.advance(60)
        assert {report(api, code_host.scanning, [found("x")]).code for _ in range(5)} == {"SERVICE_UNAVAILABLE"}
        assert self.asked(code_host) == 4
        now.advance(60)
        assert report(api, code_host.scanning, [found("x")]).status == 200

    @each("header", ["Github-Public-Key-Identifier", "Github-Public-Key-Signature"])
    def test_a_report_without_a_signature_asks_for_no_key(self, header: str, api: Api, world: World, code_host):
        for value in ("", None):
            assert report(api, code_host.scanning, [found("x")], **{header: value}).code == "UNAUTHORIZED"
        assert self.asked(code_host) == 0

    def test_an_unknown_key_is_asked_for_once_a_minute(self, api: Api, world: World, code_host, now):
        for _ in range(5):
            report(api, SecretScanning(), [found("x")])
        assert self.asked(code_host) == 1
        now.advance(60)
        report(api, SecretScanning(), [found("x")])
        assert self.asked(code_host) == 2


@each(
    "faults",
    [
        [Fault(), Fault()],
        [Fault(200, content={})],
        [Fault(200, content={"public_keys": [{"key_identifier": "1", "key": "x"}]})],
        [Fault(200, content={"public_keys": [{"key_identifier": "1", "key": None}]})],
    ],
)
def test_without_githubs_keys_the_response_is_503(faults: list[Fault], api: Api, world: World, code_host):
    signer = code_host.scanning
    code_host.stand_in.faults.add("GET /meta/public_keys/secret_scanning", *faults)
    reply = report(api, signer, [found(world.key(world.company()))])
    assert (reply.code, reply.headers["retry-after"]) == ("SERVICE_UNAVAILABLE", "60")


def test_no_secret_is_stored_or_logged(api: Api, world: World, code_host, caplog: pytest.LogCaptureFixture):
    company: Company = world.company()
    pair = request_code(api).approved(company.owner.user_id).redeem().data
    session = sessions.create(company.owner.user_id)
    made = [world.key(company), tokens.mint("assent"), "assent_nonsense", session, *pair.values()]
    made = [it for it in made if str(it).startswith("assent_")]
    with caplog.at_level(logging.DEBUG):
        report(api, code_host.scanning, [found(it, url=f"{PLACE}/{it}") for it in made])
        report(api, code_host.scanning, [found(made[0]), 1])
    logged = caplog.text + "".join(str(record.__dict__) for record in caplog.records)
    for secret in made:
        assert secret not in logged
        assert secret not in json.dumps(table_dump())


def test_a_reports_repr_has_no_secret():
    assert "assent_x" not in repr(secret_scanning.LeakReport(b"assent_x"))
