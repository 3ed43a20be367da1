"""The Python SDK of assent: a synchronous and an asynchronous client of the API, and `assent.webhooks`."""

from assent import errors, models, values, webhooks
from assent._async._client import AsyncAssent
from assent._async._pages import AsyncPages
from assent._async.device import AsyncDevice
from assent._calls import OMIT, Omit, Page
from assent._device_login import DeviceLogin
from assent._sync._client import Assent
from assent._sync._pages import Pages
from assent._sync.device import Device
from assent._version import __version__
from assent.errors import (
    ApiError,
    AssentError,
    Conflict,
    ConnectionFailed,
    Forbidden,
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
