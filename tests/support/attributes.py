"""Finds expressions that name an attribute that the product doesn't otherwise use.

A misspelled name isn't an error in DynamoDB: the write stores an attribute that nothing reads, or removes none.
"""

import re
from functools import cache
from pathlib import Path
from typing import Any

from pydantic.alias_generators import to_camel

from tests.support.calls import parts_of

_PRODUCT = [Path(__file__).parents[2] / folder for folder in ("functions", "layers/shared")]
_NUMBERED = re.compile(r"[a-z]+\d+")

unknown: set[str] = set()


@cache
def _known() -> set[str]:
    source = "\n".join(path.read_text() for folder in _PRODUCT for path in folder.rglob("*.py"))
    fields = re.findall(r"^    (\w+): ", source, re.MULTILINE)
    return {*re.findall(r'"(\w+)"', source), *map(to_camel, fields)}


def record_names(operation: str, parameters: dict[str, Any]) -> None:
    """Records the unknown names of a call's expressions."""
    for _, _, part in parts_of(operation, parameters):
        names = {*part.get("ExpressionAttributeNames", {}).values()} - _known()
        unknown.update(name for name in names if not _NUMBERED.fullmatch(name))
