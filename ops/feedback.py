"""Feedback reports for the operator: by day, in full, and clustered by similarity.

The similarity of two reports is the Jaccard index of their words: shared words divided by all words, ignoring case, and
with all numbers and ids treated as the same word. There is no training and no weighting, so groups can be checked by
hand.
"""

import re
import unicodedata
from collections.abc import Iterable
from datetime import date, timedelta
from typing import Any

from controlplane.core import clock
from controlplane.store import feedback
from controlplane.store.feedback import ReportItem

_COMPARED = ("message", "expected", "actual", "reproduction", "operation")
_ADDRESS = re.compile(r"https?://\S+")
# Words with a digit (ids, digests, times) differ between two reports of the same issue.
_WORD = re.compile(r"[^\W_]+(?:[_'-][^\W_]+)*")
_SUMMARY_LENGTH = 100
# Truncates text without spaces: no word is that long.
_COMPARED_LENGTH = 200


def today() -> str:
    """Returns the current UTC day."""
    return clock.timestamp()[:10]


def read_days(last: str, days: int) -> list[ReportItem]:
    """Returns all reports of the given number of UTC days up to `last`, newest first."""
    end = date.fromisoformat(last)
    return [report for back in range(days) for report in feedback.list_reports(str(end - timedelta(days=back)))]


def summary_document(report: ReportItem) -> dict[str, Any]:
    """Returns a one-line summary of a report."""
    message = " ".join(report.fields["message"].split())
    return {
        "reference": report.reference,
        "createdAt": report.created_at,
        "category": report.fields["category"],
        "surface": report.fields.get("surface"),
        "callerId": report.caller_id,
        "message": message if len(message) <= _SUMMARY_LENGTH else message[: _SUMMARY_LENGTH - 1] + "…",
    }


def document(report: ReportItem) -> dict[str, Any]:
    """Returns a complete report."""
    fields = {name: report.fields.get(name) for name in ("category", "surface", *feedback.FIELD_LIMITS)}
    return {"reference": report.reference, "createdAt": report.created_at, "callerId": report.caller_id, **fields}


def words(report: ReportItem) -> frozenset[str]:
    """Returns the words that a report is compared by: lowercase, with one word for all numbers and ids."""
    text = " ".join(report.fields[name] for name in _COMPARED if name in report.fields)
    # Normalized in short pieces, because sorting a long run of combining marks takes quadratic time.
    pieces = (unicodedata.normalize("NFKC", piece[:_COMPARED_LENGTH]) for piece in text.split())
    plain = _ADDRESS.sub(" <address> ", " ".join(pieces).casefold())
    found = {"<number>" if any(char.isdigit() for char in word) else word for word in _WORD.findall(plain)}
    return frozenset(found)


def similarity(one: frozenset[str], other: frozenset[str]) -> float:
    """Returns the Jaccard index of two sets of words, from 0 to 1."""
    either = one | other
    return len(one & other) / len(either) if either else 1.0


def cluster(reports: Iterable[ReportItem], least: float) -> list[dict[str, Any]]:
    """Groups the reports, largest group first. A group is named after its oldest report.

    Oldest first, each report joins the group of its category whose oldest report is most similar, if the similarity is
    at least `least`. Otherwise, it starts a group.
    """
    groups: list[tuple[frozenset[str], list[tuple[ReportItem, float]]]] = []
    for report in sorted(reports, key=lambda it: it.created_at):
        own = words(report)
        near = [
            (similarity(first, own), members)
            for first, members in groups
            if members[0][0].fields["category"] == report.fields["category"]
        ]
        best, members = max(near, key=lambda pair: pair[0], default=(0.0, []))
        if members and best >= least:
            members.append((report, best))
        else:
            groups.append((own, [(report, 1.0)]))
    ordered = sorted((members for _, members in groups), key=len, reverse=True)
    return [_group_document(members) for members in ordered]


def _group_document(members: list[tuple[ReportItem, float]]) -> dict[str, Any]:
    first, last = members[0][0], members[-1][0]
    summary = summary_document(first)
    return {
        "reports": len(members),
        "callers": len({report.caller_id for report, _ in members}),
        "category": summary["category"],
        "surfaces": sorted({report.fields["surface"] for report, _ in members if "surface" in report.fields}),
        "firstAt": first.created_at,
        "lastAt": last.created_at,
        "message": summary["message"],
        "references": [report.reference for report, _ in members],
        "similarity": [round(alike, 2) for _, alike in members],
    }
