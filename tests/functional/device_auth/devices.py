"""A device that requests authorization, for the tests of `device_auth`. It can use JSON or OAuth's form encoding."""

import base64
import hashlib
import re
from dataclasses import dataclass
from typing import Any

from controlplane.people import device, device_approvals
from controlplane.people.device import DeviceRequestItem
from tests.support.api import Api, Reply

CODE = "/v1/auth/device/code"
TOKEN = "/v1/auth/device/token"
REVOKE = "/v1/auth/device/revoke"
CLIENT = "assent-cli"
DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
OTHER_VERIFIER = "x" * 43

# The body of a response with an access token and a refresh token.
type Tokens = dict[str, Any]


def challenge_of(verifier: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")


def code_body(**changed: Any) -> dict[str, Any]:
    """Returns the JSON body of a code request; None omits a field."""
    body = {"clientId": CLIENT, "codeChallenge": challenge_of(VERIFIER), "codeChallengeMethod": "S256", **changed}
    return {name: value for name, value in body.items() if value is not None}


def in_form(name: str) -> str:
    """Returns the name of a JSON field in OAuth's form encoding."""
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def form_of(body: dict[str, Any]) -> dict[str, Any]:
    """Returns the same request or response in OAuth's form encoding; None omits a field."""
    return {in_form(name): value for name, value in body.items() if value is not None}


@dataclass
class Device:
    """A device with its two codes."""

    api: Api
    device_code: str
    user_code: str

    def redeem(self, **changed: Any) -> Reply:
        body = {"deviceCode": self.device_code, "codeVerifier": VERIFIER, "clientId": CLIENT, **changed}
        return self.api.post(TOKEN, json_body={name: value for name, value in body.items() if value is not None})

    def redeem_by_form(self, **changed: Any) -> Reply:
        body = {"deviceCode": self.device_code, "codeVerifier": VERIFIER, "clientId": CLIENT}
        return self.api.form(TOKEN, form_of({"grantType": DEVICE_GRANT, **body, **changed}))

    def approved(self, user_id: str, scopes: list[str] | None = None) -> "Device":
        """Returns the same device, approved by this person."""
        device_approvals.approve(self.user_code, user_id, ["projects.read"] if scopes is None else scopes)
        return self


def get_request(device_code: str) -> DeviceRequestItem:
    """Returns the stored request, which must exist."""
    request = device.find(device_code)
    assert request is not None
    return request


def request_code(api: Api, **changed: Any) -> Device:
    """Requests a code. Returns the new device."""
    data = api.post(CODE, json_body=code_body(**changed)).data
    return Device(api, data["deviceCode"], data["userCode"])


def refresh(api: Api, refresh_token: str, **more: Any) -> Reply:
    return api.post(TOKEN, json_body={"refreshToken": refresh_token, **more})


def refresh_by_form(api: Api, refresh_token: str, **more: str) -> Reply:
    return api.form(TOKEN, form_of({"grantType": "refresh_token", "refreshToken": refresh_token, **more}))


def works(api: Api, access_token: str) -> bool:
    """Returns whether the access token is valid."""
    reply = api.get("/v1/me", access_token)
    assert reply.status in {200, 401}
    return reply.status == 200
