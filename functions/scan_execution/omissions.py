"""Says what a scan left out because the repository is larger than a scan reads, and what to do if nothing is left."""

from controlplane.platform.core.settings import settings
from controlplane.scans.items import Failure
from openassent_analysis import Analysis
from openassent_analysis.inventory.listing import Listing
from openassent_analysis.result import ENDS
from scan_execution.workspace import ArchiveTooLarge, Limits, Unpacked

_LONGEST_PATH = 300
_ADVICE = (
    "Leave large folders out of the archive with export-ignore in .gitattributes, or scan a checkout with "
    "`assent scan local`."
)


def limits() -> Limits:
    """Returns the limits of an archive whose compressed bytes are limited by `scan_archive_megabytes`."""
    return Limits(
        # Ordinary code shrinks to a fifth.
        unpacked_bytes=8 * settings.scan_archive_megabytes * 1024**2,
        stored_bytes=settings.scan_stored_bytes,
        stored_files=settings.scan_stored_files,
        file_bytes=settings.scan_file_bytes,
    )


def describe(unpacked: Unpacked, listing: Listing, result: Analysis) -> str | None:
    """Returns a sentence for each limit of the whole scan that was exceeded, or None."""
    said = []
    if unpacked.cut:
        said.append(f"{_reason(unpacked.cut.limit)}: files after {_shown(unpacked.cut.last_path)} weren't read.")
    skipped = unpacked.skipped + result.skipped
    examples = {reason: paths[0] for reason, paths in result.skipped_examples.items()} | listing.left_out
    for reason in sorted(ENDS & skipped.keys()):
        counted = "1 file wasn't" if skipped[reason] == 1 else f"{skipped[reason]:,} files weren't"
        said.append(f"{_reason(reason)}: {counted} analyzed, beginning with {_shown(examples[reason])}.")
    return " ".join(said) or None


def failure(error: ArchiveTooLarge, root_directory: str | None) -> Failure:
    """Returns why there is nothing to analyze, and what to do."""
    code = "ARCHIVE_TOO_LARGE" if error.limit == "archive_bytes" else "REPOSITORY_TOO_LARGE"
    part = f"no file of {root_directory}" if root_directory else "no code"
    rest = "it has more than 100 times its archive's size" if error.limit == "ratio" else f"{part} is in what was read"
    return Failure(code, f"{_reason(error.limit)}, and {rest}. {_ADVICE}")


def _reason(limit: str) -> str:
    """Returns the reason for skipped files: a limit of the archive, or of the analysis."""
    applied = limits()
    return {
        "archive_bytes": f"The repository's archive has more than {settings.scan_archive_megabytes:,} MB",
        "unpacked_bytes": f"The repository has more than {applied.unpacked_bytes // 1024**2:,} MB",
        "ratio": f"The repository has more than {applied.unpacked_bytes // 1024**2:,} MB",
        "listed_files": f"The scanned folder has more than {applied.listed_files:,} files",
        "too many files": f"The scanned folder has more than {applied.stored_files:,} files to analyze",
        "too many bytes": f"The files to analyze take more than {applied.stored_bytes // 1024**2:,} MB",
        "out of time": "The analysis took too long",
    }[limit]


def _shown(path: str) -> str:
    return path if len(path) <= _LONGEST_PATH else f"{path[:_LONGEST_PATH]}…"
