"""Creates the clients of the table and the queues, by the library that the setting selects.

Their calls end with the request's time. All other AWS services are called with boto3, which is imported at the call.
"""

from awsclient.client import Client, OwnClient
from awsclient.connection import TimeLimit
from controlplane.platform.core import deadline
from controlplane.platform.core.settings import settings


def create_client(service: str, endpoint_url: str | None = None) -> Client:
    """Returns a client of `dynamodb` or `sqs`. Without a URL, uses the service's endpoint. Raises Misconfigured."""
    limit = TimeLimit(deadline.remaining)
    if settings.aws_client == "boto3":
        from awsclient.boto3_client import Boto3Client  # noqa: PLC0415 (slow to import)

        return Boto3Client(service, endpoint_url, limit)
    return OwnClient(service, endpoint_url, limit)
