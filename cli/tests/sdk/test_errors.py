"""Errors are classes, carry what the service said, and never a credential."""

import logging
import pickle
import re
import traceback

import httpx
import pytest

from cli.tests.support.script import ADDRESS, ORGANIZATION, SECRET, Script, failure, page, success
from openassent import ApiError, InvalidArgument, MalformedResponse, NotFound, errors
from openassent._calls import change
from openassent.models import CreatedKey, Token
from tests.support.documented import document
from tests.support.each import each

# By status: the class of its errors, and its codes.
CODES = {
    400: (errors.InvalidRequest, ["INVALID_PAYLOAD", "INVALID_REGION", "INVALID_ORIGIN"]),
    401: (errors.Unauthorized, ["UNAUTHORIZED"]),
    402: (
        errors.PaymentRequired,
        ["PLAN_REQUIRED", "PLAN_LIMIT_REACHED", "INSTANCE_LIMIT_REACHED", "INSUFFICIENT_CREDITS", "UNLOCK_REQUIRED"],
    ),
    403: (errors.Forbidden, ["FORBIDDEN", "INSUFFICIENT_SCOPE"]),
    404: (errors.NotFound, ["NOT_FOUND"]),
    409: (errors.Conflict, ["CONFLICT", "KEY_LIMIT_REACHED", "SCAN_IN_PROGRESS", "REPOSITORY_NOT_LINKED"]),
    413: (errors.InvalidRequest, ["PAYLOAD_TOO_LARGE"]),
    429: (errors.RateLimited, ["RATE_LIMITED"]),
    500: (errors.ServerError, ["INTERNAL_ERROR"]),
    503: (errors.ServerError, ["SERVICE_UNAVAILABLE"]),
}

# A traceback shows the source, so it isn't written there.
_PRIVATE = "name-" * 5


def raised(answer: httpx.Response | Exception) -> ApiError:
    with pytest.raises(ApiError) as caught:
        Script(answer).client(max_retries=0).me.get()
    return caught.value


class TestACode:
    def test_has_the_class_of_its_status_also_in_a_later_version(self):
        documented = document()["components"]["schemas"]["ErrorCode"]["x-extensible-enum"]
        assert {code for _, codes in CODES.values() for code in codes} == {*documented}
        for status, (base, codes) in CODES.items():
            for code in (*codes, "SOMETHING_NEW"):
                error = raised(failure(status, code))
                assert isinstance(error, base)
                assert (error.status, error.code, error.request_id) == (status, code, "req-1")

    @each(
        ("code", "status", "state", "expected"),
        [
            ("CONFLICT", 409, "authorization_pending", errors.AuthorizationPending),
            ("CONFLICT", 409, "slow_down", errors.SlowDown),
            ("FORBIDDEN", 403, "access_denied", errors.AccessDenied),
            ("UNAUTHORIZED", 401, "expired", errors.DeviceCodeExpired),
            ("CONFLICT", 409, "used", errors.Conflict),
            ("INSUFFICIENT_SCOPE", 403, "", errors.InsufficientScope),
            ("SCAN_IN_PROGRESS", 409, "", errors.ScanInProgress),
        ],
    )
    def test_can_have_a_class_of_its_own_also_by_the_status_of_a_device_grant(self, code, status, state, expected):
        assert type(raised(failure(status, code, {"status": state}))) is expected


class TestAnError:
    def test_has_what_the_service_said(self):
        problem = {"code": "missing", "message": "name: field required", "path": ["name"], "docsUrl": "u", "hint": "h"}
        error = raised(failure(400, "INVALID_PAYLOAD", [problem, {"code": "x", "message": "y", "path": []}]))
        assert [it.path for it in error.problems] == [["name"], []]
        assert (error.docs_url, error.hint) == ("u", "h")
        error = raised(failure(402, "INSUFFICIENT_CREDITS", {"remainingCredits": 1, "docsUrl": "d"}, retry_after="3"))
        assert (error.details["remainingCredits"], error.docs_url, error.hint, error.problems) == (1, "d", None, [])
        assert error.retry_after == 3.0
        assert str(error) == "INSUFFICIENT_CREDITS: Something is wrong. (request req-1)"

    @each("body", [b"", b"<html>", b"[]", b"null", b'{"error": "x"}', b'{"error": {"code": 5}}', b"\xff"])
    def test_of_a_gateway_or_with_odd_details_has_no_code_or_hint(self, body):
        for details in (None, [], "text", 5, [1], {"hint": {"path": 5}}, {"hint": 5}):
            assert raised(failure(404, "NOT_FOUND", details)).hint is None
        error = raised(httpx.Response(404, content=body))
        assert isinstance(error, NotFound)
        assert (error.code, error.status, error.request_id) == (None, 404, None)

    def test_can_be_pickled(self):
        error = raised(failure(404, "NOT_FOUND", {"docsUrl": "d"}, retry_after="3"))
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


class TestAMalformedResponse:
    @each(
        "answer",
        [
            httpx.Response(200, text="<html>Welcome</html>"),
            httpx.Response(200, json=[]),
            httpx.Response(200, json={"data": {"id": 5}}),
            httpx.Response(200, json={"success": True}),
            httpx.Response(204),
            httpx.Response(302, headers={"Location": "https://elsewhere.test"}),
            httpx.DecodingError("incorrect header check"),
        ],
        ids=range(7),
    )
    def test_raises(self, answer):
        script = Script(answer)
        with pytest.raises(MalformedResponse):
            script.client().organizations.get("org_1")
        assert len(script.requests) == 1

    def test_names_the_fields_and_not_their_values(self):
        for data in ({}, None, "x", [5], [{"id": 5}]):
            with pytest.raises(MalformedResponse):
                Script(success(data)).client().projects.list().page()
        with pytest.raises(MalformedResponse) as caught:
            Script(success({**ORGANIZATION, "name": [_PRIVATE]})).client().organizations.get("org_1")
        assert "(name)" in str(caught.value)
        assert _PRIVATE not in "".join(traceback.format_exception(caught.value))


class TestASecret:
    @each("answer", [failure(401, "UNAUTHORIZED"), httpx.ConnectError("refused"), httpx.Response(200)])
    def test_isn_t_in_errors_and_logs(self, pauses, caplog, answer):
        caplog.set_level(logging.DEBUG)
        client = Script(answer).client()
        with pytest.raises(errors.AssentError) as caught:
            client.api_keys.create(name=_PRIVATE)
        shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + repr(client) + caplog.text
        shown += repr(vars(caught.value))
        assert SECRET not in shown
        assert _PRIVATE not in shown

    def test_isn_t_in_the_representation_of_a_model_or_a_call(self):
        """Tools that report errors record the variables of each function."""
        for model, field in ((CreatedKey, "key"), (Token, "access_token"), (Token, "refresh_token")):
            assert model.model_fields[field].repr is False
        token = Token(access_token=SECRET, refresh_token=SECRET, token_type="Bearer", expires_in=1, scope="")
        assert SECRET not in f"{token!r} {token}"
        assert token.model_dump(by_alias=True)["accessToken"] == SECRET
        assert SECRET not in repr(change("POST", "/v1/auth/device/revoke", {"token": SECRET}))


class TestAClient:
    @each(
        "address",
        [
            "", "api.assent.test", "ftp://api.assent.test", "https://", "https://me:pw@api.test", "https://a@b/",
            "https://@b/", "https://a:x/", "https://a:99999/", "https://[/", "https://a b/", "https://a\n.test",
            "https://a\\b", "https://\udcff.test", "javascript:alert(1)",
        ],
    )  # fmt: skip
    def test_rejects_an_address_that_isn_t_one(self, address):
        with pytest.raises(InvalidArgument, match=r"^The base URL must be an address such as"):
            Script(page([])).client(base_url=address)

    @each("path", ["/v1", "/v1/", "/v1/me", "/live/v1", "/docs", "/?x=1", "?", "/#top", f"/{SECRET}"])
    def test_rejects_an_address_with_a_path(self, path):
        with pytest.raises(InvalidArgument, match=r"^The base URL must not have a path: .*, such as /v1\.$"):
            Script(page([])).client(base_url=f"{ADDRESS}{path}")

    @each("space", [" ", "\n", "\r\n", "\t"])
    def test_removes_white_space_around_an_address_and_a_credential(self, space):
        script = Script(success(ORGANIZATION, 201))
        client = script.client(base_url=f"{space}{ADDRESS}{space}", api_key=f"{space}{SECRET}{space}")
        client.organizations.create(name="Acme", idempotency_key=f"mine{space}")
        (sent,) = script.requests
        assert (sent.url.host, sent.headers["Authorization"]) == ("api.assent.test", f"Bearer {SECRET}")
        assert sent.headers["Idempotency-Key"] == "mine"

    def test_takes_one_credential(self):
        with pytest.raises(ValueError, match="not both"):
            Script(page([])).client(auth=httpx.BasicAuth("a", "b"))

    @each("wrong", ["", ".", ".."])
    def test_rejects_an_id_that_names_another_path(self, wrong):
        script = Script(success({}))
        with pytest.raises(ValueError, match="isn't an id"):
            script.client().projects.delete(wrong)
        assert script.requests == []

    def test_escapes_ids_and_keeps_the_path_of_the_address(self):
        script = Script(success(ORGANIZATION))
        script.client(base_url="https://api.assent.test/prod/").organizations.get("a/../b?c#d é%2F")
        assert script.requests[0].url.raw_path == b"/prod/v1/organizations/a%2F..%2Fb%3Fc%23d%20%C3%A9%252F"

    def test_acts_in_its_organization_unless_another_one_is_given(self):
        script = Script(page([]))
        client = script.client(organization="org_1")
        client.projects.list().page()
        client.projects.list(organization_id="org_2").page()
        client.organizations.list().page()
        assert [it.url.params.get("organizationId") for it in script.requests] == ["org_1", "org_2", None]

    def test_identifies_itself(self):
        script = Script(page([]))
        script.client(user_agent="shop/1.2").projects.list().page()
        assert re.fullmatch(r"shop/1\.2 assent-python/\S+", script.requests[0].headers["User-Agent"])

    def test_closes_its_connections(self):
        with Script(page([])).client() as client:
            client.projects.list().page()
        with pytest.raises(RuntimeError, match="closed"):
            client.projects.list().page()
