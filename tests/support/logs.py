"""What the product writes to its log, as text."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from controlplane.observability import logger


@contextmanager
def captured_logs() -> Iterator[io.StringIO]:
    """While open, every line of the log goes here, formatted and scrubbed as in production."""
    lines = io.StringIO()
    with mock.patch.object(logger.registered_handler, "stream", lines):
        yield lines
