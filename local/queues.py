"""Lambda's pollers on this machine: a thread per queue passes its messages to the worker that the template names."""

import importlib
import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from local.template import load_template

_LONG_POLL_SECONDS = 10
_PAUSE_SECONDS = 1
_logger = logging.getLogger("local.queues")

type Handler = Callable[[dict[str, Any], Any], dict[str, Any]]


class Route(NamedTuple):
    """A queue, by the variable with its URL, and the function that processes its messages."""

    variable: str
    function: str


def variables(template: dict[str, Any], resources: dict[str, str]) -> dict[str, str]:
    """Returns the functions' variables that contain a queue's URL, with the deployed values."""
    return {
        name: resources[logical_id]
        for name, logical_id in _references(template).items()
        if template["Resources"][logical_id]["Type"] == "AWS::SQS::Queue" and logical_id in resources
    }


def routes(template: dict[str, Any]) -> list[Route]:
    """Returns the template's event source mappings."""
    named = {logical_id: name for name, logical_id in _references(template).items()}
    found = []
    for entry in template["Resources"].values():
        if entry["Type"] == "AWS::Lambda::EventSourceMapping":
            function = entry["Properties"]["FunctionName"]["Ref"].removesuffix(".Alias")
            folder = Path(template["Resources"][function]["Properties"]["CodeUri"]).name
            queue = entry["Properties"]["EventSourceArn"]["Fn::GetAtt"][0]
            found.append(Route(named[queue], folder))
    return found


def _references(template: dict[str, Any]) -> dict[str, str]:
    """Returns the functions' variables that are references, with the logical ids they refer to."""
    return {
        name: value["Ref"]
        for function in template["Resources"].values()
        if function["Type"] == "AWS::Serverless::Function"
        for name, value in function["Properties"].get("Environment", {}).get("Variables", {}).items()
        if isinstance(value, dict) and value.get("Ref") in template["Resources"]
    }


def start_pollers() -> None:
    """Starts a thread for each queue whose address the environment has. They end with the process."""
    for route in routes(load_template()):
        url = os.environ.get(route.variable)
        if url:
            handler = importlib.import_module(f"{route.function}.app").handler
            threading.Thread(target=_poll, args=(url, handler), name=route.function, daemon=True).start()


def _poll(url: str, handler: Handler) -> None:
    client = boto3.Session().client("sqs", config=Config(read_timeout=_LONG_POLL_SECONDS + 10))
    while True:
        try:
            take_one(client, url, handler)
        except (ClientError, BotoCoreError):
            time.sleep(_PAUSE_SECONDS)  # MiniStack is starting or ending
        except Exception:
            # As on AWS: a worker that fails as a whole leaves its message, which comes again.
            _logger.exception("a worker failed")


def take_one(client: Any, url: str, handler: Handler, wait_seconds: int = _LONG_POLL_SECONDS) -> bool:
    """Waits for a message and hands it to the worker, which says whether it is done. False where none came."""
    answer = client.receive_message(
        QueueUrl=url, MaxNumberOfMessages=1, WaitTimeSeconds=wait_seconds, MessageSystemAttributeNames=["All"]
    )
    for message in answer.get("Messages", []):
        reported = handler({"Records": [_record(message)]}, None)
        if not reported["batchItemFailures"]:
            client.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return True
    return False


def _record(message: dict[str, Any]) -> dict[str, Any]:
    """Returns the message in the format of Lambda's event."""
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message.get("Attributes", {}),
        "messageAttributes": {},
        "md5OfBody": message.get("MD5OfBody", ""),
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:eu-central-1:000000000000:local",
        "awsRegion": "eu-central-1",
    }
