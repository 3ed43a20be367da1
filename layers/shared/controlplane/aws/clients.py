"""Creates clients of AWS services, by the library that the setting selects."""

from controlplane.aws.client import Client, OwnClient
from controlplane.core.settings import settings


def create_client(service: str, endpoint_url: str | None = None) -> Client:
    """Returns a client of the service, at its own endpoint or at this address. Raises Misconfigured.

    service: `dynamodb`, `sqs`, `secretsmanager`, or `sesv2`.
    """
    if settings.aws_client == "botocore":
        from controlplane.aws import botocore_client  # noqa: PLC0415 (slow to import)

        return botocore_client.create_client(service, endpoint_url)
    return OwnClient(service, endpoint_url)
