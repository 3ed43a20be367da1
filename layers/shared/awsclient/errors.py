"""Failures of calls to AWS services. Both clients raise them."""

from collections.abc import Mapping
from typing import Any


class AwsError(Exception):
    """The base class of failed calls."""


class ServiceError(AwsError):
    """The service refused the call.

    fields: what the response contains besides code and message, such as `Item` or `CancellationReasons`.
    retries: how often the client has sent the request again. If it has, an earlier attempt may have been applied.
    """

    def __init__(
        self,
        operation: str,
        code: str,
        message: str = "",
        *,
        status: int = 400,
        fields: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        retries: int = 0,
    ) -> None:
        super().__init__(f"{operation}: {code}: {message}")
        self.code = code
        self.status = status
        self.fields = fields or {}
        self.headers = headers or {}
        self.retries = retries


class NoAnswer(AwsError):
    """There is no usable response, so a write may or may not have been applied. The text is the reason."""


class StaleConnection(NoAnswer):
    """A connection that was open before the call turned out to be closed, and no response has begun."""


class CredentialsUnavailable(NoAnswer):
    """There are no valid credentials, so nothing was sent."""


class Misconfigured(AwsError):
    """An environment variable asks for an unsupported feature. The text names the alternative."""
