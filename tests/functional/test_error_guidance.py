"""`docsUrl` and `hint` of error responses, and the known names that mistyped ones resemble."""

import re
from urllib.parse import urlsplit

from controlplane.platform.core.errors import CATALOG
from controlplane.platform.http.envelope import HINTS
from tests.support.each import each

DEVICE = {"clientId": "assent-cli", "codeChallenge": "a" * 43, "codeChallengeMethod": "S256"}
UNKNOWN_REGION = "region: there is no such region. Use one of these: eu-central, eu-west, us-east."
SECRET = "sk_live_4fT9wQz2LmX7bKc1RgN8vYpH5sJd3AaU0eWi"


def test_every_code_has_a_hint():
    assert CATALOG.keys() == HINTS.keys()


@each("code", CATALOG)
def test_the_page_of_errors_has_every_code(code, api):
    address = urlsplit(api.get("/v1/projects").guidance["docsUrl"])
    assert re.search(rf'<section id="{code}">', api.get(address.path).text)
    shown = api.get(address.path, headers={"Accept": "text/markdown"})
    assert shown.headers["content-type"].startswith("text/markdown")
    assert f"\n## {code}\n" in shown.text


def test_of_several_problems_the_first_has_the_guidance(api, world):
    reply = api.post("/v1/projects", world.key(world.company()), json_body={})
    first, *others = reply.body["error"]["details"]
    page = "https://api.assent.test/docs/errors#INVALID_PAYLOAD"
    assert (first["docsUrl"], first["hint"]) == (page, HINTS["INVALID_PAYLOAD"])
    assert others
    assert all({*problem} == {"code", "message", "path"} for problem in others)


@each(
    ("path", "body", "message"),
    [
        ("/v1/api-keys", {"name": "a", "projectids": []}, "projectids: unknown field. Did you mean projectIds?"),
        ("/v1/api-keys", {"name": "a", "expiry": 1}, "expiry: unknown field"),
        (
            "/v1/webhook-endpoints",
            {"name": "a", "url": "https://hooks.example.com", "events": ["key.leaked"], "format": "Slack"},
            "format: must be 'standard' or 'slack'. Did you mean slack?",
        ),
        ("/v1/projects", {"name": "a", "region": "EU Central"}, f"{UNKNOWN_REGION} Did you mean eu-central?"),
        ("/v1/projects", {"name": "a", "region": SECRET}, UNKNOWN_REGION),
        (
            "/v1/auth/device/code",
            {**DEVICE, "scope": "member.read"},
            "scope: there is no scope named member.read. Did you mean members.read?",
        ),
    ],
)
def test_a_mistyped_name_is_told_the_known_one(path, body, message, api, world):
    reply = api.post(path, world.company().owner.token, json_body=body)
    assert (reply.status, reply.error["message"]) == (400, message)
