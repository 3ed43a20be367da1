"""The calls, paths, and elements that show which vendor's code starts, also if the site serves that code itself.

A call that needs a script from elsewhere counts only if nothing in the project loads the vendor from a known address or
package. Then that place decides whether the vendor waits for consent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from openassent_analysis.catalogue import CALLS, Vendor, shipped_catalogue
from openassent_analysis.reading import load_yaml
from openassent_analysis.vocabulary import Vocabulary, sought

if TYPE_CHECKING:
    from ast_grep_py import Config

_LONGEST_CALLEE: Final = 100
_LONGEST_ARGUMENTS: Final = 400
_IDENTIFIER: Final = re.compile(r"[\w$]+")
_WORD_OF_NAME: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


# Values of settings that turn nothing on, or that documentation shows.
_NO_VALUES: Final = frozenset(
    {"", "true", "false", "null", "none", "no", "yes", "off", "on", "nil", "shortname", "disqus"}
)
_EXAMPLE: Final = re.compile(
    r"^(?:UA|G|GTM|AW)-(?:0+|1234567?8?9?0?|ABC\w*|Y+|your\w*)(?:-[\dxy]+)?$|xxx|your|example|username|shortname|change_?me",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Shape:
    """A call that starts a vendor. If `alone`, it also loads the vendor's code."""

    vendor: Vendor
    # A pattern for the called function.
    callee: str
    # An expression for the call up to the arguments that decide.
    written: str
    # Every text with such a call contains these words.
    words: tuple[str, ...]
    alone: bool

    @property
    def pattern(self) -> re.Pattern[str]:
        return _compiled(self.written)


@cache
def _compiled(written: str) -> re.Pattern[str]:
    """Returns an expression, of which few are needed: most files call no vendor."""
    return re.compile(written)


@dataclass(frozen=True, slots=True)
class _Place:
    """A path or an element, and words of which one is in every file that contains it."""

    vendor: Vendor
    pattern: re.Pattern[str]
    words: tuple[str, ...]
    # The beginning of an element.
    tag: str = ""
    # True if something else loads the vendor's code.
    started: bool = False


class Calls:
    def __init__(self, document: Mapping[str, Any]) -> None:
        self.shapes: Final = tuple(map(_shape, document["calls"]))
        self._by_word: Final = _grouped(self.shapes)
        self._first_words: Final = sought(word for word, _ in self._by_word)
        self._paths: Final = tuple(
            _Place(_vendor(entry), re.compile(entry["path"]), tuple(entry["words"])) for entry in document["paths"]
        )
        self._elements: Final = tuple(
            _Place(
                _vendor(entry),
                re.compile(entry["attributes"]),
                _words_of(entry),
                f"<{entry['tag']}",
                entry.get("started", False),
            )
            for entry in document["elements"]
        )
        self._of_word: Final[dict[str, list[Vendor]]] = {}
        for place in (*self._paths, *self._elements):
            for word in place.words:
                self._of_word.setdefault(word, []).append(place.vendor)
        self._variables: Final = _by_name(document["variables"])
        self._fields: Final = _by_name(document["fields"])
        for word, vendor in self._fields.items():
            self._of_word.setdefault(word, []).append(vendor)
        self._words_of_places: Final = sought(self._of_word)
        # The vendor whose script loads a vendor's tag when a call asks for it.
        self.loaded_by: Final[Mapping[str, str]] = document["loaded_by"]
        self.plugins: Final = _by_name(document["plugins"])
        self.registry: Final = _by_name(document["registry"])
        self._settings: Final = tuple(
            (_vendor(entry), re.compile(entry.get("setting", ""), re.IGNORECASE), re.compile(entry["value"]))
            for entry in document["settings"]
        )

    def in_text(self, text: str, vocabulary: Vocabulary) -> list[Shape]:
        """Returns the shapes of calls that a text with these words may contain, without parsing it."""
        found: list[Shape] = []
        present = vocabulary.present(self._first_words)
        for word, shapes in self._by_word if present else ():
            if word in present:
                found.extend(shape for shape in shapes if shape.words[-1] in text and shape.pattern.search(text))
        return found

    def places_in(self, vocabulary: Vocabulary) -> Iterator[Vendor]:
        """Yields the vendors whose paths or elements may occur in a text that contains these words."""
        for word in sorted(vocabulary.present(self._words_of_places)):
            yield from self._of_word[word]

    def of_call(self, callee: str, arguments: str) -> Shape | None:
        """Returns the shape of a call, or None if it starts no vendor."""
        callee = callee[-_LONGEST_CALLEE:]
        text = callee + arguments[:_LONGEST_ARGUMENTS]
        for shape in self.shapes:
            if all(word in text for word in shape.words):
                for match in shape.pattern.finditer(text):
                    if match.start() < len(callee) < match.end():
                        return shape
        return None

    def of_path(self, address: str) -> Vendor | None:
        """Returns the vendor of a file that a site serves itself, by the path of its address."""
        return next((place.vendor for place in self._paths if place.pattern.search(address)), None)

    def of_element(self, opening: str) -> tuple[Vendor, bool] | None:
        """Returns the vendor that an element starts, by its opening tag, and if something else loads its code."""
        return next(
            (
                (place.vendor, place.started)
                for place in self._elements
                if opening.startswith(place.tag) and place.pattern.search(opening)
            ),
            None,
        )

    def named_anywhere_in(self, text: str) -> Iterator[Vendor]:
        """Yields the vendors that names in a file may contain."""
        lower = text.lower()
        yield from (vendor for word, vendor in self._variables.items() if word in lower)

    def named_in(self, text: str) -> Iterator[Vendor]:
        """Yields the vendors whose scripts or frames may be at the addresses that variables have, by their names."""
        words = _WORD_OF_NAME.findall(text)
        named = {word.lower() for word in (*words, *map("".join, pairwise(words)))}  # YouTube
        yield from (vendor for word, vendor in self._variables.items() if word in named)

    def of_field(self, name: str) -> Vendor | None:
        """Returns the vendor whose script a form field, or a form with this base class, writes."""
        return self._fields.get(name.rpartition(".")[2])

    def of_setting(self, name: str, value: str) -> Vendor | None:
        """Returns the vendor that a setting of a site's configuration turns on, or None."""
        if (vendor := self.plugins.get(value)) is not None:
            return vendor
        if value.lower() in _NO_VALUES or _EXAMPLE.search(value):
            return None
        return next(
            (
                vendor
                for vendor, setting, pattern in self._settings
                if pattern.fullmatch(value) and setting.search(name)
            ),
            None,
        )


def _words_of(element: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(element.get("words", (f"<{element['tag']}",)))


def candidates(shapes: Iterable[Shape]) -> Config:
    """Returns the syntax rule that finds all calls that may be of one of the shapes."""
    callee = "(?:^|[^\\w$])(?:" + "|".join(dict.fromkeys(shape.callee for shape in shapes)) + ")$"
    return {
        "rule": {
            "any": [
                {"kind": "call_expression", "has": {"field": "function", "regex": callee}},
                {"kind": "new_expression", "has": {"field": "constructor", "regex": callee}},
            ]
        }
    }


def _grouped(shapes: tuple[Shape, ...]) -> list[tuple[str, list[Shape]]]:
    """Returns the shapes by the first of their words, because most texts contain none of these."""
    found: dict[str, list[Shape]] = {}
    for shape in shapes:
        found.setdefault(shape.words[0], []).append(shape)
    return list(found.items())


def _shape(entry: Mapping[str, Any]) -> Shape:
    written = entry["call"]
    name, is_list, _ = written.rpartition(".push")
    callee = re.escape(name or written).replace(r"\.", r"\??\.")
    if is_list:  # also (name = window.name || []).push
        callee += r"(?:\s*\|\|\s*\[\s*\])?\)?\??\.push"
    first = entry.get("first") or ("|".join(f"[\"'`]{given}\\b" for given in entry["with"]) if "with" in entry else "")
    # The lookbehind follows the first word, because searching for a fixed beginning is fast.
    beginning = re.escape(_IDENTIFIER.findall(written)[0])
    pattern = rf"{beginning}(?<![\w$]{beginning}){callee.removeprefix(beginning)}\s*\(\s*(?:\[\s*)?(?:{first})"
    if "second" in entry:
        pattern += rf"[^,()]{{0,80}},\s*(?:{entry['second']})"
    words = tuple(_IDENTIFIER.findall(name or written)) if "." in written else (f"{written}(",)
    return Shape(_vendor(entry), callee, pattern, words, entry.get("alone", False))


def _by_name(names: Mapping[str, list[str]]) -> dict[str, Vendor]:
    return {name: _known(vendor_id) for vendor_id, written in names.items() for name in written}


def _vendor(entry: Mapping[str, Any]) -> Vendor:
    return _known(entry["vendor"])


def _known(written: str | list[str]) -> Vendor:
    vendors = shipped_catalogue().vendors
    return next(
        vendors[vendor_id] for vendor_id in ([written] if isinstance(written, str) else written) if vendor_id in vendors
    )


@cache
def calls() -> Calls:
    """Returns the shipped calls, which are read once."""
    return Calls(load_yaml(CALLS))
