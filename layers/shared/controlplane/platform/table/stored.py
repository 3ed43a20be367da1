"""The one mapping between a dataclass and the item, or the map within an item, that it is stored as.

Each field is stored by its name in camelCase. IDs of resources are parsed, tuples are stored as lists, and fields of
other stored types as maps. `Annotated` marks a field that differs: `SPARSE`, `FLAT`, `Named`, or `Derived`.

A NamedTuple within an item needs no base: it is a map whose fields with defaults are sparse. `to_map` writes it, or its
own method of that name, and `read_map` reads it.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from types import UnionType
from typing import Annotated, Any, NamedTuple, Self, get_args, get_origin

from controlplane.platform.table.keys import Key

# The attribute is left out while the field has its default.
SPARSE = "sparse"
# The attributes of the field's stored type are the item's own, not those of a map in it.
FLAT = "flat"
_NEVER = object()


class Named(NamedTuple):
    """The field is stored under this name."""

    name: str


class Derived(NamedTuple):
    """The field is read from the whole item, such as from its key. It has no attribute of its own."""

    read: Callable[[Mapping[str, Any]], Any]


# The whole key, of an item that can't build it from its other fields.
OWN_KEY = Derived(lambda item: Key(item["pk"], item["sk"]))
# The part of the partition key after its prefix, such as the digest of a secret.
KeyPart = Annotated[str, Derived(lambda item: item["pk"].partition("#")[2])]


class StoredMap:
    """The base of a dataclass that is stored as a map."""

    __slots__ = ()

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> Self:
        """Reads the map. Attributes of other releases are ignored."""
        form = _form_of(cls)  # type: ignore[arg-type]  # a class is hashable
        # One pass over the fields: for most classes, most fields are plain. Lists of 50 are sensitive to this.
        values = {field: item[name] for field, name in form.fields if name in item}
        for field, read in form.converted:
            if (stored := values.get(field)) is not None:
                values[field] = read(stored)
        for field, read in form.derived:
            values[field] = read(item)
        return cls(**values)

    def to_map(self) -> dict[str, Any]:
        """Returns the attributes."""
        form, attributes = _form_of(type(self)), dict[str, Any]()  # type: ignore[arg-type]  # as above
        for field, name, write, omitted in form.written:
            value = getattr(self, field)
            if value != omitted:
                attributes[name] = write(value) if write is not None and value is not None else value
        for field in form.flat:
            attributes |= getattr(self, field).to_map()
        return attributes


class StoredItem(StoredMap):
    """The base of a dataclass that is stored as an item, and knows its key."""

    __slots__ = ()

    @property
    def key(self) -> Key:
        raise NotImplementedError

    def to_item(self) -> dict[str, Any]:
        """Returns the attributes with the key."""
        return {**self.key._asdict(), **self.to_map()}


def to_map(part: Any) -> dict[str, Any]:
    """Returns the attributes of a NamedTuple."""
    defaults = part._field_defaults
    stored = (
        (name, value) for name, value in zip(part._fields, part, strict=True) if value != defaults.get(name, _NEVER)
    )
    return {_camel_case(name): _to_stored(value) for name, value in stored}


def read_map[T](kind: Callable[..., T], item: Mapping[str, Any]) -> T:
    """Returns the NamedTuple of that kind with these attributes."""
    read: Callable[[Mapping[str, Any]], T] = _tuple_reader(kind)
    return read(item)


def _to_stored(value: Any) -> Any:
    if hasattr(value, "_fields"):
        return value.to_map() if hasattr(value, "to_map") else to_map(value)
    return [_to_stored(it) for it in value] if isinstance(value, tuple) else value


@cache
def _tuple_reader(kind: Any) -> Callable[[Mapping[str, Any]], Any]:
    optional = [(_camel_case(name), default) for name, default in kind._field_defaults.items()]
    required = [_camel_case(name) for name in kind._fields[: len(kind._fields) - len(optional)]]
    conversions = [(kind._fields.index(name), _conversions(of)[0]) for name, of in kind.__annotations__.items()]
    convert_at = [(position, read) for position, read in conversions if read is not None]

    def read_tuple(item: Mapping[str, Any]) -> Any:
        values = [item[name] for name in required]
        values += [item.get(name, default) for name, default in optional]
        for position, read in convert_at:
            if values[position] is not None:
                values[position] = read(values[position])
        return kind._make(values)

    return read_tuple


type _Convert = Callable[[Any], Any]


class _Form(NamedTuple):
    """How a class is stored. fields: with their attributes. written: with the value that isn't stored."""

    fields: list[tuple[str, str]]
    converted: list[tuple[str, _Convert]]
    derived: list[tuple[str, _Convert]]
    flat: list[str]
    written: list[tuple[str, str, _Convert | None, Any]]


@cache
def _form_of(kind: Any) -> _Form:
    form = _Form([], [], [], [], [])
    for field in fields(kind):
        annotated, *marks = get_args(field.type) if get_origin(field.type) is Annotated else (field.type,)
        if marks and isinstance(marks[0], Derived):
            form.derived.append((field.name, marks[0].read))
            continue
        if FLAT in marks:
            form.derived.append((field.name, annotated.from_item))
            form.flat.append(field.name)
            continue
        name = next((it.name for it in marks if isinstance(it, Named)), _camel_case(field.name))
        read, write = _conversions(annotated)
        form.fields.append((field.name, name))
        if read is not None:
            form.converted.append((field.name, read))
        form.written.append((field.name, name, write, field.default if SPARSE in marks else _NEVER))
    return form


def _conversions(annotated: Any) -> tuple[_Convert | None, _Convert | None]:
    """Returns how a stored value is read, and how a field is stored. None: as it is."""
    if get_origin(annotated) is UnionType:
        (annotated, *_) = (it for it in get_args(annotated) if it is not type(None))
    if hasattr(annotated, "from_item"):
        return annotated.from_item, annotated.to_map
    if hasattr(annotated, "_fields"):
        return _tuple_reader(annotated), _to_stored
    if hasattr(annotated, "stored"):
        return annotated.stored, None
    if get_origin(annotated) in {list, tuple}:
        made, (read, write) = get_origin(annotated), _conversions(get_args(annotated)[0])
        if read is not None:
            return lambda stored: made(map(read, stored)), lambda value: [write(it) if write else it for it in value]
        return (tuple, list) if made is tuple else (None, None)
    return None, None


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(it.capitalize() for it in others)
