"""Authentication as the App, and the lifetime of its tokens."""

import base64
import json
from types import SimpleNamespace

import boto3
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from moto import mock_aws

from controlplane.code_host.github import app_auth
from controlplane.code_host.github.app_auth import READ_CODE, WRITE_ISSUES, AppAuth, Scope
from controlplane.code_host.github.client import CodeHost
from controlplane.code_host.github.errors import (
    AccessLost,
    AppKeyUnreadable,
    AppNotConfigured,
    HostUnavailable,
    InvalidName,
    Refused,
)
from controlplane.code_host.github.transport import Deadline
from controlplane.platform.core.settings import settings
from local.github import setup
from local.github.records import Denied
from local.github.repositories import stable_id
from local.github.setup import DEMO_NAME, DEMO_OWNER, installation_id, key_file
from tests.functional.github.conftest import DEMO, REPOSITORY, TOKENS, add_repository, rename
from tests.support.each import each
from tests.support.github_faults import Fault

READING = Scope(installation_id(DEMO_OWNER), *DEMO, READ_CODE)
ELLIPTIC_KEY = (
    ec.generate_private_key(ec.SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
)


def host_with(code_host, app_id, *keys) -> CodeHost:
    """Returns a client of the App with this ID. It reads these private keys, each once."""
    transport, unread = code_host.transport(), [*keys]
    return CodeHost(transport, AppAuth(transport, app_id, lambda: unread.pop(0)), installation_id(DEMO_OWNER))


def bought(code_host) -> int:
    return len(code_host.sent(TOKENS))


@pytest.fixture
def ours(code_host) -> str:
    return key_file(code_host.root).read_text()


@pytest.fixture
def other(tmp_path) -> str:
    """Returns the private key of another App."""
    setup.write_key(tmp_path / "other.pem")
    return (tmp_path / "other.pem").read_text()


class TestAppToken:
    def test_the_app_token_is_valid_for_ten_minutes_starting_a_minute_ago(self, code_host, now):
        code_host.host().get_repository(*DEMO)
        (request,) = code_host.sent(TOKENS)
        segment = request.headers["authorization"].split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4)))
        assert claims == {"iat": int(now.seconds) - 60, "exp": int(now.seconds) + 540, "iss": "1"}

    @each(("ahead_seconds", "signed"), [(-86_400, 2), (-700, 2), (-60, 1), (59, 1), (700, 2), (86_400, 2)])
    def test_the_app_token_follows_the_hosts_clock_if_ours_is_over_a_minute_off(
        self, code_host, now, monkeypatch, ahead_seconds, signed
    ):
        monkeypatch.setattr(app_auth, "clock", SimpleNamespace(now=lambda: now.seconds + ahead_seconds))
        host, before = code_host.host(), bought(code_host)
        assert {host.get_repository(*DEMO).name for _ in range(2)} == {DEMO_NAME}
        assert bought(code_host) - before == signed

    def test_the_app_token_is_signed_with_the_current_key_after_a_rotation(self, code_host, ours, other):
        assert host_with(code_host, "1", other, ours).get_repository(*DEMO).name == DEMO_NAME

    def test_a_wrong_key_or_app_is_refused_after_one_retry(self, code_host, ours, other):
        for host in (host_with(code_host, "1", other, other), host_with(code_host, "2", ours, ours)):
            with pytest.raises(Refused) as caught:
                host.get_repository(*DEMO)
            assert caught.value.status == 401
        assert (bought(code_host), code_host.sent(REPOSITORY)) == (4, [])


class TestInstallationToken:
    def test_an_installation_token_is_reused_until_shortly_before_it_expires(self, code_host, now):
        host = code_host.host()
        for pause, total in ((0, 1), (0, 1), (3600 - 301, 1), (1, 2)):
            now.advance(pause)
            host.get_repository(*DEMO)
            assert bought(code_host) == total

    def test_an_installation_token_covers_one_repository_and_one_purpose(self, code_host):
        add_repository(code_host, DEMO_OWNER, "other")
        auth, find = code_host.auth(), code_host.stand_in.get_repository
        for purpose in (READ_CODE, WRITE_ISSUES):
            held = code_host.stand_in.check_token(auth.authorization(READING._replace(purpose=purpose), Deadline(3)))
            assert held.permissions == dict(purpose)
            assert find(held, *DEMO, "metadata", "read").name == DEMO_NAME
            with pytest.raises(Denied, match="Not Found"):
                find(held, DEMO_OWNER, "other", "metadata", "read")
        auth.metadata_authorization(installation_id(DEMO_OWNER), Deadline(3))
        assert [request.body for request in code_host.sent(TOKENS)] == [
            {"permissions": {"contents": "read", "metadata": "read"}, "repositories": [DEMO_NAME]},
            {"permissions": {"issues": "write", "metadata": "read"}, "repositories": [DEMO_NAME]},
            {"permissions": {"metadata": "read"}},
        ]

    def test_an_installation_token_belongs_to_one_installation(self, code_host):
        add_repository(code_host, "other-owner", "shop")
        transport = code_host.transport()
        auth = code_host.auth(transport)
        CodeHost(transport, auth, installation_id(DEMO_OWNER)).get_repository(*DEMO)
        CodeHost(transport, auth, installation_id("other-owner")).get_repository("other-owner", "shop")
        assert bought(code_host) == 2

    def test_a_renamed_repositorys_token_is_requested_by_number(self, code_host):
        rename(code_host)
        host = code_host.host()
        assert {host.get_repository(DEMO_OWNER, "old-name").name for _ in range(2)} == {DEMO_NAME}
        assert [request.body for request in code_host.sent(TOKENS)] == [
            {"permissions": dict(READ_CODE), "repositories": ["old-name"]},
            {"permissions": {"metadata": "read"}},
            {"permissions": dict(READ_CODE), "repository_ids": [stable_id("demo-shop/storefront")]},
        ]

    @each(("fault", "error"), [(Fault(403), AccessLost), (Fault(200, content={"id": "x"}), HostUnavailable)])
    def test_no_token_is_issued_for_a_renamed_repository_that_cant_be_looked_up(self, code_host, fault, error):
        rename(code_host)
        code_host.stand_in.faults.add(REPOSITORY, fault)
        before = bought(code_host)
        with pytest.raises(error):
            code_host.host().get_repository(DEMO_OWNER, "old-name")
        assert bought(code_host) - before == 2
        code_host.exchanges.clear()

    def test_an_expired_installation_token_is_not_kept(self, code_host, now):
        auth = code_host.auth()
        authorization = auth.authorization(READING, Deadline(3))
        assert authorization.startswith("Bearer ghs_")
        assert authorization[7:] not in repr([auth, vars(auth), auth._tokens])
        now.advance(3600)
        auth.authorization(READING._replace(purpose=WRITE_ISSUES), Deadline(3))
        assert [scope.purpose for scope in auth._tokens] == [WRITE_ISSUES]

    def test_a_rejected_installation_token_is_replaced_once(self, code_host):
        host = code_host.host()
        host.get_repository(*DEMO)
        code_host.stand_in.revoke_tokens()
        assert host.create_issue(*DEMO, "Title", "Body").number == 1
        assert host.get_repository(*DEMO)
        assert bought(code_host) == 3
        before = len(code_host.sent(REPOSITORY))
        code_host.stand_in.faults.add(REPOSITORY, *[Fault(401)] * 5)
        with pytest.raises(AccessLost):
            code_host.host().get_repository(*DEMO)
        assert len(code_host.sent(REPOSITORY)) - before == 2

    @each("content", [{"none": True}, {"token": "a"}, {"token": "a", "expires_at": "soon"}])
    def test_a_response_without_an_installation_token_is_an_error(self, code_host, content):
        code_host.stand_in.faults.add(TOKENS, Fault(201, content=content))
        with pytest.raises(HostUnavailable):
            code_host.host().get_repository(*DEMO)
        code_host.exchanges.clear()

    @each("number", [0, -1])
    def test_no_token_is_requested_for_an_invalid_installation(self, code_host, number):
        with pytest.raises(InvalidName):
            CodeHost(code_host.transport(), code_host.auth(), number).get_repository(*DEMO)


class TestPrivateKey:
    def test_the_private_key_is_read_for_each_signature_and_not_cached(self, code_host, now, ours):
        host = host_with(code_host, "1", ours, ours)
        for pause in (0, 0, 3600, 0):
            now.advance(pause)
            host.get_repository(*DEMO)
        now.advance(3600)
        with pytest.raises(IndexError):  # there is no third one
            host.get_repository(*DEMO)
        assert ours not in vars(host._auth).values()
        assert not [name for name, value in vars(app_auth).items() if hasattr(value, "cache_info")]

    @pytest.fixture
    def configure(self, monkeypatch):
        def change(**variables: str) -> None:
            monkeypatch.setattr(app_auth, "settings", settings.model_copy(update=variables))

        return change

    @mock_aws
    def test_secrets_come_from_a_file_in_a_local_run_and_from_secrets_manager_on_aws(self, configure, tmp_path):
        (tmp_path / "key").write_text("-----BEGIN\n")
        configure(github_app_private_key_file=str(tmp_path / "key"), github_client_secret_file=str(tmp_path / "key"))
        assert (app_auth.read_configured_key(), app_auth.read_client_secret()) == ("-----BEGIN\n", "-----BEGIN")
        arn = boto3.client("secretsmanager").create_secret(Name="github-app", SecretString="-----END")["ARN"]
        configure(github_app_secret_arn=arn)
        assert app_auth.read_configured_key() == "-----END"

    @mock_aws
    @each(
        ("variables", "error"),
        [
            ({"github_app_private_key_file": "/nowhere/app-key.pem"}, AppKeyUnreadable),
            (
                {"github_app_secret_arn": "arn:aws:secretsmanager:eu-central-1:123456789012:secret:none-AbCdEf"},
                AppKeyUnreadable,
            ),
            ({}, AppNotConfigured),
        ],
    )
    def test_a_missing_private_key_is_unreadable_and_an_unnamed_one_not_configured(self, configure, variables, error):
        configure(**variables)
        with pytest.raises(error):
            app_auth.read_configured_key()

    def test_a_private_key_without_the_apps_id_is_not_configured(self, code_host, ours):
        with pytest.raises(AppNotConfigured):
            host_with(code_host, None, ours).get_repository(*DEMO)

    @each("key", ["", "key", "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----", ELLIPTIC_KEY])
    def test_the_private_key_must_be_an_rsa_key(self, key):
        with pytest.raises(AppKeyUnreadable):
            app_auth.sign({}, key)
