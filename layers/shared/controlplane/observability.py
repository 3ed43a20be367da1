"""Structured logs and metrics, with nothing in them that identifies a person or opens a door.

A request is one log line of known fields. Failures are logged by type and place, never by message, because messages of
libraries quote what they were given. Whatever slips through is scrubbed by form: secrets, bearer values, addresses.
"""

import json
import logging
import os
import re
import time
import traceback
from typing import Any

from aws_lambda_powertools.logging import Logger
from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter
from aws_lambda_powertools.metrics import Metrics

from controlplane.settings import settings

# Each expression starts only at the first character of a run of the characters it repeats, so none reads a run twice.
_EMAIL = re.compile(r"(?<![^\s\"'<>@:=,])[^\s\"'<>@:=,]++@[^\s\"'<>@,]+\.[A-Za-z]{2,}")
_SECRET = re.compile(
    r"(?i:bearer\s++)[^\s\"',;]+"
    r"|(?<![a-z0-9-])(?>[a-z0-9-]*?\b[a-z][a-z0-9-]*)(?:_[a-z]{2})?_[0-9A-Za-z]{36,}\b"
)
_SECRET_TAIL = re.compile(r"_[0-9A-Za-z]{36}")
# What every asynchronous request would be logged with, and says nothing.
logging.logAsyncioTasks = False  # type: ignore[attr-defined]  # typeshed does not know it


def scrub(text: str) -> str:
    """The text with everything of the form of a secret or an email address replaced."""
    # The expression is tried at every character; most lines hold none of the marks without which it fits nowhere.
    if "@" in text or "bearer" in text.lower() or _SECRET_TAIL.search(text):
        return _SECRET.sub("[redacted]", _EMAIL.sub("[redacted]", text))
    return text


class _ScrubbingFormatter(LambdaPowertoolsFormatter):
    def __init__(self) -> None:
        super().__init__(utc=True, location=None)

    def serialize(self, log: Any) -> str:
        return scrub(super().serialize(log))


logger = Logger(level=settings.log_level, logger_formatter=_ScrubbingFormatter(), log_uncaught_exceptions=False)
metrics = Metrics()
_encode = json.JSONEncoder(separators=(",", ":")).encode


def log_request(fields: dict[str, Any]) -> None:
    """The line of `logger.info("request", extra=fields)`, in a fifth of its time: what stands in it is known here."""
    if logger.log_level > logging.INFO:
        return
    now = time.time()
    seconds = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(now))
    line = {
        "level": "INFO",
        "message": "request",
        "timestamp": f"{seconds},{int(now * 1000) % 1000:03d}+0000",
        "service": logger.service,
        **fields,
    }
    if trace := os.environ.get("_X_AMZN_TRACE_ID"):
        line["xray_trace_id"] = trace.partition(";")[0].removeprefix("Root=")
    _write(scrub(_encode(line)))


def _write(line: str) -> None:
    handler: Any = logger.registered_handler
    with handler.lock:
        handler.stream.write(line + "\n")
        handler.flush()


def _counter(*names: str) -> tuple[str, str]:
    """What CloudWatch reads these metrics from, each of them 1: the text before and after the time."""
    counted = [{"Name": name, "Unit": "Count"} for name in names]
    where = {"Namespace": metrics.provider.namespace, "Dimensions": [["service"]], "Metrics": counted}
    line = {"_aws": {"Timestamp": 0, "CloudWatchMetrics": [where]}, "service": metrics.provider.service}
    before, _, after = _encode({**line, **{name: [1.0] for name in names}}).partition('"Timestamp":0')
    return before + '"Timestamp":', after


_ANSWERED, _FAILED = _counter("Requests"), _counter("Requests", "ServerErrors")


def count_request(*, failed: bool) -> None:
    """The metrics of a request, as powertools would write them: by service, requests and server errors."""
    before, after = _FAILED if failed else _ANSWERED
    _write(f"{before}{int(time.time() * 1000)}{after}")


def count_limited(kind: str) -> None:
    """The metric of a request that was over its limit, by service, and by kind of caller: a key's plan, or who it is.

    Which organization it was says the request's log line: a metric by organization would be billed for each of them.
    """
    where = {
        "Namespace": metrics.provider.namespace,
        "Dimensions": [["service"], ["caller"]],
        "Metrics": [{"Name": "RateLimited", "Unit": "Count"}],
    }
    about = {"Timestamp": int(time.time() * 1000), "CloudWatchMetrics": [where]}
    _write(_encode({"_aws": about, "service": metrics.provider.service, "caller": kind, "RateLimited": [1.0]}))


def describe(error: BaseException) -> dict[str, Any]:
    """An exception for the log: its type and where it came from, without its message."""
    frames = traceback.extract_tb(error.__traceback__)
    return {
        "errorType": type(error).__name__,
        "stack": [f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in frames[-12:]],
    }
