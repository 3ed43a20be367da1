"""GET /.well-known/oauth-authorization-server: strictly follows RFC 8414."""

import pytest
from authlib.oauth2.rfc8414 import AuthorizationServerMetadata

from controlplane.platform.core.scopes import SCOPES
from controlplane.platform.core.settings import settings
from tests.support.api import Api
from tests.support.operations import operations

PATH = "/.well-known/oauth-authorization-server"


def test_the_metadata_is_that_of_rfc_8414_and_describes_the_server(api: Api):
    reply = api.get(PATH, "garbage")
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    assert reply.headers["cache-control"] == "public, max-age=300"
    AuthorizationServerMetadata(reply.body).validate()
    assert reply.body == {
        "issuer": "https://api.assent.test",
        "device_authorization_endpoint": "https://api.assent.test/v1/auth/device/code",
        "token_endpoint": "https://api.assent.test/v1/auth/device/token",
        "revocation_endpoint": "https://api.assent.test/v1/auth/device/revoke",
        "grant_types_supported": ["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"],
        "response_types_supported": ["none"],
        "scopes_supported": sorted(SCOPES),
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "service_documentation": "https://api.assent.test/docs",
    }


@pytest.mark.parametrize("name", ["device_authorization_endpoint", "token_endpoint", "revocation_endpoint"])
def test_the_metadata_names_existing_endpoints_that_accept_forms(api: Api, name: str):
    path = api.get(PATH).body[name].removeprefix("https://api.assent.test")
    assert f"POST {path}" in {operation.name for operation in operations()}
    assert api.form(path, {"x": "y"}).body["error"] == "invalid_request"


def test_returns_404_without_device_authorization(api: Api, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(settings.__dict__, "device_authorization_enabled", False)
    reply = api.get(PATH)
    assert (reply.status, reply.code) == (404, "NOT_FOUND")
    assert reply.text == api.get("/.well-known/nowhere").text
