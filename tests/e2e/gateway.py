"""The double of the gateway in front of the deployed functions, so that tests get what clients of AWS would.

It routes by the methods and integrations of the deployed REST API, responds with the deployed template's own responses,
and invokes the functions through the Lambda API, where the time limit is real. MiniStack's own gateway neither renames
headers nor limits sizes or time.
"""

import json
import re
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError, ReadTimeoutError

from local.gateway import TIMEOUT_SECONDS, Event, FunctionFailed, InvocationRejected, Route

# The function, by its alias, in the URI of an integration.
_INVOKED = re.compile(r"/functions/([^/]+)/invocations$")
_HEADER = "gatewayresponse.header."
# As many as threads that send requests at the same time.
_CONNECTIONS = 32


class Invocations:
    """Invokes functions by ARN as the gateway does: once, and for `timeout_seconds` at most.

    failures: collects why invocations failed, which the gateway's responses don't say.
    """

    def __init__(
        self, endpoint_url: str, region: str, failures: list[str], timeout_seconds: float = TIMEOUT_SECONDS
    ) -> None:
        self._failures = failures
        limits = Config(
            read_timeout=timeout_seconds, retries={"total_max_attempts": 1}, max_pool_connections=_CONNECTIONS
        )
        self._client = boto3.client("lambda", endpoint_url=endpoint_url, region_name=region, config=limits)

    def __call__(self, function: str, event: Event) -> Any:
        """Returns the function's answer. Raises InvocationRejected, FunctionFailed, or TimeoutError."""
        try:
            return self._invoke(function, event)
        except (FunctionFailed, InvocationRejected, TimeoutError) as error:
            self._failures.append(f"{function}: {error}")
            raise

    def _invoke(self, function: str, event: Event) -> Any:
        try:
            answer = self._client.invoke(FunctionName=function, Payload=json.dumps(event))
            text = answer["Payload"].read().decode()
        except ReadTimeoutError as error:
            raise TimeoutError(error) from error
        except ClientError as error:
            raise InvocationRejected(error) from error
        if "FunctionError" in answer:
            raise FunctionFailed(text)
        return json.loads(text)


def deployed_routes(gateway: Any, api_id: str) -> list[Route]:
    """Returns the REST API's routes, with the ARN that each invokes."""
    pages = gateway.get_paginator("get_resources").paginate(restApiId=api_id, embed=["methods"])
    return [
        Route(method, resource["path"], _invoked(declared["methodIntegration"]["uri"]))
        for page in pages
        for resource in page["items"]
        for method, declared in resource.get("resourceMethods", {}).items()
    ]


def _invoked(uri: str) -> str:
    found = _INVOKED.search(uri)
    assert found is not None, uri
    return found[1]


def deployed_responses(processed: dict[str, Any], address: str) -> dict[str, Any]:
    """Returns the own responses of a processed template's REST API, by type, as an unprocessed template declares them.

    address: is in place of the one that CloudFormation resolves, and the gateway its variables.
    """
    (api,) = [it for it in processed["Resources"].values() if it["Type"] == "AWS::ApiGateway::RestApi"]
    declared = api["Properties"]["Body"]["x-amazon-apigateway-gateway-responses"]
    return {
        kind: {
            "StatusCode": int(it["statusCode"]),
            "ResponseParameters": {
                "Headers": {name.removeprefix(_HEADER): value for name, value in it["responseParameters"].items()}
            },
            "ResponseTemplates": {
                media_type: {
                    "Fn::Sub": [text["Fn::Sub"][0].replace("${Docs}", f"{address}/docs/errors"), text["Fn::Sub"][1]]
                }
                for media_type, text in it["responseTemplates"].items()
            },
        }
        for kind, it in declared.items()
    }
