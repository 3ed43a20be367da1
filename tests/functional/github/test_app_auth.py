"""Authentication as the App, and the lifetime of its tokens."""

import base64
import json

import boto3
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from moto import mock_aws

from controlplane.core.settings import settings
from controlplane.github import app_auth
from controlplane.github.app_auth import READ_CODE, WRITE_ISSUES, AppAuth, Scope
from controlplane.github.client import CodeHost
from controlplane.github.errors import (
    AccessLost,
    AppKeyUnreadable,
    AppNotConfigured,
    HostUnavailable,
    InvalidName,
    Refused,
    RepositoryGone,
)
from controlplane.github.transport import Deadline
from local.github import setup
from local.github.faults import Fault
from local.github.repositories import stable_id
from local.github.setup import DEMO_NAME, DEMO_OWNER, installation_id, key_file
from local.github.stand_in import Denied
from tests.support.each import each

DEMO = (DEMO_OWNER, DEMO_NAME)
TOKENS = "POST /app/installations/{installation_id}/access_tokens"
REPOSITORY = "GET /repos/{owner}/{repo}"
ELLIPTIC_KEY = (
    ec.generate_private_key(ec.SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
)


def claims(request) -> dict:
    segment = request.headers["authorization"].split(".")[1]
    return json.loads(base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4)))


def bend_clock(monkeypatch, now, ahead_seconds: float) -> None:
    """Offsets the client's clock only. The stand-in and the client normally share one."""

    class Bent:
        @staticmethod
        def now() -> float:
            return now.seconds + ahead_seconds

    monkeypatch.setattr(app_auth, "clock", Bent)


def bought(code_host) -> int:
    return len(code_host.sent(TOKENS))


class TestAppToken:
    def test_the_app_token_is_valid_for_ten_minutes_starting_a_minute_ago(self, code_host, now):
        code_host.host().get_repository(*DEMO)
        (request,) = code_host.sent(TOKENS)
        assert claims(request) == {"iat": int(now.seconds) - 60, "exp": int(now.seconds) + 540, "iss": "1"}

    @pytest.mark.parametrize("ahead_seconds", [-86_400, -700, 700, 86_400])
    def test_the_app_token_follows_the_hosts_clock_if_ours_is_wrong(self, code_host, now, monkeypatch, ahead_seconds):
        bend_clock(monkeypatch, now, ahead_seconds)
        host = code_host.host()
        assert host.get_repository(*DEMO).name == DEMO_NAME
        assert bought(code_host) == 2
        host.get_repository(*DEMO)
        assert bought(code_host) == 2

    @pytest.mark.parametrize("ahead_seconds", [-60, 59])
    def test_the_app_token_tolerates_clocks_that_differ_by_a_minute(self, code_host, now, monkeypatch, ahead_seconds):
        bend_clock(monkeypatch, now, ahead_seconds)
        code_host.host().get_repository(*DEMO)
        assert bought(code_host) == 1

    def test_the_app_token_is_signed_with_the_current_key_after_a_rotation(self, code_host, tmp_path):
        current = key_file(code_host.root).read_text()
        setup._write_key(tmp_path / "old.pem")
        keys = [(tmp_path / "old.pem").read_text(), current]
        transport = code_host.transport()
        host = CodeHost(transport, AppAuth(transport, "1", lambda: keys.pop(0)), installation_id(DEMO_OWNER))
        assert host.get_repository(*DEMO).name == DEMO_NAME
        assert keys == []

    def test_a_wrong_key_or_app_is_refused_after_one_retry(self, code_host, tmp_path):
        setup._write_key(tmp_path / "other.pem")
        other, ours = (tmp_path / "other.pem").read_text(), key_file(code_host.root).read_text()
        for app_id, key in (("1", other), ("2", ours)):
            transport = code_host.transport()
            host = CodeHost(transport, AppAuth(transport, app_id, lambda key=key: key), installation_id(DEMO_OWNER))
            with pytest.raises(Refused) as caught:
                host.get_repository(*DEMO)
            assert caught.value.status == 401
        assert bought(code_host) == 4
        assert code_host.sent(REPOSITORY) == []


class TestInstallationToken:
    def test_an_installation_token_is_reused(self, code_host):
        host = code_host.host()
        for _ in range(3):
            host.get_repository(*DEMO)
        assert bought(code_host) == 1

    def test_an_installation_token_is_reused_until_shortly_before_it_expires(self, code_host, now):
        host = code_host.host()
        host.get_repository(*DEMO)
        now.advance(3600 - 301)
        host.get_repository(*DEMO)
        assert bought(code_host) == 1
        now.advance(1)
        host.get_repository(*DEMO)
        assert bought(code_host) == 2

    def test_an_installation_token_belongs_to_one_installation(self, code_host, tmp_path):
        (tmp_path / "files").mkdir()
        (tmp_path / "files" / "a").write_text("a")
        code_host.stand_in.repositories.create("other-owner", "shop", tmp_path / "files")
        transport = code_host.transport()
        auth = code_host.auth(transport)
        CodeHost(transport, auth, installation_id(DEMO_OWNER)).get_repository(*DEMO)
        CodeHost(transport, auth, installation_id("other-owner")).get_repository("other-owner", "shop")
        assert bought(code_host) == 2

    def test_an_installation_token_covers_one_repository_and_one_purpose(self, code_host, tmp_path):
        (tmp_path / "a").write_text("a")
        code_host.stand_in.repositories.create(DEMO_OWNER, "other", tmp_path)
        auth = code_host.auth()
        for purpose in (READ_CODE, WRITE_ISSUES):
            token = auth.authorization(Scope(installation_id(DEMO_OWNER), *DEMO, purpose), Deadline(3))
            held = code_host.stand_in.check_token(token)
            assert held.permissions == dict(purpose)
            find = code_host.stand_in.get_repository
            assert find(held, *DEMO, "metadata", "read").name == DEMO_NAME
            with pytest.raises(Denied, match="Not Found"):
                find(held, DEMO_OWNER, "other", "metadata", "read")

    def test_a_renamed_repositorys_token_is_requested_by_number(self, code_host):
        code_host.stand_in.faults.renamed["demo-shop/old-name"] = "demo-shop/storefront"
        host = code_host.host()
        assert host.get_repository(DEMO_OWNER, "old-name").name == DEMO_NAME
        by_name, finder, by_number = (request.body for request in code_host.sent(TOKENS))
        assert by_name == {"permissions": dict(READ_CODE), "repositories": ["old-name"]}
        assert finder == {"permissions": {"metadata": "read"}}
        number = stable_id("demo-shop/storefront")
        assert by_number == {"permissions": dict(READ_CODE), "repository_ids": [number]}
        host.get_repository(DEMO_OWNER, "old-name")
        assert bought(code_host) == 3

    @pytest.mark.parametrize(
        ("fault", "error"), [(Fault(403), AccessLost), (Fault(200, content={"id": "x"}), HostUnavailable)]
    )
    def test_no_token_is_issued_for_a_renamed_repository_that_cant_be_looked_up(self, code_host, fault, error):
        code_host.stand_in.faults.renamed["demo-shop/old-name"] = "demo-shop/storefront"
        code_host.stand_in.faults.add(REPOSITORY, fault)
        with pytest.raises(error):
            code_host.host().get_repository(DEMO_OWNER, "old-name")
        assert bought(code_host) == 2
        code_host.exchanges.clear()

    def test_no_token_is_issued_for_a_missing_repository(self, code_host):
        with pytest.raises(RepositoryGone):
            code_host.host().get_repository(DEMO_OWNER, "nothing")

    def test_no_token_is_issued_without_the_permission(self, code_host):
        code_host.stand_in.faults.withheld[installation_id(DEMO_OWNER)] = {"issues"}
        with pytest.raises(AccessLost):
            code_host.host().create_issue(*DEMO, "Title", "Body")

    def test_an_expired_installation_token_is_not_reused(self, code_host, now):
        auth = code_host.auth()
        auth.authorization(Scope(installation_id(DEMO_OWNER), *DEMO, READ_CODE), Deadline(3))
        now.advance(3600)
        auth.authorization(Scope(installation_id(DEMO_OWNER), *DEMO, WRITE_ISSUES), Deadline(3))
        assert [scope.purpose for scope in auth._tokens] == [WRITE_ISSUES]

    def test_a_revoked_installation_token_is_replaced_once(self, code_host):
        host = code_host.host()
        host.get_repository(*DEMO)
        code_host.stand_in.revoke_tokens()
        assert host.create_issue(*DEMO, "Title", "Body").number == 1
        assert host.get_repository(*DEMO)
        assert bought(code_host) == 3

    def test_an_installation_token_that_is_always_rejected_is_not_replaced_forever(self, code_host):
        code_host.stand_in.faults.add(REPOSITORY, *[Fault(401)] * 5)
        with pytest.raises(Exception, match="AccessLost"):
            code_host.host().get_repository(*DEMO)
        assert len(code_host.sent(REPOSITORY)) == 2

    @pytest.mark.parametrize("content", [{}, {"token": "a"}, {"token": "a", "expires_at": "soon"}, []])
    def test_a_response_without_an_installation_token_is_an_error(self, code_host, content):
        code_host.stand_in.faults.add(TOKENS, Fault(201, content=content or {"none": True}))
        with pytest.raises(HostUnavailable):
            code_host.host().get_repository(*DEMO)
        code_host.exchanges.clear()

    @pytest.mark.parametrize("number", [0, -1])
    def test_no_token_is_requested_for_an_invalid_installation(self, code_host, number):
        with pytest.raises(InvalidName):
            CodeHost(code_host.transport(), code_host.auth(), number).get_repository(*DEMO)

    def test_representations_never_show_an_installation_token(self, code_host):
        auth = code_host.auth()
        authorization = auth.authorization(Scope(installation_id(DEMO_OWNER), *DEMO, READ_CODE), Deadline(3))
        assert authorization.startswith("Bearer ghs_")
        assert authorization[7:] not in repr([auth, vars(auth), auth._tokens])


class TestPrivateKey:
    def test_the_private_key_is_read_for_each_signature_and_not_cached(self, code_host, now):
        pem, reads = key_file(code_host.root).read_text(), []
        transport = code_host.transport()
        auth = AppAuth(transport, "1", lambda: reads.append(1) or pem)
        host = CodeHost(transport, auth, installation_id(DEMO_OWNER))
        host.get_repository(*DEMO)
        host.get_repository(*DEMO)
        assert len(reads) == 1
        now.advance(3600)
        host.get_repository(*DEMO)
        assert len(reads) == 2
        assert pem not in vars(auth).values()
        assert not [name for name, value in vars(app_auth).items() if hasattr(value, "cache_info")]

    @pytest.fixture
    def configure(self, monkeypatch):
        def change(**variables: str) -> None:
            monkeypatch.setattr(app_auth, "settings", settings.model_copy(update=variables))

        return change

    def test_the_private_key_comes_from_a_file_in_a_local_run(self, configure, code_host):
        configure(github_app_private_key_file=str(key_file(code_host.root)))
        assert app_auth.read_configured_key() == key_file(code_host.root).read_text()

    def test_the_client_secret_is_sent_without_the_end_of_its_line(self, configure, tmp_path):
        (tmp_path / "secret").write_text("a secret\n")
        configure(github_client_secret_file=str(tmp_path / "secret"))
        assert app_auth.read_client_secret() == "a secret"

    @mock_aws
    def test_the_private_key_comes_from_secrets_manager_on_aws(self, configure):
        secrets = boto3.client("secretsmanager")
        arn = secrets.create_secret(Name="github-app", SecretString="-----BEGIN")["ARN"]
        configure(github_app_secret_arn=arn)
        assert app_auth.read_configured_key() == "-----BEGIN"

    @mock_aws
    @pytest.mark.parametrize(
        "variables",
        [
            {"github_app_private_key_file": "/nowhere/app-key.pem"},
            {"github_app_secret_arn": "arn:aws:secretsmanager:eu-central-1:123456789012:secret:none-AbCdEf"},
        ],
    )
    def test_a_missing_private_key_is_unreadable(self, configure, variables):
        configure(**variables)
        with pytest.raises(AppKeyUnreadable):
            app_auth.read_configured_key()

    def test_an_unnamed_private_key_is_not_configured(self, configure):
        configure()
        with pytest.raises(AppNotConfigured):
            app_auth.read_configured_key()

    def test_a_private_key_without_the_apps_id_is_not_configured(self, code_host):
        transport = code_host.transport()
        with pytest.raises(AppNotConfigured):
            CodeHost(transport, AppAuth(transport, None, lambda: "key"), 1).get_repository(*DEMO)

    @each("key", ["", "key", "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----", ELLIPTIC_KEY])
    def test_the_private_key_must_be_an_rsa_key(self, key):
        with pytest.raises(AppKeyUnreadable):
            app_auth.sign({}, key)
