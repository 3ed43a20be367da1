"""A trusted proxy's header names the client; from any other address the header is ignored."""

import pytest

from controlplane.platform.core import tokens
from controlplane.platform.core.settings import load, settings
from controlplane.platform.table.table import table
from tests.support.api import Api
from tests.support.browser import Browser, text_of
from tests.support.each import each

CLIENT, PROXY, ELSEWHERE = "198.51.100.7", "192.0.2.10", "203.0.113.9"
NETWORK = "192.0.2.0/24"
BODY = {"clientId": "assent-cli", "codeChallenge": "x" * 43, "codeChallengeMethod": "S256"}
LIMITED = [201] * 10 + [429]


def counted():
    """Returns the addresses that have a counter."""
    items = table.client.scan(TableName=table.name)["Items"]
    return {item["pk"]["S"].split("#", 2)[2] for item in items if item["pk"]["S"].startswith("IP#")}


def request_code(header, source=PROXY, name="X-Forwarded-For"):
    return Api(source_ip=source).post("/v1/auth/device/code", json_body=BODY, headers={name: header})


def test_device_requests_and_sign_ins_are_limited_by_the_clients_address(proxy):
    proxy(NETWORK)
    assert [request_code(CLIENT).status for _ in range(11)] == LIMITED
    assert request_code(ELSEWHERE).status == 201
    Api(source_ip=PROXY).get("/signed-out", headers={"X-Forwarded-For": "198.51.100.9"})
    assert counted() == {CLIENT, ELSEWHERE, "198.51.100.9"}


@each(("trusted", "source"), [((), PROXY), ((NETWORK,), ELSEWHERE)])
def test_a_client_that_isnt_the_proxy_cant_choose_its_address(trusted, source, proxy):
    if trusted:
        proxy(*trusted)
    assert [request_code(f"198.51.100.{n}", source).status for n in range(11)] == LIMITED
    assert source in counted() <= {PROXY, ELSEWHERE}


def test_rejected_credentials_are_limited_by_the_clients_address(proxy, limit):
    proxy(NETWORK)
    limit(rejected_credentials_per_minute=1)
    api = Api(source_ip=PROXY)
    for secret in (tokens.mint("assent"), "x"):
        for client in (CLIENT, ELSEWHERE):
            statuses = [api.get("/v1/me", secret, headers={"X-Forwarded-For": client}).status for _ in range(2)]
            assert statuses == [401, 429]
    assert counted() == {CLIENT, ELSEWHERE}


def test_the_approval_page_shows_the_clients_address(proxy, world):
    proxy(NETWORK)
    code = request_code(f"1.2.3.4, {CLIENT}").data["userCode"]
    visitor = Browser(Api()).signed_in(world.person().user_id)
    visitor.get("/device")
    text = text_of(visitor.press("Continue", fill={"Code": code}))
    assert (CLIENT in text, "1.2.3.4" in text) == (True, False)


def loaded(addresses):
    return load({"TABLE_NAME": "abc", "SIGNING_SECRET": "x" * 32, "TRUSTED_PROXY_ADDRESSES": addresses})


def test_the_setting_accepts_addresses_and_networks_of_both_versions():
    made = loaded("192.0.2.7,192.0.2.7/24,2001:db8::/32")
    assert [str(it) for it in made.trusted_proxy_addresses] == ["192.0.2.7/32", "192.0.2.0/24", "2001:db8::/32"]
    assert (made.trusted_proxy_header, settings.trusted_proxy_addresses) == (None, ())


@each("value", ["192.0.2.7/33", "192.0.2.7,", "proxy", "192.0.2.7 192.0.2.8"])
def test_any_other_value_of_the_setting_fails_at_startup(value):
    with pytest.raises(ValueError, match="trusted_proxy_addresses"):
        loaded(value)
