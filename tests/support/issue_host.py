"""An in-memory code host for issues, behind the HTTP client, with a lagging list, lost responses, and errors.

It replaces urllib3's pool, so that all of our code runs unmodified. It uses the clock of the tests.
"""

import io
import json
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import urllib3
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from urllib3.exceptions import NewConnectionError, ReadTimeoutError

from controlplane.code_host.github import app_auth, client, transport
from controlplane.platform.core import clock
from controlplane.platform.core.settings import settings
from local.pages import moment
from tests.support.calls import touch_outside

API = "https://code-host.example.com"


@dataclass(frozen=True)
class HostedIssue:
    number: int
    title: str
    body: str
    created_seconds: float
    listed_from: float
    is_pull_request: bool = False

    def shown(self, repository: str) -> dict[str, Any]:
        return {
            "number": self.number,
            "title": self.title,
            "body": self.body,
            "state": "open",
            "created_at": moment(self.created_seconds),
            "updated_at": moment(self.created_seconds),
            "html_url": f"https://github.com/{repository}/issues/{self.number}",
            **({"pull_request": {}} if self.is_pull_request else {}),
        }


@cache
def _private_key() -> str:
    key = generate_private_key(65537, 2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


class IssueHost:
    """`lag_seconds`: the delay until the list shows an issue. `script`: the outcomes of the next issue creations.

    In the script, "lost" creates the issue and loses the response, "unreached" loses the request, and a number, or a
    pair with headers, is the status of an error. `list_script` does the same for the list. `around` wraps each request
    of the product.
    """

    def __init__(self) -> None:
        self.issues: dict[str, list[HostedIssue]] = {}
        self.requests: list[tuple[str, str]] = []
        self.lag_seconds = 0.0
        self.script: deque[Any] = deque()
        self.list_script: deque[Any] = deque()
        self.around: Callable[[str, Callable[[], Any]], Any] = lambda operation, proceed: proceed()

    @contextmanager
    def installed(self, monkeypatch: Any) -> Iterator[None]:
        """While open, it is the configured code host."""
        changed = settings.model_copy(update={"github_api_url": API, "github_app_id": "1"})
        monkeypatch.setattr(client, "settings", changed)
        monkeypatch.setattr(transport, "_new_pool", lambda: _Pool(self))
        monkeypatch.setattr(app_auth, "read_configured_key", _private_key)
        client.get_transport.cache_clear()
        yield
        client.get_transport.cache_clear()

    def of(self, owner: str, name: str) -> list[HostedIssue]:
        return self.issues.get(f"{owner}/{name}", [])

    def count(self, operation: str) -> int:
        """Returns the number of requests of that kind: `token`, `list`, or `create`."""
        return sum(kind == operation for kind, _ in self.requests)

    def answer(self, method: str, url: str, body: bytes | None) -> urllib3.HTTPResponse:
        touch_outside()
        parts = urlsplit(url)
        words = parts.path.strip("/").split("/")
        if words[0] == "app":
            self.requests.append(("token", url))
            return _response(201, {"token": "ghs_double", "expires_at": moment(clock.now() + 3_600)})
        repository = f"{words[1]}/{words[2]}"
        if method == "GET" and len(words) == 5:
            return self.around("get", lambda: self._get(repository, url, int(words[4])))
        if method == "GET" and len(words) == 3:
            return _response(200, _repository(*words[1:]))
        if method == "GET":
            return self.around("list", lambda: self._list(repository, url, parse_qs(parts.query)))
        return self.around("create", lambda: self._create(repository, url, json.loads(body or b"{}")))

    def _get(self, repository: str, url: str, number: int) -> urllib3.HTTPResponse:
        self.requests.append(("get", url))
        if self.script:
            return _scripted(self.script.popleft(), url)
        found = [issue for issue in self.of(*repository.split("/")) if issue.number == number]
        return _response(200, found[0].shown(repository)) if found else _response(404, {"message": "Not Found"})

    def _list(self, repository: str, url: str, query: dict[str, list[str]]) -> urllib3.HTTPResponse:
        self.requests.append(("list", url))
        if self.list_script:
            return _scripted(self.list_script.popleft(), url)
        since = datetime.fromisoformat(query["since"][0]).timestamp()
        seen = [
            issue.shown(repository)
            for issue in self.of(*repository.split("/"))
            if issue.listed_from <= clock.now() and issue.created_seconds >= since
        ]
        return _response(200, seen)

    def _create(self, repository: str, url: str, content: dict[str, Any]) -> urllib3.HTTPResponse:
        self.requests.append(("create", url))
        outcome = self.script.popleft() if self.script else None
        if outcome not in (None, "lost"):
            return _scripted(outcome, url)
        there = self.issues.setdefault(repository, [])
        now = clock.now()
        issue = HostedIssue(len(there) + 1, content["title"], content["body"], now, now + self.lag_seconds)
        there.append(issue)
        return _scripted(outcome, url) if outcome else _response(201, issue.shown(repository))


def _repository(owner: str, name: str) -> dict[str, Any]:
    flags = {"private": True, "archived": False, "has_issues": True}
    page = f"https://github.com/{owner}/{name}"
    return {"id": 1, "owner": {"login": owner}, "name": name, "default_branch": "main", "html_url": page, **flags}


def _scripted(outcome: Any, url: str) -> urllib3.HTTPResponse:
    if outcome == "lost":
        raise ReadTimeoutError(urllib3.HTTPSConnectionPool("code-host.example.com"), url, "lost")
    if outcome == "unreached":
        raise NewConnectionError(urllib3.connection.HTTPSConnection("code-host.example.com"), "refused")
    status, headers = outcome if isinstance(outcome, tuple) else (outcome, {})
    return _response(status, {"message": "no"}, headers)


def _response(status: int, content: Any, headers: dict[str, str] | None = None) -> urllib3.HTTPResponse:
    body = io.BytesIO(json.dumps(content).encode())
    return urllib3.HTTPResponse(body, headers=headers or {}, status=status, preload_content=False)


class _Pool:
    """The part of `urllib3.PoolManager` that the client uses."""

    def __init__(self, host: IssueHost) -> None:
        self._host = host

    def __enter__(self) -> "_Pool":
        return self

    def __exit__(self, *_: object) -> None:
        """Has nothing to close."""

    def request(self, method: str, url: str, *, body: bytes | None = None, **_: Any) -> urllib3.HTTPResponse:
        return self._host.answer(method, url, body)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[IssueHost]:
    """Installs the code host for the test."""
    made = IssueHost()
    with made.installed(monkeypatch):
        yield made
