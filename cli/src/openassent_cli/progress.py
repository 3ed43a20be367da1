"""Progress bars on standard error. They show nothing if that isn't a terminal, or with --quiet."""

from typing import Any, Self

from openassent_cli.invocation import console, in_terminal, invocation

_STAGES = {"fetch": "Fetching", "inventory": "Taking inventory", "analyze": "Analyzing", "publish": "Publishing"}


class _Bar:
    """One bar, from entering to leaving the context."""

    def __init__(self, description: str) -> None:
        self._progress: Any = None
        if invocation().quiet or not in_terminal(error=True):
            return
        from rich.progress import (  # noqa: PLC0415 (takes long to import, and few commands need it)
            BarColumn,
            MofNCompleteColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
        )

        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        self._progress = Progress(*columns, TimeElapsedColumn(), console=console(error=True), transient=True)
        self._task = self._progress.add_task(description, total=None)

    def __enter__(self) -> Self:
        if self._progress:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress:
            self._progress.stop()

    def _show(self, description: str, completed: int, total: int | None) -> None:
        if self._progress:
            self._progress.update(self._task, description=description, completed=completed, total=total)


class FileProgress(_Bar):
    """The files of a local scan."""

    def __init__(self) -> None:
        super().__init__("Analyzing")

    def update(self, done: int, total: int) -> None:
        self._show("Analyzing", done, total)


class ScanProgress(_Bar):
    """The stages of a scan on the service."""

    def __init__(self) -> None:
        super().__init__("Waiting")

    def update(self, scan: Any) -> None:
        """Shows the current state. scan: a Scan, or None while it is being prepared."""
        progress = getattr(scan, "progress", None)
        if progress is not None:
            stage = str(progress.stage)
            self._show(_STAGES.get(stage, stage), progress.analyzed_files or 0, progress.files_to_analyze)


class WaitProgress(_Bar):
    """Work of the service whose progress isn't known."""


class VisitProgress(_Bar):
    """The visits of an audit."""

    def __init__(self) -> None:
        super().__init__("Starting Chromium")
        self._begun = 0

    def update(self, choice: str) -> None:
        self._show(f"Visiting ({choice})", self._begun, 3)
        self._begun += 1
