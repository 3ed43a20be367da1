"""Runs MiniStack with four differences. It runs in MiniStack's own environment.

Policies take its requests for ones with TLS, which it doesn't have: the queues deny others. Its gateway imports the
methods that a path has for every HTTP method. Nested stacks get the secrets that their templates refer to. And their
update keeps the attributes of resources that it doesn't change, so that `!GetAtt` finds them.
"""

from typing import Any

from ministack import app as ministack
from ministack.services import apigateway_v1 as gateway
from ministack.services.cloudformation import _stacks, engine, provisioners

_ANY = "x-amazon-apigateway-any-method"
_pin, _import = ministack.pin_request_origin, gateway._import_path_item
_provision, _update = provisioners._provision_resource, provisioners._update_resource


def pin_request_origin(address: str, _has_tls: bool) -> None:
    _pin(address, True)


def import_path_item(api_id: str, path: str, item: dict[str, Any], *rest: Any) -> None:
    _import(api_id, path, {"any" if name == _ANY else name: found for name, found in item.items()}, *rest)


def provision_resource(kind: str, logical_id: str, properties: dict[str, Any], *rest: Any) -> Any:
    return _provision(kind, logical_id, engine._resolve_dynamic_references(properties)[0], *rest)


def update_resource(kind: str, physical_id: str, *change: Any) -> Any:
    old, new, stack, logical_id, *attributes = change
    known = _stacks.get(stack, {}).get("_resources", {}).get(logical_id, {}).get("Attributes")
    new = engine._resolve_dynamic_references(new)[0]
    return _update(kind, physical_id, old, new, stack, logical_id, *(attributes or [known]))


if __name__ == "__main__":
    ministack.pin_request_origin = pin_request_origin
    gateway._import_path_item = import_path_item
    provisioners._provision_resource = provision_resource
    provisioners._update_resource = update_resource
    gateway._OPENAPI_HTTP_METHODS.add("any")
    ministack.main()
