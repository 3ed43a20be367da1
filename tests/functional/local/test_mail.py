"""SES's stand-in of `make run`: emails are kept, shown, and can come back."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from controlplane.platform.queues.messages import Queue
from emails import delivery
from local import mail
from tests.support.mailbox import PostOffice
from tests.support.world import table_dump


class Client:
    """A browser of the stand-in, without a socket."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app

    def get(self, path: str) -> httpx.Response:
        return self._call("GET", path)

    def post(self, path: str, **sent: Any) -> httpx.Response:
        return self._call("POST", path, **sent)

    def _call(self, method: str, path: str, **sent: Any) -> httpx.Response:
        async def call() -> httpx.Response:
            transport = httpx.ASGITransport(self._app)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                return await client.request(method, path, **sent)

        # Not `asyncio.run`, which takes the loop of the functions' handlers away.
        loop = asyncio.new_event_loop()
        try:
            return loop.run_until_complete(call())
        finally:
            loop.close()


class Relay:
    """Sends emails to the stand-in, as SES's client does."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def send_email(self, **sent):
        return self.client.post("/v2/email/outbound-emails", json=sent).json()


@pytest.fixture
def pages(tmp_path: Path, post_office: PostOffice, monkeypatch: pytest.MonkeyPatch) -> Client:
    client = Client(mail.create_app(mail.Emails(tmp_path / "emails"), post_office.post))
    monkeypatch.setattr(delivery, "ses", lambda: Relay(client))
    return client


def test_every_email_is_shown_and_can_bounce(pages, api, world, post_office):
    assert "None yet." in pages.get("/").text
    company = world.company(name="Acme & <b>")
    body = {"email": "grace@example.com", "role": "member"}
    for email in ("grace@example.com", "ada@example.com"):
        api.post("/v1/invitations", company.owner.token, json_body={**body, "email": email})
    post_office.work()
    shown = pages.get("/")
    assert "grace@example.com" in shown.text
    assert "Invitation to Acme &amp; &lt;b&gt; on Assent" in shown.text
    page = pages.get("/00000001")
    assert "Open the invitation: https://dashboard.assent.test/invitations/inv_" in page.text
    assert "default-src 'none'" in pages.get("/00000001/html").headers["content-security-policy"]
    assert pages.get("/00000009").status_code == pages.get("/00000009/html").status_code == 404
    for name, event in (("00000001", "bounce"), ("00000002", "complaint"), ("00000002", "nothing")):
        reply = pages.post(f"/{name}/{event}")
        assert reply.headers["location"] == f"../{name}"
    post_office.work()
    assert post_office.sqs.at(Queue.EMAILS.url) == []
    listed = [item["mail"]["S"] for item in _invitations()]
    assert sorted(listed) == ["complained", "returned"]


def test_only_the_last_emails_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(mail, "_KEPT", 3)
    emails = mail.Emails(tmp_path / "emails")
    sent = {"Destination": {"ToAddresses": ["ada@example.com"]}, "Content": {"Simple": {"Subject": {"Data": "Hello"}}}}
    names = [emails.add(sent) for _ in range(5)]
    assert [name for name, _ in emails.newest_first()] == names[:1:-1]


def _invitations() -> list[dict]:
    return [item for item in table_dump() if item["sk"]["S"].startswith("INVITATION#")]
