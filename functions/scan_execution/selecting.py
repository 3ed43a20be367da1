"""Reads the settings of the scanned repository from its archive, as soon as the archive has them.

Git writes `.assent.yml` before all files that it can concern, except for a few whose names begin with a dot.
"""

from pathlib import Path

from openassent_analysis.files import Skipped, read
from openassent_analysis.inventory.listing import Listing
from openassent_analysis.project_file import MAX_BYTES, InvalidProjectFile, read_project_file
from openassent_analysis.report import Examine
from openassent_analysis.selection import PROJECT_FILE


class Selecting:
    """Lists the files of an archive, selected by the settings in it. problem: why these are invalid, or None."""

    def __init__(self, listing: Listing, folder: Path, examine: Examine) -> None:
        self.listing = listing
        self._folder = folder
        self._examine = examine
        self._has_settings = False
        self.problem: str | None = None

    def take(self, path: str, size: int) -> str | None:
        """Notes a file as `Listing.take` does."""
        self.read_settings()
        self._has_settings = path == PROJECT_FILE
        return self.listing.take(path, size)

    def read_settings(self) -> None:
        """Reads the settings if they are the last file that was written."""
        if not self._has_settings:
            return
        self._has_settings = False
        try:
            content = read(str(self._folder / PROJECT_FILE), MAX_BYTES)
            self.listing.selection = read_project_file(content, self._examine)
        except InvalidProjectFile as failure:
            self.problem = str(failure)
        except Skipped as skipped:
            self.problem = f"{PROJECT_FILE} can't be read: {skipped}."
