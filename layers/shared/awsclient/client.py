"""Calls DynamoDB and SQS. Requests are signed and retried as by AWS's SDKs."""

import json
import os
import platform
import secrets
import time
import zlib
from typing import Any, NamedTuple

from pydantic_core import from_json

from awsclient import signing
from awsclient.connection import Connections, Response
from awsclient.credentials import CredentialSource
from awsclient.endpoints import find_endpoint, region
from awsclient.errors import AwsError, NoAnswer, ServiceError
from awsclient.retries import Attempts, Quota
from awsclient.signing import Scope
from awsclient.time_limit import NO_LIMIT, TimeLimit

_USER_AGENT = f"awsclient Python/{platform.python_version()}"
_SKEWED = {"RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture", "InvalidSignatureException"}
# AWS rejects signatures of more than five minutes before or after its own time. The others have another cause.
_SKEW_SECONDS = 240


class Service(NamedTuple):
    """target: what names an operation in a header. scale_seconds: the longest pause before the first retry."""

    target: str
    scale_seconds: float
    headers: tuple[tuple[str, str], ...] = ()


_SERVICES = {
    "dynamodb": Service("DynamoDB_20120810", 0.025),
    # The header asks for the error codes of its earlier protocol, which botocore reports.
    "sqs": Service("AmazonSQS", 0.05, (("x-amzn-query-mode", "true"),)),
}


class Client:
    """A client of one service. Operations are methods, named as in botocore: `get_item` calls GetItem.

    They take and return what is in the service's JSON, and raise the errors of `awsclient.errors`.
    """

    def __init__(self, service: str) -> None:
        self.service = service

    def call(self, operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        operation = name.title().replace("_", "")
        return lambda **parameters: self.call(operation, parameters)


class OwnClient(Client):
    """Calls the service directly. Threads can share it. It holds no connection or credential until its first call."""

    def __init__(self, service: str, endpoint_url: str | None = None, limit: TimeLimit = NO_LIMIT) -> None:
        super().__init__(service)
        self._details = _SERVICES[service]
        self._scope = Scope(region(), service)
        self._endpoint = find_endpoint(service, endpoint_url)
        self._limit = limit
        self._connections = Connections(self._endpoint, limit)
        self._credentials = CredentialSource(limit)
        self._quota = Quota()
        # How far the service's clock is ahead of ours.
        self._skew_seconds = 0.0

    def call(self, operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
        """Raises ServiceError, NoAnswer, Misconfigured."""
        if operation == "TransactWriteItems":  # all attempts are one transaction
            parameters = {"ClientRequestToken": secrets.token_hex(16), **parameters}
        body = json.dumps(parameters).encode()
        attempts = Attempts(self._quota, self._details.scale_seconds, self._limit)
        while True:
            attempts.made += 1
            try:
                answer = read_response(operation, self._exchange(self._request(operation, body)))
            except (ServiceError, NoAnswer) as failure:
                pause = self._pause_after(failure, attempts)
                if pause is None:
                    raise
                if pause:
                    time.sleep(pause)
            else:
                attempts.succeeded()
                return answer

    def _exchange(self, request: bytes) -> Response:
        return self._connections.exchange(request)

    def _request(self, operation: str, body: bytes) -> bytes:
        """Returns the bytes of a request that is signed now."""
        credentials = self._credentials.current()
        timestamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(time.time() + self._skew_seconds))
        headers = {
            "host": self._endpoint.host_header,
            "content-type": "application/x-amz-json-1.0",
            "x-amz-date": timestamp,
            "x-amz-target": f"{self._details.target}.{operation}",
            **dict(self._details.headers),
        }
        if credentials.token:
            headers["x-amz-security-token"] = credentials.token
        path = signing.canonical_path(self._endpoint.path)
        headers["authorization"] = signing.authorization(credentials, self._scope, path, headers, body)
        headers["content-length"] = str(len(body))
        headers["user-agent"] = _USER_AGENT
        # The trace of this invocation.
        if trace := os.environ.get("_X_AMZN_TRACE_ID"):
            headers["x-amzn-trace-id"] = trace
        lines = [f"{name}: {value}" for name, value in headers.items()]
        return "\r\n".join([f"POST {self._endpoint.path} HTTP/1.1", *lines, "", ""]).encode() + body

    def _pause_after(self, failure: ServiceError | NoAnswer, attempts: Attempts) -> float | None:
        if isinstance(failure, ServiceError):
            failure.retries = attempts.made - 1
            if attempts.may_repeat() and self._correct_clock(failure):
                return 0
        return attempts.pause_after(failure)

    def _correct_clock(self, failure: ServiceError) -> bool:
        """Returns whether the signature was rejected for our clock's time. Later ones use the service's time."""
        if failure.code not in _SKEWED:
            return False
        from email.utils import mktime_tz, parsedate_tz  # noqa: PLC0415 (slow to import, and rarely needed)

        date = parsedate_tz(failure.headers.get("date", ""))
        if date is None:
            return False
        skew = mktime_tz(date) - time.time()
        if abs(skew - self._skew_seconds) < _SKEW_SECONDS:
            return False
        self._skew_seconds = skew
        return True


def read_response(operation: str, response: Response) -> dict[str, Any]:
    """Returns the content of a response. Raises ServiceError if the service refused, NoAnswer if it can't be read."""
    checksum = response.headers.get("x-amz-crc32")
    if checksum is not None and checksum != str(zlib.crc32(response.body)):
        raise NoAnswer("wrong checksum")
    if response.status >= 300:
        raise _read_refusal(operation, response)
    try:
        content = from_json(response.body or b"{}")
    except ValueError as error:
        raise NoAnswer("malformed response") from error
    if not isinstance(content, dict):
        raise NoAnswer("malformed response")
    return content


def _read_refusal(operation: str, response: Response) -> AwsError:
    """Returns the error that botocore reports for the response."""
    try:
        content = from_json(response.body)
    except ValueError:  # a page of a gateway in between, for example
        content = None
    fields = content if isinstance(content, dict) else {}
    named = response.headers.get("x-amzn-errortype", response.status)
    code = str(fields.pop("__type", named)).partition(":")[0].rpartition("#")[2]
    earlier_code, mark, _ = response.headers.get("x-amzn-query-error", "").partition(";")
    message = fields.get("message", fields.get("Message")) or ""
    return ServiceError(
        operation,
        earlier_code if mark and earlier_code else code,
        str(message),
        status=response.status,
        fields=fields,
        headers=response.headers,
    )
