"""The rules of `github_events`: what follows from an event.

An event says what may have changed. What is the case now is read from GitHub, so events may be late, repeated, and out
of order, and the last one that is processed leaves the current state.
"""

from collections.abc import Callable

from controlplane.queues.messages import HostEvent, HostEventName
from github_events import access
from github_events.persistence import persistently

_RULES: dict[HostEventName, Callable[[HostEvent], None]] = {
    "installation": access.refresh,
    "repository": access.refresh,
}


def process_event(event: HostEvent) -> None:
    """Does what follows from the event. Raises Postponed, Rejected."""
    rule = _RULES.get(event.event)
    if rule is not None:
        persistently(event, event.until, rule)
