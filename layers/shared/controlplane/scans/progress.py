"""The progress of a scan, and its coverage."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Self

from controlplane.platform.table.codec import present

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

    def to_item(self) -> dict[str, Any]:
        return {
            "stage": self.stage,
            "stageStatus": self.stage_status,
            "completedStages": self.completed_stages,
            **present(analyzedFiles=self.analyzed_files, filesToAnalyze=self.files_to_analyze),
        }

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> Self:
        return cls(
            item["stage"],
            item["stageStatus"],
            item["completedStages"],
            item.get("analyzedFiles"),
            item.get("filesToAnalyze"),
        )


class CoveredKind(NamedTuple):
    """The number of files of one kind, such as ERB templates, that were analyzed, and that weren't assessed."""

    name: str
    analyzed_files: int
    unassessed_files: int

    def to_item(self) -> dict[str, Any]:
        return {"name": self.name, "analyzedFiles": self.analyzed_files, "unassessedFiles": self.unassessed_files}

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> Self:
        return cls(item["name"], item["analyzedFiles"], item["unassessedFiles"])


class Coverage(NamedTuple):
    """A scan's coverage: files in the archive, files analyzed, the number of skipped files by reason, and by kind.

    incomplete: what was left out at a limit of the whole scan, for people.
    """

    files: int
    analyzed_files: int
    skipped: Mapping[str, int]
    kinds: tuple[CoveredKind, ...] = ()
    incomplete: str | None = None

    def to_item(self) -> dict[str, Any]:
        return {
            "files": self.files,
            "analyzedFiles": self.analyzed_files,
            "skipped": self.skipped,
            "kinds": [kind.to_item() for kind in self.kinds],
            **present(incomplete=self.incomplete),
        }

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> Self:
        kinds = tuple(map(CoveredKind.from_item, item["kinds"]))
        return cls(item["files"], item["analyzedFiles"], item["skipped"], kinds, item.get("incomplete"))
