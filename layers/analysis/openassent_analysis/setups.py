"""Finds how a file sets a consent library up: which one, its version, and its categories and services.

Reads the text only, because most files are never parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from openassent_analysis.gates.options import balanced, in_comment
from openassent_analysis.reading import resource
from openassent_analysis.report import MAX_TRAITS
from openassent_analysis.sources import Source
from openassent_analysis.vocabulary import sought

_KNOWN: Final = resource("consent-setups")
_LIBRARIES: Final = [(it["id"], it.get("version", ""), re.compile(it["pattern"])) for it in _KNOWN["libraries"]]
_OBJECTS: Final = re.compile(_KNOWN["objects"])
_NAMES: Final = [re.compile(it) for it in _KNOWN["names"]]
_KEY: Final = re.compile(r"""["']?([\w-]{1,60})["']?\s{0,9}:""")
_MARKS: Final = sought(("ookie", "klaro", "consent", "data-category"))
_MAX_MATCHES: Final = 20
# The sign of a category or service is this word and its name.
NAME: Final = "name"


def setups_of(source: Source) -> list[str]:
    """Returns the library with its major version, if it shows, and `name NAME` for its categories and services."""
    if not source.vocabulary.present(_MARKS):
        return []
    libraries = [*_libraries(source)]
    names = _names(source) if libraries else ()
    return [*dict.fromkeys((*libraries, *(f"{NAME} {name}" for name in names)))][:MAX_TRAITS]


def _libraries(source: Source) -> Iterator[str]:
    for library, version, pattern in _LIBRARIES:
        for found in islice(pattern.finditer(source.text), _MAX_MATCHES):
            if not in_comment(source.text, found.start()):
                yield f"{library} {version or (found[1] if pattern.groups else '')}".strip()
                break


def _names(source: Source) -> Iterator[str]:
    for opened in islice(_OBJECTS.finditer(source.text), _MAX_MATCHES):
        yield from _keys(balanced(source.text, opened.end() - 1)[1:-1])
    for pattern in _NAMES:
        for found in islice(pattern.finditer(source.text), _MAX_MATCHES):
            yield found[1]


def _keys(code: str) -> Iterator[str]:
    """Yields the keys of an object's code, without those of the objects in it."""
    depth, at = 0, 0
    for key in _KEY.finditer(code):
        depth += sum((it in "{[(") - (it in "}])") for it in code[at : key.start()])
        at = key.start()
        if depth == 0:
            yield key[1]
