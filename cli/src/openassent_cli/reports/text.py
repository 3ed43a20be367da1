"""Findings for people: what, where, the code, and how to fix it.

The worst are last, where a terminal stops. Texts that several findings share are printed once.
"""

from collections import Counter
from collections.abc import Sequence

from openassent_analysis.working_tree import ReportedFinding
from openassent_cli.invocation import invocation, note
from openassent_cli.local import LocalReport
from openassent_cli.output import by_priority, counted, heading, print_code, print_text
from openassent_cli.printable import printable, printable_line

# Of pygments, by extension. Everything else is markup.
_LANGUAGES = {
    **dict.fromkeys(("js", "cjs", "mjs"), "javascript"),
    **dict.fromkeys(("ts", "cts", "mts"), "typescript"),
    **{name: name for name in ("jsx", "tsx", "vue", "json", "toml", "php")},
    "py": "python",
    "yml": "yaml",
    "yaml": "yaml",
}
_SUPPRESSED_BY = {"comment": "comments", "rule": "rules that are off", "vendor": "accepted vendors"}


def print_report(report: LocalReport) -> None:
    """Prints the findings on standard output, and a summary on standard error."""
    alike: dict[object, list[ReportedFinding]] = {}
    for reported in report.findings:
        alike.setdefault(_said(reported), []).append(reported)
    for group in reversed(alike.values()):
        _print_findings(group)
    for it in report.notes:
        note(f"{printable_line(report.path_in_tree(it.path))}:{it.line}: {printable_line(it.text)}")
    note(summary(report))


def _said(reported: ReportedFinding) -> object:
    """Returns everything that is printed of a finding except its place."""
    finding, fix = reported.finding, reported.fix
    texts = (finding.rule_id, finding.priority, finding.confidence, finding.title, finding.description)
    return (*texts, finding.remediation, fix and (fix.summary if fix.edits else fix.code))


def summary(report: LocalReport) -> str:
    """Returns the counts in a sentence or three."""
    count, files = len(report.findings), counted(report.analyzed, "file")
    detail = by_priority(it.finding.priority for it in report.findings)
    new = "new " if report.baseline_count is not None else ""
    found = counted(count, f"{new}finding")
    parts = [f"{found} ({detail}) in {files}." if count else f"No {new}findings in {files}."]
    if report.baseline_count:
        parts.append(f"{report.baseline_count} are in the baseline.")
    if report.suppressed:
        by = Counter(it.suppression.kind for it in report.suppressed if it.suppression)
        detail = ", ".join(f"{number} by {_SUPPRESSED_BY[kind]}" for kind, number in sorted(by.items()))
        parts.append(f"{counted(len(report.suppressed), 'finding')} suppressed: {detail}.")
    if report.skipped:
        reasons = (
            f"{reason} {number:,} (such as {printable_line(report.skipped_examples[reason][0])})"
            for reason, number in Counter(report.skipped).most_common()
        )
        parts.append(f"Not analyzed: {', '.join(reasons)}.")
    return " ".join(parts)


def _language(path: str) -> str:
    """Returns the name of the language to highlight. Guessing it by the content would import every lexer."""
    return _LANGUAGES.get(path.rpartition(".")[2].lower(), "html")


def _print_findings(group: Sequence[ReportedFinding]) -> None:
    """Prints findings of which only the places differ."""
    from rich.text import Text  # noqa: PLC0415 (takes long to import, and a clean folder doesn't need it)

    reported = group[0]
    finding = reported.finding
    title = heading(finding.priority, finding.title)
    notes = [] if finding.confidence == "high" else [f"{finding.confidence} confidence"]
    if len(group) > 1:
        notes.append(counted(len(group), "place"))
    if notes:
        title.append(f"  ({', '.join(notes)})", style="dim")
    print_text(title)
    for place in (it.finding.location for it in group):
        print_text(Text(f"{printable_line(place.path)}:{place.start_line}:{place.start_column}", style="cyan"))
        print_code(place.snippet, _language(place.path), place.start_line)
    print_text(Text(printable(finding.description)), indent=2)
    print_text(Text(f"Fix: {printable(finding.remediation)}", style="green"), indent=2)
    if reported.fix and reported.fix.edits:
        print_text(Text(f"`assent fix` can make the change: {printable(reported.fix.summary)}"), indent=2)
    elif reported.fix:
        print_code(reported.fix.code, reported.fix.language, indent=4)
    documentation = invocation().documentation
    rule = f"{documentation}/rules/{finding.rule_id}" if documentation else f"Rule: {finding.rule_id}"
    print_text(Text(rule, style="dim"), indent=2)
    print_text(Text())
