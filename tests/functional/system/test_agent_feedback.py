"""GET /.well-known/agent-feedback.json: the discovery document of the feedback.now protocol."""

from controlplane.feedback import store as feedback
from tests.support.api import Api
from tests.support.world import World, table_dump

PATH = "/.well-known/agent-feedback.json"


def test_the_document_is_plain_and_needs_no_credential_and_no_table(api: Api):
    reply = api.get(PATH)
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    assert reply.headers["cache-control"] == "public, max-age=300"
    members = "schema_version name description endpoints categories surfaces rate_limits auth field_limits"
    assert [*reply.body] == [*members.split(), "deduplication", "guidance"]
    assert (reply.body["schema_version"], reply.body["name"]) == ("1.0", "assent")
    assert reply.body["auth"] == {
        "required": True,
        "schemes": ["bearer"],
        "scopes": [],
        "authorization_server": "https://api.assent.test/.well-known/oauth-authorization-server",
    }
    assert reply.body["endpoints"] == {"feedback": "https://api.assent.test/v1/feedback"}
    assert api.get(PATH, "garbage").text == reply.text
    assert table_dump() == []


def test_the_document_describes_the_operations_input(api: Api, world: World):
    document = api.get(PATH).body
    token = world.person().token
    address = document["endpoints"]["feedback"].removeprefix("https://api.assent.test")
    assert document["rate_limits"]["submissions_per_hour"] == feedback.NEW_PER_HOUR
    bodies = [{"category": category, "message": "x"} for category in document["categories"]]
    bodies += [{"category": "bug", "surface": surface, "message": "y"} for surface in document["surfaces"]]
    assert len(bodies) == 5 + 7
    for body in bodies:
        assert api.post(address, token, json_body=body).status in {201, 429}
    assert [name for name, limits in document["field_limits"].items() if limits["required"]] == ["message"]
    longest = {name: "x" * limits["max_length"] for name, limits in document["field_limits"].items()}
    assert api.post(address, world.person().token, json_body={"category": "bug", **longest}).status == 201
