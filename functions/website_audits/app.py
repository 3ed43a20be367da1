"""Wiring of `website_audits`, the worker of its queue. It has neither the table nor the shared layer.

The report isn't trusted: a page that breaks out of the browser can send any. The intake checks it.
"""

import asyncio
import json
import logging
import os
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import cache, partial
from pathlib import Path
from typing import Any

import boto3
from playwright.async_api import Browser

from openassent_audit import Network, audit_website
from openassent_audit.browser import started_browser
from openassent_audit.ownership import find_proof
from openassent_audit.packed import unpack
from website_audits.confinement import hide_secrets

_NETWORK = Network()
_RETRY_SECONDS = 60
_logger = logging.getLogger("website_audits")
_logger.setLevel(os.environ.get("LOG_LEVEL", "INFO"))


@cache
def _sqs() -> Any:
    return boto3.client("sqs")


if "AWS_LAMBDA_RUNTIME_API" in os.environ:  # on Lambda
    _sqs()  # keeps the credentials
    if not hide_secrets():
        _logger.warning("the memory of this process isn't protected")


def handler(event: dict[str, Any], _: object) -> dict[str, Any]:
    """Runs the audit of each message. SQS delivers one that failed again, five times in all, then as a dead letter."""
    failed = []
    for record in event["Records"]:
        try:
            _process(json.loads(record["body"]))
        except Exception as failure:  # noqa: BLE001 (the edge: any failure leads to another delivery)
            place = traceback.extract_tb(failure.__traceback__)[-1]
            _logger.warning("message failed: %s in %s, line %s", type(failure).__name__, place.name, place.lineno)
            # The queue waits six times as long as an audit may take, for a worker that dies.
            queue, receipt = os.environ["WEBSITE_AUDITS_QUEUE_URL"], record["receiptHandle"]
            _sqs().change_message_visibility(QueueUrl=queue, ReceiptHandle=receipt, VisibilityTimeout=_RETRY_SECONDS)
            failed.append({"itemIdentifier": record["messageId"]})
    return {"batchItemFailures": failed}


def _process(message: dict[str, Any]) -> None:
    if (message["kind"], message["version"]) != ("run-audit", 1):
        raise ValueError(f"unknown message: {message['kind']} {message['version']}")
    began = time.monotonic()
    report = asyncio.run(_report(message), loop_factory=asyncio.new_event_loop)
    # SQS shares out the intake among projects.
    _sqs().send_message(
        QueueUrl=os.environ["AUDIT_REPORTS_QUEUE_URL"],
        MessageBody=json.dumps(report),
        MessageGroupId=message["projectId"],
    )
    reason, seconds = report["reason"] or {"code": "complete"}, time.monotonic() - began
    _logger.info("%s: %s, %s, after %.0f s", message["runId"], report["outcome"], reason["code"], seconds)


async def _report(message: dict[str, Any]) -> dict[str, Any]:
    audit = await audit_website(message["url"], network=_NETWORK, start=_start())
    brand, consent_url = os.environ.get("SERVICE_BRAND", "assent"), message.get("consentUrl")
    proof = await find_proof(audit, message["token"], brand=brand, consent_url=consent_url, network=_NETWORK)
    ids = {name: message[name] for name in ("runId", "auditId", "projectId", "claim")}
    return audit.as_message() | ids | {"proof": proof}


@cache
def _start() -> Callable[[], AbstractAsyncContextManager[Browser]]:
    """Returns how to start the browser: that of the layer, unpacked once, or the one of this machine."""
    return partial(started_browser, chromium=unpack(Path(tempfile.gettempdir(), "chromium")))
