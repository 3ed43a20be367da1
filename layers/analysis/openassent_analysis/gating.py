"""Describes whether code waits for consent, by one file alone. `links` adds the evidence of other files."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

# The name of a module's code outside of functions, which runs when the module is imported or the template is included.
WHOLE: Final = "*"
DEFAULT: Final = "default"
# The module of names that server code gives to every template.
SERVER: Final = "server"
# The module of functions that a classic script shares with all scripts of a page.
PAGE: Final = "window"
# The name of a use that may be of any export.
ANY: Final = ""
# The name of a layout's export to the templates that extend it: a script that blocks theirs.
LAYOUT: Final = "layout"
# The module of a script that blocks the scripts and frames after it on a page, and of code that it can't block: an SDK
# that the application imports.
BLOCKER: Final = "blocker"
BUNDLED: Final = "bundled"
# The module of a file's own exports, under the name of each of the use's callers.
ITSELF: Final = ""


class Export(NamedTuple):
    """Something that another file of the project exports. `module` is as written in the import or include."""

    module: str
    name: str


class Gate(StrEnum):
    # Runs without consent if this file's code runs.
    OPEN = "open"
    # Runs when one of `callers` does.
    CALLERS = "callers"
    # Runs only with consent.
    CLOSED = "closed"


class Unclear(StrEnum):
    """Why a file alone doesn't show whether code waits for consent."""

    NOTHING = ""
    # A condition whose value isn't known: it may be the visitor's choice.
    CONDITION = "condition"
    # A callback of something that isn't known: it may be called after consent.
    CALLBACK = "callback"
    # A setting that the theme of a site reads, which may ask for consent first.
    THEME = "theme"


@dataclass(frozen=True, slots=True)
class Gating:
    """Says whether code waits for consent.

    callers: the functions and components of the file that run the code, if the file itself doesn't call them.
    providers: what the conditions around the code ask. The code waits for consent if one of them gives the visitor's
    choice.
    """

    gate: Gate
    callers: tuple[str, ...] = ()
    providers: tuple[Export, ...] = ()
    unclear: Unclear = Unclear.NOTHING


OPEN: Final = Gating(Gate.OPEN)
CLOSED: Final = Gating(Gate.CLOSED)


class Use(NamedTuple):
    """A place that runs code of another file: a call, a component, an import, or an include."""

    export: Export
    gating: Gating


class Provider(NamedTuple):
    """An export that gives the visitor's choice, or renders its children only with consent.

    source: what it takes the choice from, if that is in another file: it provides if its source does.
    """

    name: str
    source: Export | None
