"""Runs MiniStack with two differences. It runs in MiniStack's own environment.

Policies take its requests for ones with TLS, which it doesn't have: the queues deny others. A request that says that it
has none is taken for one without. And its gateway imports the methods that a path has for every HTTP method.
"""

from contextvars import ContextVar
from typing import Any

from ministack import app as ministack
from ministack.services import apigateway_v1 as gateway

_PLAIN = (b"x-forwarded-proto", b"http")
_ANY = "x-amazon-apigateway-any-method"
_serve, _pin, _import = ministack.app, ministack.pin_request_origin, gateway._import_path_item
_is_plain: ContextVar[bool] = ContextVar("is_plain", default=False)


async def serve(scope: dict[str, Any], receive: Any, send: Any) -> None:
    _is_plain.set(_PLAIN in map(tuple, scope.get("headers", [])))
    await _serve(scope, receive, send)


def pin_request_origin(address: str, _has_tls: bool) -> None:
    _pin(address, not _is_plain.get())


def import_path_item(api_id: str, path: str, item: dict[str, Any], *rest: Any) -> None:
    _import(api_id, path, {"any" if name == _ANY else name: found for name, found in item.items()}, *rest)


if __name__ == "__main__":
    ministack.app, ministack.pin_request_origin = serve, pin_request_origin
    gateway._import_path_item = import_path_item
    gateway._OPENAPI_HTTP_METHODS.add("any")
    ministack.main()
