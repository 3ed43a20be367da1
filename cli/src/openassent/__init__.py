"""The Python SDK of assent: a synchronous and an asynchronous client of the API, and `openassent.webhooks`.

Names are imported when they are first used: the models alone take longer than the command line may take to start.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openassent import errors, models, values, webhooks
    from openassent._async._client import AsyncAssent
    from openassent._async._pages import AsyncPages
    from openassent._async.device import AsyncDevice
    from openassent._calls import OMIT, Omit, Page
    from openassent._device_login import DeviceLogin
    from openassent._sync._client import Assent
    from openassent._sync._pages import Pages
    from openassent._sync.device import Device
    from openassent._version import __version__
    from openassent.errors import (
        ApiError,
        AssentError,
        Conflict,
        ConnectionFailed,
        Forbidden,
        InvalidArgument,
        InvalidRequest,
        MalformedResponse,
        NotFound,
        PaymentRequired,
        RateLimited,
        ServerError,
        TimedOut,
        Unauthorized,
    )

__all__ = [
    "OMIT",
    "ApiError",
    "Assent",
    "AssentError",
    "AsyncAssent",
    "AsyncDevice",
    "AsyncPages",
    "Conflict",
    "ConnectionFailed",
    "Device",
    "DeviceLogin",
    "Forbidden",
    "InvalidArgument",
    "InvalidRequest",
    "MalformedResponse",
    "NotFound",
    "Omit",
    "Page",
    "Pages",
    "PaymentRequired",
    "RateLimited",
    "ServerError",
    "TimedOut",
    "Unauthorized",
    "__version__",
    "errors",
    "models",
    "values",
    "webhooks",
]

_MODULES = frozenset({"errors", "models", "values", "webhooks"})
# Where the other names are from. Errors are the rest.
_PLACES = {
    "Assent": "_sync._client",
    "AsyncAssent": "_async._client",
    "AsyncDevice": "_async.device",
    "AsyncPages": "_async._pages",
    "Device": "_sync.device",
    "DeviceLogin": "_device_login",
    "OMIT": "_calls",
    "Omit": "_calls",
    "Page": "_calls",
    "Pages": "_sync._pages",
    "__version__": "_version",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=None)
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_PLACES.get(name, 'errors')}"), name)
    return value


def __dir__() -> list[str]:
    return [*__all__]
