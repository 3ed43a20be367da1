"""Where the document stands, and what it says that belongs to no route and no model."""

from pathlib import Path
from typing import Any

DOCUMENT = Path(__file__).parents[2] / "docs" / "openapi.json"
TITLE = "assent control plane"
# The documents that a deployment serves have its own addresses in place of these: that of the API, and of the pages.
BASE_URL = "https://api.assent.example"
PAGES_URL = "https://dashboard.assent.example"

ABOUT = """\
Organizations, members and invitations, projects with their consent instance and websites, organization API keys, code
audit scans, the inbox of findings, billing, and feedback.

## Credentials

Send `Authorization: Bearer <token>`. An **organization API key** belongs to an organization, acts in it alone and
holds a fixed set of scopes. A **user token** acts for a person, with the scopes that the person approved and with the
person's own roles: get one through the device authorization below. Each operation says which of the two it takes and
which scope it asks for.

## Answers

A success is `{"success": true, "data": …}`; a list adds `pagination`. A refusal is
`{"success": false, "error": {"code", "message", "details"?}}`: a program decides by `code`, `message` is for people.
Every answer carries `X-Request-Id`: quote it when you report a problem. The first of these that applies is answered:
404 for an unknown path, 413, 401, 429, 402 for the plan, 403 for the scope, 400, 404 or 403 for the resource, the
organization and the role, then 409 and the rest. A method that a path does not take is 405, and 503 may come from the
gateway for any operation that takes too long.

## Organizations

The organization is the query parameter `organizationId`. Without it an API key acts in its own, and a user token in
the saved one, or in the only one. A resource named by its id brings its own organization; one outside the caller's
memberships answers the same 404 as an unknown id.

## Limits

Each credential has a number of requests a minute; `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset`
describe it. Past it the response is 429 with `Retry-After`, and requests made in the meantime count as well. Three
other limits have the same response: of a person (all user tokens and sessions together), of an organization (all keys
and members together, far above the rate of one key), and of invalid credentials from one client address. The headers
don't describe these. A body has at most 1,048,576 bytes.

## Changes

Within v1 changes are additive: ignore fields you do not know, and expect new values of enumerations. Resource ids are
opaque."""

TAGS = {
    "API keys": "Credentials that belong to an organization and keep working when their creator leaves.",
    "Billing": "The plan with its limits and features, and the credit balance.",
    "Code audit": "Connected repositories, their scans, and what the scans found.",
    "Device authorization": (
        "How a command line or another device gets a user token that a person approves (RFC 8628), renews it and "
        "gives it back. No credential; limits count by client address. The same addresses take OAuth's form-encoded "
        "requests and answer them as OAuth says, without the envelope."
    ),
    "Feedback": "Reports on the service from agents and people.",
    "Inbox": "What was found, what people decided about it, and the issues they opened for it.",
    "Members": "Members of an organization, their roles, and invitations.",
    "Organizations": "The organizations the caller belongs to.",
    "Projects": "Projects with their consent instance, websites and vendor decisions.",
    "Sessions": "What can act as the caller: sessions of the pages, devices, and tokens made by the operator.",
    "System": "Health, regions, the calling credential, and the documents that describe the service.",
}

# Ids in paths and the parameters that routes leave to the layer.
PARAMETERS = {
    "projectId": ("The project's id.", "prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"),
    "websiteId": (None, "web_01kb2m3n4p5q6r7s8t"),
    "keyId": ("The key's id.", "key_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v"),
    "memberId": ("The membership's id, from the list of members.", "mem_3f8k2m9q7r1s5t6v5w1n8q2k7m3r9t4v"),
    "invitationId": ("The invitation's id.", "inv_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v"),
    "organizationId": ("The organization's id.", "org_3f8k2m9q7r1s5t6v"),
    "scanId": ("The scan's id.", "scn_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"),
    "preparationId": (
        "The `preparationId` that the start of the scan answered.",
        "spr_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t",
    ),
    "sessionId": ("The session's id, from the list of sessions.", "ses_01kb2m3n4p5q6r7s8t"),
    "itemId": ("The inbox item's id.", "inb_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"),
}

_REQUEST_ID = "1f0c2b9e-7d3a-4a55-9a51-6f1f8f0c9a11"
HEADERS: dict[str, dict[str, Any]] = {
    "X-Request-Id": {
        "description": "Names this request. Quote it when you report a problem.",
        "required": True,
        "schema": {"type": "string", "minLength": 1},
        "example": _REQUEST_ID,
    },
    "X-RateLimit-Limit": {
        "description": "How many requests this credential may make a minute.",
        "schema": {"type": "integer", "minimum": 0},
        "example": 1500,
    },
    "X-RateLimit-Remaining": {
        "description": "How many of them are left in this minute.",
        "schema": {"type": "integer", "minimum": 0},
        "example": 1499,
    },
    "X-RateLimit-Reset": {
        "description": "Unix time, in seconds, at which the minute ends.",
        "schema": {"type": "integer", "minimum": 0},
        "example": 1772600820,
    },
    "Retry-After": {
        "description": "Seconds to wait before the request is worth sending again.",
        "schema": {"type": "integer", "minimum": 1},
        "example": 12,
    },
    "WWW-Authenticate": {
        "description": "The scheme to authenticate with, and the scope that is missing, if one is (RFC 6750).",
        "schema": {"type": "string"},
        "example": 'Bearer error="insufficient_scope", scope="projects.read"',
    },
    "Idempotency-Replayed": {
        "description": "Present where the answer is that of an earlier request with the same Idempotency-Key.",
        "schema": {"type": "string", "const": "true"},
        "example": "true",
    },
    "ETag": {
        "description": "Names this version of the document, for `If-None-Match`.",
        "schema": {"type": "string"},
        "example": 'W/"5d41402abc4b2a76b9719d911017c592"',
    },
    "Pragma": {
        "description": "`no-cache`, as RFC 6749 asks for, in answers to a form-encoded request.",
        "schema": {"type": "string"},
        "example": "no-cache",
    },
    "Cache-Control": {
        "description": "`no-store`, but for documents that are the same for everybody.",
        "schema": {"type": "string"},
        "example": "no-store",
    },
}

INFO: dict[str, Any] = {
    "title": TITLE,
    "version": "1.0.0",
    "summary": "The HTTP API of a consent platform, for programs and agents.",
    "description": ABOUT,
    "contact": {
        "name": "Feedback on the API",
        "url": f"{BASE_URL}/.well-known/agent-feedback.json",
        "email": "api@assent.example",
    },
    "license": {"name": "Proprietary: for use with an account of the service", "url": f"{BASE_URL}/docs"},
}
SERVERS = [{"url": BASE_URL, "description": "The address of the deployment that serves this document."}]
REFERENCE = {"description": "The reference for people.", "url": f"{BASE_URL}/docs"}

SECURITY_SCHEMES = {
    "organizationApiKey": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "assent_…",
        "description": (
            "An organization API key. It acts in its own organization, with the role admin and the scopes "
            "{key_scopes}. Its organization needs a plan with API access."
        ),
    },
    "userToken": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "assent_at_…",
        "description": (
            "A person's access token, from the device authorization, or the token of the person's session on the "
            "pages. It acts with the memberships and roles of the person and the scopes that were approved:\n\n{scopes}"
        ),
    },
}
