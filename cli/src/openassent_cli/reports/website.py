"""Findings of a website for people: what, where, and what led to it. The worst are last, where a terminal stops."""

from collections.abc import Mapping
from operator import itemgetter
from typing import Any

from rich.text import Text

from openassent_cli.invocation import note
from openassent_cli.output import by_priority, counted, heading, print_text
from openassent_cli.printable import printable_line

_MOST_PROOFS = 3
_COLUMNS = (("before", "before a choice"), ("refused", "after refusal"), ("accepted", "after acceptance"))
_CHANGES = {
    "newFindings": "new finding",
    "resolvedFindings": "resolved finding",
    "newVendors": "new vendor",
    "goneVendors": "gone vendor",
}


def print_report(report: Mapping[str, Any]) -> None:
    """Prints the third parties and the findings on standard output, and a summary on standard error.

    report: the JSON of an audit on this machine, or a run of the service, whose findings have inbox items in place
    of evidence.
    """
    for vendor in report["vendors"]:
        times = ", ".join(text for column, text in _COLUMNS if vendor.get(column)) or "only as consent mode allows"
        name, purpose = vendor.get("name") or vendor.get("vendorId"), vendor.get("category") or "unknown"
        print_text(Text(printable_line(f"{name} ({purpose}): {times}")))
    for finding in sorted(report["findings"], key=itemgetter("priority"), reverse=True):
        print_text(heading(finding["priority"], finding["title"]), above=1)
        for line in _evidence(finding):
            print_text(Text(printable_line(line)), indent=2)
    note(_summary(report))


def _evidence(finding: Mapping[str, Any]) -> list[str]:
    if "evidence" not in finding:
        item = finding["inboxItemId"]
        return [f"`assent inbox show {item}` has the evidence."] if item else []
    lines = [finding["summary"]]
    for proof in finding["evidence"][:_MOST_PROOFS]:
        led = f", loaded by {proof['chain'][0]}" if proof["chain"] else ""
        when = f"{proof['at'] / 1000:.1f} s into the {proof['visit']} visit"
        lines.append(f"{proof['description']} on {proof['page']}, {when}{led}")
    more = len(finding["evidence"]) - _MOST_PROOFS
    return [*lines, f"and {more} more"] if more > 0 else lines


def _summary(report: Mapping[str, Any]) -> str:
    """Returns the outcome in a sentence or three."""
    findings, outcome, reason = report["findings"], report["outcome"], report["reason"]
    detail = by_priority(it["priority"] for it in findings)
    found = f"{counted(len(findings), 'finding')} ({detail})" if findings else "No findings"
    pages = counted(len(report["pages"]), "page")
    website = printable_line(report["url"]).partition("://")[2].rstrip("/")
    sentences = [f"{outcome.capitalize()}: {found} on {pages} of {website}."]
    if reason and outcome != "blocked":
        sentences.append(reason["message"])
    changes = report.get("changes") or {}
    if changed := [counted(len(changes[kind]), noun) for kind, noun in _CHANGES.items() if changes.get(kind)]:
        sentences.append(f"Since the run before: {', '.join(changed)}.")
    return " ".join(sentences)
