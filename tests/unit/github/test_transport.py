"""The transport, without a code host, and the requests that installations have left."""

import gzip
import ssl
from contextlib import nullcontext
from io import BytesIO
from types import SimpleNamespace
from typing import Any

import pytest
from urllib3 import HTTPResponse

from controlplane.code_host.github import transport
from controlplane.code_host.github.app_auth import Quotas
from controlplane.code_host.github.errors import OutcomeUnknown, RateLimitedByHost, Refused
from controlplane.code_host.github.transport import Deadline, Request, Response, Transport, seconds_to_wait
from controlplane.platform.core import clock
from tests.support.each import each

HOST = Transport("https://api.example")
REQUEST = Request("GET", "/b", "https://api.example/b", "Bearer x")


def answer(body: bytes, headers: dict[str, str] | None = None, status: int = 200) -> HTTPResponse:
    return HTTPResponse(BytesIO(body), headers, status, preload_content=False)


class TestTls:
    def test_tls_certificates_are_verified(self):
        context = transport._tls()
        assert context.verify_mode == ssl.CERT_REQUIRED
        assert context.check_hostname
        assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


class TestRedirects:
    @each(
        ("url", "origin", "keeps_tls"),
        [
            ("https://files.example/a", "https://api.example/b", True),
            ("https://files.example/a", "http://127.0.0.1/b", True),
            ("http://files.example/a", "https://api.example/b", False),
            ("http://localhost/a", "http://127.0.0.1/b", True),
            ("ftp://files.example/a", "https://api.example/b", False),
            ("file:///etc/passwd", "http://127.0.0.1/b", False),
        ],
    )
    def test_redirects_never_give_up_tls(self, url, origin, keeps_tls):
        assert transport._keeps_tls(url, origin) is keeps_tls

    @each(
        ("one", "other", "is_same"),
        [
            ("https://api.example/a", "https://api.example:443/b", True),
            ("https://api.example/a", "https://API.example/b", True),
            ("http://127.0.0.1/a", "http://127.0.0.1:80/b", True),
            ("https://api.example/a", "http://api.example/a", False),
            ("https://api.example/a", "https://api.example:8443/a", False),
            ("https://api.example/a", "https://api.example.evil/a", False),
            ("https://api.example/a", "https://api.example@evil.example/a", False),
        ],
    )
    def test_redirects_stay_with_one_host(self, one, other, is_same):
        assert (transport._origin(one) == transport._origin(other)) is is_same

    def test_a_download_that_would_give_up_tls_is_refused(self):
        with pytest.raises(Refused) as failure:
            follow("https://api.example/b", {"Location": "http://files.example/a"})
        assert failure.value.context["reason"] == "redirect to another host"
        assert follow("https://api.example/b", {}).status == 302, "without a target"

    @each("status", [301, 302, 307, 308])
    def test_reads_follow_redirects_and_writes_only_those_that_keep_the_method(self, status, monkeypatch):
        for send, is_followed in ((HOST.send_with_retries, True), (HOST.send_once, status > 302)):
            first = answer(b"0", {"Location": "/c"}, status)
            answers = [first, answer(b"1")]
            pool = SimpleNamespace(request=lambda *_, answers=answers, **__: answers.pop(0))
            monkeypatch.setattr(HOST, "_pool", pool)
            monkeypatch.setattr(transport, "_new_pool", lambda pool=pool: nullcontext(pool))
            assert send(REQUEST, Deadline(9)).content == int(is_followed)
            assert first.closed


def follow(url: str, headers: dict[str, str]) -> Any:
    pool = SimpleNamespace(request=lambda *_, **__: HTTPResponse(b"", headers, 302))
    request = Request("GET", "/b", url, "Bearer x")
    return HOST._follow(pool, request, Deadline(9), {302}, allow_other_hosts=True)  # type: ignore[arg-type]


class TestWrites:
    @each(("status", "is_unknown"), [(201, True), (299, True), (300, False), (302, False), (422, False), (500, True)])
    def test_only_a_refusal_without_json_has_a_known_outcome(self, status, is_unknown, monkeypatch):
        pool = SimpleNamespace(request=lambda *_, **__: answer(b"<html>", status=status))
        monkeypatch.setattr(transport, "_new_pool", lambda: nullcontext(pool))
        request = Request("POST", "/b", "https://api.example/b", "Bearer x", {})
        with pytest.raises(OutcomeUnknown) if is_unknown else nullcontext():
            assert HOST.send_once(request, Deadline(9)).status == status


class TestBodies:
    def test_a_response_can_be_as_large_as_the_limit(self, monkeypatch):
        monkeypatch.setattr(transport, "_RESPONSE_LIMIT_BYTES", 4)
        assert transport._read_response(REQUEST, answer(b"1234"), Deadline(9)).content == 1234
        larger = answer(b"12345")
        with pytest.raises(transport._ConnectionFailed, match="OverflowError"):
            transport._read_response(REQUEST, larger, Deadline(9))
        assert larger.closed

    def test_a_body_isnt_decompressed(self):
        packed = gzip.compress(b" " * 1000)
        assert b"".join(transport._chunks(answer(packed, {"Content-Encoding": "gzip"}), Deadline(9))) == packed


class TestTimeouts:
    @each(("left", "connect", "read"), [(100, 3, 10), (9, 3, 9), (2, 2, 2)])
    def test_no_wait_is_longer_than_its_limit_or_than_what_is_left(self, left, connect, read):
        pool, deadline = SimpleNamespace(request=lambda *_, **options: options), SimpleNamespace(remaining_seconds=left)
        sent: Any = HOST._send(pool, REQUEST, REQUEST.url, "", deadline)  # type: ignore[arg-type]
        timeout = sent["timeout"]
        assert (timeout.connect_timeout, timeout.read_timeout) == (connect, read)


class TestSecrets:
    def test_representations_show_no_token_and_no_content(self):
        request = Request("POST", "/b", "https://api.example/b", "Bearer secret", {"title": "secret"})
        response = Response(200, {"X-Header": "secret"}, {"token": "secret"})
        assert "secret" not in repr([request, response])


class TestLimits:
    @pytest.fixture(autouse=True)
    def _now(self, monkeypatch):
        monkeypatch.setattr(clock, "source", lambda: 1_772_600_767.0)  # 05:06:07

    @each(
        ("headers", "seconds"),
        [
            ({"Retry-After": "2"}, 2),
            ({"Retry-After": "0"}, 1),
            ({"Retry-After": "1800"}, 1800),
            ({"Retry-After": "Wed, 04 Mar 2026 05:06:12 GMT"}, 5),
            ({"Date": "Wed, 04 Mar 2026 05:05:57 GMT", "Retry-After": "Wed, 04 Mar 2026 05:06:12 GMT"}, 15),
            ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1772600772"}, 5),
            ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1772604367"}, 3600),
            ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"}, 1),
            (
                {
                    "X-RateLimit-Remaining": "0",
                    "X-RateLimit-Reset": "1772600773",
                    "Date": "Wed, 04 Mar 2026 05:05:57 GMT",
                },
                16,
            ),
            ({"X-RateLimit-Remaining": "0"}, 60),
        ],
    )
    def test_a_rate_limit_ends_at_the_hosts_time_by_the_hosts_clock_if_known(self, headers, seconds):
        assert [seconds_to_wait(Response(status, headers, None)) for status in (403, 429)] == [seconds] * 2

    def test_a_limit_of_unknown_length_takes_a_minute_and_is_not_inferred_from_any_refusal(self):
        documented = {"documentation_url": "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api"}
        for headers in ({}, {"Retry-After": "soon"}):
            assert seconds_to_wait(Response(429, headers, None)) == 60
            assert seconds_to_wait(Response(403, headers, documented)) == 60
        for status in (200, 401, 404, 422, 500, 503):
            assert seconds_to_wait(Response(status, {"Retry-After": "5"}, None)) is None
        for content in (None, [], "text", {}, {"documentation_url": None}, {"documentation_url": 1}):
            assert seconds_to_wait(Response(403, {}, content)) is None
            assert seconds_to_wait(Response(403, {"X-RateLimit-Remaining": "17"}, content)) is None


NOW = 1_772_600_767
SPENT = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(NOW + 60)}


@each(
    ("headers", "seconds"),
    [
        (SPENT, 60),
        # By the host's clock, which is ten seconds behind ours.
        (SPENT | {"Date": "Wed, 04 Mar 2026 05:05:57 GMT"}, 70),
        (SPENT | {"X-RateLimit-Reset": str(NOW)}, 0),
        (SPENT | {"X-RateLimit-Reset": "soon"}, 0),
        (SPENT | {"X-RateLimit-Remaining": "1"}, 0),
        ({"X-RateLimit-Remaining": "0"}, 0),
        ({}, 0),
    ],
)
def test_an_installation_waits_for_its_next_requests(headers, seconds, monkeypatch):
    monkeypatch.setattr(clock, "source", lambda: NOW + 0.9)
    quotas = Quotas()
    quotas.note(7, Response(200, headers, None))
    assert [quotas.seconds_left(it) for it in (7, 8)] == [seconds, 0]
    quotas.require(8)
    if seconds:
        with pytest.raises(RateLimitedByHost) as limited:
            quotas.require(7)
        assert limited.value.retry_after_seconds == seconds
    monkeypatch.setattr(clock, "source", lambda: NOW + seconds - 0.1)
    assert quotas.seconds_left(7) == min(seconds, 1)
    monkeypatch.setattr(clock, "source", lambda: float(NOW + seconds))
    quotas.require(7)
