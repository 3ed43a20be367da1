"""What one analysis may cost. Whatever exceeds a limit is skipped and counted; nothing of it is an error."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    # The longest source files that people write are some 400 KB; what is larger is generated.
    max_file_bytes: int = 512 * 1024
    # Lock files are generated and long, and read line by line rather than parsed.
    max_lock_file_bytes: int = 8 * 1024 * 1024
    max_files: int = 50_000
    max_total_bytes: int = 500 * 1024 * 1024
    # A line that nobody wrote by hand: a bundle, or data.
    max_line_length: int = 50_000
    # A file most of which stands in lines longer than this is minified.
    minified_line_length: int = 1_000
    # Brackets or elements within each other. Trees far deeper cost time that grows with the square of the depth.
    max_depth: int = 1_000
    max_findings: int = 1_000
    max_findings_per_file: int = 50
    max_seconds_per_file: float = 5.0
    max_seconds: float = 240.0
    max_snippet_length: int = 600
    # Paths named per reason in the summary of what was skipped.
    max_skipped_examples: int = 5
