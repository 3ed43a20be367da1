"""The formats in which a delivery is sent: the event itself, or a text for Slack's incoming webhooks.

Deliveries are signed by the specification Standard Webhooks 1.0 (symmetric, version `v1`). The secret's bytes follow
`whsec_`, encoded as base64.
"""

import base64
import hmac
import json
from collections.abc import Sequence
from typing import Any

from controlplane.notify.webhooks import Format

# Slack shows a text of up to 40,000 characters; more of a list than this isn't read.
_MOST_LINES = 10


def render(format: Format, body: str) -> bytes:  # noqa: A002
    """Returns the bytes to send for the stored body of an event."""
    if format == "standard":
        return body.encode()
    return json.dumps({"text": text_of(json.loads(body))}, ensure_ascii=False).encode()


def sign(secret: str, event_id: str, timestamp: int, body: bytes) -> str:
    """Returns one signature, with its version."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{event_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()


def signed_headers(event_id: str, timestamp: int, body: bytes, secrets: Sequence[str]) -> dict[str, str]:
    """Returns the headers of a delivery, with a signature for each secret that is valid."""
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(sign(secret, event_id, timestamp, body) for secret in secrets),
    }


def text_of(event: dict[str, Any]) -> str:
    """Returns the event as Slack's markup, with links to the pages."""
    data = event["data"]
    text = _TEXTS[event["type"]](data)
    # The repository says whose scan it is.
    return text if event["type"] == "scan.completed" else f"*{_escape(data['organization']['name'])}*: {text}"


def _findings(verb: str, data: dict[str, Any]) -> str:
    found = data["findings"]
    head = f"1 finding {verb}" if len(found) == 1 else f"{len(found)} findings {verb}"
    lines = [_finding(it) for it in found[:_MOST_LINES]]
    if len(found) > _MOST_LINES:
        lines.append(f"and {len(found) - _MOST_LINES} more")
    return "\n".join([head, *(f"• {line}" for line in lines)])


def _finding(found: dict[str, Any]) -> str:
    place = f" in {_escape(found['repository'])}" if found["repository"] else ""
    priority = f"{found['priority']} " if found["priority"] else ""
    return f"{priority}{_link(found['url'], found['title'])}{place}"


def _scan(data: dict[str, Any]) -> str:
    scan = data["scan"]
    count = scan["issueCount"] or 0
    found = "1 finding" if count == 1 else f"{count} findings"
    of = f"pull request #{scan['pullRequest']}" if scan["pullRequest"] else scan["branch"]
    return f"{_link(scan['url'], 'Scan')} of {_escape(scan['repository'])} ({_escape(of)}) completed: {found}"


def _audit_run(data: dict[str, Any]) -> str:
    run = data["auditRun"]
    count, new = run["findingCount"], run["newFindingCount"]
    found = "1 finding" if count == 1 else f"{count} findings"
    of = f"the {_link(run['url'], 'audit')} of {_escape(run['website'])}"
    if run["outcome"] == "blocked":
        return f"{of} was blocked ({run['reason']})"
    return f"{of} {run['outcome']}: {found}" + (f", {new} new" if new else "")


def _key(data: dict[str, Any]) -> str:
    key = data["apiKey"]
    return f"the API key {_link(key['url'], key['name'])} was created"


def _leaked_key(data: dict[str, Any]) -> str:
    key, place = data["apiKey"], data["leak"]["url"]
    where = f"at {_link(place, place)}" if place else "in public"
    return f"the API key {_link(key['url'], key['name'])} was found {where}, and is revoked"


def _member(data: dict[str, Any]) -> str:
    member = data["member"]
    joined = f"{'an' if member['role'][0] in 'ao' else 'a'} {member['role']}"
    return f"{_link(member['url'], joined)} joined"


def _credits(data: dict[str, Any]) -> str:
    return _link(data["url"], f"{data['credits']:,} credits are left")


_TEXTS = {
    "finding.opened": lambda data: _findings("opened", data),
    "finding.resolved": lambda data: _findings("resolved", data),
    "scan.completed": _scan,
    "audit.completed": _audit_run,
    "key.created": _key,
    "key.leaked": _leaked_key,
    "member.joined": _member,
    "credits.low": _credits,
}


def _link(url: str, text: str) -> str:
    return f"<{url}|{_escape(text)}>"


def _escape(text: str) -> str:
    """Escapes the characters that Slack's markup gives a meaning. `|` would end a link's address, not its text."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\n", " ")
