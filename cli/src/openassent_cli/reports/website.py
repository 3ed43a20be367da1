"""Findings of a website for people: what, where, and what led to it. The worst are last, where a terminal stops."""

from typing import Any

from rich.text import Text

from openassent_audit import Audit
from openassent_cli.invocation import note
from openassent_cli.output import counted, print_text
from openassent_cli.printable import printable_line
from openassent_cli.reports.text import STYLES, by_priority

_MOST_PROOFS = 3
_COLUMNS = (("before", "before a choice"), ("refused", "after refusal"), ("accepted", "after acceptance"))


def print_report(audit: Audit) -> None:
    """Prints the findings and the third parties on standard output, and a summary on standard error."""
    report = audit.as_json()
    for vendor in report["vendors"]:
        times = ", ".join(text for column, text in _COLUMNS if vendor[column]) or "only as consent mode allows"
        print_text(Text(printable_line(f"{vendor['name']} ({vendor['category'] or 'unknown'}): {times}")))
    for finding in reversed(report["findings"]):
        _print_finding(finding)
    note(summary(audit))


def _print_finding(finding: dict[str, Any]) -> None:
    priority = (f" {finding['priority']} ", STYLES.get(finding["priority"], "bold"))
    print_text(Text.assemble(priority, " ", (printable_line(finding["title"]), "bold")), above=1)
    lines = [finding["summary"]]
    for proof in finding["evidence"][:_MOST_PROOFS]:
        led = f", loaded by {proof['chain'][0]}" if proof["chain"] else ""
        when = f"{proof['at'] / 1000:.1f} s into the {proof['visit']} visit"
        lines.append(f"{proof['description']} on {proof['page']}, {when}{led}")
    more = len(finding["evidence"]) - _MOST_PROOFS
    if more > 0:
        lines.append(f"and {more} more")
    for line in lines:
        print_text(Text(printable_line(line)), indent=2)


def summary(audit: Audit) -> str:
    """Returns the outcome in a sentence or two."""
    pages = counted(len({page for visit in audit.visits for page in visit.pages}), "page")
    detail = by_priority(it.priority for it in audit.findings)
    found = f"{counted(len(audit.findings), 'finding')} ({detail})" if audit.findings else "No findings"
    reason = f" {audit.reason.message}" if audit.reason and audit.outcome != "blocked" else ""
    return f"{audit.outcome.capitalize()}: {found} on {pages} of {audit.host}.{reason}"
