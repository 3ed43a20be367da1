"""Finds what a request probably meant: with an unknown path, a method that its path lacks, or an unknown parameter."""

import re
from collections.abc import Iterable
from difflib import SequenceMatcher

# The similarity of two words that are written almost alike, such as `project` and `projects`.
_ENOUGH = 0.75
# Longer than every segment of a path. Comparing two words takes the product of their lengths.
_LONGEST_WORD = 40
_NO_LETTER = re.compile(r"[^a-z0-9]")
_PARAMETER = re.compile(r"[a-z]{3}_[0-9a-z]+|[a-z0-9-]+")


def find(method: str, path: str, operations: Iterable[str]) -> str | None:
    """Returns the operation, as method and path template, or None if no path is similar.

    It has the request's method if its path does, and else GET.
    """
    similar = [(_similarity(path, name.partition(" ")[2]), name) for name in operations]
    best = max((similarity for similarity, _ in similar), default=0.0)
    names = [name for similarity, name in similar if similarity == best >= _ENOUGH]
    return next((name for wanted in (method, "GET") for name in names if name.startswith(f"{wanted} ")), None)


def parameters(operation: str, path: str) -> dict[str, str]:
    """Returns what a path has in place of the parameters of the operation's path."""
    pairs = zip(operation.partition(" ")[2].split("/"), path.split("/"), strict=False)
    return {name[1:-1]: part for name, part in pairs if name.startswith("{")}


def find_word(word: str, names: Iterable[str]) -> str | None:
    """Returns the name that is most similar to a mistyped one, or None. Only letters and digits count, in any case."""
    plain = _NO_LETTER.sub("", word.lower())
    best = max(names, key=lambda name: _of_segments(plain, name.lower()), default="")
    return best if _of_segments(plain, best.lower()) >= _ENOUGH else None


def _similarity(path: str, template: str) -> float:
    """Returns the lowest similarity of two segments, from 0 to 1. A parameter is as similar to every id."""
    parts, names = path.split("/"), template.split("/")
    if len(parts) != len(names):
        return 0.0
    return min(_of_segments(part, name) for part, name in zip(parts, names, strict=True))


def _of_segments(part: str, name: str) -> float:
    if max(len(part), len(name)) > _LONGEST_WORD:
        return 0.0
    if name.startswith("{"):
        return float(_PARAMETER.fullmatch(part) is not None)
    return SequenceMatcher(None, part, name).ratio()
