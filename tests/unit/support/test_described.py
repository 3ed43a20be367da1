"""The check of responses against docs/openapi.json detects responses that it doesn't describe."""

import pytest

from tests.support.documented import check_documented
from tests.support.each import each

DOCUMENTED = {"docsUrl": "https://api.assent.test/docs/errors#NOT_FOUND"}
UNKNOWN = {
    "success": False,
    "error": {"code": "NOT_FOUND", "message": "There is no such resource.", "details": DOCUMENTED},
}
ORGANIZATION = {"id": "org_3f8k2m9q7r1s5t6v", "slug": "acme", "name": "Acme", "role": "owner"}
PATH = "/v1/organizations/org_3f8k2m9q7r1s5t6v"
SENT = dict.fromkeys(
    ("x-request-id", "cache-control", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"), "1"
)


def _found(**changes):
    return {"success": True, "data": {**ORGANIZATION, **changes}}


def _unknown(**changes):
    return {"success": False, "error": {**UNKNOWN["error"], **changes}}


class TestResponse:
    def test_a_documented_response_passes(self):
        check_documented("GET", PATH, 200, SENT, _found())
        check_documented("GET", PATH, 404, SENT, UNKNOWN)

    @each(
        ("status", "headers", "body"),
        [
            pytest.param(409, SENT, {}, id="of another status"),
            pytest.param(
                404, SENT, {"success": False, "error": {**UNKNOWN["error"], "code": "CONFLICT"}}, id="of another code"
            ),
            pytest.param(
                404,
                SENT,
                {"success": False, "error": {**UNKNOWN["error"], "details": {**DOCUMENTED, "x": 1}}},
                id="of other details",
            ),
            pytest.param(200, {**SENT, "retry-after": "1"}, _found(), id="with another header"),
            pytest.param(200, {"x-request-id": "1"}, _found(), id="without a header"),
            pytest.param(200, SENT, _found(role="king"), id="with another value"),
            pytest.param(200, SENT, {"success": True, "data": {"id": "org_3f8k2m9q7r1s5t6v"}}, id="without a field"),
            pytest.param(200, SENT, {"success": True}, id="without contents"),
        ],
    )
    def test_an_undocumented_response_fails(self, status, headers, body):
        with pytest.raises(AssertionError, match="says otherwise"):
            check_documented("GET", PATH, status, headers, body)

    def test_a_response_of_an_undocumented_path_belongs_to_no_operation(self):
        check_documented("GET", "/nowhere", 418, {}, None)
        check_documented("PUT", PATH, 405, {}, None)


class TestThePathOfAnOperation:
    def test_a_path_without_a_parameter_wins_if_both_match(self):
        body = {"success": True, "data": [], "pagination": {"nextCursor": None, "hasMore": False}}
        check_documented("GET", "/v1/code-audit/scans", 200, SENT, body)
