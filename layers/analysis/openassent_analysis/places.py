"""A place that a fix may edit: whole lines of a file, and where the parts of an element or a statement are in them.

The process that parsed the file writes places into its report. Fixes are made from them alone, without the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

# Of all places of one finding.
MAX_PLACES: Final = 8
MAX_TEXT: Final = 4_000
MAX_RANGES: Final = 24

# Kinds: an element of a page, an element in JSX with other elements around it or as a value, a statement that only
# calls something, the first import of a file, an import that only the tag uses, and the body of a page in JSX.
TAG: Final = "tag"
CHILD: Final = "child"
VALUE: Final = "value"
STATEMENT: Final = "statement"
IMPORT: Final = "import"
UNUSED: Final = "unused"
BODY: Final = "body"
KINDS: Final = (TAG, CHILD, VALUE, STATEMENT, IMPORT, UNUSED, BODY)
# Those that have parts.
ELEMENTS: Final = frozenset({TAG, CHILD, VALUE, BODY})


class Place(NamedTuple):
    """An element or a statement. All ranges are offsets in `text`, whole lines that begin with line `line` of the file.

    parts: of an element, its start tag as `tag`, its `name`, the `noscript` around it, itself as `head` if it is in one
    and as `started` if it only uses what other elements load, and each attribute by its name with `@` before it. Of a
    statement, itself as `branch` if it is one without braces.
    """

    kind: str
    line: int
    text: str
    start: int
    end: int
    parts: Mapping[str, tuple[int, int]]

    @property
    def code(self) -> str:
        return self.text[self.start : self.end]

    @property
    def name(self) -> str:
        """The name of the element."""
        return self.text[self.start + 1 : self.parts["name"][1]]

    def attribute(self, name: str) -> str:
        """Returns the value of an attribute without quotes, or an empty string."""
        if f"@{name}" not in self.parts:
            return ""
        start, end = self.parts[f"@{name}"]
        return self.text[start:end].partition("=")[2].strip().strip("\"'")
