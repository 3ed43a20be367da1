"""Unit tests: no queue but the one in memory."""

from tests.support.mailbox import mailbox

__all__ = ["mailbox"]
