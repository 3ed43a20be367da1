"""Finds consent problems in a source tree: takes files, returns findings.

Must not use the network, queues, or the table, and must never run what it reads. The code that parses a file
(`examine` and everything it imports) runs in a separate process, see `scan_execution.sandbox`. The functions exported
here don't parse: they walk the tree and combine the reports.
"""

from scan_execution.analysis.findings import Finding, Location
from scan_execution.analysis.limits import Limits
from scan_execution.analysis.result import Analysis
from scan_execution.analysis.scan import analyze_files, analyze_folder
from scan_execution.analysis.version import rules_version

__all__ = ["Analysis", "Finding", "Limits", "Location", "analyze_files", "analyze_folder", "rules_version"]
