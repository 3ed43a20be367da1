"""Checks what a page says of itself. It can replace what scripts use in it, so nothing has to have its type."""

from typing import Any, Final

_MOST_ITEMS: Final = 2_000
_LONGEST_TEXT: Final = 4_000


def like(shape: Any, said: Any) -> Any:
    """Returns a page's value in the given shape: parts that differ from it become empty.

    shape: an example. A list has one of its items; a dictionary has its keys, or none if it may have any.
    """
    match shape:
        case dict() if not shape:
            return {str(key)[:100]: str(value)[:100] for key, value in _items(said)}
        case dict():
            given = dict(_items(said))
            return {key: like(example, given.get(key)) for key, example in shape.items()}
        case [example]:
            return [like(example, it) for it in said[:_MOST_ITEMS]] if isinstance(said, list) else []
        case str():
            return said[:_LONGEST_TEXT] if isinstance(said, str) else ""
        case bool():
            return said is True
        case _:
            return said if type(said) is int else 0


def _items(said: Any) -> list[tuple[Any, Any]]:
    return list(said.items())[:_MOST_ITEMS] if isinstance(said, dict) else []
