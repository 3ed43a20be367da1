"""Signing in through the device grant, and renewing the tokens of a profile."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from cli.tests.support.script import ADDRESS
from controlplane.people import device_approvals
from openassent import Assent, Device
from openassent_cli import credentials, profiles
from openassent_cli.profiles import Profile
from openassent_cli.session import ProfileAuth, tokens_of
from tests.functional.command_line.cases import DASHBOARD
from tests.functional.command_line.conftest import Shell

SCOPES = ["organizations.read", "projects.read"]


@pytest.fixture
def approving(gateway, office, now, monkeypatch):
    """The owner approves each code while the device waits. Returns the pages that were opened."""
    opened: list[str] = []

    def sleep(seconds: float) -> None:
        now.advance(seconds + 1)
        code = opened[-1].rpartition("=")[2]
        device_approvals.approve(code, office.company.owner.user_id, SCOPES)

    monkeypatch.setattr("openassent._sync.device.sleep", sleep)
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setenv("BROWSER", "chromium")
    return opened


class TestLogin:
    LINE = f"login --base-url {ADDRESS} --scope organizations.read --scope projects.read"

    def test_signs_in_with_the_scopes(self, approving):
        shell = Shell()
        ended = shell.run(self.LINE)
        assert ended.code == 0, ended.stderr
        assert "Your code is " in ended.stderr
        assert f"Approve it at {approving[0]}\n" in ended.stderr
        assert f"You are signed in to {ADDRESS}, with 2 organizations.\n" in ended.stderr
        assert shell.run("whoami --json").json["scopes"] == SCOPES
        assert shell.run("key list").code == 5

    def test_says_which_scopes_exist(self, gateway):
        ended = Shell().run(f"login --base-url {ADDRESS} --scope nope")
        assert ended.code == 2
        assert ended.stderr.startswith("Error: There is no scope nope.\nThe scopes are api-keys.read, ")

    @pytest.mark.parametrize(
        ("line", "said"),
        [
            ("login", "Error: This needs the address of the service.\nGive --base-url.\n"),
            ("login --base-url http://api.assent.test", "Use an https URL."),
        ],
    )
    def test_needs_an_encrypted_address(self, line, said, gateway):
        ended = Shell().run(line)
        assert (ended.code, gateway.requests) == (2, [])
        assert said in ended.stderr

    @pytest.mark.parametrize("endpoint", ["device_authorization_endpoint", "token_endpoint"])
    @pytest.mark.parametrize("service", ["https://elsewhere.test", ADDRESS.replace("https", "http")])
    def test_sends_no_code_to_a_service_that_only_the_metadata_names(self, endpoint, service, gateway, monkeypatch):
        ordinary = Device.metadata
        elsewhere = {endpoint: f"{service}/v1/auth/device"}
        monkeypatch.setattr(Device, "metadata", lambda device: ordinary(device).model_copy(update=elsewhere))
        ended = Shell().run(self.LINE)
        assert ended.code == 1
        assert ended.stderr.startswith(f"Error: The metadata of {ADDRESS} names another service: {service}/")
        assert {request.method for request in gateway.requests} == {"GET"}

    @pytest.mark.parametrize(("before", "kept"), [(ADDRESS, True), ("https://elsewhere.test", False)])
    def test_keeps_the_organization_of_the_same_service(self, before, kept, approving, office):
        profiles.save("default", Profile(before, office.names["second"]))
        assert Shell().run(self.LINE).code == 0
        assert profiles.find("default") == Profile(ADDRESS, office.names["second"] if kept else None, DASHBOARD)


class TestRenewal:
    @pytest.fixture
    def device(self, threads, office):
        """A client without a credential, of a machine whose access token has expired."""
        client = Assent(base_url=ADDRESS)
        login = client.device.start(scopes=SCOPES)
        device_approvals.approve(login.code.user_code, office.company.owner.user_id, SCOPES)
        tokens = tokens_of(client.device.redeem(login))
        credentials.store().save("default", replace(tokens, expires_at=time.time() - 1))
        threads.requests.clear()
        return client

    def ask(self, device: Assent) -> str:
        with Assent(base_url=ADDRESS, auth=ProfileAuth("default", device.device)) as client:
            return str(client.me.get().principal.user_id)

    def test_is_done_once_for_all_commands_that_run(self, device, threads, office):
        with ThreadPoolExecutor(10) as pool:
            users = [*pool.map(lambda _: self.ask(device), range(10))]
        assert users == [office.company.owner.user_id] * 10
        assert threads.count("/v1/auth/device/token") == 1
        assert threads.count("/v1/me") == 10
        assert self.ask(device) == office.company.owner.user_id

    def test_follows_the_refusal_of_a_token_before_its_end(self, device, threads, office):
        stored = credentials.store().load("default")
        assert stored is not None
        expired = replace(stored, access_token="assent_at_ended_early", expires_at=time.time() + 600)
        credentials.store().save("default", expired)
        assert self.ask(device) == office.company.owner.user_id
        assert threads.count("/v1/me") == 2
