"""Queues and schedules on this machine: threads that call the workers as the template says.

A thread for each queue passes its messages to the function, as Lambda's pollers do. A thread for each schedule calls
the function at its rate, as EventBridge does.
"""

import importlib
import logging
import os
import re
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
_RATE = re.compile(r"rate\((\d+) (minute|hour|day)s?\)")
_UNIT_SECONDS = {"minute": 60, "hour": 3600, "day": 86_400}
_logger = logging.getLogger("local.workers")

type Handler = Callable[[dict[str, Any], Any], Any]


class Route(NamedTuple):
    """A queue, by the variable with its URL, and the function that processes its messages."""

    variable: str
    function: str


class Schedule(NamedTuple):
    """A function, and the seconds between its calls."""

    function: str
    seconds: int


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


def schedules(template: dict[str, Any]) -> list[Schedule]:
    """Returns the schedules of the template's functions. Raises ValueError if one isn't a rate."""
    found = []
    for entry in template["Resources"].values():
        if entry["Type"] != "AWS::Serverless::Function":
            continue
        for event in entry["Properties"].get("Events", {}).values():
            if event["Type"] == "Schedule":
                expression = event["Properties"]["Schedule"]
                rate = _RATE.fullmatch(expression)
                if rate is None:
                    raise ValueError(f"{expression} isn't a rate")
                folder = Path(entry["Properties"]["CodeUri"]).name
                found.append(Schedule(folder, int(rate[1]) * _UNIT_SECONDS[rate[2]]))
    return found


def start() -> None:
    """Starts a thread for each schedule, and for each queue whose address the environment has.

    They end with the process.
    """
    template = load_template()
    for schedule in schedules(template):
        _start(schedule.function, _repeat, schedule)
    for route in routes(template):
        if url := os.environ.get(route.variable):
            _start(route.function, _poll, url)


def _start(function: str, run: Callable[[Any, Handler], None], subject: Any) -> None:
    handler = importlib.import_module(f"{function}.app").handler
    threading.Thread(target=run, args=(subject, handler), name=function, daemon=True).start()


def _repeat(schedule: Schedule, handler: Handler) -> None:
    while True:
        time.sleep(schedule.seconds)
        call_once(schedule, handler)


def call_once(schedule: Schedule, handler: Handler) -> None:
    """Calls the function once. As on AWS, a failure doesn't affect the next call."""
    try:
        handler({"source": "aws.events", "detail-type": "Scheduled Event", "detail": {}}, None)
    except Exception:
        _logger.exception("%s failed", schedule.function)


def _poll(url: str, handler: Handler) -> None:
    client = boto3.Session().client("sqs", config=Config(read_timeout=_LONG_POLL_SECONDS + 10))
    while True:
        try:
            _process_next(client, url, handler)
        except (ClientError, BotoCoreError):
            time.sleep(_PAUSE_SECONDS)  # MiniStack is starting or ending
        except Exception:
            # As on AWS: a worker that fails as a whole leaves its message, which is delivered again.
            _logger.exception("a worker failed")


def _process_next(client: Any, url: str, handler: Handler) -> None:
    """Waits for a message, passes it to the worker as Lambda does, and deletes it if the worker succeeds."""
    answer = client.receive_message(
        QueueUrl=url,
        MaxNumberOfMessages=1,
        WaitTimeSeconds=_LONG_POLL_SECONDS,
        MessageSystemAttributeNames=["All"],
    )
    for message in answer.get("Messages", []):
        record = {
            "messageId": message["MessageId"],
            "receiptHandle": message["ReceiptHandle"],
            "body": message["Body"],
            "attributes": message["Attributes"],
            "eventSource": "aws:sqs",
        }
        if not handler({"Records": [record]}, None)["batchItemFailures"]:
            client.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
