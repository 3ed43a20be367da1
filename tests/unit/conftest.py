"""Unit tests: the only queue is in memory."""

from tests.support.sqs import sqs

__all__ = ["sqs"]
