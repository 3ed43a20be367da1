"""The client's handling of a code host that fails, throttles, redirects, hangs, or sends invalid responses."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from controlplane.github import client
from controlplane.github.app_auth import AppAuth
from controlplane.github.client import CodeHost
from controlplane.github.errors import (
    AccessLost,
    BranchGone,
    CodeHostError,
    CommitGone,
    HostUnavailable,
    IssueGone,
    OutcomeUnknown,
    RateLimitedByHost,
    Refused,
    RepositoryGone,
    TarballTooLarge,
)
from controlplane.github.transport import Deadline, Request, RetryPolicy, Transport
from local.github.faults import Fault
from local.github.setup import DEMO_NAME, DEMO_OWNER, installation_id, key_file
from tests.support.github import HANG, POLICY, policy_for
from tests.support.logs import captured_logs

DEMO = (DEMO_OWNER, DEMO_NAME)
REPOSITORY = "GET /repos/{owner}/{repo}"
BRANCH = "GET /repos/{owner}/{repo}/branches/{branch}"
TARBALL = "GET /repos/{owner}/{repo}/tarball/{ref}"
CODELOAD = "GET /_codeload/{owner}/{repo}/legacy.tar.gz/{ref}"
LIST = "GET /repos/{owner}/{repo}/issues"
CREATE = "POST /repos/{owner}/{repo}/issues"
TOKENS = "POST /app/installations/{installation_id}/access_tokens"

SECONDARY = {
    "message": "You have exceeded a secondary rate limit.",
    "documentation_url": "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits",
}


def issues(code_host) -> int:
    return len(code_host.stand_in.issues.list(*DEMO))


class HasToken(AppAuth):
    """Already has a token, so the client sends only the operation's own request."""

    def authorization(self, scope, deadline) -> str:
        return "Bearer token"


def host_at(url: str, policy: RetryPolicy = POLICY) -> CodeHost:
    """Returns a client of a host that isn't the stand-in."""
    transport = Transport(url, policy, lambda _: None)
    return CodeHost(transport, HasToken(transport, "1"), 1)


@contextmanager
def raw_host(*answers: bytes) -> Iterator[str]:
    """Serves these bytes on each connection in turn, whatever the request, and closes it."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        for answer in answers:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    listener.close()
    thread.join(1)


class TestReads:
    @pytest.mark.parametrize("fault", [Fault(500), Fault(502), Fault(503), HANG], ids=["500", "502", "503", "timeout"])
    def test_reads_are_retried_after_a_failure(self, code_host, fault):
        code_host.stand_in.faults.add(REPOSITORY, fault, fault)
        assert code_host.host(policy=policy_for(fault)).get_repository(*DEMO).name == DEMO_NAME
        assert len(code_host.slept) == 2

    def test_reads_give_up_after_three_attempts(self, code_host):
        code_host.stand_in.faults.add(REPOSITORY, *[Fault(502)] * 4)
        with pytest.raises(HostUnavailable) as caught:
            code_host.host().get_repository(*DEMO)
        assert caught.value.context == {"operation": "/repos/{owner}/{repo}", "status": 502}
        assert not isinstance(caught.value, OutcomeUnknown)
        assert len(code_host.sent(REPOSITORY)) == 3

    def test_read_retries_back_off_with_jitter(self, code_host, monkeypatch):
        drawn = [500, 250]
        monkeypatch.setattr("controlplane.github.transport.secrets.randbelow", lambda _: drawn.pop(0))
        code_host.stand_in.faults.add(REPOSITORY, Fault(502), Fault(502))
        code_host.host(policy=RetryPolicy(first_backoff_seconds=4)).get_repository(*DEMO)
        assert code_host.slept == [4 * 0.5, 8 * 0.25]

    def test_reads_wait_as_long_as_a_failing_host_asks(self, code_host):
        code_host.stand_in.faults.add(REPOSITORY, Fault(503, {"Retry-After": "2"}))
        code_host.host().get_repository(*DEMO)
        assert code_host.slept == [2]

    def test_reads_give_up_if_the_host_asks_for_more_time_than_remains(self, code_host):
        code_host.stand_in.faults.add(REPOSITORY, Fault(503, {"Retry-After": "600"}))
        with pytest.raises(HostUnavailable):
            code_host.host().get_repository(*DEMO)
        assert code_host.slept == []

    def test_reads_report_an_unreachable_host(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        host = host_at(f"http://127.0.0.1:{port}")
        with pytest.raises(HostUnavailable) as caught:
            host.get_repository(*DEMO)
        assert caught.value.context["reason"] == "NewConnectionError"
        with pytest.raises(HostUnavailable) as caught:
            host.create_issue(*DEMO, "Title", "Body")
        assert not isinstance(caught.value, OutcomeUnknown)

    @pytest.mark.parametrize("content", [{}, [], {"commit": {"sha": "no sha"}}, {"commit": None}, "text"])
    def test_reads_reject_an_invalid_response(self, code_host, content):
        code_host.stand_in.faults.add(BRANCH, Fault(200, content=content))
        with pytest.raises(HostUnavailable):
            code_host.host().get_branch_head(*DEMO, "main")
        code_host.exchanges.clear()  # these responses don't have the stand-in's shapes

    def test_reads_end_at_their_deadline_while_the_host_keeps_sending(self):
        """The host sends until the client gives up."""
        listener = socket.create_server(("127.0.0.1", 0))

        def serve() -> None:
            connection, _ = listener.accept()
            with connection, suppress(OSError):
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
                while True:
                    connection.sendall(b" ")
                    time.sleep(0.05)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(HostUnavailable):
            host_at(
                url, RetryPolicy(read_timeout_seconds=0.3, total_timeout_seconds=0.5, max_attempts=1)
            ).get_repository(*DEMO)
        listener.close()
        thread.join()

    def test_reads_survive_a_closed_idle_connection(self):
        body = b'{"commit": {"sha": "' + b"a" * 40 + b'"}}'
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        with raw_host(answer, answer) as url:
            host = host_at(url)
            assert {host.get_branch_head(*DEMO, "main") for _ in range(2)} == {"a" * 40}


class TestLimits:
    @pytest.mark.parametrize(
        ("fault", "seconds"),
        [
            (Fault(429, {"Retry-After": "2"}), 2),
            (Fault(403, {"Retry-After": "2"}), 2),
            (Fault(403, {"Retry-After": "0"}), 1),
            (Fault(403, {"Retry-After": "Wed, 04 Mar 2026 05:06:09 GMT"}), 2),
            (Fault(403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1772600769"}), 2),
            (Fault(403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"}), 1),
            # By the host's clock, which is an hour ahead.
            (
                Fault(
                    403,
                    {
                        "Date": "Wed, 04 Mar 2026 06:06:07 GMT",
                        "X-RateLimit-Remaining": "0",
                        "X-RateLimit-Reset": "1772604369",
                    },
                ),
                2,
            ),
        ],
    )
    def test_rate_limits_that_end_in_time_are_waited_for(self, code_host, fault, seconds):
        code_host.stand_in.faults.add(REPOSITORY, fault)
        assert code_host.host().get_repository(*DEMO).name == DEMO_NAME
        assert code_host.slept == [seconds]

    @pytest.mark.parametrize(
        ("fault", "seconds"),
        [
            (Fault(429, {"Retry-After": "1800"}), 1800),
            (Fault(403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1772604367"}), 3600),
            (Fault(403, {"X-RateLimit-Remaining": "0"}), 60),
            (Fault(403, content=SECONDARY), 60),
            (Fault(429), 60),
            (Fault(429, {"Retry-After": "soon"}), 60),
        ],
    )
    def test_longer_rate_limits_are_reported_with_their_duration(self, code_host, fault, seconds):
        code_host.stand_in.faults.add(LIST, fault)
        with pytest.raises(RateLimitedByHost) as caught:
            list(code_host.host().list_issues_since(*DEMO, 0))
        assert caught.value.retry_after_seconds == seconds
        assert code_host.slept == []

    def test_a_rate_limited_write_is_reported_at_once_as_having_done_nothing(self, code_host):
        code_host.stand_in.faults.add(CREATE, Fault(403, {"Retry-After": "1"}, SECONDARY))
        with pytest.raises(RateLimitedByHost) as caught:
            code_host.host().create_issue(*DEMO, "Title", "Body")
        assert caught.value.retry_after_seconds == 1
        assert len(code_host.sent(CREATE)) == 1
        assert issues(code_host) == 0


class TestCreateIssue:
    @pytest.mark.parametrize("takes_effect", [True, False])
    @pytest.mark.parametrize("fault", [Fault(502), Fault(500), Fault(503), HANG, Fault(504)])
    def test_creating_an_issue_reports_an_unknown_outcome_and_is_never_retried(self, code_host, fault, takes_effect):
        lost = Fault(fault.status, hang_seconds=fault.hang_seconds, takes_effect=takes_effect)
        code_host.stand_in.faults.add(CREATE, lost)
        with pytest.raises(OutcomeUnknown):
            code_host.host(policy=policy_for(lost)).create_issue(*DEMO, "Title", "Body")
        assert len(code_host.sent(CREATE)) == 1
        assert issues(code_host) == int(takes_effect)

    def test_creating_an_issue_reports_an_unknown_outcome_after_a_cut_off_response(self, code_host):
        code_host.stand_in.faults.add(CREATE, Fault(cut_after_bytes=40))
        with pytest.raises(OutcomeUnknown):
            code_host.host().create_issue(*DEMO, "Title", "Body")
        assert issues(code_host) == 1
        code_host.exchanges.clear()

    @pytest.mark.parametrize("content", [{}, [], "made", {"number": 1}])
    def test_creating_an_issue_reports_an_unknown_outcome_for_an_invalid_response(self, code_host, content):
        code_host.stand_in.faults.add(CREATE, Fault(201, content=content, takes_effect=True))
        with pytest.raises(OutcomeUnknown):
            code_host.host().create_issue(*DEMO, "Title", "Body")
        code_host.exchanges.clear()

    def test_creating_an_issue_whose_response_was_lost_can_be_found_in_the_list(self, code_host, now):
        host = code_host.host()
        code_host.stand_in.faults.add(CREATE, Fault(502, takes_effect=True))
        with pytest.raises(OutcomeUnknown):
            host.create_issue(*DEMO, "Title", "Body <!-- marker -->")
        assert [issue.body for issue in host.list_issues_since(*DEMO, now.seconds)] == ["Body <!-- marker -->"]

    @pytest.mark.parametrize("status", [400, 409, 418, 451])
    def test_creating_an_issue_reports_the_status_that_refused_it(self, code_host, status):
        code_host.stand_in.faults.add(CREATE, Fault(status))
        with pytest.raises(Refused) as caught:
            code_host.host().create_issue(*DEMO, "Title", "Body")
        assert caught.value.status == status

    def test_creating_an_issue_is_refused_if_the_repository_has_issues_disabled(self, code_host):
        code_host.stand_in.faults.without_issues.add("demo-shop/storefront")
        with pytest.raises(Refused) as caught:
            code_host.host().create_issue(*DEMO, "Title", "Body")
        assert caught.value.status == 410

    @pytest.mark.parametrize(
        ("title", "body"), [("", "b"), ("t" * 257, "b"), ("t", "b" * 65_537)], ids=["no title", "title", "body"]
    )
    def test_creating_an_issue_is_refused_if_the_text_is_too_long(self, code_host, title, body):
        with pytest.raises(Refused) as caught:
            code_host.host().create_issue(*DEMO, title, body)
        assert caught.value.status == 422

    def test_creating_an_issue_accepts_the_longest_text(self, code_host):
        title, body = "t" * client.ISSUE_TITLE_LIMIT, "b" * client.ISSUE_BODY_LIMIT
        assert code_host.host().create_issue(*DEMO, title, body).number == 1

    @pytest.mark.parametrize("fault", [Fault(502), HANG])
    def test_creating_an_issue_without_a_token_sends_nothing(self, code_host, fault):
        code_host.stand_in.faults.add(TOKENS, fault, fault, fault)
        with pytest.raises(HostUnavailable) as caught:
            code_host.host(policy=policy_for(fault)).create_issue(*DEMO, "Title", "Body")
        assert not isinstance(caught.value, OutcomeUnknown)
        assert code_host.sent(CREATE) == []

    def test_creating_an_issue_after_the_deadline_sends_nothing(self, code_host):
        transport = code_host.transport()
        request = Request("POST", CREATE, transport.url("/repos/demo-shop/storefront/issues"), "Bearer token", {})
        with pytest.raises(HostUnavailable) as caught:
            transport.send_once(request, Deadline(0))
        assert not isinstance(caught.value, OutcomeUnknown)
        assert not code_host.exchanges

    def test_creating_an_issue_doesnt_follow_a_redirect_that_may_change_the_method(self, code_host):
        code_host.stand_in.faults.add(CREATE, Fault(302, {"Location": f"{code_host.url}/elsewhere"}))
        with pytest.raises(Refused) as caught:
            code_host.host().create_issue(*DEMO, "Title", "Body")
        assert caught.value.status == 302
        code_host.exchanges.clear()


class TestRedirects:
    def test_archive_redirects_lead_to_another_host_without_the_token(self, code_host):
        host = code_host.host()
        sha = host.get_branch_head(*DEMO, "main")
        code_host.stand_in.download_url = code_host.url.replace("127.0.0.1", "localhost")
        assert len(b"".join(host.stream_tarball(*DEMO, sha))) > 1000
        (download,) = code_host.sent(CODELOAD)
        assert download.headers["host"].startswith("localhost:")
        assert "authorization" not in download.headers

    def test_other_redirects_never_lead_to_another_host(self, code_host):
        elsewhere = code_host.url.replace("127.0.0.1", "localhost")
        code_host.stand_in.faults.add(REPOSITORY, Fault(301, {"Location": f"{elsewhere}/api/v3/repos/demo-shop/a"}))
        with pytest.raises(Refused):
            code_host.host().get_repository(*DEMO)
        assert len(code_host.sent(REPOSITORY)) == 1

    @pytest.mark.parametrize(
        "location", ["ftp://127.0.0.1/a", "file:///etc/passwd", "//other.invalid:1/a", "https://[", "https://a:99999/"]
    )
    def test_redirects_never_change_the_protocol(self, code_host, location):
        host = code_host.host()
        sha = host.get_branch_head(*DEMO, "main")
        code_host.stand_in.faults.add(TARBALL, *[Fault(302, {"Location": location})] * 3)
        with pytest.raises((Refused, HostUnavailable)):
            host.stream_tarball(*DEMO, sha)

    def test_redirects_are_limited(self, code_host):
        here = {"Location": "/api/v3/repos/demo-shop/storefront"}
        code_host.stand_in.faults.add(REPOSITORY, *[Fault(301, here)] * 10)
        with pytest.raises(Refused):
            code_host.host().get_repository(*DEMO)
        assert len(code_host.sent(REPOSITORY)) == 4


class TestTarball:
    @pytest.fixture
    def sha(self, code_host) -> str:
        return code_host.host().get_branch_head(*DEMO, "main")

    def test_a_tarball_over_the_limit_is_abandoned_while_it_arrives(self, code_host, sha):
        stream = code_host.host().stream_tarball(*DEMO, sha, limit_bytes=1000)
        with pytest.raises(TarballTooLarge) as caught:
            b"".join(stream)
        assert caught.value.limit_bytes == 1000
        assert caught.value.context == {"limitBytes": 1000}

    def test_a_tarball_can_be_as_large_as_the_limit(self, code_host, sha):
        host = code_host.host()
        size = len(b"".join(host.stream_tarball(*DEMO, sha)))
        assert len(b"".join(host.stream_tarball(*DEMO, sha, limit_bytes=size))) == size

    @pytest.mark.parametrize("length", [0, 1000])
    def test_a_truncated_tarball_is_an_error(self, code_host, sha, length):
        code_host.stand_in.faults.add(CODELOAD, Fault(cut_after_bytes=length))
        stream = code_host.host().stream_tarball(*DEMO, sha)
        with pytest.raises(HostUnavailable):
            b"".join(stream)

    def test_a_tarball_is_retried_until_its_first_byte_arrives(self, code_host, sha):
        code_host.stand_in.faults.add(TARBALL, Fault(502))
        code_host.stand_in.faults.add(CODELOAD, Fault(503))
        assert len(b"".join(code_host.host().stream_tarball(*DEMO, sha))) > 1000
        assert len(code_host.sent(TARBALL)) == 3

    def test_a_tarball_can_be_abandoned_midway(self, code_host, sha):
        stream = code_host.host().stream_tarball(*DEMO, sha)
        assert next(stream)[:2] == b"\x1f\x8b"
        stream.close()

    def test_a_tarball_of_a_missing_commit_is_an_error(self, code_host):
        with pytest.raises(CommitGone):
            code_host.host().stream_tarball(*DEMO, "0" * 40)

    def test_a_tarball_of_a_missing_repository_is_an_error(self, code_host):
        with pytest.raises(RepositoryGone):
            code_host.host().stream_tarball("demo-shop", "unknown", "0" * 40)


class TestAbsence:
    def test_a_missing_repository_is_reported(self, code_host):
        host = code_host.host()
        for request_code in (host.get_repository, lambda *name: host.get_branch_head(*name, "main")):
            with pytest.raises(RepositoryGone):
                request_code("demo-shop", "unknown")
        with pytest.raises(RepositoryGone):
            host.create_issue("demo-shop", "unknown", "Title", "Body")
        with pytest.raises(RepositoryGone):
            list(host.list_issues_since("demo-shop", "unknown", 0))

    def test_a_repository_that_goes_missing_is_not_taken_for_its_branch(self, code_host):
        host = code_host.host()
        host.get_branch_head(*DEMO, "main")
        code_host.stand_in.faults.removed.add("/".join(DEMO))
        with pytest.raises(RepositoryGone):
            host.get_branch_head(*DEMO, "main")

    def test_a_missing_branch_is_reported(self, code_host):
        with pytest.raises(BranchGone):
            code_host.host().get_branch_head(*DEMO, "unknown")

    @pytest.mark.parametrize(("status", "error"), [(410, IssueGone), (451, Refused)])
    def test_a_deleted_issue_is_missing_and_a_refusal_is_reported(self, code_host, status, error):
        code_host.stand_in.faults.add("GET /repos/{owner}/{repo}/issues/{issue_number}", Fault(status))
        with pytest.raises(error):
            code_host.host().get_issue(*DEMO, 1)

    def test_another_installation_sees_everything_as_missing(self, code_host, tmp_path):
        (tmp_path / "files").mkdir()
        (tmp_path / "files" / "a").write_text("a")
        code_host.stand_in.repositories.create("other-owner", "private", tmp_path / "files")
        assert code_host.host("other-owner").get_repository("other-owner", "private").owner == "other-owner"
        with pytest.raises(RepositoryGone):
            code_host.host().get_repository("other-owner", "private")


class TestAccess:
    def test_access_is_lost_with_the_installation(self, code_host):
        transport = code_host.transport()
        with pytest.raises(AccessLost) as caught:
            CodeHost(transport, code_host.auth(transport), 1).get_repository(*DEMO)
        assert caught.value.context["status"] == 404

    def test_access_is_lost_with_a_suspension(self, code_host):
        code_host.stand_in.faults.suspended.add(installation_id(DEMO_OWNER))
        with pytest.raises(AccessLost):
            code_host.host().get_repository(*DEMO)
        assert len(code_host.sent(TOKENS)) == 1

    def test_access_is_lost_with_a_permission_only_for_calls_that_need_it(self, code_host):
        code_host.stand_in.faults.withheld[installation_id(DEMO_OWNER)] = {"issues"}
        host = code_host.host()
        assert host.get_repository(*DEMO)
        with pytest.raises(AccessLost):
            host.create_issue(*DEMO, "Title", "Body")

    def test_access_is_lost_if_the_host_forbids_it(self, code_host):
        code_host.stand_in.faults.add(CREATE, Fault(403))
        with pytest.raises(AccessLost):
            code_host.host().create_issue(*DEMO, "Title", "Body")


class TestErrors:
    def test_errors_contain_no_name_token_or_text(self, code_host):
        host = code_host.host()
        faults = code_host.stand_in.faults
        faults.add(REPOSITORY, Fault(502), Fault(429, {"Retry-After": "1"}))
        with captured_logs() as log:
            host.get_repository(*DEMO)
        faults.add(CREATE, Fault(502), Fault(422), Fault(403), Fault(429), Fault(404))
        told = []
        for _ in range(5):
            with pytest.raises(CodeHostError) as caught:
                host.create_issue(*DEMO, "A private title", "A private body")
            told.append(f"{caught.value!r} {caught.value.context}")
        text = " ".join([*told, log.getvalue()])
        assert text.count("code host request retried") == 2
        tokens = [request.headers["authorization"].split()[1] for request in code_host.stand_in.requests]
        for secret in ("private", "demo-shop", "storefront", key_file(code_host.root).read_text()[40:80], *tokens):
            assert secret not in text
