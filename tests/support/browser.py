"""A browser without JavaScript for functional tests of pages: it stores cookies and submits forms with their values."""

import re
from dataclasses import dataclass, field
from html import unescape
from typing import Any
from urllib.parse import urlencode

from controlplane.http import web_session
from controlplane.store import sessions
from tests.support.api import FORM, Api, Reply

_FORM = re.compile(r'<form[^>]*\smethod="post"[^>]*\saction="([^"]*)"[^>]*>(.*?)</form>', re.DOTALL)
_INPUT = re.compile(r"<input([^>]*)>")


@dataclass
class Browser:
    """Requests pages through `api` and sends back the cookies that they set."""

    api: Api
    cookies: dict[str, str] = field(default_factory=dict)
    last: Reply | None = None

    def get(self, target: str, **headers: str) -> Reply:
        return self._keep(self.api.get(target, headers={**self._cookie_header(), **headers}))

    def post(self, target: str, fields: dict[str, str], **headers: str) -> Reply:
        sent = {"Content-Type": FORM, **self._cookie_header(), **headers}
        return self._keep(self.api.call("POST", target, raw_body=urlencode(fields).encode(), headers=sent))

    def submit(self, action: str, **changes: str) -> Reply:
        """Submits the last page's first form with that action, with some fields changed."""
        assert self.last is not None
        fields = self.forms()[action][0]
        return self.post(action, {**fields, **changes})

    def follow(self, reply: Reply) -> Reply:
        """Follows the redirect after a form."""
        assert reply.status == 303, reply.text
        return self.get(reply.headers["location"])

    def forms(self) -> dict[str, list[dict[str, str]]]:
        """Returns the fields of each form of the last page, by action."""
        assert self.last is not None
        found: dict[str, list[dict[str, str]]] = {}
        for action, inside in _FORM.findall(self.last.text):
            fields = [dict(re.findall(r'([\w-]+)="([^"]*)"', attributes)) for attributes in _INPUT.findall(inside)]
            values = {field["name"]: unescape(field.get("value", "")) for field in fields}
            found.setdefault(unescape(action), []).append(values)
        return found

    def signed_in(self, user_id: str) -> "Browser":
        """Adds a session of the user with its note, and returns the browser."""
        for cookie in web_session.session_cookies(sessions.create(user_id), user_id, sessions.LIFE_SECONDS):
            name, _, rest = cookie.partition("=")
            self.cookies[name] = rest.partition(";")[0]
        return self

    @property
    def secret(self) -> str:
        return self.cookies[web_session.cookie_name("session")]

    @property
    def form_token(self) -> str:
        return web_session.form_token(self.secret)

    def _cookie_header(self) -> dict[str, str]:
        return {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())} if self.cookies else {}

    def _keep(self, reply: Reply) -> Reply:
        for cookie in reply.cookies:
            name, _, rest = cookie.partition("=")
            value, _, attributes = rest.partition(";")
            if "Max-Age=0" in attributes:
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = value
        self.last = reply
        return reply


def text_of(reply: Reply) -> str:
    """Returns the page's visible text."""
    body: Any = re.sub(r"<[^>]+>", " ", reply.text.partition("<main")[2])
    return " ".join(unescape(body).split())
