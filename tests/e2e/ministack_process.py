"""Runs MiniStack so that policies take its requests for ones with TLS, which it doesn't have: the queues deny others.

A request that says that it has none is taken for one without. Runs in MiniStack's own environment.
"""

from contextvars import ContextVar
from typing import Any

from ministack import app as ministack

_PLAIN = (b"x-forwarded-proto", b"http")
_serve, _pin = ministack.app, ministack.pin_request_origin
_is_plain: ContextVar[bool] = ContextVar("is_plain", default=False)


async def serve(scope: dict[str, Any], receive: Any, send: Any) -> None:
    _is_plain.set(_PLAIN in map(tuple, scope.get("headers", [])))
    await _serve(scope, receive, send)


def pin_request_origin(address: str, _has_tls: bool) -> None:
    _pin(address, not _is_plain.get())


if __name__ == "__main__":
    ministack.app, ministack.pin_request_origin = serve, pin_request_origin
    ministack.main()
