"""Finds consent problems in a source tree: files in, findings out.

Knows no network, no queue and no table, and never runs what it reads. `analyze_folder` takes a folder that is unpacked
already; `analyze_files` takes (path, bytes) pairs, of which it holds one at a time.
"""

from scan_execution.analysis.findings import Finding, Location
from scan_execution.analysis.limits import Limits
from scan_execution.analysis.scan import Analysis, analyze_files, analyze_folder

__all__ = ["Analysis", "Finding", "Limits", "Location", "analyze_files", "analyze_folder"]
