"""Structured logs and metrics, with nothing in them that identifies a person or opens a door.

A request is one log line of known fields. Failures are logged by type and place, never by message, because messages of
libraries quote what they were given. Whatever slips through is scrubbed by form: secrets, bearer values, addresses.
"""

import re
import traceback
from typing import Any

from aws_lambda_powertools.logging import Logger
from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter
from aws_lambda_powertools.metrics import Metrics

from controlplane.settings import settings

_SECRET = re.compile(
    r"(?i:bearer\s+)[^\s\"',;]+|\b[a-z][a-z0-9-]*(?:_[a-z]{2})?_[0-9A-Za-z]{36,}\b|[^\s\"'<>@:=,]+@[^\s\"'<>@,]+\.[A-Za-z]{2,}"
)


def scrub(text: str) -> str:
    """The text with everything of the form of a secret or an email address replaced."""
    return _SECRET.sub("[redacted]", text)


class _ScrubbingFormatter(LambdaPowertoolsFormatter):
    def serialize(self, log: Any) -> str:
        return scrub(super().serialize(log))


logger = Logger(level=settings.log_level, logger_formatter=_ScrubbingFormatter(), log_uncaught_exceptions=False)
metrics = Metrics()


def describe(error: BaseException) -> dict[str, Any]:
    """An exception for the log: its type and where it came from, without its message."""
    frames = traceback.extract_tb(error.__traceback__)
    return {
        "errorType": type(error).__name__,
        "stack": [f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in frames[-12:]],
    }
