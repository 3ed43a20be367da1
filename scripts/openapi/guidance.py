"""The schemas of what every error response says besides what is wrong: `docsUrl` and `fix`."""

from typing import Any

DOCS_URL = "https://api.assent.example/docs/errors#INSUFFICIENT_SCOPE"
# The fields of the details of every error.
GUIDANCE: dict[str, dict[str, Any]] = {
    "docsUrl": {
        "type": "string",
        "format": "uri",
        "description": "Where the error is documented. In a list of problems, only the first one has it.",
        "examples": [DOCS_URL],
    },
    "fix": {"$ref": "#/components/schemas/WorkingRequest"},
}
WORKING_REQUEST: dict[str, Any] = {
    "type": "object",
    "description": (
        "A request that would work in place of the refused one; absent if nothing can be proposed. Send it with the "
        "same credential. It repeats no text that the client sent, and checks that come later may still refuse it."
    ),
    "required": ["method"],
    "properties": {
        "method": {"type": "string", "description": "The method.", "examples": ["POST"]},
        "path": {
            "type": "string",
            "description": "The path, with its query, below the address of the API.",
            "examples": ["/v1/auth/device/code"],
        },
        "url": {
            "type": "string",
            "format": "uri",
            "description": "In place of `path`: a page for a person with a session.",
            "examples": ["https://dashboard.assent.example/organizations/acme/billing"],
        },
        "headers": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "description": "The headers to set, besides `Authorization`.",
            "examples": [{"Content-Type": "application/json"}],
        },
        "body": {
            "type": "object",
            "additionalProperties": True,
            "description": "The body.",
            "examples": [{"name": "Shop", "region": "eu-central"}],
        },
        "keepsBody": {
            "type": "boolean",
            "description": "Whether to send the refused body again, with the fields of `body` in place of its own.",
            "examples": [True],
        },
        "replace": {
            "type": "array",
            "items": {"type": "string"},
            "description": "The fields of `body` that have documented examples: put your own values there.",
            "examples": [["name"]],
        },
        "afterSeconds": {
            "type": "integer",
            "minimum": 1,
            "description": "How long to wait before sending the request.",
            "examples": [12],
        },
        "first": {
            "type": "object",
            "description": "A request to send before, which returns the current state.",
            "required": ["method", "path"],
            "properties": {
                "method": {"type": "string", "description": "The method.", "examples": ["GET"]},
                "path": {
                    "type": "string",
                    "description": "The path.",
                    "examples": ["/v1/inbox/inb_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"],
                },
            },
        },
    },
}
