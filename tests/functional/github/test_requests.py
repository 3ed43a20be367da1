"""The exact requests that we send to the code host, and how we parse its responses."""

import tarfile
from io import BytesIO

import pytest

from controlplane.code_host.github import client, connecting, reviews
from controlplane.code_host.github.errors import HostUnavailable, InvalidName, Refused
from controlplane.code_host.github.reviews import Annotation, CheckState, ReviewComment
from local.github.setup import DEMO_BRANCH, DEMO_FILES, DEMO_OWNER, installation_id
from tests.functional.github.conftest import CREATE, DEMO, INSTALLATION, TOKENS, rename
from tests.support.each import each
from tests.support.github import description, find_operation, open_pull_request
from tests.support.github_faults import Fault

SIGNED = {"GET /app", TOKENS, INSTALLATION, "GET /app/installations/{installation_id}"}
HEADERS = {
    "user-agent": "assent-control-plane",
    "x-github-api-version": "2022-11-28",
    "accept": "application/vnd.github+json",
}


def send_every_request(code_host) -> None:
    client.get_app()
    host = client.connect(client.find_installation(*DEMO))
    host.get_repository(*DEMO)
    b"".join(host.stream_tarball(*DEMO, host.get_branch_head(*DEMO, DEMO_BRANCH)))
    host.create_issue(*DEMO, "Title", "Body", ["consent"])
    list(host.list_issues_since(*DEMO, 1_772_600_000))
    person = connecting.identify(code_host.stand_in.accounts.issue_code())
    for number in person.list_installations():
        connecting.check_installation(number)
        person.list_repositories(number)
    connecting.list_granted(installation_id(DEMO_OWNER))
    head = open_pull_request(code_host.stand_in)
    reviewing = reviews.connect(installation_id(DEMO_OWNER))
    reviewing.get_pull_request(*DEMO, 2)
    assert [it.number for it in reviewing.list_open_pull_requests(*DEMO)] == [2]
    reviewing.get_issue(*DEMO, 1)
    run = reviewing.create_check_run(*DEMO, head, "assent", "external", CheckState("queued", "Title", "Summary"))
    reviewing.find_check_run(*DEMO, head, "assent", "external")
    reviewing.get_check_run(*DEMO, run.check_run_id)
    place = Annotation("index.html", 1, 2, "warning", "Title", "Message")
    reviewing.update_check_run(*DEMO, run.check_run_id, CheckState("completed", "T", "S", "failure"), [place])
    comment_id = reviewing.create_comment(*DEMO, 2, "Text")
    reviewing.find_comment(*DEMO, 2, "Text")
    reviewing.update_comment(*DEMO, comment_id, "Other text")
    lines = reviewing.list_hunks(*DEMO, 2)["new.js"]
    assert lines == [range(1, 2)]
    suggestion = ReviewComment("new.js", 1, 1, "Text")
    review_id = reviewing.create_review(*DEMO, 2, head, "Text and marker", [suggestion])
    assert reviewing.find_review(*DEMO, 2, "marker") == review_id
    client.get_transport.cache_clear()
    connecting._app.cache_clear()


def test_every_documented_operation_is_requested_with_its_headers_and_nothing_else(configured):
    send_every_request(configured)
    assert {find_operation(exchange) for exchange in configured.exchanges} == set(description()["operations"])
    for exchange in configured.exchanges:
        assert exchange.headers | HEADERS == exchange.headers
        body = {"content-type", "content-length"} if exchange.body else set()
        assert exchange.headers.keys() == HEADERS.keys() | {"host", "accept-encoding", "authorization"} | body
        is_signed = exchange.headers["authorization"].startswith("Bearer eyJ")
        assert is_signed == (find_operation(exchange) in SIGNED)


class TestRepository:
    def test_a_repository_is_returned_with_its_default_branch_and_url(self, code_host):
        found = code_host.host().get_repository(*DEMO)
        assert (found.owner, found.name, found.default_branch) == (*DEMO, "main")
        assert found.html_url == f"{code_host.url}/demo-shop/storefront"
        assert (found.is_private, found.is_archived, found.has_issues) == (True, False, True)

    def test_a_renamed_repository_is_followed_with_the_token_and_without_duplicates(self, code_host):
        rename(code_host)
        host = code_host.host()
        assert host.get_repository("demo-shop", "old-name").name == "storefront"
        assert host.create_issue("demo-shop", "old-name", "Title", "Body").number == 1
        assert len(code_host.stand_in.list_issues(*DEMO)) == 1


# By what is named: the method of a host, and names that git or the code host rejects.
INVALID: dict[str, tuple[str, list[tuple[str, ...]]]] = {
    "owner": ("get_repository", [(owner, "a") for owner in ("", "a/b", "-a", "..", "ä", "a\n")]),
    "repository": (
        "get_repository",
        [("a", name) for name in ("", ".", "..", "a/b", "b?c", "b#c", "%2e%2e", "b c", "a\n", "n" * 101)],
    ),
    "branch": ("get_branch_head", [(*DEMO, branch) for branch in (
        "", "../main", "a..b", "/main", "main/", "a//b", ".hidden", "a/.b", "main.lock", "a.lock/b", "-x",
        "?", "a b", "a\x00b", "a\nb", "@", "a@{1}", "a~1", "a^", "a:b", "a*", "a[b", "a\\b", "x" * 256, "ü" * 128,
        "\ud800", "main.", "a?b",
    )]),
    "commit": ("stream_tarball", [(*DEMO, sha) for sha in (
        "main", "", "a" * 39, "A" * 40, "a" * 41, "../" + "a" * 40, "a" * 40 + "\n",
    )]),
}  # fmt: skip


@each(("kind", "method", "names"), [(kind, method, it) for kind, (method, all_) in INVALID.items() for it in all_])
def test_no_request_is_sent_for_an_invalid_name(code_host, kind, method, names):
    with pytest.raises(InvalidName) as caught:
        getattr(code_host.host(), method)(*names)
    assert (caught.value.context, code_host.exchanges) == ({"kind": kind}, [])


@each("branch", ["feature/banner", "a#b", "50%", "ümläut", "a&b=c", "v1.2", "käse/%2F/🧀"])
def test_a_branch_can_have_any_name_that_git_accepts(code_host, branch):
    sha = code_host.stand_in.repositories.commit(*DEMO, DEMO_FILES, "Another branch", branch)
    assert code_host.host().get_branch_head(*DEMO, branch) == sha
    assert len(code_host.exchanges[-1].path.split("/")) == 6


def test_a_tarball_contains_the_files_of_the_branchs_head(code_host):
    host = code_host.host()
    head = host.get_branch_head(*DEMO, "main")
    assert head == code_host.stand_in.repositories.find(*DEMO).find_commit("refs/heads/main").sha
    with tarfile.open(fileobj=BytesIO(b"".join(host.stream_tarball(*DEMO, head)))) as archive:
        found = {member.name.split("/", 1)[1] for member in archive if member.isfile()}
    assert found == {str(path.relative_to(DEMO_FILES)) for path in DEMO_FILES.rglob("*") if path.is_file()}


class TestIssues:
    def test_issues_are_created_as_given(self, code_host):
        issue = code_host.host().create_issue(*DEMO, "Title: ünïcode 🧀", "Body\n<!-- marker -->", ["consent", "bug"])
        assert [request.body for request in code_host.sent(CREATE)] == [
            {"title": "Title: ünïcode 🧀", "body": "Body\n<!-- marker -->", "labels": ["consent", "bug"]}
        ]
        url = f"{code_host.url}/demo-shop/storefront/issues/1"
        assert (issue.number, issue.url, issue.created_at) == (1, url, "2026-03-04T05:06:07Z")

    def test_issues_are_listed_oldest_first_with_a_margin_for_clock_skew(self, code_host):
        list(code_host.host().list_issues_since(*DEMO, 1_772_600_767.9))
        assert code_host.exchanges[-1].query == {
            "state": "all",
            "sort": "created",
            "direction": "asc",
            "since": "2026-03-04T05:04:07Z",
            "per_page": "100",
        }

    def test_issues_are_listed_over_all_pages_which_are_only_requested_as_they_are_read(self, code_host, now):
        for number in range(205):
            code_host.stand_in.create_issue(*DEMO, f"Issue {number}", None, [])
        found = code_host.host().list_issues_since(*DEMO, now.seconds)
        first = next(found)
        assert len(code_host.exchanges) == 1 + 1
        issues = [first, *found]
        assert [issue.number for issue in issues] == list(range(1, 206))
        assert {issue.body for issue in issues} == {""}
        assert len(code_host.exchanges) == 1 + 3

    def test_older_issues_and_issues_that_the_list_lacks_are_left_out(self, code_host, now):
        code_host.stand_in.create_issue(*DEMO, "Old", None, [])
        now.advance(1000)
        code_host.stand_in.create_issue(*DEMO, "New", None, [])
        code_host.stand_in.faults.list_lag_seconds = 30
        host = code_host.host()
        assert list(host.list_issues_since(*DEMO, now.seconds)) == []
        now.advance(30)
        assert [issue.title for issue in host.list_issues_since(*DEMO, now.seconds - 30)] == ["New"]


class TestApp:
    @each(
        ("operation", "fault", "error"),
        [
            ("GET /app", Fault(200, content="text"), HostUnavailable),
            ("GET /app", Fault(200, content={"id": 1}), HostUnavailable),
            (
                "GET /app",
                Fault(200, content={"id": "x", "name": "", "html_url": "", "permissions": {}}),
                HostUnavailable,
            ),
            (INSTALLATION, Fault(403), Refused),
            (INSTALLATION, Fault(200, content={"none": 1}), HostUnavailable),
        ],
    )
    def test_a_refusal_and_an_invalid_response_are_errors(self, configured, operation, fault, error):
        configured.stand_in.faults.add(operation, fault)
        with pytest.raises(error):
            client.get_app() if operation == "GET /app" else client.find_installation(*DEMO)
        configured.exchanges.clear()
