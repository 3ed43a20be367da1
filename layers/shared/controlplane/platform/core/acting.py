"""The actor, the source, and the request that the entries of the audit log name, and whether it is a dry run.

A request, a message of a queue, and an operator's command each set them once. Anything else, such as the sweep, is done
by the service itself.

A dry run is a request that is checked and answered like any other, but changes nothing and sends nothing. `table.table`
then checks the conditions of writes instead of writing, so every rule, error, and order of refusals is that of the real
request, without code of its own. Only requests are still counted.
"""

import os
from contextvars import ContextVar
from typing import Literal, NamedTuple

ActorKind = Literal["person", "api_key", "operator", "service"]
Source = Literal["page", "api", "operator", "worker"]

_OPERATOR = "operator"


class Setting[Value]:
    """Sets a context variable for the length of a `with` block.

    A class, because every request begins several such blocks, and a generator takes several times as long.
    """

    __slots__ = ("_token", "_value", "_variable")

    def __init__(self, variable: ContextVar[Value], value: Value) -> None:
        self._variable = variable
        self._value = value

    def __enter__(self) -> None:
        self._token = self._variable.set(self._value)

    def __exit__(self, *_: object) -> None:
        self._variable.reset(self._token)


class Actor(NamedTuple):
    """An actor and where it acts. The id of the service is the name of the function."""

    kind: ActorKind
    actor_id: str
    source: Source


class _Acting:
    """A request's actor, which is known once its credential is authenticated, and its id."""

    __slots__ = ("actor", "request_id")

    def __init__(self, actor: Actor | None, request_id: str | None) -> None:
        self.actor = actor
        self.request_id = request_id


_acting: ContextVar[_Acting | None] = ContextVar("acting", default=None)
_is_dry: ContextVar[bool] = ContextVar("dry run", default=False)


def _service() -> Actor:
    return Actor("service", os.environ.get("POWERTOOLS_SERVICE_NAME", "assent"), "worker")


def request(request_id: str) -> Setting[_Acting | None]:
    """Begins a request, whose actor isn't known until `identify`."""
    return Setting(_acting, _Acting(None, request_id))


def message(message_id: str) -> Setting[_Acting | None]:
    """Begins the processing of a message by the service."""
    return Setting(_acting, _Acting(_service(), message_id))


def command() -> Setting[_Acting | None]:
    """Begins an operator's command."""
    return Setting(_acting, _Acting(Actor("operator", _OPERATOR, "operator"), None))


def on_behalf(actor: Actor) -> Setting[_Acting | None]:
    """Begins the background part of the actor's change."""
    return Setting(_acting, _Acting(actor, None))


def identify(actor: Actor | None) -> None:
    """Sets the actor of the current request."""
    acting = _acting.get()
    if acting is not None:
        acting.actor = actor


def request_id() -> str | None:
    """Returns the id of the current request, or None outside of requests and messages."""
    acting = _acting.get()
    return acting.request_id if acting is not None else None


def current() -> tuple[Actor, str | None]:
    """Returns the actor, and the id of the request or message. Raises LookupError for a request without an actor."""
    acting = _acting.get()
    if acting is None:
        return _service(), None
    if acting.actor is None:
        raise LookupError("a request without an actor changes nothing that belongs to an organization")
    return acting.actor, acting.request_id


def is_dry_run() -> bool:
    """Returns whether code in this context must have no effect."""
    return _is_dry.get()


def dry_run(*, active: bool = True) -> Setting[bool]:
    """Runs the block as a dry run, if it is to be one."""
    return Setting(_is_dry, active)
