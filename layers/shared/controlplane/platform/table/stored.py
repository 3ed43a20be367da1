"""The one mapping between a dataclass and the item, or the map within an item, that it is stored as.

Each field is stored by its name in camelCase. IDs of resources are parsed, tuples are stored as lists, and fields of
other stored types as maps. `Annotated` marks a field that differs: `SPARSE`, `FLAT`, `Named`, or `Derived`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import cache
from operator import itemgetter
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
        values = dict(zip(form.plain, form.read_plain(item), strict=True))
        for field, name, read in form.converted:
            stored = item[name]
            values[field] = None if stored is None else read(stored)
        for field, name, read in form.sparse:
            if (stored := item.get(name)) is not None:
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


type _Convert = Callable[[Any], Any]


class _Form(NamedTuple):
    """How a class is stored. The plain fields are read together, because most fields are plain.

    plain: by field, the name of its attribute. written: with the value that isn't stored.
    """

    plain: dict[str, str]
    read_plain: Callable[[Mapping[str, Any]], Iterable[Any]]
    converted: list[tuple[str, str, _Convert]]
    sparse: list[tuple[str, str, _Convert]]
    derived: list[tuple[str, _Convert]]
    flat: list[str]
    written: list[tuple[str, str, _Convert | None, Any]]


@cache
def _form_of(kind: Any) -> _Form:
    form = _Form({}, lambda item: [item[name] for name in form.plain.values()], [], [], [], [], [])
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
        if SPARSE in marks:
            form.sparse.append((field.name, name, read or _as_it_is))
        elif read is not None:
            form.converted.append((field.name, name, read))
        else:
            form.plain[field.name] = name
        form.written.append((field.name, name, write, field.default if SPARSE in marks else _NEVER))
    return form._replace(read_plain=itemgetter(*form.plain.values())) if len(form.plain) > 1 else form


def _as_it_is(stored: Any) -> Any:
    return stored


def _conversions(annotated: Any) -> tuple[_Convert | None, _Convert | None]:
    """Returns how a stored value is read, and how a field is stored. None: as it is."""
    if get_origin(annotated) is UnionType:
        (annotated, *_) = (it for it in get_args(annotated) if it is not type(None))
    if hasattr(annotated, "from_item"):
        return annotated.from_item, annotated.to_map
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
