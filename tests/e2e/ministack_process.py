"""Runs MiniStack with two differences. It runs in MiniStack's own environment.

Policies take its requests for ones with TLS, which it doesn't have: the queues deny others. And its gateway imports the
methods that a path has for every HTTP method.
"""

from typing import Any

from ministack import app as ministack
from ministack.services import apigateway_v1 as gateway

_ANY = "x-amazon-apigateway-any-method"
_pin, _import = ministack.pin_request_origin, gateway._import_path_item


def pin_request_origin(address: str, _has_tls: bool) -> None:
    _pin(address, True)


def import_path_item(api_id: str, path: str, item: dict[str, Any], *rest: Any) -> None:
    _import(api_id, path, {"any" if name == _ANY else name: found for name, found in item.items()}, *rest)


if __name__ == "__main__":
    ministack.pin_request_origin = pin_request_origin
    gateway._import_path_item = import_path_item
    gateway._OPENAPI_HTTP_METHODS.add("any")
    ministack.main()
