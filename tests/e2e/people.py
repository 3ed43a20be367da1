"""The users of the deployed product: people with a browser, their devices, and the operator."""

import json
import re
import secrets
import sys
from dataclasses import dataclass, field
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx

from tests.e2e.deployment import REGION, STACK, Stack, run
from tests.support.api import FORM, Api, Reply
from tests.support.browser import Browser
from tests.support.world import ALL_SCOPES

_FORM_TAG = re.compile(r'<form method="POST" action="([^"]+)">')
_HIDDEN_FIELD = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)">')
# From RFC 7636, appendix B.
_VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
_CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
_CLIENT = "assent-cli"


@dataclass
class Caller:
    """A client of the deployed API that checks the status of each response."""

    stack: Stack
    token: str | None = field(repr=False)

    def __call__(self, expected: int, method: str, target: str, body: Any = None, **headers: str) -> Any:
        return self.ask(expected, method, target, body, **headers).data

    def ask(self, expected: int, method: str, target: str, body: Any = None, **headers: str) -> Reply:
        """Returns the whole response."""
        reply = self.stack.call(method, target, self.token, json_body=body, headers=headers)
        assert reply.status == expected, f"{method} {target}: {reply.text}\n{self.stack.errors()}"
        return reply


@dataclass
class _Gateway(Api):
    """The deployed API, for a browser of tests/support."""

    stack: Stack = field(kw_only=True)

    def call(self, method: str, target: str, token: str | None = None, **options: Any) -> Reply:
        return self.stack.call(method, target, token, **options)


class Person:
    """A person with an account in the deployed user pool, and a browser without scripts."""

    def __init__(self, stack: Stack, email: str, name: str) -> None:
        self.email = email
        self.name = name
        self.browser = Browser(_Gateway(stack=stack))
        self._stack = stack
        self._password = secrets.token_urlsafe(16)
        stack.secrets.add(self._password)
        pool, pool_id = stack.client("cognito-idp"), stack.physical_ids["UserPool"]
        attributes = {"email": email, "email_verified": "true", "name": name}
        pool.admin_create_user(
            UserPoolId=pool_id,
            Username=email,
            UserAttributes=[{"Name": key, "Value": value} for key, value in attributes.items()],
            MessageAction="SUPPRESS",
        )
        pool.admin_set_user_password(UserPoolId=pool_id, Username=email, Password=self._password, Permanent=True)

    def sign_in(self, page: str) -> Reply:
        """Opens one of our pages after signing in at the user pool. Returns the page."""
        begun = self.open(303, f"/sign-in?return_to={page}")
        with httpx.Client(trust_env=False) as elsewhere:
            shown = elsewhere.get(begun.headers["location"])
            assert shown.status_code == 200, shown.text
            form = _FORM_TAG.search(shown.text)
            assert form is not None, shown.text
            fields = {name: unescape(value) for name, value in _HIDDEN_FIELD.findall(shown.text)}
            fields |= {"username": self.email, "password": self._password}
            sent_back = elsewhere.post(urljoin(str(shown.url), form[1]), data=fields)
        callback = sent_back.headers.get("location", "")
        assert callback.startswith(f"{self._stack.outputs['BaseUrl']}/sign-in/callback?"), sent_back.text
        self._stack.secrets.update(parse_qs(urlsplit(callback).query)["code"])
        arrived = self.open(303, callback)
        return self.open(200, arrived.headers["location"])

    def open(self, expected: int, target: str) -> Reply:
        reply = self.browser.get(target)
        assert reply.status == expected, f"{target}: {reply.text}\n{self._stack.errors()}"
        return reply

    def press(self, expected: int, label: str, near: str = "") -> Reply:
        """Presses the button on the current page."""
        reply = self.browser.press(label, near=near)
        assert reply.status == expected, f"{label}: {reply.text}\n{self._stack.errors()}"
        return reply

    def press_and_follow(self, label: str, near: str = "") -> Reply:
        """Presses the button on the current page, and returns the page that it leads to."""
        return self.open(200, self.press(303, label, near).headers["location"])


class Device:
    """A command line that requests authorization with device codes, as every device does."""

    def __init__(self, stack: Stack, name: str) -> None:
        self._stack = stack
        body = {
            "clientId": _CLIENT,
            "codeChallenge": _CHALLENGE,
            "codeChallengeMethod": "S256",
            "scope": " ".join(ALL_SCOPES),
            "deviceName": name,
        }
        asked = Caller(stack, None)(201, "POST", "/v1/auth/device/code", body)
        self.link = asked["verificationUriComplete"]
        self.user_code = asked["userCode"]
        self._device_code = asked["deviceCode"]
        self.access_token = ""
        self._refresh_token = ""

    def poll(self) -> Reply:
        body = {"deviceCode": self._device_code, "codeVerifier": _VERIFIER, "clientId": _CLIENT}
        return self._stack.call("POST", "/v1/auth/device/token", json_body=body)

    def redeem(self) -> None:
        """Redeems the device code for the tokens that the person approved."""
        reply = self.poll()
        assert reply.status == 200, f"{reply.text}\n{self._stack.errors()}"
        self.access_token, self._refresh_token = reply.data["accessToken"], reply.data["refreshToken"]

    def refresh(self) -> Reply:
        """Returns the next pair of tokens, requested as OAuth libraries do."""
        reply = self._send_form("token", f"grant_type=refresh_token&refresh_token={self._refresh_token}")
        if reply.status == 200:
            self.access_token, self._refresh_token = reply.body["access_token"], reply.body["refresh_token"]
        return reply

    def sign_out(self) -> Reply:
        return self._send_form("revoke", f"token={self._refresh_token}")

    def approved_by(self, person: Person) -> None:
        """Opens the device's link as the person, reviews the request, and approves it."""
        person.open(200, self.link)
        person.press(200, "Continue")
        person.press(200, "Approve")

    def _send_form(self, operation: str, form: str) -> Reply:
        headers = {"Content-Type": FORM}
        return self._stack.call("POST", f"/v1/auth/device/{operation}", raw_body=form.encode(), headers=headers)


@dataclass(frozen=True)
class Operator:
    """assent-ops against the deployed stack."""

    stack: Stack

    def __call__(self, *command: str) -> Any:
        """Runs the command and returns its JSON result."""
        where = ("--stack", STACK, "--region", REGION, "--endpoint-url", self.stack.endpoint_url, "--json")
        return json.loads(run(sys.executable, "-m", "ops", *command, *where, PYTHONPATH="functions:layers/shared:."))
