"""The client's handling of a code host that fails, throttles, redirects, hangs, or sends invalid responses."""

import socket
import time

import pytest

from controlplane.code_host.github import client
from controlplane.code_host.github.app_auth import AppAuth
from controlplane.code_host.github.client import CodeHost
from controlplane.code_host.github.errors import (
    AccessLost,
    BranchGone,
    CommitGone,
    HostUnavailable,
    IssueGone,
    OutcomeUnknown,
    RateLimitedByHost,
    Refused,
    RepositoryGone,
    TarballTooLarge,
)
from controlplane.code_host.github.transport import Deadline, Request, RetryPolicy, Transport
from local.github.setup import DEMO_OWNER, installation_id, key_file
from tests.functional.github.conftest import (
    BRANCH,
    CODELOAD,
    CREATE,
    DEMO,
    LIST,
    REPOSITORY,
    TARBALL,
    TOKENS,
    add_repository,
)
from tests.support.each import each
from tests.support.github import HANG, POLICY, policy_for
from tests.support.github_faults import Fault
from tests.support.logs import captured_logs
from tests.support.scripted_server import Conversation, raw, scripted_server

UNKNOWN = ("demo-shop", "unknown")
SECONDARY = {
    "message": "You have exceeded a secondary rate limit.",
    "documentation_url": "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits",
}


def create(host, name=DEMO, title="Title", body="Body"):
    return host.create_issue(*name, title, body)


def read(host, name=DEMO):
    return host.get_repository(*name)


def head(host, name=DEMO, branch="main"):
    return host.get_branch_head(*name, branch)


def issues(host, name=DEMO):
    return list(host.list_issues_since(*name, 0))


def download(host, name=DEMO, sha=None, **options):
    return b"".join(host.stream_tarball(*name, sha or head(host), **options))


def failure(error, call, *arguments, **options):
    """Returns the error that a call raises, which is of exactly this class."""
    with pytest.raises(error) as caught:
        call(*arguments, **options)
    assert type(caught.value) is error
    return caught.value


def created(code_host) -> tuple[int, int]:
    """Returns how many requests for an issue were sent, and how many issues there are."""
    return len(code_host.sent(CREATE)), len(code_host.stand_in.list_issues(*DEMO))


class HasToken(AppAuth):
    """Already has a token, so the client sends only the operation's own request."""

    def authorization(self, scope, deadline) -> str:
        return "Bearer token"


def host_at(url: str, policy: RetryPolicy = POLICY) -> CodeHost:
    """Returns a client of a host that isn't the stand-in."""
    transport = Transport(url, policy, lambda _: None)
    return CodeHost(transport, HasToken(transport, "1"), 1)


class TestReads:
    def test_reads_are_retried_twice_with_backoff_and_jitter_also_after_a_timeout(self, code_host, monkeypatch):
        drawn = [500, 250]
        monkeypatch.setattr("controlplane.code_host.github.transport.secrets.randbelow", lambda _: drawn.pop(0))
        code_host.stand_in.faults.add(REPOSITORY, Fault(500), Fault(502))
        read(code_host.host(policy=RetryPolicy(first_backoff_seconds=4)))
        assert code_host.slept == [4 * 0.5, 8 * 0.25]
        monkeypatch.undo()
        code_host.stand_in.faults.add(REPOSITORY, HANG, HANG)
        read(code_host.host(policy=policy_for(HANG)))
        assert len(code_host.slept) == 4
        code_host.stand_in.faults.add(REPOSITORY, *[Fault(502)] * 4)
        failed = failure(HostUnavailable, read, code_host.host())
        assert failed.context == {"operation": "/repos/{owner}/{repo}", "status": 502}
        assert len(code_host.sent(REPOSITORY)) == 3 + 3 + 3

    def test_reads_wait_as_long_as_a_failing_host_asks_if_time_remains(self, code_host):
        code_host.stand_in.faults.add(REPOSITORY, Fault(503, {"Retry-After": "2"}), Fault(503, {"Retry-After": "600"}))
        failure(HostUnavailable, read, code_host.host())
        assert code_host.slept == [2]

    def test_an_unreachable_host_is_reported(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        host = host_at(f"http://127.0.0.1:{port}")
        assert failure(HostUnavailable, read, host).context["reason"] == "NewConnectionError"
        failure(HostUnavailable, create, host)

    @each("content", [{"none": True}, [1], {"commit": {"sha": "no sha"}}, {"commit": None}, "text"])
    def test_reads_reject_an_invalid_response(self, code_host, content):
        code_host.stand_in.faults.add(BRANCH, Fault(200, content=content))
        failure(HostUnavailable, head, code_host.host())
        code_host.exchanges.clear()  # these responses don't have the stand-in's shapes

    def test_reads_end_at_their_deadline_while_the_host_keeps_sending(self):
        def drip(conversation: Conversation) -> bool:
            conversation.connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
            while True:
                conversation.connection.sendall(b" ")
                time.sleep(0.05)

        with scripted_server(drip) as server:
            policy = RetryPolicy(read_timeout_seconds=0.3, total_timeout_seconds=0.5, max_attempts=1)
            failure(HostUnavailable, read, host_at(server.url, policy))

    def test_reads_survive_a_closed_idle_connection(self):
        body = b'{"commit": {"sha": "' + b"a" * 40 + b'"}}'
        with scripted_server(raw(b"HTTP/1.1 200 OK\r\nContent-Length: 63\r\n\r\n" + body, stays_open=False)) as server:
            host = host_at(server.url)
            assert {head(host) for _ in range(2)} == {"a" * 40}


class TestLimits:
    # tests/unit/github/test_transport.py has the ways in which the host asks for it.
    def test_a_short_rate_limit_is_waited_for_and_a_longer_one_is_reported(self, code_host):
        code_host.stand_in.faults.add(REPOSITORY, Fault(429, {"Retry-After": "2"}), Fault(403, {"Retry-After": "0"}))
        read(code_host.host())
        assert code_host.slept == [2, 1]
        for fault, seconds in ((Fault(429, {"Retry-After": "1800"}), 1800), (Fault(403, content=SECONDARY), 60)):
            code_host.stand_in.faults.add(LIST, fault)
            assert failure(RateLimitedByHost, issues, code_host.host()).retry_after_seconds == seconds
        assert code_host.slept == [2, 1]

    def test_a_rate_limited_write_is_reported_at_once_as_having_done_nothing(self, code_host):
        code_host.stand_in.faults.add(CREATE, Fault(403, {"Retry-After": "1"}, SECONDARY))
        assert failure(RateLimitedByHost, create, code_host.host()).retry_after_seconds == 1
        assert created(code_host) == (1, 0)


class TestCreateIssue:
    @each("takes_effect", [True, False])
    @pytest.mark.parametrize("fault", [Fault(502), Fault(500), HANG])
    def test_creating_an_issue_reports_an_unknown_outcome_and_is_never_retried(self, code_host, fault, takes_effect):
        sent, made = created(code_host)
        lost = Fault(fault.status, hang_seconds=fault.hang_seconds, takes_effect=takes_effect)
        code_host.stand_in.faults.add(CREATE, lost)
        failure(OutcomeUnknown, create, code_host.host(policy=policy_for(lost)))
        assert created(code_host) == (sent + 1, made + takes_effect)

    @each("answer", [{"cut_after_bytes": 40}, *[{"content": it} for it in ({"none": 1}, [1], "made", {"number": 1})]])
    def test_creating_an_issue_reports_an_unknown_outcome_for_an_unusable_response(self, code_host, answer):
        code_host.stand_in.faults.add(CREATE, Fault(201, takes_effect=True, **answer))
        failure(OutcomeUnknown, create, code_host.host())
        code_host.exchanges.clear()

    @each(
        ("faults", "title", "body", "status"),
        [
            *[([Fault(status)], "t", "b", status) for status in (400, 409, 418, 451)],
            # Following it could change the method.
            ([Fault(302, {"Location": "/elsewhere"})], "t", "b", 302),
            ([], "", "b", 422),
            ([], "t" * 257, "b", 422),
            ([], "t", "b" * 65_537, 422),
        ],
    )
    def test_creating_an_issue_reports_the_status_that_refused_it(self, code_host, faults, title, body, status):
        code_host.stand_in.faults.add(CREATE, *faults)
        assert failure(Refused, create, code_host.host(), title=title, body=body).status == status
        if status == 302:
            code_host.exchanges.clear()

    def test_creating_an_issue_accepts_the_longest_text_unless_issues_are_disabled(self, code_host):
        longest = {"title": "t" * 256, "body": "b" * client.ISSUE_BODY_LIMIT}
        assert create(code_host.host(), **longest).number == 1
        code_host.stand_in.faults.without_issues.add("demo-shop/storefront")
        assert failure(Refused, create, code_host.host()).status == 410

    @pytest.mark.parametrize("fault", [Fault(502), HANG])
    def test_creating_an_issue_without_a_token_sends_nothing(self, code_host, fault):
        code_host.stand_in.faults.add(TOKENS, fault, fault, fault)
        failure(HostUnavailable, create, code_host.host(policy=policy_for(fault)))
        assert created(code_host) == (0, 0)

    def test_creating_an_issue_after_the_deadline_sends_nothing(self, code_host):
        transport = code_host.transport()
        request = Request("POST", CREATE, transport.url("/repos/demo-shop/storefront/issues"), "Bearer token", {})
        failure(HostUnavailable, transport.send_once, request, Deadline(0))
        assert not code_host.exchanges


class TestRedirects:
    def test_archive_redirects_lead_to_another_host_without_the_token(self, code_host):
        code_host.stand_in.download_url = code_host.url.replace("127.0.0.1", "localhost")
        assert len(download(code_host.host())) > 1000
        (sent,) = code_host.sent(CODELOAD)
        assert sent.headers["host"].startswith("localhost:")
        assert "authorization" not in sent.headers

    def test_other_redirects_never_lead_to_another_host(self, code_host):
        elsewhere = code_host.url.replace("127.0.0.1", "localhost")
        code_host.stand_in.faults.add(REPOSITORY, Fault(301, {"Location": f"{elsewhere}/api/v3/repos/demo-shop/a"}))
        failure(Refused, read, code_host.host())
        assert len(code_host.sent(REPOSITORY)) == 1

    def test_redirects_are_limited(self, code_host):
        here = {"Location": "/api/v3/repos/demo-shop/storefront"}
        code_host.stand_in.faults.add(REPOSITORY, *[Fault(301, here)] * 10)
        failure(Refused, read, code_host.host())
        assert len(code_host.sent(REPOSITORY)) == 4


class TestTarball:
    def test_a_tarball_can_be_as_large_as_the_limit(self, code_host):
        host = code_host.host()
        size = len(download(host))
        assert len(download(host, limit_bytes=size)) == size
        refused = failure(TarballTooLarge, download, host, limit_bytes=size - 1)
        assert (refused.limit_bytes, refused.context) == (size - 1, {"limitBytes": size - 1})

    @each("length", [0, 1000])
    def test_a_truncated_tarball_is_an_error(self, code_host, length):
        code_host.stand_in.faults.add(CODELOAD, Fault(cut_after_bytes=length))
        failure(HostUnavailable, download, code_host.host())

    def test_a_tarball_is_retried_until_its_first_byte_arrives(self, code_host):
        code_host.stand_in.faults.add(TARBALL, Fault(502))
        code_host.stand_in.faults.add(CODELOAD, Fault(503))
        assert len(download(code_host.host())) > 1000
        assert len(code_host.sent(TARBALL)) == 3

    def test_a_tarball_can_be_abandoned_midway(self, code_host):
        host = code_host.host()
        stream = host.stream_tarball(*DEMO, head(host))
        assert next(stream)[:2] == b"\x1f\x8b"
        stream.close()


class TestAbsence:
    @each(
        ("call", "arguments", "error"),
        [
            *[(call, {"name": UNKNOWN}, RepositoryGone) for call in (read, head, create, issues)],
            (download, {"name": UNKNOWN, "sha": "0" * 40}, RepositoryGone),
            (download, {"sha": "0" * 40}, CommitGone),
            (head, {"branch": "unknown"}, BranchGone),
        ],
    )
    def test_the_error_says_what_is_missing(self, code_host, call, arguments, error):
        failure(error, call, code_host.host(), **arguments)

    @each(("status", "error"), [(410, IssueGone), (451, Refused)])
    def test_a_deleted_issue_is_missing_and_a_refusal_is_reported(self, code_host, status, error):
        code_host.stand_in.faults.add("GET /repos/{owner}/{repo}/issues/{issue_number}", Fault(status))
        failure(error, code_host.host().get_issue, *DEMO, 1)

    def test_another_installation_sees_everything_as_missing(self, code_host):
        add_repository(code_host, "other-owner", "private")
        assert read(code_host.host("other-owner"), ("other-owner", "private")).owner == "other-owner"
        failure(RepositoryGone, read, code_host.host(), ("other-owner", "private"))


class TestAccess:
    def test_access_is_lost_with_the_installation_or_its_suspension(self, code_host):
        transport = code_host.transport()
        lost = failure(AccessLost, read, CodeHost(transport, code_host.auth(transport), 1))
        assert lost.context["status"] == 404
        code_host.stand_in.faults.suspended.add(installation_id(DEMO_OWNER))
        failure(AccessLost, read, code_host.host())
        assert len(code_host.sent(TOKENS)) == 2

    def test_access_is_lost_on_403_and_for_calls_that_need_a_withheld_permission(self, code_host):
        code_host.stand_in.faults.withheld[installation_id(DEMO_OWNER)] = {"issues"}
        host = code_host.host()
        assert read(host)
        failure(AccessLost, create, host)
        code_host.stand_in.faults.withheld.clear()
        code_host.stand_in.faults.add(CREATE, Fault(403))
        failure(AccessLost, create, code_host.host())


def test_errors_contain_no_name_token_or_text(code_host):
    host = code_host.host()
    faults = code_host.stand_in.faults
    faults.add(REPOSITORY, Fault(502), Fault(429, {"Retry-After": "1"}))
    with captured_logs() as log:
        read(host)
    told = []
    for status, error in (
        (502, OutcomeUnknown),
        (422, Refused),
        (403, AccessLost),
        (429, RateLimitedByHost),
        (404, RepositoryGone),
    ):
        faults.add(CREATE, Fault(status))
        raised = failure(error, create, host, title="A private title", body="A private body")
        told.append(f"{raised!r} {raised.context}")
    text = " ".join([*told, log.getvalue()])
    assert text.count("code host request retried") == 2
    tokens = [request.headers["authorization"].split()[1] for request in code_host.stand_in.requests]
    for secret in ("private", "demo-shop", "storefront", key_file(code_host.root).read_text()[40:80], *tokens):
        assert secret not in text
