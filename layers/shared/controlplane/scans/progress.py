"""The progress of a scan, and its coverage."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

Stage = Literal["fetch", "inventory", "analyze", "publish"]
STAGES: tuple[Stage, ...] = ("fetch", "inventory", "analyze", "publish")


class Progress(NamedTuple):
    """A scan's current stage, and that stage's status: pending, running, completed, or failed.

    completed_stages: how many stages any attempt has completed. A retry runs them again, but doesn't decrease it.
    analyzed_files: the files that the stage `analyze` is done with, of `files_to_analyze`. None before it.
    """

    stage: Stage
    stage_status: str
    completed_stages: int
    analyzed_files: int | None = None
    files_to_analyze: int | None = None

    @property
    def total_stages(self) -> int:
        return len(STAGES)


class CoveredKind(NamedTuple):
    """The number of files of one kind, such as ERB templates, that were analyzed, and that weren't assessed."""

    name: str
    analyzed_files: int
    unassessed_files: int


class Coverage(NamedTuple):
    """A scan's coverage: files in the archive, files analyzed, the number of skipped files by reason, and by kind.

    incomplete: what was left out at a limit of the whole scan, for people.
    """

    files: int
    analyzed_files: int
    skipped: Mapping[str, int]
    kinds: tuple[CoveredKind, ...] = ()
    incomplete: str | None = None
