"""Requests through the front door: the header that the gateway renames arrives, and so does the client's address."""

import json
from dataclasses import dataclass, field

import pytest

from controlplane.platform.core.settings import SigningSecret, settings
from controlplane.platform.http.app import STATUS_HEADER
from local import front_door
from local.gateway import Gateway, Request, Response
from tests.support.api import Api, Reply
from tests.support.logs import captured_logs
from tests.support.response_checks import check_envelope

SECRET, OTHER = "s" * 64, "t" * 64
VIEWER = "203.0.113.9"
DEVICE = {"clientId": "assent-cli", "codeChallenge": "E" * 43, "codeChallengeMethod": "S256"}


@dataclass
class FrontDoor(Api):
    """Sends requests through the front door. The gateway sees CloudFront's address."""

    source_ip: str = VIEWER
    secret: str = SECRET
    # The gateway's responses, before the front door changes them.
    gateway_replies: list[Reply] = field(default_factory=list)

    def _respond(self, gateway: Gateway, request: Request) -> Response:
        def respond(request: Request) -> Response:
            response = gateway.respond(request)
            self.gateway_replies.append(Reply.of_response(response))
            return response

        return front_door.FrontDoor(respond, self.secret).respond(request)


@pytest.fixture(autouse=True)
def _front_door(monkeypatch):
    monkeypatch.setitem(settings.__dict__, "front_door_secret", SigningSecret(current=SECRET))


@pytest.fixture
def _only(monkeypatch):
    monkeypatch.setitem(settings.__dict__, "front_door_required", True)


@pytest.fixture
def through():
    return FrontDoor()


def poll(api: Api, **headers: str) -> int:
    """Requests a device code, which is limited by address."""
    return api.post("/v1/auth/device/code", json_body=DEVICE, headers=headers).status


class TestChallenge:
    def test_the_client_gets_the_header_and_the_status(self, through, world):
        reply = through.get("/v1/me")
        assert (reply.status, reply.code) == (401, "UNAUTHORIZED")
        assert reply.headers["www-authenticate"] == "Bearer"
        company = world.company()
        reply = through.get("/v1/projects", world.token(company.owner.user_id, []))
        assert (reply.status, reply.code) == (403, "INSUFFICIENT_SCOPE")
        assert reply.headers["www-authenticate"] == 'Bearer error="insufficient_scope", scope="projects.read"'
        assert reply.headers["x-ratelimit-limit"] == "600"
        assert STATUS_HEADER not in reply.headers

    def test_clients_that_read_the_renamed_header_still_find_it(self, through):
        reply = through.get("/v1/me")
        assert reply.headers["x-amzn-remapped-www-authenticate"] == reply.headers["www-authenticate"]

    def test_the_request_id_is_kept_and_the_log_has_the_true_status(self, through):
        with captured_logs() as lines:
            reply = through.get("/v1/me")
        (line,) = [it for it in map(json.loads, lines.getvalue().splitlines()) if it.get("message") == "request"]
        assert (line["requestId"], line["status"]) == (reply.headers["x-request-id"], 401)
        assert SECRET not in lines.getvalue()

    def test_between_api_and_front_door_only_challenges_have_another_status(self, through, world):
        through.get("/v1/me")
        through.get("/v1/projects/prj_x", world.company().owner.token)
        through.get("/v1/regions")
        assert [reply.status for reply in through.gateway_replies] == [200, 404, 200]
        assert [STATUS_HEADER in reply.headers for reply in through.gateway_replies] == [True, False, False]

    def test_a_direct_request_gets_the_status_and_the_renamed_header(self, api):
        for headers in ({}, {"X-Front-Door": OTHER}, {"X-Front-Door": ""}, {"X-Front-Door": f"{SECRET}, {SECRET}"}):
            reply = api.call("GET", "/v1/me", headers=headers)
            assert reply.status == 401
            assert reply.headers["x-amzn-remapped-www-authenticate"] == "Bearer"
            assert "www-authenticate" not in reply.headers
            assert STATUS_HEADER not in reply.headers

    def test_pages_keep_their_responses(self, through):
        assert through.get("/").status in {200, 303}


def forwarded(number: int) -> dict[str, str]:
    """Returns headers with which a client could try to choose its address."""
    names = ("True-Client-IP", "X-Forwarded-For", "Forwarded", "X-Real-IP", "CloudFront-Viewer-Address")
    return dict.fromkeys(names, f"198.51.100.{number}")


class TestAddress:
    @pytest.mark.parametrize("viewer", [VIEWER, "2001:db8::7"])
    def test_limits_count_the_viewers_address(self, viewer):
        assert [poll(FrontDoor(source_ip=viewer)) for _ in range(11)] == [201] * 10 + [429]
        assert poll(FrontDoor(source_ip="203.0.113.10")) == 201

    @pytest.mark.parametrize(
        "send",
        [
            lambda api, number: poll(FrontDoor(), **forwarded(number)),
            lambda api, number: poll(FrontDoor(source_ip=f"nonsense {number}")),
            lambda api, number: poll(api, **forwarded(number)),
            lambda api, number: poll(api, **{"X-Front-Door": OTHER}, **forwarded(number)),
        ],
        ids=["headers", "an invalid address", "a direct request", "another secret"],
    )
    def test_nothing_that_a_client_sends_changes_its_address(self, api, send):
        assert [send(api, number) for number in range(11)] == [201] * 10 + [429]

    def test_without_a_front_door_its_headers_mean_nothing(self, api, monkeypatch):
        monkeypatch.setitem(settings.__dict__, "front_door_secret", None)
        sent = [poll(api, **{"X-Front-Door": SECRET}, **forwarded(number)) for number in range(11)]
        assert sent == [201] * 10 + [429]
        assert FrontDoor().get("/v1/me").status == 401


@pytest.mark.usefixtures("_only")
class TestOnly:
    def test_direct_requests_are_rejected_before_anything_is_read(self, api, world):
        token = world.company().owner.token
        for path in ("/v1/projects", "/v1/regions", "/health", "/openapi.json"):
            for headers in ({}, {"X-Front-Door": OTHER}):
                reply = api.call_app("GET", path, token, headers)
                check_envelope(path, reply)
                assert (reply.status, reply.code) == (403, "FORBIDDEN"), path
                assert "public address" in reply.error["message"]

    def test_requests_through_the_front_door_are_served(self, through, world):
        assert through.get("/v1/projects", world.company().owner.token).status == 200
        assert through.get("/v1/me").headers["www-authenticate"] == "Bearer"


class TestRotation:
    @pytest.mark.usefixtures("_only")
    def test_both_secrets_work_while_they_are_rotated(self, monkeypatch):
        for ring in (
            SigningSecret(current=SECRET, next=OTHER),
            SigningSecret(current=OTHER, next=SECRET),
        ):
            monkeypatch.setitem(settings.__dict__, "front_door_secret", ring)
            for secret in (SECRET, OTHER):
                assert FrontDoor(secret=secret).get("/v1/regions").status == 200
        monkeypatch.setitem(settings.__dict__, "front_door_secret", SigningSecret(current=OTHER))
        assert FrontDoor(secret=OTHER).get("/v1/regions").status == 200
        assert FrontDoor(secret=SECRET).call_app("GET", "/v1/regions").status == 403
