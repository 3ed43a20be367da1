"""Findings for people: where, what, the code, and how to fix it."""

from collections import Counter

from assent_analysis.findings import Finding
from rich.console import Console
from rich.padding import Padding
from rich.syntax import Syntax
from rich.text import Text

from assent_cli.invocation import console, note
from assent_cli.local import LocalReport
from assent_cli.printable import printable

_STYLES = {"P0": "bold white on red", "P1": "bold red", "P2": "bold yellow", "P3": "bold blue"}


def print_report(report: LocalReport) -> None:
    """Prints the findings on standard output, and a summary on standard error."""
    terminal = console()
    for finding in report.findings:
        _print_finding(terminal, finding)
    note(summary(report))


def summary(report: LocalReport) -> str:
    """Returns the counts in a sentence or three."""
    count, files = len(report.findings), f"{report.analyzed:,} files"
    kinds = Counter(finding.priority for finding in report.findings)
    detail = ", ".join(f"{number} {priority}" for priority, number in sorted(kinds.items()))
    what = "findings" if count != 1 else "finding"
    new = "new " if report.baseline_count is not None else ""
    parts = [f"{count} {new}{what} ({detail}) in {files}." if count else f"No {new}findings in {files}."]
    if report.baseline_count:
        parts.append(f"{report.baseline_count} are in the baseline.")
    if report.skipped:
        reasons = ", ".join(f"{reason} {number:,}" for reason, number in Counter(report.skipped).most_common())
        parts.append(f"Not analyzed: {reasons}.")
    return " ".join(parts)


def _print_finding(terminal: Console, finding: Finding) -> None:
    place = finding.location
    heading = Text.assemble(
        (f" {finding.priority} ", _STYLES.get(finding.priority, "bold")), " ", (printable(finding.title), "bold")
    )
    if finding.confidence != "high":
        heading.append(f"  ({finding.confidence} confidence)", style="dim")
    terminal.print(heading)
    terminal.print(Text(f"{printable(place.path)}:{place.start_line}:{place.start_column}", style="cyan"))
    code = Syntax(
        printable(place.snippet),
        Syntax.guess_lexer(place.path, place.snippet),
        theme="ansi_dark",
        background_color="default",
        line_numbers=True,
        start_line=place.start_line,
        word_wrap=True,
    )
    terminal.print(Padding(code, (0, 0, 0, 2)))
    terminal.print(Padding(Text(printable(finding.description)), (0, 0, 0, 2)))
    terminal.print(Padding(Text(f"Fix: {printable(finding.remediation)}", style="green"), (0, 0, 1, 2)))
