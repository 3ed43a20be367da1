"""A generic OAuth library signs in, refreshes, and signs out, configured only with the metadata URL."""

from typing import Any

import pytest
import requests
from authlib.common.security import generate_token
from authlib.integrations.requests_client import OAuth2Session, OAuthError
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oauth2.rfc8414 import AuthorizationServerMetadata, get_well_known_url

from controlplane.people import device_approvals
from tests.functional.device_auth.devices import CLIENT, DEVICE_GRANT, TOKEN, code_body, form_of
from tests.support.api import Api

ADDRESS = "https://api.assent.test"


class _Gateway(requests.adapters.BaseAdapter):
    """Forwards the library's requests to the functions, as the gateway does."""

    def __init__(self, api: Api) -> None:
        super().__init__()
        self.api = api

    def send(self, request: requests.PreparedRequest, *args: Any, **options: Any) -> requests.Response:
        assert request.url is not None
        body = request.body.encode() if isinstance(request.body, str) else request.body
        target = request.url.removeprefix(ADDRESS)
        reply = self.api.call(request.method, target, raw_body=body, headers=dict(request.headers))
        response = requests.Response()
        response.status_code, response.request, response.url = reply.status, request, request.url
        response.headers.update(reply.headers)
        response._content = reply.text.encode()
        return response

    def close(self) -> None:
        pass


@pytest.fixture
def client(api):
    with OAuth2Session(CLIENT, token_endpoint_auth_method="none", scope="organizations.read") as session:
        session.mount(ADDRESS, _Gateway(api))
        yield session


def ask(client: OAuth2Session, endpoint: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Requests a code. Returns the response, and the parameters with which the library polls."""
    verifier = generate_token(64)
    body = code_body(scope="organizations.read projects.read", codeChallenge=create_s256_code_challenge(verifier))
    asked = client.post(endpoint, data=form_of(body), withhold_token=True).json()
    poll = {"grant_type": DEVICE_GRANT, "device_code": asked["device_code"], "code_verifier": verifier}
    return asked, {"url": ADDRESS + TOKEN, **poll}


def test_an_oauth_library_signs_in_refreshes_and_signs_out(client, person, now):
    found = client.get(get_well_known_url(ADDRESS, external=True), withhold_token=True)
    metadata = AuthorizationServerMetadata(found.json())
    metadata.validate()
    assert metadata["issuer"] == ADDRESS
    asked, poll = ask(client, metadata["device_authorization_endpoint"])
    device_approvals.deny(asked["user_code"], person.user_id)
    with pytest.raises(OAuthError, match="access_denied"):
        client.fetch_token(**poll)
    asked, poll = ask(client, metadata["device_authorization_endpoint"])
    assert poll["url"] == metadata["token_endpoint"]
    for refusal in ("authorization_pending", "slow_down"):
        with pytest.raises(OAuthError, match=refusal):
            client.fetch_token(**poll)
    device_approvals.approve(asked["user_code"], person.user_id, ["organizations.read"])
    now.advance(asked["interval"] + 5)
    token = client.fetch_token(**poll)
    assert token["scope"] == "organizations.read"
    assert client.get(f"{ADDRESS}/v1/me").json()["data"]["principal"]["userId"] == person.user_id
    now.advance(token["expires_in"])
    assert client.get(f"{ADDRESS}/v1/me", withhold_token=True).status_code == 401
    renewed = client.refresh_token(metadata["token_endpoint"], refresh_token=token["refresh_token"])
    assert renewed["refresh_token"] != token["refresh_token"]
    assert client.get(f"{ADDRESS}/v1/me").status_code == 200
    assert client.revoke_token(metadata["revocation_endpoint"], token=renewed["refresh_token"]).status_code == 200
    assert client.get(f"{ADDRESS}/v1/me").status_code == 401
    with pytest.raises(OAuthError, match="invalid_grant"):
        client.refresh_token(metadata["token_endpoint"], refresh_token=renewed["refresh_token"])
