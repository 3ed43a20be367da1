"""A browser without JavaScript for functional tests of pages: it stores cookies, and presses buttons and links."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import unescape
from typing import Any
from urllib.parse import urlencode, urljoin

from controlplane.access import web_session
from controlplane.people import sessions
from tests.support.api import FORM, Api, Reply
from tests.support.page import Entry, Page


@dataclass
class Browser:
    """Requests pages through `api` and sends back the cookies that they set."""

    api: Api
    cookies: dict[str, str] = field(default_factory=dict)
    last: Reply | None = None
    # The target of the last request.
    at: str = ""

    def get(self, target: str, **headers: str) -> Reply:
        return self._keep(target, self.api.get(target, headers={**self._cookie_header(), **headers}))

    def press(
        self,
        label: str,
        *,
        near: str = "",
        fill: Mapping[str, Entry] | None = None,
        forged: Mapping[str, str | None] | None = None,
        on: Reply | None = None,
    ) -> Reply:
        """Presses the button or link with this label, and returns the reply without following a redirect.

        near: a text of the smallest part of the page that has the button, if others have the same label.
        fill: what is entered before, by the labels of the form's fields.
        forged: fields that are sent instead of the form's, or besides them, as no page allows. None: isn't sent.
        on: an earlier page, as in another tab, instead of the last one. A redirect is followed first.
        """
        if on is None and self._reply.status == 303:
            self.follow(self._reply)
        page = Page((on or self._reply).text)
        control = page.control(label, near)
        if control.tag == "a":
            return self.get(urljoin(self.at, control.attributes["href"]))
        method, action, fields = page.send(control, fill or {}, forged or {})
        target = urljoin(self.at, action)
        return (
            self.get(f"{target.partition('?')[0]}?{urlencode(fields)}")
            if method == "get"
            else self._post(target, fields)
        )

    def buttons(self) -> set[str]:
        """Returns the labels of the last page's usable buttons."""
        return {it.text(seen=True) for it in self._page.root.find("button") if it.is_usable()}

    def offers(self, label: str) -> int:
        """Returns how many usable buttons or links with this label the last page has."""
        return len(self._page.controls(label))

    def entered(self, label: str) -> str | None:
        """Returns the value of the last page's field with this label, or None if its box isn't checked."""
        return self._page.field(label).value

    def sends(self, label: str) -> dict[str, str]:
        """Returns the fields that the last page's button with this label sends."""
        page = self._page
        return dict(page.send(page.control(label), {})[2])

    def forge(self, target: str, fields: Mapping[str, str | None] | None = None, **headers: str) -> Reply:
        """Posts fields that no page offers, with the session's form token unless `fields` have another one or None."""
        token = {"form_token": self.form_token} if web_session.cookie_name("session") in self.cookies else {}
        sent = {name: value for name, value in {**token, **(fields or {})}.items() if value is not None}
        return self._post(target, [*sent.items()], **headers)

    def follow(self, reply: Reply) -> Reply:
        """Follows the redirect after a form."""
        assert reply.status == 303, reply.text
        return _stays(self.get(reply.headers["location"]))

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

    @property
    def _reply(self) -> Reply:
        assert self.last is not None
        return self.last

    @property
    def _page(self) -> Page:
        return Page(self._reply.text)

    def _post(self, target: str, fields: list[tuple[str, str]], **headers: str) -> Reply:
        sent = {"Content-Type": FORM, **self._cookie_header(), **headers}
        reply = self.api.call("POST", target, raw_body=urlencode(fields).encode(), headers=sent)
        return self._keep(target, _stays(reply))

    def _cookie_header(self) -> dict[str, str]:
        return {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())} if self.cookies else {}

    def _keep(self, target: str, reply: Reply) -> Reply:
        for cookie in reply.cookies:
            name, _, rest = cookie.partition("=")
            value, _, attributes = rest.partition(";")
            if "Max-Age=0" in attributes:
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = value
        self.last, self.at = reply, target
        return reply


def _stays(reply: Reply) -> Reply:
    """Fails if a form, or the redirect after it, leads to another origin: Chromium blocks that (`form-action`)."""
    location = reply.headers.get("location", "/")
    assert urljoin("https://own", location).startswith("https://own/"), location
    return reply


def text_of(reply: Reply) -> str:
    """Returns the page's visible text."""
    body: Any = re.sub(r"<[^>]+>", " ", reply.text.partition("<main")[2])
    return " ".join(unescape(body).split())
