"""boto3 instead of our own client, with the same operations and errors.

It is slower, and its attempts end up to four seconds after the time limit: one that has begun isn't cut short.
"""

from typing import Any

import boto3
from botocore import xform_name
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError, NoCredentialsError
from botocore.exceptions import ConnectionError as ConnectionFailed

from awsclient.client import Client
from awsclient.connection import NO_LIMIT, TimeLimit
from awsclient.errors import AwsError, CredentialsUnavailable, NoAnswer, ServiceError

_CONFIG = Config(
    connect_timeout=1,
    read_timeout=3,
    retries={"mode": "standard", "total_max_attempts": 3},
    max_pool_connections=32,
)


class Boto3Client(Client):
    """A client of one service."""

    def __init__(self, service: str, endpoint_url: str | None = None, limit: TimeLimit = NO_LIMIT) -> None:
        super().__init__(service)
        self._limit = limit
        self._client = boto3.Session().client(service, endpoint_url=endpoint_url, config=_CONFIG)
        self._client.meta.events.register("before-send", self._check_time)

    def call(self, operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
        """Raises ServiceError, NoAnswer, and AwsError for anything else that boto3 reports."""
        try:
            answer: dict[str, Any] = getattr(self._client, xform_name(operation))(**parameters)
        except ClientError as error:
            raise _translated(operation, error) from error
        except NoCredentialsError as error:
            raise CredentialsUnavailable(str(error)) from error
        except (ConnectionFailed, HTTPClientError) as error:
            raise NoAnswer(type(error).__name__) from error
        except BotoCoreError as error:
            raise AwsError(str(error)) from error
        return answer

    def _check_time(self, **_: Any) -> None:
        if self._limit.is_over():
            raise NoAnswer("no time left")


def _translated(operation: str, error: ClientError) -> ServiceError:
    response = dict(error.response)
    described, metadata = response.pop("Error", {}), response.pop("ResponseMetadata", {})
    return ServiceError(
        operation,
        described.get("Code", ""),
        described.get("Message", ""),
        status=metadata.get("HTTPStatusCode", 400),
        fields=response,
        headers=metadata.get("HTTPHeaders"),
        retries=metadata.get("RetryAttempts", 0),
    )
