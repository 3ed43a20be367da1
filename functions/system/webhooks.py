"""Webhooks of GitHub: which events matter, and what is kept of them.

An event only says where to look. `github_events` reads from GitHub what has changed, so neither the order of events nor
what else they contain matters, and messages contain numbers only.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from controlplane.code_host.signed_requests import Delivery
from controlplane.platform.core import clock
from controlplane.platform.core.errors import InvalidPayload
from controlplane.platform.queues import messages
from controlplane.platform.queues.messages import HostEvent, HostEventName, Queue, ref_digest
from controlplane.platform.queues.outbox import Entry
from controlplane.platform.table import keys
from controlplane.platform.table.table import LegFailed, Put, Unrecorded, table

_RETRIED_SECONDS = 86_400
# GitHub offers a delivery for redelivery for three days. Later copies can only come from someone who kept one.
_KNOWN_SECONDS = 7 * 86_400
_DELIVERY_ID = re.compile(r"[0-9A-Za-z-]{1,64}")


class _Kind(NamedTuple):
    """An event that matters: with these actions, and about the number that it has at this path."""

    event: HostEventName
    actions: tuple[str, ...] | None = None
    subject: tuple[str, str] | None = None


_KINDS = {
    "installation": _Kind("installation"),
    "installation_repositories": _Kind("installation"),
    "repository": _Kind("repository"),
    "push": _Kind("push"),
    "pull_request": _Kind(
        "pull_request", ("opened", "synchronize", "reopened", "closed"), ("pull_request", "number")
    ),
    "issues": _Kind("issues", ("closed", "reopened"), ("issue", "number")),
    "check_run": _Kind("check_run", ("rerequested",), ("check_run", "id")),
}  # fmt: skip


def receive(delivery: Delivery) -> bool:
    """Accepts the delivery, or ignores it if nothing follows from it. Returns whether it was accepted now.

    Raises InvalidPayload.
    """
    kind = _KINDS.get(delivery.event)
    if kind is None:
        return False
    if not _DELIVERY_ID.fullmatch(delivery.delivery_id):
        raise InvalidPayload.at(["X-GitHub-Delivery"], "This isn't the id of a delivery.", "invalid")
    try:
        event = _read(kind, json.loads(delivery.body))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InvalidPayload.at([], "The body isn't an event of GitHub.", "invalid") from None
    if event is None:
        return False
    message = messages.entry(Queue.GITHUB_EVENTS, event)
    if not _is_new(delivery.delivery_id, message):
        return False
    messages.dispatch(message)
    return True


def _is_new(delivery_id: str, message: Entry) -> bool:
    """Records the delivery with its message, in one write. Returns False if it was accepted in the last seven days."""
    now = int(clock.now())
    item = {**keys.delivery(delivery_id)._asdict(), "expiresAt": now + _KNOWN_SECONDS}
    unknown = "attribute_not_exists(pk) OR #expiresAt <= :now"
    try:
        table.transact({"delivery": Put(item, unknown, {"now": now}), "message": message.leg}, Unrecorded.MESSAGE)
    except LegFailed:
        return False
    return True


def _read(kind: _Kind, content: Mapping[str, Any]) -> HostEvent | None:
    """Returns the event's message, or None if nothing follows from the event."""
    if kind.actions is not None and content["action"] not in kind.actions:
        return None
    if "installation" not in content:
        return None  # a webhook of a repository, not of our App
    repository = content.get("repository")
    return HostEvent(
        event=kind.event,
        installation_id=content["installation"]["id"],
        hosted_id=repository["id"] if repository and kind.event != "installation" else None,
        subject=content[kind.subject[0]][kind.subject[1]] if kind.subject else None,
        ref=ref_digest(content["ref"]) if kind.event == "push" else None,
        until=int(clock.now()) + _RETRIED_SECONDS,
    )
