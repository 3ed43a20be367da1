"""Unit tests: the only queue is in memory."""

from tests.support.mailbox import mailbox

__all__ = ["mailbox"]
