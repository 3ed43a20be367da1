"""POST /v1/github/leaked-keys: secrets that GitHub found in public are revoked if they are API keys or tokens."""

import json
import logging
from base64 import b64encode
from dataclasses import replace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from controlplane.api_keys import changes as key_changes
from controlplane.api_keys import leaked
from controlplane.api_keys import store as api_keys
from controlplane.code_host import signed_requests
from controlplane.people import sessions, token_families
from controlplane.platform.core import tokens
from controlplane.platform.core.settings import settings
from controlplane.platform.table import keys
from controlplane.platform.table.legs import decode_item
from controlplane.platform.table.table import table
from local.github.secret_scanning import TOKEN_TYPE, SecretScanning
from tests.functional.api_keys.conftest import DAY, id_of
from tests.functional.device_auth.devices import refresh, request_code, works
from tests.support.api import Api, Reply
from tests.support.audit_log import all_entries
from tests.support.calls import before_the_transaction
from tests.support.each import each
from tests.support.github import GitHub, github
from tests.support.github_faults import Fault
from tests.support.world import table_dump

PLACE = "https://github.com/octocat/hello-world/blob/1f0c2b9e/.env"
LEAK = leaked.Leak("commit", None)
KEYS = "GET /meta/public_keys/secret_scanning"
IDENTIFIER, SIGNATURE = "Github-Public-Key-Identifier", "Github-Public-Key-Signature"


class Scanner:
    """GitHub's secret scanning, which asks the stand-in for GitHub's public keys."""

    def __init__(self, api: Api, host: GitHub) -> None:
        self.api, self.host, self.signer = api, host, host.scanning

    def report(self, *found: Any, signer: SecretScanning | None = None, **headers: str | None) -> Reply:
        """Reports what was found: secrets, or objects of the report. Signs it, unless a header is given."""
        return self.send([leak_of(it) if isinstance(it, str) else it for it in found], signer, **headers)

    def send(self, content: Any, signer: SecretScanning | None = None, **headers: str | None) -> Reply:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        sent = {"Content-Type": "application/json", **(signer or self.signer).sign(body), **headers}
        sent = {name: value for name, value in sent.items() if value is not None}
        return self.api.post("/v1/github/leaked-keys", raw_body=body, headers=sent)

    def recognizes(self, *secrets: str) -> list[bool]:
        listed: list[dict[str, str]] = self.report(*secrets).body  # type: ignore[assignment]
        return [it["label"] == "true_positive" for it in listed]

    def fail(self, *faults: Fault) -> None:
        self.host.stand_in.faults.add(KEYS, *faults)

    @property
    def asked(self) -> int:
        """Returns how often GitHub was asked for its keys."""
        return sum(it.operation.endswith("secret_scanning") for it in self.host.stand_in.requests)


def leak_of(token: str, **more: Any) -> dict[str, Any]:
    return {"token": token, "type": TOKEN_TYPE, "url": PLACE, "source": "commit", **more}


def messages() -> list[dict[str, Any]]:
    stored = [decode_item(it) for it in table_dump() if it["pk"]["S"].startswith("OUTBOX#")]
    return [it["message"] for it in stored]


@pytest.fixture
def scanner(api, tmp_path, monkeypatch):
    with github(tmp_path / "github") as served:
        configured = settings.model_copy(update={"github_api_url": f"{served.url}/api/v3"})
        monkeypatch.setattr(signed_requests, "settings", configured)
        signed_requests._keys.cache_clear()
        yield Scanner(api, served)
    signed_requests._keys.cache_clear()


def test_a_leaked_key_is_revoked_and_the_response_has_githubs_format(acme, scanner):
    key, kept, unknown = acme.create(), acme.create(), tokens.mint("assent")
    secret = key["key"]
    reply = scanner.report(leak_of(secret, url=f"{PLACE}?x={secret}#L3"), unknown, "assent_nonsense", secret)
    assert reply.status == 200
    assert reply.body == [
        {"token_raw": token, "token_type": TOKEN_TYPE, "label": label}
        for token, label in [
            (secret, "true_positive"),
            (unknown, "false_positive"),
            ("assent_nonsense", "false_positive"),
            (secret, "true_positive"),
        ]
    ]
    assert (acme.works(key, kept), acme.count()) == ([False, True], (1, 1))
    (entry,) = [it for it in all_entries() if it["action"] == "api_key.revoke_leaked"]
    assert (entry["actorKind"], entry["actorId"], entry["source"]) == ("service", "secret_scanning", "api")
    assert (entry["resource"], entry["name"]) == (key["keyId"], "deploy")
    assert entry["after"] == {"source": "commit", "url": f"{PLACE}#L3"}
    (event,) = [it for it in messages() if it.get("event") == "key.leaked"]
    assert event["subjects"] == [key["keyId"]]


def test_of_a_rolled_key_only_the_leaked_secret_ends_and_its_successor_ends_both(acme, scanner, now):
    old = acme.create()
    new, before = acme.roll(old, DAY).data, acme.stored()
    assert scanner.recognizes(old["key"]) == [True]
    after = acme.stored()
    assert (after["keys"], after["keyVersion"]) == (before["keys"], before["keyVersion"] + 1)
    assert leaked.find_leaked_key(id_of(old)).start == old["start"]
    assert (acme.works(old, new), acme.get(new)["previous"]) == ([False, True], None)
    newest = acme.roll(new, DAY).data
    scanner.report(newest["key"])
    assert acme.works(new, newest) == [False, False]
    assert leaked.find_leaked_key(id_of(newest)).start == newest["start"]
    assert table.get(keys.leaked_key(*id_of(newest).location))["expiresAt"] == now() + 90 * DAY


def test_a_change_of_the_key_during_the_report_counts_as_one(acme):
    old = acme.create()
    new = id_of(acme.roll(old, DAY).data)

    def rename():
        key_changes.update_key(new, lambda key: replace(key, name="deploys"), admin_id=acme.owner.user_id)

    with before_the_transaction(table.client, rename):
        assert leaked.revoke_key(tokens.digest(old["key"]), LEAK)
    _, key = api_keys.get_key(new)
    assert (key.name, key.previous, key.revision) == ("deploys", None, 2)


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
def test_only_a_public_address_and_a_known_form_of_source_are_kept(fields, expected, acme, scanner):
    key = acme.create()
    scanner.report(leak_of(key["key"], **fields))
    (entry,) = [it for it in all_entries() if it["resource"] == key["keyId"] and it["action"].endswith("leaked")]
    assert entry["after"] == expected


@each("kind", ["accessToken", "refreshToken"])
def test_a_leaked_token_of_a_device_ends_the_device(kind, api, world, scanner):
    person = world.person()
    first = request_code(api).approved(person.user_id).redeem().data
    second = refresh(api, first["refreshToken"]).data
    # With the first report, all tokens of the device have ended.
    assert [scanner.recognizes(pair[kind]) for pair in (first, second)] == [[True], [False]]
    assert [works(api, it) for it in (first["accessToken"], second["accessToken"], person.token)] == [
        False,
        False,
        True,
    ]
    assert refresh(api, second["refreshToken"]).status == 401
    assert [it["kind"] for it in api.get("/v1/me/sessions", person.token).data] == ["token"]


def test_a_leaked_session_or_operators_token_ends_alone_and_its_message_has_only_ids(api, world, scanner):
    person = world.person()
    session, other = sessions.create(person.user_id), sessions.create(person.user_id)
    assert scanner.recognizes(session) == [True]
    (message,) = messages()
    assert message == {"kind": "send-leak-notice", "version": 1, "userId": person.user_id, "leak": message["leak"]}
    found = leaked.find_leaked_token(person.user_id, message["leak"])
    assert found == leaked.LeakedToken(client="dashboard", leak=leaked.Leak("commit", PLACE))
    assert scanner.recognizes(session, person.token) == [False, True]
    assert [works(api, it) for it in (session, person.token, other)] == [False, False, True]
    assert [it["kind"] for it in api.get("/v1/me/sessions", other).data] == ["session"]


def test_expired_and_foreign_tokens_are_false_positives(api, world, scanner, now):
    person = world.person()
    pair = request_code(api).approved(person.user_id).redeem().data
    now.advance(token_families.ACCESS_SECONDS)
    secrets = [person.token, pair["accessToken"], pair["refreshToken"][:-1] + "~", "whsec_" + "A" * 43]
    assert scanner.recognizes(*secrets) == [False] * 4
    assert refresh(api, pair["refreshToken"]).status == 200
    now.advance(token_families.REFRESH_SECONDS)
    assert scanner.recognizes(pair["refreshToken"]) == [False]
    assert not [it for it in table_dump() if it["pk"]["S"].startswith(("MAILS#", "OUTBOX#"))]


def test_a_report_that_github_did_not_sign_revokes_nothing_and_without_a_signature_asks_for_no_key(acme, scanner):
    secret, other = acme.create()["key"], SecretScanning()
    before = table_dump()
    for header in (IDENTIFIER, SIGNATURE):
        for value in ("", None):
            assert scanner.report(secret, **{header: value}).code == "UNAUTHORIZED"
    assert scanner.asked == 0
    for headers in (
        {IDENTIFIER: "0" * 64},
        {IDENTIFIER: other.identifier},
        {SIGNATURE: "MEUCIQ=="},
        {SIGNATURE: "not Base64"},
        scanner.signer.sign(b"another report"),
    ):
        assert scanner.report(secret, **headers).code == "UNAUTHORIZED", headers
    for identifier in (other.identifier, scanner.signer.identifier):
        assert scanner.report(secret, signer=other, **{IDENTIFIER: identifier}).code == "UNAUTHORIZED"
    assert table_dump() == before


@each(
    "content",
    [b"", b"{", b"[" * 100_000, {}, [], "x", [1], [{}], [{"token": 1, "type": "x"}], [leak_of("x")] * 101],
)
def test_what_is_not_a_report_is_rejected_without_being_quoted(content, scanner):
    reply = scanner.send(content)
    assert reply.code == "INVALID_PAYLOAD"
    assert PLACE not in reply.text


def test_the_public_keys_are_kept_for_an_hour_and_in_an_outage_and_asked_for_once_a_minute_if_unknown(scanner, now):
    for seconds, asked in ((0, 1), (3599, 1), (1, 2)):
        now.advance(seconds)
        assert (scanner.report("x").status, scanner.asked) == (200, asked)
    for seconds, asked in ((0, 2), (59, 2), (1, 3), (59, 3), (1, 4)):
        now.advance(seconds)
        scanner.report("x", signer=SecretScanning())
        assert scanner.asked == asked
    now.advance(3600)
    scanner.fail(Fault(), Fault())
    assert scanner.report("x").status == 200


def test_public_keys_of_other_kinds_sign_nothing_and_are_left_out(scanner):
    own, other = scanner.signer, SecretScanning()
    other._key = ec.generate_private_key(ec.SECP384R1())
    made = (own._key, other._key, ed25519.Ed25519PrivateKey.generate())
    listed = [it.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo) for it in made]
    # With the last byte of the algorithm's identifier changed, it is of an algorithm that we don't know.
    listed.append(listed[0].replace(bytes.fromhex("2a8648ce3d0201"), bytes.fromhex("2a8648ce3d0209")))
    pems = [f"-----BEGIN PUBLIC KEY-----\n{b64encode(it).decode()}\n-----END PUBLIC KEY-----" for it in listed]
    names = [own.identifier, "1", "2", "3"]
    public = [{"key_identifier": name, "key": pem} for name, pem in zip(names, pems, strict=True)]
    scanner.fail(Fault(200, content={"public_keys": public}))
    assert scanner.report("x").status == 200
    for name in names[1:]:
        assert scanner.report("x", signer=other, **{IDENTIFIER: name}).code == "UNAUTHORIZED"
    assert scanner.asked == 1


def test_github_is_asked_once_a_minute_while_it_never_answered(scanner, now):
    scanner.fail(*[Fault()] * 4)
    # Each attempt is repeated once.
    for asked in (2, 4):
        assert {scanner.report("x").code for _ in range(5)} == {"SERVICE_UNAVAILABLE"}
        assert scanner.asked == asked
        now.advance(60)
    assert scanner.report("x").status == 200


@each(
    "faults",
    [
        [Fault(200, content={})],
        [Fault(200, content={"public_keys": [{"key_identifier": "1", "key": "x"}]})],
        [Fault(200, content={"public_keys": [{"key_identifier": "1", "key": None}]})],
    ],
)
def test_without_githubs_keys_the_response_is_503(faults, scanner, now):
    now.advance(3600)
    scanner.fail(*faults)
    reply = scanner.report("x")
    assert (reply.code, reply.headers["retry-after"]) == ("SERVICE_UNAVAILABLE", "60")


def test_no_secret_is_stored_or_logged(acme, api, scanner, caplog):
    pair = request_code(api).approved(acme.owner.user_id).redeem().data
    session = sessions.create(acme.owner.user_id)
    made = [acme.create()["key"], tokens.mint("assent"), "assent_nonsense", session, *pair.values()]
    made = [it for it in made if str(it).startswith("assent_")]
    with caplog.at_level(logging.DEBUG):
        scanner.report(*[leak_of(it, url=f"{PLACE}/{it}") for it in made])
        scanner.report(made[0], 1)
    logged = caplog.text + "".join(str(record.__dict__) for record in caplog.records)
    for secret in made:
        assert secret not in logged
        assert secret not in json.dumps(table_dump())
    assert "assent_x" not in repr(signed_requests.LeakReport(b"assent_x"))
