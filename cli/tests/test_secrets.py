"""Whatever is in the environment, and whatever a service answers, a command prints no credential and no traceback."""

import copy
import json
import ssl
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cli.tests.support.documented_service import DocumentedService
from cli.tests.support.script import ADDRESS, SECRET, failure
from cli.tests.support.shell import Ended, run
from openassent_cli import credentials, profiles
from openassent_cli.credentials import Tokens
from openassent_cli.problems import Exit
from openassent_cli.profiles import Profile
from scripts.reference.calls import COMMANDS
from tests.support.each import each

HALVES = SECRET[:20], SECRET[20:]
LINES = sorted({line for line in COMMANDS.values() if "log" not in line.split()[1]})
LINES += ["assent api GET /v1/billing", "assent api GET /v1/audit-log --paginate"]
# What a variable can have: no NUL, and no character that the file system's encoding doesn't have.
ODD = st.text(
    st.sampled_from("\r\n\t \x1b\x7f\u2028\ufeff\u00e9:@/?#[]%\\\"'") | st.characters(codec="utf-8"), max_size=4
).filter(lambda it: "\0" not in it)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ODD,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ODD, inner, max_size=3),
    max_leaves=5,
)
_MOST_REQUESTS = 20

Answer = Callable[[httpx.Request], httpx.Response]


@pytest.fixture(scope="module")
def service():
    """Lets a function answer the requests of all commands, and no pause take any time."""
    answers: list[Answer] = []
    certificates = ssl.create_default_context()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ssl.create_default_context", lambda **_: certificates)
        patch.setattr("time.sleep", lambda _: None)
        patch.setattr(httpx.HTTPTransport, "handle_request", lambda _, request: answers[-1](request))
        yield answers.append


def refuse(request: httpx.Request) -> httpx.Response:
    return failure(401, "UNAUTHORIZED")


def sign_in() -> None:
    credentials.store().save("default", Tokens(SECRET, SECRET, time.time() + 3_600, ""))
    profiles.save("default", Profile(ADDRESS))


def assert_plain(ended: Ended, *secrets: str) -> None:
    output = ended.stdout + ended.stderr
    assert [it for it in secrets if it in output] == []
    assert "Traceback" not in output
    assert ended.code in {int(it) for it in Exit}


class TestTheEnvironment:
    """The SDK's own tests try every character. These show that the command line adds nothing to what it says."""

    @each("key", [f"{SECRET}\n1", f"{SECRET}\u00e9", "\n".join(HALVES), f" {SECRET}\n"])
    def test_api_key(self, service, key):
        service(refuse)
        ended = run("whoami", ASSENT_API_KEY=key, ASSENT_BASE_URL=ADDRESS)
        assert_plain(ended, *HALVES)
        assert ended.code == (Exit.SIGN_IN if key.strip() == SECRET else Exit.USAGE)

    @each("value", [f"https://me:{SECRET}@a.test", f"https://a.test:{SECRET}", f"https://[{SECRET}", f"ftp://{SECRET}"])
    def test_base_url(self, service, value):
        service(refuse)
        ended = run("whoami", ASSENT_API_KEY=SECRET, ASSENT_BASE_URL=value)
        assert_plain(ended, *HALVES)
        assert (ended.code, len(ended.stderr.splitlines())) == (Exit.USAGE, 1)

    @each("name", ["HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "ASSENT_PROFILE", "ASSENT_ORG"])
    @each("value", [f"http://me:{SECRET}@127.0.0.1:9", f"http://127.0.0.1:{SECRET}", f"socks9://{SECRET}", "\x1b\n"])
    def test_names_and_proxies(self, service, name, value):
        service(refuse)
        ended = run("whoami", **{"ASSENT_API_KEY": "assent_x", "ASSENT_BASE_URL": ADDRESS, name: value})
        assert_plain(ended, *([] if name.startswith("ASSENT") else HALVES))


class TestAStoredFile:
    @each("content", ["[" * 200_000, "5", "[]", '{"default": 5}', '{"default": {"access_token": 5}}', "\x00"])
    def test_a_malformed_token_file_is_reported(self, content):
        profiles.save("default", Profile(ADDRESS))
        (profiles.folder() / "credentials.json").write_text(content)
        ended = run("whoami")
        assert_plain(ended, SECRET)
        assert ended.code in {Exit.SIGN_IN, Exit.FAILED}

    @each(
        "token",
        [{"access_token": f"{SECRET}\n1"}, {"access_token": f"{SECRET}\u00e9"}, {"expires_at": SECRET}, {"scope": 5}],
    )
    def test_a_stored_token_that_no_request_can_carry_is_reported(self, service, token):
        service(refuse)
        sign_in()
        path = profiles.folder() / "credentials.json"
        stored = json.loads(path.read_text())
        path.write_text(json.dumps({"default": stored["default"] | token}))
        ended = run("whoami")
        assert_plain(ended, SECRET)
        assert ended.code == Exit.SIGN_IN

    @each("address", [f"https://me:{SECRET}@a.test", "https://[", f"{ADDRESS}/v1", 5, None, ["x"], {}])
    @each("line", ["whoami", "profile list", "logout"])
    def test_a_profile_with_an_invalid_address_is_reported(self, line, address):
        content = json.dumps({"current": "default", "profiles": {"default": {"base_url": address}}})
        (profiles.folder() / "profiles.json").write_text(content)
        ended = run(line)
        assert_plain(ended, SECRET)
        assert (ended.code, len(ended.stderr.splitlines())) == (Exit.FAILED, 2)

    def test_a_deeply_nested_baseline_is_reported(self, tmp_path):
        (tmp_path / "report.json").write_text("[" * 200_000)
        ended = run(f"scan local {tmp_path} --baseline {tmp_path / 'report.json'}")
        assert (ended.code, len(ended.stderr.splitlines())) == (Exit.USAGE, 2)


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield place
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(part, (*place, key))


def replaced(value: Any, place: tuple[Any, ...], part: Any) -> Any:
    if not place:
        return part
    inner = changed = copy.deepcopy(value)
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = part
    return changed


class TestAResponse:
    @given(line=st.sampled_from(LINES), number=st.integers(0, 10_000), part=JSON, as_json=st.booleans())
    @settings(max_examples=300, deadline=None, database=None)
    def test_a_response_with_an_unexpected_value_is_reported_plainly(self, service, line, number, part, as_json):
        documented = DocumentedService()
        requests: list[httpx.Request] = []

        def respond(request: httpx.Request) -> httpx.Response:
            requests.append(request)
            if len(requests) > _MOST_REQUESTS:  # a list without an end
                return failure(500)
            response = documented(request)
            possible = [*places(response.json())]
            content = json.dumps(replaced(response.json(), possible[number % len(possible)], part)).encode()
            return httpx.Response(response.status_code, content=content)

        service(respond)
        sign_in()
        ended = run(f"{line.removeprefix('assent ')}{' --json' if as_json else ''}")
        assert_plain(ended, SECRET)

    @given(
        line=st.sampled_from(["whoami", "project list", "org create Acme --slug acme"]),
        status=st.sampled_from([400, 401, 404, 409, 429, 500, 503]),
        error=st.fixed_dictionaries(
            {"code": JSON | st.just("CONFLICT"), "message": JSON | st.just("No.")},
            optional={
                "details": JSON
                | st.lists(JSON, max_size=2)
                | st.fixed_dictionaries(
                    {}, optional={"suggestions": JSON, "hint": JSON, "docsUrl": JSON, "status": JSON}
                )
            },
        ),
        retry_after=st.none() | st.sampled_from(["5", "9" * 400, "Mon, 01 Jan 0001 00:00:00 +9999", "x"]),
    )
    @settings(max_examples=150, deadline=None, database=None)
    def test_a_refusal_with_unexpected_content_is_reported_plainly(self, service, line, status, error, retry_after):
        content = json.dumps({"success": False, "error": error}).encode()
        headers = {} if retry_after is None else {"Retry-After": retry_after}
        service(lambda _: httpx.Response(status, headers=headers, content=content))
        sign_in()
        assert_plain(run(line), SECRET)

    def test_a_credential_is_hidden_in_a_response_that_quotes_the_request(self, service):
        def echo(request: httpx.Request) -> httpx.Response:
            message = f"Not accepted: {request.headers['Authorization']}"
            return httpx.Response(403, json={"success": False, "error": {"code": "FORBIDDEN", "message": message}})

        service(echo)
        ended = run("whoami", ASSENT_API_KEY=SECRET, ASSENT_BASE_URL=ADDRESS)
        assert (ended.code, ended.stderr) == (Exit.REFUSED, "Error: Not accepted: Bearer [credential]\n")

    @each("endpoint", ["https://[", f"https://me:{SECRET}@api.assent.test/token", "file:///etc/passwd", "", "--help"])
    def test_an_invalid_endpoint_is_reported_in_one_line(self, service, endpoint):
        documented = DocumentedService()

        def respond(request: httpx.Request) -> httpx.Response:
            response = documented(request).json()
            names = {"token_endpoint", "device_authorization_endpoint"}
            return httpx.Response(200, json={key: endpoint if key in names else it for key, it in response.items()})

        service(respond)
        ended = run(f"login --base-url {ADDRESS} --no-browser")
        assert_plain(ended, SECRET)
        assert len(ended.stderr.splitlines()) == 1
