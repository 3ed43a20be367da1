"""Finds consent problems in a source tree: takes files, returns findings.

Must not use the network, queues, or the table, and must never run what it reads. The code that parses a file
(`examine` and everything it imports) runs in a separate process, see `openassent_analysis.sandbox`. The functions
exported here don't parse: they walk the tree and combine the reports. `openassent_analysis.working_tree` has the entry
for the command line: a scan of a folder on this machine, with findings that are ready for a report.

The function `scan_execution` has this package as a layer, and the wheel of the command line includes it. It therefore
imports neither `controlplane` nor a function, and runs on Python 3.11 and later, on Linux and macOS.
"""

from openassent_analysis.findings import Analysis, Finding, Location
from openassent_analysis.limits import Limits
from openassent_analysis.rules import rules_version
from openassent_analysis.scan import analyze_files, analyze_folder

__all__ = ["Analysis", "Finding", "Limits", "Location", "analyze_files", "analyze_folder", "rules_version"]
