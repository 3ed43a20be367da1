"""The one mapping between a dataclass and the item, or the map within an item, that it is stored as.

Each field is stored by its name in camelCase. IDs of resources are parsed, tuples are stored as lists, and fields of
other stored types as maps. `Annotated` marks a field that differs: `SPARSE`, `FLAT`, `Named`, or `Derived`.

A NamedTuple within an item needs no base: it is a map whose fields with defaults are sparse. `to_map` writes it, or its
own method of that name, and `read_map` reads it.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache, partial
from types import UnionType
from typing import Annotated, Any, NamedTuple, Self, get_args, get_origin, get_type_hints

from controlplane.platform.table.keys import Key

# The attribute is left out while the field has its default.
SPARSE = "sparse"
# The attributes of the field's stored type are in the item itself, instead of in a map.
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


def read_map[T](kind: Callable[..., T], item: Mapping[str, Any]) -> T:
    """Reads a map. Attributes of other releases are ignored."""
    return _read(kind, _form_of(kind), item)


def _read[T](kind: Callable[..., T], form: "_Form", item: Mapping[str, Any]) -> T:
    # One pass over the fields: for most classes, most fields are plain. Lists of 50 are sensitive to this.
    values = {field: item[name] for field, name in form.fields if name in item}
    for field, read in form.converted:
        if (stored := values.get(field)) is not None:
            values[field] = read(stored)
    for field, read in form.derived:
        values[field] = read(item)
    return kind(**values)


def to_map(part: Any) -> dict[str, Any]:
    """Returns the attributes of a part of an item."""
    form, attributes = _form_of(type(part)), dict[str, Any]()  # type: ignore[arg-type]  # a class is hashable
    for field, name, write, omitted in form.written:
        value = getattr(part, field)
        if value != omitted:
            attributes[name] = write(value) if write is not None and value is not None else value
    for field in form.flat:
        attributes |= getattr(part, field).to_map()
    return attributes


class StoredMap:
    """The base of a dataclass that is stored as a map."""

    __slots__ = ()

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> Self:
        return _read(cls, _form_of(cls), item)  # type: ignore[arg-type]  # as above

    def to_map(self) -> dict[str, Any]:
        return to_map(self)


class StoredItem(StoredMap):
    """The base of a dataclass that is stored as an item, and knows its key."""

    __slots__ = ()

    @property
    def key(self) -> Key:
        raise NotImplementedError

    def to_item(self) -> dict[str, Any]:
        """Returns the attributes with the key."""
        return {**self.key._asdict(), **self.to_map()}


type _Convert = Callable[[Any], Any]


class _Form(NamedTuple):
    """A class in the table. fields: with their attributes. written: with the value that isn't stored."""

    fields: list[tuple[str, str]]
    converted: list[tuple[str, _Convert]]
    derived: list[tuple[str, _Convert]]
    flat: list[str]
    written: list[tuple[str, str, _Convert | None, Any]]


@cache
def _form_of(kind: Any) -> _Form:
    form = _Form([], [], [], [], [])
    for field, annotation, default in _fields_of(kind):
        annotated, *marks = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
        if marks and isinstance(marks[0], Derived):
            form.derived.append((field, marks[0].read))
            continue
        if FLAT in marks:
            form.derived.append((field, annotated.from_item))
            form.flat.append(field)
            continue
        name = next((it.name for it in marks if isinstance(it, Named)), _camel_case(field))
        read, write = _conversions(annotated)
        form.fields.append((field, name))
        if read is not None:
            form.converted.append((field, read))
        form.written.append((field, name, write, default if SPARSE in marks else _NEVER))
    return form


def _fields_of(kind: Any) -> list[tuple[str, Any, Any]]:
    """Returns the names, annotations, and defaults."""
    if is_dataclass(kind):
        return [(it.name, it.type, it.default) for it in fields(kind)]
    defaults = kind._field_defaults
    return [
        (name, Annotated[of, SPARSE] if name in defaults else of, defaults.get(name))
        for name, of in get_type_hints(kind, include_extras=True).items()
    ]


def _conversions(annotated: Any) -> tuple[_Convert | None, _Convert | None]:
    """Returns the functions that read a stored value and store a field. None: as it is."""
    if get_origin(annotated) is UnionType:
        (annotated, *_) = (it for it in get_args(annotated) if it is not type(None))
    if hasattr(annotated, "from_item"):
        return annotated.from_item, annotated.to_map
    if hasattr(annotated, "_fields"):
        return partial(_read, annotated, _form_of(annotated)), getattr(annotated, "to_map", to_map)
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
