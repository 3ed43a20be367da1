"""Checks the properties that every response has: of the envelope, of OAuth, of a page, or of a document."""

import re
from html.parser import HTMLParser
from typing import Any

from controlplane.platform.core.errors import CATALOG
from controlplane.platform.core.settings import settings
from controlplane.platform.http.envelope import HINTS
from controlplane.platform.http.negotiation import quality_of
from tests.support.operations import is_page
from tests.support.reply import Reply

_SARIF = re.compile(r"/v1/code-audit/scans/[^/]+/sarif")
_NOT_ENVELOPED = {
    "/.well-known/oauth-authorization-server",
    "/.well-known/agent-feedback.json",
    "/.well-known/oauth-protected-resource",
    "/.well-known/security.txt",
    "/v1/github/leaked-keys",
}
# Files that the build generates.
_DOCUMENTS = re.compile(r"/openapi\.json|/llms\.txt|/docs(/rules)?(/[^/]+)?")
FORM = "application/x-www-form-urlencoded"
# Paths that answer a form-encoded request in OAuth's format.
_OAUTH_PATHS = "/v1/auth/device/"


def check_response(path: str, sent: dict[str, str], reply: Reply, request_id: str | None = None) -> None:
    """Checks that a response has the shape of a page, of OAuth if the request used it, or of the envelope."""
    accepted = "".join(value for name, value in sent.items() if name.lower() == "accept")
    accepts_html = quality_of("text/html", accepted) > quality_of("application/json", accepted)
    if "content-disposition" in reply.headers:
        check_download(reply)
    elif _DOCUMENTS.fullmatch(path) and reply.status >= 400 and accepts_html:
        assert reply.headers["content-type"] == "text/html; charset=utf-8"
        assert reply.headers["content-security-policy"] == DOCUMENT_POLICY
        check_request_id(reply, request_id)
    elif is_page(path, accepts_html=accepts_html) or (
        path.startswith(("/assets/", "/badges/")) and reply.status >= 400 and accepts_html
    ):
        check_page(reply)
        check_request_id(reply, request_id)
    elif is_oauth(path, sent) and reply.status != 404:
        check_oauth(reply)
        check_request_id(reply, request_id)
    else:
        check_envelope(path, reply, request_id)


def is_oauth(path: str, sent: dict[str, str]) -> bool:
    """Returns whether a request with these headers is OAuth's form."""
    media_type = "".join(value for name, value in sent.items() if name.lower() == "content-type").partition(";")[0]
    return path.startswith(_OAUTH_PATHS) and media_type.strip().lower() == FORM


PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)


class _SafePage(HTMLParser):
    """Parses a page like a browser. Fails on anything but the pages' own script that could run or load something."""

    def handle_data(self, data: str) -> None:
        assert self.cdata_elem != "script", f"an inline script: {data}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "script":
            assert re.fullmatch(r"(/live)?/assets/pages\.[0-9a-f]{16}\.js", dict(attrs)["src"] or ""), attrs
        assert tag not in {"style", "iframe", "object", "embed", "base"}, tag
        if tag == "img":
            assert re.fullmatch(r"data:image/jpeg;base64,[\w+/=]+", dict(attrs)["src"] or ""), attrs
        for name, value in attrs:
            assert not name.startswith("on"), name
            assert name != "style"
            if name in {"href", "src", "action"}:
                assert re.match(r"/[^/]|/$|#|https?://|mailto:|data:image/(svg|jpeg)", value or ""), value


def check_page(reply: Reply) -> None:
    """Checks the properties of every page: HTML, title, heading, strict policy, no inline script, framing, caching."""
    headers = reply.headers
    assert headers.get("x-request-id"), "an answer without X-Request-Id"
    assert headers["content-type"] == "text/html; charset=utf-8"
    assert headers["content-security-policy"] == PAGE_POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cache-control"] == "no-store"
    for cookie in reply.cookies:
        assert re.fullmatch(
            r"__Host-assent-[A-Za-z0-9_-]+=[A-Za-z0-9._-]*; Path=/; Max-Age=\d+; HttpOnly; SameSite=Lax; Secure", cookie
        )
    if reply.status in {303, 307}:
        assert reply.text == ""
        assert headers["location"].startswith(("/", "http"))
        return
    assert reply.text.startswith("<!doctype html>")
    assert re.search(r"<title>[^<]+ · Assent</title>", reply.text)
    assert len(re.findall(r"<h1>", reply.text)) == 1
    _SafePage().feed(reply.text)
    if reply.status == 429:
        assert int(headers["retry-after"]) >= 1


def check_download(reply: Reply) -> None:
    """Checks that a browser saves the file and never shows it as a page."""
    headers = reply.headers
    assert reply.status == 200
    assert re.fullmatch(r'attachment; filename="[A-Za-z0-9._-]+"', headers["content-disposition"])
    # The gateway would return other media types as Base64.
    assert headers["content-type"].startswith(("application/json", "text/csv"))
    assert headers["content-security-policy"] == PAGE_POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"


def check_oauth(reply: Reply) -> None:
    """Checks the shape of an OAuth response: RFC 6749 sections 5.1 and 5.2."""
    assert reply.headers.get("x-request-id"), "an answer without X-Request-Id"
    assert reply.headers["content-type"] == "application/json"
    assert reply.headers["cache-control"] == "no-store"
    assert reply.headers["pragma"] == "no-cache"
    assert isinstance(reply.body, dict)
    if reply.status == 200:
        assert "error" not in reply.body
        assert all(re.fullmatch(r"[a-z_]+", name) for name in reply.body)
        return
    assert reply.status in {400, 413, 429, 500, 503}
    assert set(reply.body) == {"error", "error_description"}
    assert re.fullmatch(r"[a-z_]+", reply.body["error"])
    assert re.fullmatch(r"[\x20-\x21\x23-\x5b\x5d-\x7e]+", reply.body["error_description"])
    assert reply.challenge is None
    if reply.status == 429:
        assert int(reply.headers["retry-after"]) >= 1


DOCUMENT_POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; worker-src blob:; img-src 'self' data:; "
    "style-src 'self' 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=' "
    "'sha256-QMIg+bpjm3JdElJ388KYke01izlUW0UoNOeKjpMxdgc='; "
    "form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
)


def check_document(reply: Reply) -> None:
    """Checks the properties of every document: a strict policy, and headers for caching and revalidation."""
    headers = reply.headers
    assert headers["content-security-policy"] == DOCUMENT_POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cache-control"].startswith("public, max-age=")
    assert "Accept-Encoding" in headers["vary"]
    assert re.fullmatch(r'W/"[0-9a-f]{32}"', headers["etag"])
    if reply.status == 304:
        assert reply.text == ""
        assert "content-type" not in headers
        return
    assert headers["content-type"].partition(";")[0] in {
        "application/json",
        "text/css",
        "text/html",
        "text/javascript",
        "text/markdown",
        "text/plain",
    }
    # Placeholders for the URLs of a deployment.
    assert not re.search(r"https://(api|dashboard)\.assent\.example", reply.text)


def check_request_id(reply: Reply, request_id: str | None) -> None:
    """Checks that the response has the gateway's id, and, unless the gateway itself responded, the time of it."""
    sent = reply.headers.get("x-request-id")
    assert sent, "an answer without X-Request-Id"
    assert request_id is None or sent == request_id or re.fullmatch(rf"{request_id}-[0-9a-z]{{10}}", sent)


def check_envelope(path: str, reply: Reply, request_id: str | None = None) -> None:
    """Checks the envelope: the one assertion that defines the shape of every response except OAuth's."""
    check_request_id(reply, request_id)
    if (
        path in _NOT_ENVELOPED | {"/favicon.ico", "/robots.txt"} or path.startswith(("/assets/", "/badges/"))
    ) and reply.status == 200:
        return
    if _SARIF.fullmatch(path) and reply.status == 200:
        assert reply.body["version"] == "2.1.0"
        return
    if _DOCUMENTS.fullmatch(path) and reply.status in {200, 304}:
        check_document(reply)
        return
    if path.startswith("/v1/consent-instances/") and reply.status in {204, 304}:
        assert (reply.text, "content-type" in reply.headers) == ("", False)
        return
    assert reply.headers["content-type"].startswith("application/json")
    if reply.status < 400:
        assert reply.body["success"] is True
        assert set(reply.body) - {"pagination", "warnings"} == {"success", "data"}
        check_listed(reply.body.get("warnings", []))
        if "pagination" in reply.body:
            assert isinstance(reply.body["data"], list)
            pagination = reply.body["pagination"]
            assert set(pagination) == {"nextCursor", "hasMore"}
            assert pagination["hasMore"] is (pagination["nextCursor"] is not None)
        return
    assert set(reply.body) == {"success", "error"}
    assert reply.body["success"] is False
    error = reply.body["error"]
    assert set(error) == {"code", "message", "details"}
    assert reply.guidance["docsUrl"].endswith(f"/docs/errors#{error['code']}")
    assert reply.guidance["hint"] == settings.name_operator(HINTS[error["code"]])
    assert isinstance(error["message"], str)
    assert error["message"]
    assert CATALOG[error["code"]] == reply.status or (error["code"], reply.status) in {
        ("INVALID_PAYLOAD", 405),
        ("INVALID_PAYLOAD", 415),
    }
    assert re.fullmatch(r"[A-Z_]+", error["code"])
    if error["code"] == "INVALID_PAYLOAD":
        check_problems(error)
    if reply.status == 401:
        assert (reply.challenge or "").startswith("Bearer")
    if reply.status == 429:
        assert int(reply.headers["retry-after"]) >= 1


def check_problems(error: dict[str, Any]) -> None:
    """Checks that `details` lists the problems, and that `message` says how many there are after the first one."""
    problems = error["details"]
    assert problems, error
    check_listed(problems)
    if len(problems) > 1:
        assert re.search(r" \(and [\d,]+ more\)$", error["message"]), error["message"]


def check_listed(problems: list[dict[str, Any]]) -> None:
    """Checks the shape of problems and warnings."""
    for problem in problems:
        assert set(problem) - {"known", "docsUrl", "hint"} == {"code", "message", "path"}
        assert all(isinstance(part, str) for part in problem["path"])
