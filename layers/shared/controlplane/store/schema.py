"""The version of the form of stored items: one number for the whole table.

A release that changes the form of items, so that a migration must complete older ones, increments it. Only migrations
look at it (`assent-ops table migrate`). Everything else reads older items until their migration has run, and newer ones
like its own, because readers ignore attributes that they don't know.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from controlplane.store import codec

VERSION = 1
# What an item without a version gets if it is updated or rewritten: one from before there were versions, or a new one.
FIRST = 1
# Short, because every item has it.
ATTRIBUTE = "v"

_SET = re.compile(r"\bSET ")
_MARK = f"SET #{ATTRIBUTE} = if_not_exists(#{ATTRIBUTE}, :{ATTRIBUTE})"


def encode_whole(item: Mapping[str, Any]) -> dict[str, Any]:
    """Encodes an item that is written as a whole, with the current version unless it has one."""
    return codec.encode_item({ATTRIBUTE: VERSION, **item})


def rewritten(stored: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a stored item with changes, to be written as a whole. It keeps its form, and so its version."""
    return {ATTRIBUTE: FIRST, **stored, **changes}


def version_of(item: Mapping[str, Any]) -> int:
    """Returns the version of a stored item, 0 for one that was last written before there were versions."""
    version: int = item.get(ATTRIBUTE, 0)
    return version


@lru_cache(maxsize=512)
def with_version(change: str) -> str:
    """Returns the update expression, which also gives an item without a version the first one.

    An update doesn't complete an older item, so that keeps its version, unless the expression sets it.
    """
    if f"#{ATTRIBUTE} " in change:
        return change
    return _SET.sub(f"{_MARK}, ", change, count=1) if _SET.search(change) else f"{_MARK} {change}"
