"""The Python SDK of assent: a synchronous and an asynchronous client of the API, and `openassent.webhooks`."""

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
