"""Maps items and their parts to attributes of the table: the field `scan_id` is the attribute `scanId`.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class ScanItem(Item):
        scan_id: ScanId                    # is always stored
        failure: Failure | None = None     # isn't stored while it has its default

A field holds a plain value, an ID, a part, or a tuple of these. A part is a NamedTuple or a dataclass. One that has
`to_item` writes itself.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, partial
from types import NoneType, UnionType
from typing import Any, Final, NamedTuple, Self, Union, get_args, get_origin

from pydantic.alias_generators import to_camel

from controlplane.platform.core.ids import OwnedId
from controlplane.platform.table.keys import Key

# Metadata of a field that its class maps by itself, in its own `to_item` and `from_item`.
BY_HAND: Final = {"by_hand": True}


class Item:
    """The base of an item, which has its key."""

    __slots__ = ()

    @property
    def key(self) -> Key:
        raise NotImplementedError

    def to_item(self) -> dict[str, Any]:
        return {**self.key._asdict(), **to_attributes(self)}

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> Self:
        return read(cls, item)


class _Plan(NamedTuple):
    """names: the fields by attribute. readers: the fields whose values aren't as stored. defaults: by field."""

    names: dict[str, str]
    readers: list[tuple[str, Callable[[Any], Any]]]
    defaults: dict[str, Any]


def to_attributes(part: Any, kind: type | None = None) -> dict[str, Any]:
    """Returns the attributes of a part, or of an item without its key. kind: a base class, for its fields only."""
    names, _, defaults = _plan(kind or type(part))
    values = [(attribute, getattr(part, name), defaults.get(name, MISSING)) for attribute, name in names.items()]
    return {attribute: _stored(value) for attribute, value, default in values if value != default}


def read[T](kind: Callable[..., T], item: Mapping[str, Any], **given: Any) -> T:
    """Returns the item or part with these attributes. given: the values of fields that its class reads by itself."""
    names, readers, _ = _plan(kind)
    values = {names[attribute]: value for attribute, value in item.items() if attribute in names}
    for name, convert in readers:
        if (value := values.get(name)) is not None:
            values[name] = convert(value)
    if given:
        values |= given
    return kind(**values)


def _tuple_reader(kind: Any) -> Callable[[Mapping[str, Any]], Any]:
    """Returns `read` for a NamedTuple, of which items have many: by position, which takes half of the time."""
    names, readers, defaults = _plan(kind)
    optional = [(attribute, defaults[name]) for attribute, name in names.items() if name in defaults]
    required = list(names)[: len(names) - len(optional)]
    convert_at = [(kind._fields.index(name), convert) for name, convert in readers]

    def read_tuple(item: Mapping[str, Any]) -> Any:
        values = [item[attribute] for attribute in required]
        values += [item.get(attribute, default) for attribute, default in optional]
        for position, convert in convert_at:
            if values[position] is not None:
                values[position] = convert(values[position])
        return kind._make(values)

    return read_tuple


def _stored(value: Any) -> Any:
    if hasattr(value, "to_item"):
        return value.to_item()
    if is_dataclass(value) or hasattr(value, "_fields"):
        return to_attributes(value)
    return [_stored(it) for it in value] if isinstance(value, tuple) else value


@cache
def _plan(kind: Any) -> _Plan:
    if is_dataclass(kind):
        found = [(it.name, it.type, it.default) for it in fields(kind) if "by_hand" not in it.metadata]
    else:
        found = [(name, of, kind._field_defaults.get(name, MISSING)) for name, of in kind.__annotations__.items()]
    readers = [(name, convert) for name, of, _ in found if (convert := _reader(of))]
    defaults = {name: default for name, _, default in found if default is not MISSING}
    return _Plan({to_camel(name): name for name, _, _ in found}, readers, defaults)


def _reader(kind: Any) -> Callable[[Any], Any] | None:
    """Returns the function that reads a value of the type, or None if it is as stored."""
    parts = [it for it in get_args(kind) if it is not NoneType]
    if get_origin(kind) in {UnionType, Union}:
        return _reader(parts[0])
    if get_origin(kind) is tuple:
        convert = _reader(parts[0])
        return tuple if convert is None else lambda values: tuple([convert(it) for it in values])
    if not isinstance(kind, type):
        return None
    if issubclass(kind, OwnedId):
        return kind.stored
    if hasattr(kind, "_fields"):
        return _tuple_reader(kind)
    return partial(read, kind) if is_dataclass(kind) else None
