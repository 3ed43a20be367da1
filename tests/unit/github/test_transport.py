"""The transport's setup, before any request."""

import ssl
from contextlib import nullcontext
from io import BytesIO
from types import SimpleNamespace
from typing import Any

import pytest
from urllib3 import HTTPResponse

from controlplane.github import transport
from controlplane.github.errors import OutcomeUnknown, Refused
from controlplane.github.transport import Deadline, Request, Response, Transport, seconds_to_wait
from tests.support.each import each


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

    def test_a_redirect_without_a_target_is_the_response(self):
        assert follow("https://api.example/b", {}).status == 302


def follow(url: str, headers: dict[str, str]) -> Any:
    pool = SimpleNamespace(request=lambda *_, **__: HTTPResponse(b"", headers, 302))
    request = Request("GET", "/b", url, "Bearer x")
    return Transport("https://api.example")._follow(pool, request, Deadline(9), {302}, allow_other_hosts=True)  # type: ignore[arg-type]


class TestWrites:
    @each(("status", "is_unknown"), [(201, True), (299, True), (300, False), (302, False), (422, False), (500, True)])
    def test_only_a_refusal_without_json_has_a_known_outcome(self, status, is_unknown, monkeypatch):
        answer = HTTPResponse(BytesIO(b"<html>"), {}, status, preload_content=False)
        pool = SimpleNamespace(request=lambda *_, **__: answer)
        monkeypatch.setattr(transport, "_new_pool", lambda: nullcontext(pool))
        request = Request("POST", "/b", "https://api.example/b", "Bearer x", {})
        with pytest.raises(OutcomeUnknown) if is_unknown else nullcontext():
            assert Transport("https://api.example").send_once(request, Deadline(9)).status == status


class TestLimits:
    @each("status", [200, 401, 404, 422, 500, 503])
    def test_other_statuses_are_no_rate_limits(self, status):
        assert seconds_to_wait(Response(status, {"Retry-After": "5"}, None)) is None

    @each("content", [None, [], "text", {}, {"documentation_url": None}, {"documentation_url": 1}])
    def test_a_rate_limit_is_not_inferred_from_any_refusal(self, content):
        assert seconds_to_wait(Response(403, {}, content)) is None
        assert seconds_to_wait(Response(403, {"X-RateLimit-Remaining": "17"}, content)) is None
