"""Captures the product's log as text."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from controlplane.platform.core.observability import logger


@contextmanager
def captured_logs() -> Iterator[io.StringIO]:
    """While open, captures every log line, formatted and redacted as in production."""
    lines = io.StringIO()
    with mock.patch.object(logger.registered_handler, "stream", lines):
        yield lines
