"""The priorities of findings, and the one from which on a link's findings become issues."""

from typing import Literal

Priority = Literal["P0", "P1", "P2", "P3"]
