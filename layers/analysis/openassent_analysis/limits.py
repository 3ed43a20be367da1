"""Limits of one analysis. Anything that exceeds a limit is skipped and counted; it isn't an error."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    # The longest handwritten source files have about 400 KB; larger ones are generated.
    max_file_bytes: int = 512 * 1024
    # Lock files are generated and long, and are read line by line rather than parsed.
    max_lock_file_bytes: int = 8 * 1024 * 1024
    max_files: int = 50_000
    max_total_bytes: int = 500 * 1024 * 1024
    # Longer lines aren't handwritten: the file is a bundle or data.
    max_line_length: int = 50_000
    # A file is minified if most of its text is in lines longer than this.
    minified_line_length: int = 1_000
    # Nesting of brackets or elements. Much deeper trees take time that grows with the square of the depth.
    max_depth: int = 1_000
    max_findings: int = 1_000
    max_findings_per_file: int = 50
    # CPU time, so that a busy machine finds as much as an idle one. The sandbox has its own limit of wall time.
    max_seconds_per_file: float = 5.0
    max_seconds: float = 240.0
    max_snippet_length: int = 600
    # Example paths per reason in the summary of skipped files.
    max_skipped_examples: int = 5
