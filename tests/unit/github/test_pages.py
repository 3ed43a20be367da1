"""Lists of the code host, what they need to be configured, and its unusable responses."""

from math import ceil
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from controlplane.code_host.github import app_pages, client, connecting
from controlplane.code_host.github.app_auth import Quotas
from controlplane.code_host.github.connecting import GrantedRepository, Person
from controlplane.code_host.github.errors import (
    AccessLost,
    AppNotConfigured,
    CodeHostError,
    CodeRejected,
    HostUnavailable,
    InstallationGone,
    RateLimitedByHost,
    Refused,
    RepositoryGone,
)
from controlplane.code_host.github.reviews import ReviewHost
from controlplane.code_host.github.transport import Deadline, Request, Response, RetryPolicy, Transport
from controlplane.platform.core.settings import settings
from tests.support.each import each

DEMO = ("demo-shop", "storefront")


class Lists:
    """Responds with pages of these entries. `changes` are other values of the response."""

    policy = RetryPolicy()
    url = Transport("https://api.github.com").url

    def __init__(self, entries: list[Any], **changes: Any) -> None:
        self.entries, self.changes, self.asked = entries, changes, 0

    def send_with_retries(self, request: Request, _: object) -> Response:
        self.asked += 1
        query = dict(parse_qsl(urlsplit(request.url).query))
        size, number = min(int(query.get("per_page", 30)), 100), int(query.get("page", 1))
        page = self.entries[(number - 1) * size : number * size]
        granted = {"repositories": page, "total_count": len(self.entries)}
        answer = {"status": 200, "headers": {}, "content": granted if "installation" in request.url else page}
        return Response(**answer | self.changes)

    send_once = send_with_retries


def auth() -> Any:
    def authorize(*_: object) -> str:
        return "Bearer token"

    return SimpleNamespace(quotas=Quotas(), authorization=authorize, metadata_authorization=authorize)


def reviews(lists: Lists) -> ReviewHost:
    return ReviewHost(lists, auth(), 1)  # type: ignore[arg-type]


class TestPullRequests:
    @each("count", [0, 99, 100, 101, 250])
    def test_all_open_pull_requests_are_listed(self, count):
        branch = {"sha": "a" * 40, "ref": "main"}
        opened = [{"number": it, "state": "open", "head": branch, "base": branch} for it in range(count)]
        assert [it.number for it in reviews(Lists(opened)).list_open_pull_requests(*DEMO)] == [*range(count)]


class TestComments:
    @each("count", [1, 100, 101, 250])
    def test_a_comment_is_found_on_any_page(self, count):
        comments = [{"id": it, "body": None} for it in range(1, count)]
        lists = Lists([*comments, {"id": count, "body": "Text <!-- marker -->"}])
        assert reviews(lists).find_comment(*DEMO, 2, "<!-- marker -->") == count
        assert lists.asked == ceil(count / 100)
        assert reviews(lists).find_comment(*DEMO, 2, "<!-- other -->") is None

    @each(("status", "error"), [(404, RepositoryGone), (403, AccessLost), (422, Refused)])
    def test_a_refused_comment_raises_an_error(self, status, error):
        host = reviews(Lists([], status=status))
        for write in (host.create_comment, host.update_comment):
            with pytest.raises(error):
                write(*DEMO, 2, "Text")


class TestWrites:
    def test_a_write_has_its_own_time_however_long_its_token_took(self):
        """With the little that is left, its outcome would often be unknown."""
        left: list[float] = []

        def send_once(_: Request, deadline: Deadline) -> Response:
            left.append(deadline.remaining_seconds)
            raise HostUnavailable

        lists = Lists([])
        lists.send_once = send_once  # type: ignore[method-assign]
        host = reviews(lists)
        with pytest.raises(HostUnavailable):
            host.create_issue(*DEMO, "Title", "Text")
        with pytest.raises(HostUnavailable):
            host.create_comment(*DEMO, 2, "Text")
        assert [seconds > client._TOKEN_SECONDS for seconds in left] == [True, True]


class TestIssues:
    def test_an_empty_object_is_not_taken_for_an_empty_list(self):
        with pytest.raises(HostUnavailable):
            list(reviews(Lists([], content={})).list_issues_since(*DEMO, 0))


class TestGranted:
    @staticmethod
    def granted(lists: Lists, monkeypatch: pytest.MonkeyPatch, app: Any = None) -> list[Any]:
        monkeypatch.setattr(client, "get_transport", lambda: (lists, app or auth()))
        return connecting.list_granted(1)

    @staticmethod
    def repository(number: int, **changes: Any) -> dict[str, Any]:
        described = {"name": "shop", "default_branch": "main", "html_url": "https://github.com/acme/shop"}
        return {"id": number, "owner": {"login": "acme"}, "private": True, **described, **changes}

    @each("count", [0, 100, 101, 250])
    def test_all_repositories_of_an_installation_are_listed(self, count, monkeypatch):
        lists = Lists([self.repository(it) for it in range(count)])
        assert [it.hosted_id for it in self.granted(lists, monkeypatch)] == [*range(count)]
        assert lists.asked == max(1, ceil(count / 100))

    def test_paging_ends_if_a_list_is_shorter_than_its_total(self, monkeypatch):
        assert self.granted(Lists([], content={"repositories": [], "total_count": 1}), monkeypatch) == []

    @each(
        ("changes", "visibility"),
        [({}, "private"), ({"private": False}, "public"), ({"visibility": "internal"}, "internal")],
    )
    def test_a_repository_has_the_visibility_that_the_code_host_names(self, changes, visibility, monkeypatch):
        (found,) = self.granted(Lists([self.repository(1, **changes)]), monkeypatch)
        assert found.visibility == visibility

    @each(
        ("status", "content", "error"),
        [
            (401, {}, HostUnavailable), (403, {}, AccessLost), (404, {}, AccessLost), (422, {}, Refused),
            (200, {}, HostUnavailable), (200, {"repositories": [], "total_count": None}, HostUnavailable),
        ],
    )  # fmt: skip
    def test_an_unusable_response_is_an_error(self, status, content, error, monkeypatch):
        with pytest.raises(CodeHostError) as caught:
            self.granted(Lists([], status=status, content=content), monkeypatch)
        assert type(caught.value) is error

    def test_nothing_is_sent_after_the_last_request_of_an_installation(self, monkeypatch):
        spent = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "99999999999"}
        lists, app = Lists([], headers=spent), auth()
        assert self.granted(lists, monkeypatch, app) == []
        with pytest.raises(RateLimitedByHost):
            self.granted(lists, monkeypatch, app)
        assert lists.asked == 1


CONFIGURED = {
    "github_app_id": "1",
    "github_app_slug": "assent",
    "github_client_id": "Iv1.1",
    "github_client_secret_arn": "arn:aws:secretsmanager:eu-central-1:123456789012:secret:client-AbCdEf",
}


def configure(monkeypatch: pytest.MonkeyPatch, **variables: str | None) -> None:
    for module in (app_pages, connecting):
        monkeypatch.setattr(module, "settings", settings.model_copy(update=CONFIGURED | variables))


@each("missing", [*CONFIGURED])
def test_people_connect_repositories_once_everything_is_configured(missing, monkeypatch):
    configure(monkeypatch)
    assert app_pages.is_configured()
    configure(monkeypatch, **{missing: None})
    assert not app_pages.is_configured()


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
    assert app_pages.installation_url("x") == page


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
def test_a_repository_without_write_access_is_not_granted(described):
    assert _granted(private=True)
    assert _granted(private=True, **described) == []
