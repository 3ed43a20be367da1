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
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from local.template import load_template

_LONG_POLL_SECONDS = 10
_PAUSE_SECONDS = 1
_RATE = re.compile(r"rate\((\d+) (minute|hour|day)s?\)")
_UNIT_SECONDS = {"minute": 60, "hour": 3600, "day": 86_400}
_SCHEDULED = {"source": "aws.events", "detail-type": "Scheduled Event", "detail": {}}
_logger = logging.getLogger("local.workers")

type Handler = Callable[[dict[str, Any], Any], Any]


def variables(template: dict[str, Any], resources: dict[str, str]) -> dict[str, str]:
    """Returns the functions' variables that contain a queue's URL, with the deployed values."""
    return {
        name: resources[logical_id]
        for name, logical_id in _references(template).items()
        if template["Resources"][logical_id]["Type"] == "AWS::SQS::Queue" and logical_id in resources
    }


def queues(template: dict[str, Any]) -> dict[str, str]:
    """Returns the functions that process queues' messages, by the variable with the queue's URL."""
    named = {logical_id: name for name, logical_id in _references(template).items()}
    found = {}
    for entry in template["Resources"].values():
        if entry["Type"] == "AWS::Lambda::EventSourceMapping":
            function = entry["Properties"]["FunctionName"]["Ref"].removesuffix(".Alias")
            queue = entry["Properties"]["EventSourceArn"]["Fn::GetAtt"][0]
            found[named[queue]] = Path(template["Resources"][function]["Properties"]["CodeUri"]).name
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


def schedules(template: dict[str, Any]) -> dict[str, int]:
    """Returns the seconds between the calls of scheduled functions. Raises ValueError if a schedule isn't a rate."""
    found = {}
    for entry in template["Resources"].values():
        if entry["Type"] != "AWS::Serverless::Function":
            continue
        for event in entry["Properties"].get("Events", {}).values():
            if event["Type"] == "Schedule":
                expression = event["Properties"]["Schedule"]
                rate = _RATE.fullmatch(expression)
                if rate is None:
                    raise ValueError(f"{expression} isn't a rate")
                found[Path(entry["Properties"]["CodeUri"]).name] = int(rate[1]) * _UNIT_SECONDS[rate[2]]
    return found


def start() -> None:
    """Starts a thread for each schedule and queue. They end with the process."""
    template = load_template()
    for function, seconds in schedules(template).items():
        _start(function, _repeat, seconds)
    for variable, function in queues(template).items():
        _start(function, _poll, os.environ[variable])


def _start(function: str, run: Callable[[Handler, Any], None], subject: Any) -> None:
    handler = importlib.import_module(f"{function}.app").handler
    threading.Thread(target=run, args=(handler, subject), name=function, daemon=True).start()


def _repeat(handler: Handler, seconds: int) -> None:
    while True:
        time.sleep(seconds)
        call_once(handler)


def call_once(handler: Handler) -> None:
    """Calls the scheduled function once. As on AWS, a failure doesn't affect the next call."""
    try:
        handler(_SCHEDULED, None)
    except Exception:
        _logger.exception("a scheduled function failed")


def _poll(handler: Handler, url: str) -> None:
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
    wanted = {"MaxNumberOfMessages": 1, "MessageSystemAttributeNames": ["All"]}
    answer = client.receive_message(QueueUrl=url, WaitTimeSeconds=_LONG_POLL_SECONDS, **wanted)
    for message in answer.get("Messages", []):
        record = {
            "messageId": message["MessageId"],
            "receiptHandle": message["ReceiptHandle"],
            "body": message["Body"],
            "attributes": message["Attributes"],
            "eventSource": "aws:sqs",
            "eventSourceARN": f"arn:aws:sqs:us-east-1:000000000000:{url.rpartition('/')[2]}",
        }
        if not handler({"Records": [record]}, None)["batchItemFailures"]:
            client.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
