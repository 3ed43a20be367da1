"""Finds consent problems in a source tree: files in, findings out.

Knows no network, no queue and no table, and never runs what it reads. What parses a file (`examine`, and all that it
imports) runs in a process of its own, see `scan_execution.sandbox`. What is exported here parses nothing: it walks the
tree and combines the reports.
"""

from scan_execution.analysis.findings import Finding, Location
from scan_execution.analysis.limits import Limits
from scan_execution.analysis.scan import Analysis, analyze_files, analyze_folder

__all__ = ["Analysis", "Finding", "Limits", "Location", "analyze_files", "analyze_folder"]
