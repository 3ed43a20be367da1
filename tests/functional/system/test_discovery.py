"""Endpoints that introduce the service: the authorization server, the feedback document, and the own credential."""

from datetime import datetime

import pytest
from authlib.oauth2.rfc8414 import AuthorizationServerMetadata

from controlplane.feedback import store as feedback
from controlplane.platform.core import clock
from controlplane.platform.core.scopes import API_KEY_SCOPES, SCOPES
from controlplane.platform.core.settings import settings
from tests.support.operations import operations
from tests.support.world import table_dump

SERVER = "/.well-known/oauth-authorization-server"


def test_the_metadata_is_that_of_rfc_8414_and_describes_the_server(api):
    reply = api.get(SERVER, "garbage")
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    assert reply.headers["cache-control"] == "public, max-age=300"
    AuthorizationServerMetadata(reply.body).validate()
    assert reply.body == {
        "issuer": "https://api.assent.test",
        "device_authorization_endpoint": "https://api.assent.test/v1/auth/device/code",
        "token_endpoint": "https://api.assent.test/v1/auth/device/token",
        "revocation_endpoint": "https://api.assent.test/v1/auth/device/revoke",
        "grant_types_supported": ["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"],
        "response_types_supported": ["none"],
        "scopes_supported": sorted(SCOPES),
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "service_documentation": "https://api.assent.test/docs",
    }


def test_the_metadata_names_existing_endpoints_that_accept_forms_unless_they_are_disabled(api, monkeypatch):
    metadata = api.get(SERVER).body
    for name in ("device_authorization_endpoint", "token_endpoint", "revocation_endpoint"):
        path = metadata[name].removeprefix("https://api.assent.test")
        assert f"POST {path}" in {operation.name for operation in operations()}
        assert api.form(path, {"x": "y"}).body["error"] == "invalid_request"
    monkeypatch.setitem(settings.__dict__, "device_authorization_enabled", False)
    reply = api.get(SERVER)
    assert (reply.status, reply.text) == (404, api.get("/.well-known/nowhere").text)


FEEDBACK = "/.well-known/agent-feedback.json"


def test_the_document_is_plain_and_needs_no_credential_and_no_table(api):
    reply = api.get(FEEDBACK)
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
    assert api.get(FEEDBACK, "garbage").text == reply.text
    assert table_dump() == []


def test_the_document_describes_the_operations_input(api, world):
    document = api.get(FEEDBACK).body
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


def test_a_user_token_lists_its_organizations_under_both_generations_of_names(api, world):
    company = world.company()
    organization_id, user_id = company.organization_id, company.owner.user_id
    me = api.get("/v1/me", company.owner.token).data
    assert me["principal"] == {"type": "oauth", "userId": user_id, "activeOrganizationId": organization_id}
    assert me["organizations"] == [
        {
            "id": organization_id,
            "slug": company.slug,
            "name": company.name,
            "organizationId": organization_id,
            "organizationSlug": company.slug,
            "organizationName": company.name,
            "role": "owner",
        }
    ]
    assert api.get("/v1/me", world.token(user_id, ["projects.read"])).data["organizations"] == []
    world.company(owner=company.owner)
    world.clear_default(company.owner)
    assert api.get("/v1/me", company.owner.token).data["activeOrganizationId"] is None


def test_a_key_returns_itself_its_organization_and_its_creator_but_no_acting_user(api, world):
    company = world.company()
    me = api.get("/v1/me", world.key(company)).data
    assert me["principal"].pop("keyId").startswith("key_")
    assert me["principal"] == {
        "type": "api_key",
        "organizationId": company.organization_id,
        "createdBy": company.owner.user_id,
        "activeOrganizationId": company.organization_id,
    }
    assert me["scopes"] == sorted(API_KEY_SCOPES)


def test_the_protected_resource_names_the_authorization_server(api, monkeypatch):
    reply = api.get("/.well-known/oauth-protected-resource")
    assert (reply.status, reply.headers["cache-control"]) == (200, "public, max-age=300")
    assert reply.body["resource"] == "https://api.assent.test"
    assert api.get(SERVER).body["issuer"] in reply.body["authorization_servers"]
    monkeypatch.setitem(settings.__dict__, "device_authorization_enabled", False)
    assert api.get("/.well-known/oauth-protected-resource").status == 404


@pytest.mark.parametrize(
    ("contact", "address"),
    [("help@example.com", "mailto:help@example.com"), ("https://example.com/help", "https://example.com/help")],
)
def test_security_txt_has_the_contact_and_expires_within_a_year(api, monkeypatch, contact, address):
    assert api.get("/.well-known/security.txt").status == 404
    monkeypatch.setitem(settings.__dict__, "contact", contact)
    reply = api.get("/.well-known/security.txt")
    assert (reply.status, reply.headers["content-type"]) == (200, "text/plain; charset=utf-8")
    fields = dict(line.split(": ", 1) for line in reply.text.splitlines())
    assert (fields["Contact"], fields["Canonical"]) == (address, "https://api.assent.test/.well-known/security.txt")
    days = (datetime.fromisoformat(fields["Expires"]).timestamp() - clock.now()) / 86_400
    assert 90 < days < 365
