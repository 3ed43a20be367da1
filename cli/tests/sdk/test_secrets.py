"""No error contains a credential, whatever it looks like, and whatever the service or the connection does."""

import json
import socket
import ssl
import traceback
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cli.tests.support.script import ADDRESS, CODE, SECRET, TOKEN, Script, success
from openassent import Assent, AssentError, ConnectionFailed, InvalidArgument, MalformedResponse, webhooks
from tests.support.each import each
from tests.support.scripted_server import Conversation, answer, scripted_server

# Between two parts of a credential, so that a part that is quoted is noticed too.
HALVES = SECRET[:20], SECRET[20:]
CHARACTERS = st.one_of(st.sampled_from("\r\n\t\0 \x7f\x85\u2028\ufeff\u00e9\ud800:@/?#[]%\\\"'"), st.characters())
ODD = st.text(CHARACTERS, max_size=4)
TRANSPORT_ERRORS = [
    kind for kind in vars(httpx).values() if isinstance(kind, type) and issubclass(kind, httpx.RequestError)
]


def told(error: BaseException) -> str:
    """Returns all that a program, a log, or a tool that reports errors could show of an error."""
    texts = traceback.format_exception(error)
    linked: BaseException | None = error
    while linked is not None:
        texts += [str(linked), repr(linked), repr(linked.args)]
        linked = linked.__cause__ or linked.__context__
    return "\n".join(texts)


def failure(call: Callable[[Assent], object], **options: Any) -> Exception:
    """Returns the error of a client, or of a call to it."""
    try:
        with Assent(**options) as client:
            call(client)
    except (AssentError, ValueError) as error:
        return error
    raise AssertionError("it didn't fail")


def assert_hidden(error: BaseException, *secrets: str) -> None:
    shown = told(error)
    assert not [it for it in secrets if it in shown]
    assert len(str(error).splitlines()) == 1


def echo(conversation: Conversation) -> bool:
    """Refuses a request, and quotes it."""
    error = {"code": "UNAUTHORIZED", "message": f"Wrong: {conversation.head.decode('latin-1').splitlines()}"}
    return answer({"success": False, "error": error}, 401)(conversation)


@pytest.fixture(scope="module")
def server():
    """A service behind real connections: only these refuse a header that isn't valid."""
    certificates = ssl.create_default_context()
    with scripted_server(echo) as made, pytest.MonkeyPatch.context() as patch:
        # Loaded once for all clients.
        patch.setattr("ssl.create_default_context", lambda **_: certificates)
        yield made


class TestACredential:
    @given(before=ODD, inside=ODD, after=ODD)
    @example("", "", "\n")
    @example("", "\n", "")
    @example("", "\u00e9", "")
    @example("", '"', "")
    @example("", "=", "")
    @example("", ".", "")
    @settings(max_examples=60, deadline=None, database=None)
    def test_is_sent_or_refused(self, server, before, inside, after):
        credential = before + HALVES[0] + inside + HALVES[1] + after
        requests = len(server.requests)
        error = failure(lambda client: client.me.get(), base_url=server.url, api_key=credential)
        sent = server.requests[requests:]
        assert [it.headers["authorization"] for it in sent] in ([], [f"Bearer {credential.strip()}"])
        assert isinstance(error, InvalidArgument) == (sent == [])
        assert not isinstance(error, ConnectionFailed)
        assert_hidden(error, *HALVES)

    @given(inside=ODD)
    @example("\n")
    @example("\ud800")
    @settings(max_examples=40, deadline=None, database=None)
    def test_is_hidden_in_any_setting_and_argument(self, server, inside):
        secret = inside.join(HALVES)
        for options in (
            {"base_url": f"https://{secret}@api.assent.test"},
            {"base_url": f"https://me:{secret}@api.assent.test/"},
            {"base_url": f"https://api.assent.test:{secret}"},
            {"base_url": f"https://[{secret}"},
            {"base_url": f"{ADDRESS}/{secret}"},
            {"user_agent": f"{secret}\n1"},
            {"auth": self.signed(f"{secret}\n1")},
        ):
            error = failure(lambda client: client.me.get(), **{"base_url": server.url, **options})
            assert isinstance(error, InvalidArgument), options
            assert_hidden(error, *HALVES)
        for call in (
            lambda client: client.organizations.create(name="x", idempotency_key=f"{secret}\n1"),
            lambda client: client.device.revoke(secret),
            lambda client: client.device.refresh(secret),
            lambda _: webhooks.verify(b"{}", {}, f"whsec_{secret}!"),
        ):
            error = failure(call, base_url=server.url)
            assert not isinstance(error, ConnectionFailed)
            assert_hidden(error, *HALVES)

    def signed(self, token: str) -> Any:
        def sign(request: httpx.Request) -> httpx.Request:
            request.headers["Authorization"] = f"Bearer {token}"
            return request

        return sign

    @given(inside=ODD.filter(lambda it: "\0" not in it))
    @example("\n")
    @example("/")
    @settings(max_examples=40, deadline=None, database=None)
    def test_of_a_proxy_is_hidden(self, server, inside):
        secret = inside.join(HALVES)
        for proxy in (f"http://me:{secret}@127.0.0.1:9", f"http://127.0.0.1:{secret}", f"socks9://{secret}", secret):
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("ALL_PROXY", proxy.encode("utf-8", "replace").decode())
                error = failure(lambda client: client.me.get(), base_url="http://api.assent.test", max_retries=0)
            assert_hidden(error, *HALVES)


class TestAFailure:
    @each("kind", TRANSPORT_ERRORS)
    def test_a_connection_error_omits_the_text_of_its_cause(self, pauses, kind):
        script = Script(kind(f"Illegal header value b'Bearer {SECRET}'"))
        with pytest.raises(AssentError) as caught:
            script.client().members.update("mem_1", role="admin")
        assert_hidden(caught.value, SECRET)
        assert str(caught.value).startswith("PATCH /v1/members/mem_1: ")

    @each(
        ("kind", "cause", "reason", "unknown"),
        [
            (httpx.ConnectError, ssl.SSLCertVerificationError, "the service's certificate can't be verified", False),
            (httpx.ConnectError, ssl.SSLError, "no encrypted connection can be made", False),
            (httpx.ConnectError, socket.gaierror, "the name of the host isn't known", False),
            (httpx.ConnectError, ConnectionRefusedError, "the host refused the connection", False),
            (httpx.ConnectError, OSError, "the host can't be reached", False),
            (httpx.ProxyError, None, "the proxy refused the connection", False),
            (httpx.ConnectTimeout, None, "the service didn't respond in time", False),
            (httpx.RemoteProtocolError, None, "the connection was closed, or the response isn't HTTP", True),
            (httpx.ReadError, ConnectionResetError, "the connection was lost", True),
        ],
    )
    def test_says_what_is_wrong(self, kind, cause, reason, unknown):
        failed = kind(SECRET)
        failed.__cause__ = cause and OSError(SECRET)
        if cause:
            failed.__cause__.__context__ = cause(SECRET)
        with pytest.raises(ConnectionFailed) as caught:
            Script(failed).client(max_retries=0).me.get()
        assert (str(caught.value), caught.value.outcome_unknown) == (f"GET /v1/me: {reason}", unknown)
        assert_hidden(caught.value, SECRET)

    @each("kind", [httpx.LocalProtocolError, httpx.UnsupportedProtocol])
    def test_a_request_that_cant_be_sent_isnt_repeated(self, pauses, kind):
        script = Script(kind(SECRET))
        with pytest.raises(InvalidArgument):
            script.client().me.get()
        assert (len(script.requests), pauses.seconds) == (1, [])

    @each("text", ["\ud800", {"a": float("nan")}])
    def test_a_value_that_json_cant_represent_is_an_invalid_argument(self, text):
        script = Script(success({}))
        with pytest.raises((InvalidArgument, ValueError)) as caught:
            script.client(api_key=SECRET).device.revoke(text)
        assert script.requests == []
        assert_hidden(caught.value, SECRET)

    @each("host", ["a" * 70 + ".test", "\u2603" * 70 + ".test"])
    def test_an_impossible_host_is_reported_in_one_line(self, host):
        error = failure(lambda client: client.me.get(), base_url=f"https://{host}", max_retries=0)
        assert isinstance(error, AssentError)
        assert_hidden(error)


SECRETS = {**TOKEN, "accessToken": HALVES[0], "refreshToken": HALVES[1]}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ODD,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ODD, inner, max_size=3),
    max_leaves=5,
)


def deep(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


class TestAResponse:
    @given(field=st.sampled_from([*SECRETS]), value=JSON)
    @settings(max_examples=100, deadline=None, database=None)
    def test_a_response_with_tokens_is_never_quoted(self, field, value):
        """Validation errors of the models' library quote the whole value."""
        content = json.dumps({"success": True, "data": {**SECRETS, field: value}}).encode()
        client = Script(httpx.Response(200, content=content)).client(max_retries=0)
        try:
            client.device.refresh("x")
        except MalformedResponse as error:
            assert_hidden(error, *HALVES)

    @each("status", [200, 400, 503])
    @each("levels", [101, 1_000, 200_000])
    def test_a_deeply_nested_response_is_reported_in_one_line(self, levels, status):
        for body in (deep(levels), b'{"success": true, "data": ' + deep(levels) + b"}"):
            client = Script(httpx.Response(status, content=body)).client(max_retries=0)
            for call in (client.me.get, client.projects.list().page, client.openapi.get, client.device.metadata):
                with pytest.raises(AssentError) as caught:
                    call()
                assert_hidden(caught.value, SECRET)

    @each("number", ["9" * 17, "9" * 5_000, "1e999", "-1"])
    def test_cant_make_a_client_wait_without_end(self, pauses, number):
        body = json.dumps({"success": True, "data": CODE}).replace('"interval": 5', f'"interval": {number}').encode()
        script = Script(httpx.Response(201, content=body), success(TOKEN))
        client = script.client()
        try:
            client.device.poll(client.device.start())
        except MalformedResponse:
            assert len(script.requests) == 1
        assert sum(pauses.seconds) <= 3_600

    @each(
        "address",
        ["", "https://[", f"https://me:{SECRET}@a.test", "file:///etc/passwd", "--version", "https://a:99999"],
    )
    def test_an_invalid_address_of_the_sign_in_page_is_rejected(self, address):
        code = {**CODE, "verificationUriComplete": address}
        with pytest.raises(MalformedResponse) as caught:
            Script(success(code, 201)).client().device.start()
        assert_hidden(caught.value, SECRET)

    @each("cursor", [5, ["x"], {"a": 1}, True])
    def test_an_invalid_cursor_is_rejected(self, cursor):
        body = {"success": True, "data": [], "pagination": {"nextCursor": cursor}}
        for pagination in (body, {**body, "pagination": cursor}):
            with pytest.raises(MalformedResponse, match="cursor"):
                Script(httpx.Response(200, json=pagination)).client().projects.list().page()
            if isinstance(cursor, dict):
                break
