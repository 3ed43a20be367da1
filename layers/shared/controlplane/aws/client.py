"""Our client of AWS services that speak JSON. Requests are signed and retried as by AWS's SDKs.

It exists because importing botocore was most of a cold start, and its work for each call most of a warm request
(docs/decisions/0059). botocore remains the measure: the tests compare signatures, endpoints, errors, and retries.
"""

import json
import os
import platform
import secrets
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import from_json

from controlplane.aws import signing
from controlplane.aws.connection import Connections, Response
from controlplane.aws.credentials import CredentialSource
from controlplane.aws.endpoints import find_endpoint, region
from controlplane.aws.errors import AwsError, NoAnswer, ServiceError, is_outcome_unknown
from controlplane.aws.retries import Attempts, Quota
from controlplane.aws.signing import Scope

_USER_AGENT = f"controlplane Python/{platform.python_version()}"
_SKEWED = {"RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture", "InvalidSignatureException"}
# AWS rejects signatures of more than five minutes before or after its own time. The others have another cause.
_SKEW_SECONDS = 240


@dataclass(frozen=True, slots=True)
class Service:
    """A service that speaks JSON. `scale_seconds`: the longest pause before the first retry.

    target: what names the operation in a header, or None if the path of the request does.
    paths: the path of each operation, if there is no target.
    signing_name: the service's name in signatures, if it differs.
    repeats_unknown: whether an attempt whose outcome is unknown is repeated.
    """

    name: str
    target: str | None
    content_type: str
    scale_seconds: float
    headers: tuple[tuple[str, str], ...] = ()
    paths: Mapping[str, str] = field(default_factory=dict)
    signing_name: str | None = None
    repeats_unknown: bool = True


_SERVICES = {
    service.name: service
    for service in (
        Service("dynamodb", "DynamoDB_20120810", "application/x-amz-json-1.0", 0.025),
        # The header asks for the error codes of its earlier protocol, which botocore reports.
        Service("sqs", "AmazonSQS", "application/x-amz-json-1.0", 0.05, (("x-amzn-query-mode", "true"),)),
        Service("secretsmanager", "secretsmanager", "application/x-amz-json-1.1", 0.05),
        # An email that SES may have accepted must not be sent again right away: see `emails.delivery`.
        Service(
            "sesv2",
            None,
            "application/json",
            0.05,
            paths={"SendEmail": "v2/email/outbound-emails"},
            signing_name="ses",
            repeats_unknown=False,
        ),
    )
}


class Client:
    """A client of one service. Operations are methods, named as in botocore: `get_item` calls GetItem.

    They take and return what is in the service's JSON, and raise the errors of `controlplane.aws.errors`.
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

    def __init__(self, service: str, endpoint_url: str | None = None) -> None:
        super().__init__(service)
        self._details = _SERVICES[service]
        self._scope = Scope(region(), self._details.signing_name or service)
        self._endpoint = find_endpoint(service, endpoint_url)
        self._connections = Connections(self._endpoint)
        self._credentials = CredentialSource()
        self._quota = Quota()
        # How far the service's clock is ahead of ours.
        self._skew_seconds = 0.0

    def call(self, operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
        """Raises ServiceError, NoAnswer, Misconfigured."""
        if operation == "TransactWriteItems":  # all attempts are one transaction
            parameters = {"ClientRequestToken": secrets.token_hex(16), **parameters}
        body = json.dumps(parameters).encode()
        attempts = Attempts(self._quota, self._details.scale_seconds)
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
        path = self._endpoint.path
        headers = {
            "host": self._endpoint.host_header,
            "content-type": self._details.content_type,
            "x-amz-date": timestamp,
            **dict(self._details.headers),
        }
        if self._details.target is None:
            path = f"{path.rstrip('/')}/{self._details.paths[operation]}"
        else:
            headers["x-amz-target"] = f"{self._details.target}.{operation}"
        if credentials.token:
            headers["x-amz-security-token"] = credentials.token
        headers["authorization"] = signing.authorization(
            credentials, self._scope, signing.canonical_path(path), headers, body
        )
        headers["content-length"] = str(len(body))
        headers["user-agent"] = _USER_AGENT
        # The trace of this invocation.
        if trace := os.environ.get("_X_AMZN_TRACE_ID"):
            headers["x-amzn-trace-id"] = trace
        lines = [f"{name}: {value}" for name, value in headers.items()]
        return "\r\n".join([f"POST {path} HTTP/1.1", *lines, "", ""]).encode() + body

    def _pause_after(self, failure: ServiceError | NoAnswer, attempts: Attempts) -> float | None:
        if isinstance(failure, ServiceError):
            failure.retries = attempts.made - 1
            if attempts.may_repeat() and self._correct_clock(failure):
                return 0
        if not self._details.repeats_unknown and is_outcome_unknown(failure):
            return None
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
