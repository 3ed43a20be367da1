"""The document's texts that don't belong to a route or model, its addresses, and its path."""

from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[2]
DOCUMENT = _ROOT / "docs" / "openapi.json"
TITLE = "assent control plane"
# A deployment serves the documents with its own addresses in place of these two.
BASE_URL = "https://api.assent.example"
PAGES_URL = "https://dashboard.assent.example"

ABOUT = """\
Organizations, members and invitations, projects with their consent instance and websites, organization API keys, code
audit scans, the inbox of findings, billing, and feedback.

## Credentials

Send `Authorization: Bearer <token>`. An **organization API key** belongs to an organization, acts only in it, and has
six scopes, or fewer if it is limited to some. A **user token** acts for a person, with the scopes that the person
approved and with the person's own roles; get one through device authorization. Each operation says which kinds it
accepts and which scope it needs.

## Responses

A success is `{"success": true, "data": …}`; a list adds `pagination`. An error is `{"success": false, "error":
{"code", "message", "details"}}`: programs decide by `code`, and `message` is for people. `details.docsUrl` leads to the
error's documentation, and `details.hint` says what to do next. Every response has an `X-Request-Id` header; quote it
when you report a problem. The first error that applies is returned, in this order:
404 for an unknown path, 405 for a method that the path doesn't support, 413, 401, 403 for the address, 429, 402 for the
plan, 403 for the scope, 400, 404 or 403 for the resource, the organization, and the role, then 409 and the rest. HEAD
works wherever GET does. The gateway can return 503 for any operation that takes too long.

A 401 and a 403 for a missing scope have the header `WWW-Authenticate`. API Gateway renames it to
`x-amzn-Remapped-WWW-Authenticate`, and the service's front door restores it. A deployment without the front door sends
only the renamed header: read either one.

Send `Authorization`, `Content-Type`, and `Idempotency-Key` at most once, even if the values are equal. A repeated
`Authorization` is 401, and the others are 400. An encoded slash (`%2F`) in a path is 404.

Operations with the same status share the response. Its examples, without `docsUrl` and `hint`, are the errors of all of
them: those with a dot in their names belong to the operations that list them in `x-errors`. `x-common-headers` has the
headers that responses share.

With `INVALID_PAYLOAD`, `details` lists every problem, the first one has `docsUrl` and `hint`, and `message` is the
first one with the number of others. Lists, and operations that change something, reject unknown query parameters, and
name the one that was probably meant. Other operations ignore them, and so do form-encoded requests of OAuth. Unknown
fields are ignored, but not by feedback, opening an issue, and what creates or changes an API key or a webhook endpoint:
these reject them. No operation accepts the same parameter twice.

## Limited API keys

An API key can be limited to scopes, projects, client addresses, and a time. `GET /v1/me` shows what the calling key is
limited to. With `projectIds`, lists have only what belongs to those projects, others return the same 404 as an unknown
id, and operations that concern all projects are 403. With `allowedIps`, requests from other addresses are 403.

From `expiresAt` on, requests are 401. Until then, each response has the header `X-Key-Expires-At`. A key that was
rolled with a grace period has it, too, and `X-Key-Replaced-By`: switch to the new secret before that time.

## Organizations

The organization is the query parameter `organizationId`. Without it, an API key acts in its own organization, and a
user token in the saved one or, if the person belongs to only one, in that one. A resource that is fetched by its id
is looked up in its own organization; an id outside the caller's memberships returns the same 404 as an unknown id.
Operations that don't choose an organization accept the parameter and ignore it.

## Dry runs

With `dryRun=true`, an operation that changes something checks the request as usual, and responds as it would to the
real one, but changes nothing and sends nothing. A successful response has the header `Dry-Run: true`. It counts against
the rate limit. Its ids, times, and versions are examples, and a secret in it is a placeholder that never authenticates.
An `Idempotency-Key` is looked up, but not used up. Starting a scan responds `starting`, and opening an issue responds
with the item as it is, because their outcomes aren't known. Other requests may change the outcome before you send the
real one. Operations that read, and those of device authorization, reject the parameter.

## Limits

A credential has a number of requests per minute. `X-RateLimit-Limit`, `X-RateLimit-Remaining`, and
`X-RateLimit-Reset` show its state. Above the limit, the response is 429 with `Retry-After`, and requests that are
sent before then count as well. Three other limits have the same response: of a person (all user tokens and sessions
together), of an organization (all keys and members together, far above the rate of one key), and of invalid
credentials from one client address. The headers don't describe these. A request body can have at most 1,048,576
bytes.

## Changes

Within v1, changes are additive: ignore fields that you don't know, and expect new values of enumerations. Resource
ids are opaque.

## Deprecations

{deprecations}"""

TAGS = {
    "API keys": "Credentials that belong to an organization and keep working when their creator leaves.",
    "Billing": "The plan with its limits and features, and the credit balance.",
    "Code audit": "Connected repositories, their scans, and the findings.",
    "Device authorization": (
        "How a command line or another device gets a user token that a person approves (RFC 8628), refreshes it, and "
        "revokes it. No credential is needed; limits apply per client address. The same endpoints accept OAuth's "
        "form-encoded requests and answer them as OAuth specifies, without the envelope."
    ),
    "Feedback": "Reports on the service from agents and people.",
    "Inbox": "Findings, the decisions about them, and the issues opened for them.",
    "Members": "Members of an organization, their roles, and invitations.",
    "Organizations": "The organizations the caller belongs to.",
    "Projects": "Projects with their consent instance, websites and vendors.",
    "Requests": "What was decided about a request of the last 24 hours, and why.",
    "Sessions": "What can act as the caller: sessions of the pages, devices, and tokens made by the operator.",
    "System": "Health, regions, the calling credential, and the documents that describe the service.",
    "Webhooks": "Endpoints that an organization's events are sent to, and the deliveries.",
}

# Descriptions and examples of the ids in paths.
PARAMETERS = {
    "projectId": ("The project's id.", "prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"),
    "websiteId": (None, "web_01kb2m3n4p5q6r7s8t"),
    "keyId": ("The key's id.", "key_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v"),
    "memberId": ("The membership's id, from the list of members.", "mem_3f8k2m9q7r1s5t6v5w1n8q2k7m3r9t4v"),
    "invitationId": ("The invitation's id.", "inv_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v"),
    "organizationId": ("The organization's id.", "org_3f8k2m9q7r1s5t6v"),
    "repositoryId": ("The repository's id.", "rep_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"),
    "scanId": ("The scan's id.", "scn_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"),
    "preparationId": (
        "The `preparationId` that starting the scan returned.",
        "spr_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t",
    ),
    "sessionId": ("The session's id, from the list of sessions.", "ses_01kb2m3n4p5q6r7s8t"),
    "webhookId": ("The webhook endpoint's id.", "whk_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v"),
    "eventId": ("The event's id, from the list of deliveries.", "evt_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v"),
    "itemId": ("The inbox item's id.", "inb_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"),
}


def _header(about: str, example: str | int, *, required: bool = False, **schema: Any) -> dict[str, Any]:
    kind = "integer" if isinstance(example, int) else "string"
    mark = {"required": True} if required else {}
    return {"description": about, **mark, "schema": {"type": kind, **schema}, "example": example}


HEADERS = {
    "X-Request-Id": _header(
        "The id of this request. Quote it when you report a problem.",
        "1f0c2b9e-7d3a-4a55-9a51-6f1f8f0c9a11-01kb2m3n4p",
        required=True,
        minLength=1,
    ),
    "X-RateLimit-Limit": _header("Requests that this credential can make per minute.", 1500, minimum=0),
    "X-RateLimit-Remaining": _header("Requests left in this minute.", 1499, minimum=0),
    "X-RateLimit-Reset": _header("Unix time, in seconds, when the minute ends.", 1772600820, minimum=0),
    "X-Key-Expires-At": _header(
        "The time from which this API key is rejected, if it expires or is in its grace period.",
        "2027-01-01T00:00:00.000Z",
        format="date-time",
    ),
    "X-Key-Replaced-By": _header(
        "The id of the key that replaced this API key, which was rolled and is in its grace period.",
        "key_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v",
    ),
    "Retry-After": _header("Seconds to wait before sending the request again.", 12, minimum=1),
    "WWW-Authenticate": _header(
        "The authentication scheme, and as its `error` `invalid_token` if the bearer token was rejected, or "
        "`insufficient_scope` with the missing scope (RFC 6750). Without a bearer token, there is no `error`. In a "
        "deployment without the front door, the header's name is `x-amzn-Remapped-WWW-Authenticate`.",
        'Bearer error="insufficient_scope", scope="projects.read"',
    ),
    "Idempotency-Replayed": _header(
        "Present if this is the response to an earlier request with the same Idempotency-Key.", "true", const="true"
    ),
    "Preference-Applied": _header(
        "For `Prefer: wait`: how many seconds the request would have waited (RFC 7240).",
        "wait=20",
        pattern="^wait=[0-9.]+$",
    ),
    "Dry-Run": _header("Present if the request was a dry run: it had no effect.", "true", const="true"),
    "ETag": _header(
        "Identifies this version of the document, for `If-None-Match`.", 'W/"5d41402abc4b2a76b9719d911017c592"'
    ),
    "Deprecation": _header(
        "For a request that uses something deprecated: since when, as Unix time after `@` (RFC 9745).",
        "@1793491200",
        pattern="^@[0-9]+$",
    ),
    "Sunset": _header(
        "For a request that uses something deprecated: until when it works at least (RFC 8594).",
        "Sat, 01 Jan 2028 00:00:00 GMT",
    ),
    "Link": _header(
        'For a request that uses something deprecated: `rel="deprecation"` is the section on deprecations, and '
        '`rel="successor-version"` the operation that replaces this one.',
        f'<{BASE_URL}/docs#section/Deprecations>; rel="deprecation"; type="text/html"',
    ),
    "Cache-Control": _header("`no-store`, except for documents that are the same for every caller.", "no-store"),
}

# The headers of many responses, which the introduction explains: once in the document, not in each response.
COMMON = (
    "X-Request-Id",
    "Cache-Control",
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
    "X-Key-Expires-At",
    "X-Key-Replaced-By",
)

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
SERVERS = [{"url": BASE_URL, "description": "The deployment that serves this document."}]
REFERENCE = {"description": "The API reference.", "url": f"{BASE_URL}/docs"}

FORM_ENCODED = (
    "For OAuth clients: the operation also accepts the form-encoded request of RFC 6749 and RFC 8628, and then "
    "responds as they specify."
)

SECURITY_SCHEMES = {
    "organizationApiKey": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "assent_…",
        "description": (
            "An organization API key. It acts in its own organization, with the role `admin` and the scopes "
            "{key_scopes}. The organization needs a plan with API access."
        ),
    },
    "userToken": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "assent_at_…",
        "description": (
            "A person's access token from device authorization, or the token of the person's session on the pages. "
            "It acts with the person's memberships and roles and the scopes that were approved:\n\n{scopes}"
        ),
    },
}
