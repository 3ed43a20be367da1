"""Writes and checks of single items, which a transaction combines as its legs.

In expressions, `#name` is the attribute of that name, and `:name` is the value passed under that name.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

from controlplane.platform.table import codec
from controlplane.platform.table.keys import Key

_NAME = re.compile(r"#(\w+)")
_VALUE = re.compile(r":(\w+)")


def set_expression(names: Iterable[str]) -> str:
    """Returns the update expression that sets each attribute to the value passed under its name."""
    return "SET " + ", ".join(f"#{name} = :{name}" for name in names)


@lru_cache(maxsize=512)
def _names(*expressions: str | None) -> dict[str, str]:
    return {f"#{name}": name for text in expressions if text for name in _NAME.findall(text)}


def _expression(parts: dict[str, str | None], values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the parameters of an expression: `#name` is the attribute of that name, `:name` is the value passed."""
    out: dict[str, Any] = {key: text for key, text in parts.items() if text}
    names = _names(*parts.values())
    if names:
        out["ExpressionAttributeNames"] = names
    if values:
        out["ExpressionAttributeValues"] = {f":{name}": codec.encode(value) for name, value in values.items()}
    return out


@dataclass(frozen=True, slots=True)
class Put:
    """Writes a whole item. `when` is a condition; `values` are its `:names`."""

    action: ClassVar[str] = "Put"
    item: Mapping[str, Any]
    when: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)

    def parameters(self) -> dict[str, Any]:
        return {
            "Item": codec.encode_item(self.item),
            **_expression({"ConditionExpression": self.when}, self.values),
        }


@dataclass(frozen=True, slots=True)
class Update:
    """Changes an item with an update expression, under an optional condition."""

    action: ClassVar[str] = "Update"
    key: Key
    change: str
    when: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)

    def parameters(self) -> dict[str, Any]:
        parts = {"UpdateExpression": self.change, "ConditionExpression": self.when}
        return {"Key": codec.encode_item(self.key._asdict()), **_expression(parts, self.values)}


@dataclass(frozen=True, slots=True)
class Delete:
    """Deletes an item, under an optional condition."""

    action: ClassVar[str] = "Delete"
    key: Key
    when: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)

    def parameters(self) -> dict[str, Any]:
        return {
            "Key": codec.encode_item(self.key._asdict()),
            **_expression({"ConditionExpression": self.when}, self.values),
        }


@dataclass(frozen=True, slots=True)
class Check:
    """A condition on an item that the transaction does not change."""

    action: ClassVar[str] = "ConditionCheck"
    key: Key
    when: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def parameters(self) -> dict[str, Any]:
        return {
            "Key": codec.encode_item(self.key._asdict()),
            **_expression({"ConditionExpression": self.when}, self.values),
        }


type Leg = Put | Update | Delete | Check


def to_check(leg: Leg) -> Check | None:
    """Returns the leg's condition without its write, or None if it has no condition."""
    if leg.when is None:
        return None
    key = Key(leg.item["pk"], leg.item["sk"]) if isinstance(leg, Put) else leg.key
    return Check(key, leg.when, {name: leg.values[name] for name in dict.fromkeys(_VALUE.findall(leg.when))})
