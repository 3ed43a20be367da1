"""Reads of the code host's lists of repositories, and what they need to be configured."""

from types import SimpleNamespace
from typing import Any

import pytest

from controlplane.code_host.github import connecting
from controlplane.code_host.github.connecting import GrantedRepository, Person
from controlplane.code_host.github.errors import (
    AccessLost,
    AppNotConfigured,
    CodeRejected,
    HostUnavailable,
    InstallationGone,
    Refused,
)
from controlplane.code_host.github.transport import Response, Transport
from controlplane.platform.core.settings import settings
from tests.support.each import each

CONFIGURED = {
    "github_app_id": "1",
    "github_app_slug": "assent",
    "github_client_id": "Iv1.1",
    "github_client_secret_arn": "arn:aws:secretsmanager:eu-central-1:123456789012:secret:client-AbCdEf",
}


def configure(monkeypatch: pytest.MonkeyPatch, **variables: str | None) -> None:
    monkeypatch.setattr(connecting, "settings", settings.model_copy(update=CONFIGURED | variables))


@each("missing", [*CONFIGURED])
def test_people_connect_repositories_once_everything_is_configured(missing, monkeypatch):
    configure(monkeypatch)
    assert connecting.is_configured()
    configure(monkeypatch, **{missing: None})
    assert not connecting.is_configured()


def person(*answers: Response) -> tuple[Person, list[str]]:
    """Returns a person for whom the code host gives these answers, the last one again and again, and what was asked."""
    asked: list[str] = []

    def send(request: Any, _: object) -> Response:
        asked.append(request.url)
        return answers[min(len(asked), len(answers)) - 1]

    transport: Any = SimpleNamespace(url=Transport("https://api.github.com").url, send_with_retries=send)
    return Person(transport, "token"), asked


@each(("total", "pages"), [(0, 1), (100, 1), (101, 2), (1000, 3)])
def test_a_list_is_read_to_its_end_or_to_its_third_page(total, pages):
    visitor, asked = person(Response(200, {}, {"total_count": total, "installations": [{"id": 7}]}))
    assert visitor.list_installations() == [7] * pages
    address = "https://api.github.com/user/installations?per_page=100&page="
    assert asked == [f"{address}{number}" for number in range(1, pages + 1)]


@each(("status", "error"), [(401, AccessLost), (403, AccessLost), (404, AccessLost), (422, Refused), (304, Refused)])
def test_a_list_that_the_person_cant_see_is_an_error(status, error):
    visitor, _ = person(Response(status, {}, {"total_count": 0, "installations": []}))
    with pytest.raises(error):
        visitor.list_installations()


def respond(monkeypatch: pytest.MonkeyPatch, status: int, content: Any) -> None:
    """Makes the code host respond to the App and to a code of a person."""

    def send(*_: object) -> Response:
        return Response(status, {}, content)

    configure(monkeypatch)
    monkeypatch.setattr(connecting, "read_client_secret", lambda: "secret")
    host = SimpleNamespace(url=Transport("https://api.github.com").url, send_once=send)
    monkeypatch.setattr(connecting, "_app", lambda: (host, SimpleNamespace(send_as_app=send)))


INSTALLATION = {"id": 7, "suspended_at": None}


@each(
    ("status", "content", "error"),
    [
        (404, INSTALLATION, InstallationGone),
        (200, INSTALLATION | {"suspended_at": "2026-03-04T05:06:07Z"}, InstallationGone),
        (401, INSTALLATION, Refused),
        (200, {}, HostUnavailable),
    ],
)
def test_an_installation_that_cant_be_used_is_an_error(status, content, error, monkeypatch):
    respond(monkeypatch, status, content)
    with pytest.raises(error):
        connecting.check_installation(7)


@each(
    ("status", "content"),
    [(201, {"access_token": "x"}), (200, {"access_token": ""}), (200, {"access_token": 1}), (200, {}), (200, ["x"])],
)
def test_without_a_token_the_code_is_rejected(status, content, monkeypatch):
    respond(monkeypatch, 200, {"access_token": "x"})
    assert connecting.identify("code")._authorization == "Bearer x"
    respond(monkeypatch, status, content)
    with pytest.raises(CodeRejected):
        connecting.identify("code")


def test_without_the_apps_client_id_no_code_is_sent(monkeypatch):
    respond(monkeypatch, 200, {"access_token": "x"})
    configure(monkeypatch, github_client_id=None)
    with pytest.raises(AppNotConfigured):
        connecting.identify("code")


@each(
    ("api_url", "page"),
    [
        ("https://api.github.com", "https://github.com/apps/assent/installations/new?state=x"),
        ("https://git.example/api/v3", "https://git.example/github-apps/assent/installations/new?state=x"),
    ],
)
def test_the_app_is_installed_on_the_code_hosts_own_pages(api_url, page, monkeypatch):
    configure(monkeypatch, github_api_url=api_url)
    assert connecting.installation_url("x") == page


def _granted(**described: Any) -> list[GrantedRepository]:
    repository = {
        "id": 1,
        "owner": {"login": "acme"},
        "name": "shop",
        "html_url": "https://github.com/acme/shop",
        "default_branch": "main",
        "archived": False,
        "permissions": {"push": True},
        **described,
    }
    return connecting._to_writable(7, {"total_count": 1, "repositories": [repository]})[1]


@each("described", [{"archived": True}, {"permissions": {"push": False}}, {"permissions": {}}])
def test_a_repository_that_cant_be_written_to_is_not_granted(described):
    assert _granted(private=True)
    assert _granted(private=True, **described) == []
