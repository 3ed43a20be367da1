"""The exact requests that we send to the code host, and how we parse its responses."""

import tarfile
from email.utils import parsedate_to_datetime
from io import BytesIO

import pytest

from controlplane.github import client, installations, people, reviews
from controlplane.github.errors import HostUnavailable, InvalidName, Refused, RepositoryGone
from controlplane.github.reviews import Annotation, CheckState
from controlplane.github.transport import Deadline
from local.github.faults import Fault
from local.github.setup import DEMO_BRANCH, DEMO_FILES, DEMO_NAME, DEMO_OWNER, installation_id
from local.github.stand_in import PERMISSIONS
from tests.support.each import each
from tests.support.github import description, find_operation, open_pull_request

DEMO = (DEMO_OWNER, DEMO_NAME)
TOKENS = "POST /app/installations/{installation_id}/access_tokens"
ISSUES = "POST /repos/{owner}/{repo}/issues"
SIGNED = {
    "GET /app",
    TOKENS,
    "GET /repos/{owner}/{repo}/installation",
    "GET /app/installations/{installation_id}",
}


class TestEveryRequest:
    @pytest.fixture(autouse=True)
    def ask_everything(self, code_host, monkeypatch):
        code_host.configure(monkeypatch)
        client.get_app()
        host = client.connect(client.find_installation(*DEMO))
        host.get_repository(*DEMO)
        b"".join(host.stream_tarball(*DEMO, host.get_branch_head(*DEMO, DEMO_BRANCH)))
        host.create_issue(*DEMO, "Title", "Body", ["consent"])
        list(host.list_issues_since(*DEMO, 1_772_600_000))
        person = people.identify(code_host.stand_in.accounts.issue_code())
        for number in person.list_installations():
            people.check_installation(number)
            person.list_repositories(number)
        installations.list_granted(installation_id(DEMO_OWNER))
        head = open_pull_request(code_host.stand_in)
        reviewing = reviews.connect(installation_id(DEMO_OWNER))
        reviewing.get_pull_request(*DEMO, 2)
        assert [it.number for it in reviewing.list_open_pull_requests(*DEMO)] == [2]
        reviewing.get_issue(*DEMO, 1)
        state = CheckState("queued", "Title", "Summary")
        run = reviewing.create_check_run(*DEMO, head, "assent", "external", state)
        reviewing.find_check_run(*DEMO, head, "assent", "external")
        reviewing.get_check_run(*DEMO, run.check_run_id)
        place = Annotation("index.html", 1, 2, "warning", "Title", "Message")
        reviewing.update_check_run(*DEMO, run.check_run_id, CheckState("completed", "T", "S", "failure"), [place])
        comment_id = reviewing.create_comment(*DEMO, 2, "Text")
        reviewing.find_comment(*DEMO, 2, "Text")
        reviewing.update_comment(*DEMO, comment_id, "Other text")
        client._app.cache_clear()
        people._app.cache_clear()

    def test_every_request_is_documented_and_every_documented_operation_is_used(self, code_host):
        asked = {find_operation(exchange) for exchange in code_host.exchanges}
        assert asked == set(description()["operations"])

    def test_every_request_states_client_api_version_and_media_type(self, code_host):
        for exchange in code_host.exchanges:
            assert exchange.headers["user-agent"] == "assent-control-plane"
            assert exchange.headers["x-github-api-version"] == "2022-11-28"
            assert exchange.headers["accept"] == "application/vnd.github+json"

    def test_no_request_contains_anything_else(self, code_host):
        usual = {"host", "accept-encoding", "user-agent", "x-github-api-version", "accept", "authorization"}
        for exchange in code_host.exchanges:
            body = {"content-type", "content-length"} if exchange.body else set()
            assert exchange.headers.keys() == usual | body

    def test_only_tokens_the_app_and_its_installations_are_requested_as_the_app(self, code_host):
        for exchange in code_host.exchanges:
            is_signed = exchange.headers["authorization"].startswith("Bearer eyJ")
            assert is_signed == (find_operation(exchange) in SIGNED)


class TestTokens:
    def test_tokens_are_requested_for_one_repository_with_the_permissions_of_a_purpose(self, code_host):
        host = code_host.host()
        host.get_repository(*DEMO)
        host.create_issue(*DEMO, "Title", "Body")
        assert [request.body for request in code_host.sent(TOKENS)] == [
            {"permissions": {"contents": "read", "metadata": "read"}, "repositories": [DEMO_NAME]},
            {"permissions": {"issues": "write", "metadata": "read"}, "repositories": [DEMO_NAME]},
        ]

    def test_the_token_for_all_repositories_of_an_installation_only_reads_metadata(self, code_host):
        code_host.auth().metadata_authorization(installation_id(DEMO_OWNER), Deadline(3))
        (request,) = code_host.sent(TOKENS)
        assert request.body == {"permissions": {"metadata": "read"}}


class TestRepository:
    def test_a_repository_is_returned_with_its_default_branch_and_url(self, code_host):
        found = code_host.host().get_repository(*DEMO)
        assert (found.owner, found.name, found.default_branch) == (*DEMO, "main")
        assert found.html_url == f"{code_host.url}/demo-shop/storefront"
        assert (found.is_private, found.is_archived, found.has_issues) == (True, False, True)

    def test_a_renamed_repository_is_followed_with_the_token(self, code_host):
        code_host.stand_in.faults.renamed["demo-shop/old-name"] = "demo-shop/storefront"
        assert code_host.host().get_repository("demo-shop", "old-name").name == "storefront"

    @each(
        ("owner", "name"),
        [
            ("", "a"), ("a/b", "a"), ("-a", "a"), ("..", "a"), ("a", ""), ("a", "."), ("a", ".."), ("a", "a/b"),
            ("a", "b?c"), ("a", "b#c"), ("a", "%2e%2e"), ("a", "b c"), ("ä", "a"), ("a", "a\n"), ("a\n", "a"),
            ("a", "n" * 101),
        ],
    )  # fmt: skip
    def test_no_request_is_sent_for_an_invalid_repository_name(self, code_host, owner, name):
        with pytest.raises(InvalidName):
            code_host.host().get_repository(owner, name)
        assert not code_host.exchanges


class TestBranch:
    def test_a_branchs_head_is_the_commit_that_git_has(self, code_host):
        repository = code_host.stand_in.repositories.find(*DEMO)
        head = code_host.host().get_branch_head(*DEMO, "main")
        assert head == repository.find_commit("refs/heads/main").sha

    @each("branch", ["feature/banner", "a#b", "50%", "ümläut", "a&b=c", "v1.2", "käse/%2F/🧀"])
    def test_a_branch_can_have_any_name_that_git_accepts(self, code_host, branch):
        sha = code_host.stand_in.repositories.commit(*DEMO, DEMO_FILES, "Another branch", branch)
        assert code_host.host().get_branch_head(*DEMO, branch) == sha
        assert len(code_host.exchanges[-1].path.split("/")) == 6

    @each(
        "branch",
        [
            "", "../main", "a..b", "/main", "main/", "a//b", ".hidden", "a/.b", "main.lock", "a.lock/b", "-x",
            "?", "a b", "a\x00b", "a\nb", "@", "a@{1}", "a~1", "a^", "a:b", "a*", "a[b", "a\\b", "x" * 256, "ü" * 128,
            "\ud800", "main.", "a?b",
        ],
    )  # fmt: skip
    def test_no_request_is_sent_for_a_branch_name_that_git_rejects(self, code_host, branch):
        with pytest.raises(InvalidName):
            code_host.host().get_branch_head(*DEMO, branch)
        assert not code_host.exchanges


class TestTarball:
    def test_a_tarball_contains_the_files_of_the_commit(self, code_host):
        host = code_host.host()
        content = b"".join(host.stream_tarball(*DEMO, host.get_branch_head(*DEMO, "main")))
        with tarfile.open(fileobj=BytesIO(content)) as archive:
            found = {member.name.split("/", 1)[1] for member in archive if member.isfile()}
        assert found == {str(path.relative_to(DEMO_FILES)) for path in DEMO_FILES.rglob("*") if path.is_file()}

    @each("sha", ["main", "", "a" * 39, "A" * 40, "a" * 41, "../" + "a" * 40, "a" * 40 + "\n"])
    def test_a_tarball_is_requested_only_by_a_full_commit(self, code_host, sha):
        with pytest.raises(InvalidName) as caught:
            code_host.host().stream_tarball(*DEMO, sha)
        assert caught.value.context == {"kind": "commit"}
        assert not code_host.exchanges


class TestIssues:
    def test_issues_are_created_as_given(self, code_host, now):
        issue = code_host.host().create_issue(*DEMO, "Title: ünïcode 🧀", "Body\n<!-- marker -->", ["consent", "bug"])
        (request,) = code_host.sent(ISSUES)
        assert request.body == {
            "title": "Title: ünïcode 🧀",
            "body": "Body\n<!-- marker -->",
            "labels": ["consent", "bug"],
        }
        assert (issue.number, issue.url) == (1, f"{code_host.url}/demo-shop/storefront/issues/1")
        assert issue.created_at == "2026-03-04T05:06:07Z"
        assert parsedate_to_datetime("Wed, 04 Mar 2026 05:06:07 GMT").timestamp() == now.seconds

    def test_issues_follow_a_renamed_repository_without_duplicates(self, code_host):
        code_host.stand_in.faults.renamed["demo-shop/old-name"] = "demo-shop/storefront"
        issue = code_host.host().create_issue("demo-shop", "old-name", "Title", "Body")
        assert issue.number == 1
        assert len(code_host.stand_in.issues.list(*DEMO)) == 1

    def test_issues_are_listed_oldest_first_with_a_margin_for_clock_skew(self, code_host):
        list(code_host.host().list_issues_since(*DEMO, 1_772_600_767.9))
        assert code_host.exchanges[-1].query == {
            "state": "all",
            "sort": "created",
            "direction": "asc",
            "since": "2026-03-04T05:04:07Z",
            "per_page": "100",
        }

    def test_issues_are_listed_over_all_pages(self, code_host, now):
        for number in range(205):
            code_host.stand_in.issues.create(*DEMO, f"Issue {number}", None, [])
        found = list(code_host.host().list_issues_since(*DEMO, now.seconds))
        assert [issue.number for issue in found] == list(range(1, 206))
        assert {issue.body for issue in found} == {""}
        assert len(code_host.exchanges) == 1 + 3

    def test_issue_pages_are_only_requested_as_they_are_read(self, code_host, now):
        for number in range(105):
            code_host.stand_in.issues.create(*DEMO, f"Issue {number}", None, [])
        assert next(code_host.host().list_issues_since(*DEMO, now.seconds)).number == 1
        assert len(code_host.exchanges) == 1 + 1

    def test_older_issues_and_issues_that_the_list_lacks_are_left_out(self, code_host, now):
        code_host.stand_in.issues.create(*DEMO, "Old", None, [])
        now.advance(1000)
        code_host.stand_in.issues.create(*DEMO, "New", None, [])
        code_host.stand_in.faults.list_lag_seconds = 30
        host = code_host.host()
        assert list(host.list_issues_since(*DEMO, now.seconds)) == []
        now.advance(30)
        assert [issue.title for issue in host.list_issues_since(*DEMO, now.seconds - 30)] == ["New"]


class TestApp:
    def test_the_app_is_returned_with_the_permissions_it_requests(self, code_host, monkeypatch):
        code_host.configure(monkeypatch)
        app = client.get_app()
        assert (app.app_id, app.name) == (1, "assent-local")
        assert app.permissions == PERMISSIONS

    def test_an_app_whose_id_and_key_dont_match_is_refused(self, code_host, monkeypatch):
        code_host.configure(monkeypatch)
        monkeypatch.setattr(client, "settings", client.settings.model_copy(update={"github_app_id": "2"}))
        with pytest.raises(Refused) as refusal:
            client.get_app()
        assert refusal.value.status == 401

    @pytest.mark.parametrize("content", ["text", {}, {"id": "x", "name": "", "html_url": "", "permissions": {}}])
    def test_an_invalid_app_response_means_the_host_is_unavailable(self, code_host, monkeypatch, content):
        code_host.configure(monkeypatch)
        code_host.stand_in.faults.add("GET /app", Fault(200, content=content))
        with pytest.raises(HostUnavailable):
            client.get_app()
        code_host.exchanges.clear()


class TestInstallation:
    def test_an_installation_is_found_by_the_repository_it_sees(self, code_host, monkeypatch):
        code_host.configure(monkeypatch)
        assert client.find_installation(*DEMO) == installation_id(DEMO_OWNER)

    def test_an_installation_is_missing_if_the_app_cant_see_the_repository(self, code_host, monkeypatch):
        code_host.configure(monkeypatch)
        with pytest.raises(RepositoryGone):
            client.find_installation("demo-shop", "unknown")

    @pytest.mark.parametrize(("fault", "error"), [(Fault(403), Refused), (Fault(200, content={}), HostUnavailable)])
    def test_an_installation_that_cant_be_looked_up_is_an_error(self, code_host, monkeypatch, fault, error):
        code_host.configure(monkeypatch)
        code_host.stand_in.faults.add("GET /repos/{owner}/{repo}/installation", fault)
        with pytest.raises(error):
            client.find_installation(*DEMO)
        code_host.exchanges.clear()
