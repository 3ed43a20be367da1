"""A review that suggests the edits of fixes, for a person to commit with a click.

GitHub accepts comments only on lines of the pull request's diff, and rejects the whole review if one isn't there.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from controlplane.code_host.github.markdown import code_span, fenced, has_control_characters, one_line, prose
from controlplane.code_host.github.reviews import ReviewComment
from controlplane.findings.fixes import Edit, Fix
from controlplane.scans.findings import FindingItem

TEXT = "Fixes for findings that this pull request adds. Read each one before you commit it."
# In all reviews of one pull request. Their fingerprints are stored with it.
MOST_FINDINGS = 50
_MOST_COMMENTS = 10


class Review(NamedTuple):
    """A review's comments, and the fingerprints of the findings that they fix."""

    comments: tuple[ReviewComment, ...]
    fingerprints: tuple[str, ...]


def compose(findings: Iterable[FindingItem], hunks: Mapping[str, Sequence[range]]) -> Review:
    """Returns the suggestions for the first findings that can have them, at most 10 comments.

    A finding has them if all of its edits are in the diff, and none of them changes lines that an earlier one changes.
    """
    comments: list[ReviewComment] = []
    fingerprints: list[str] = []
    for finding in findings:
        fix = finding.fix
        if fix is None or len(comments) + len(fix.edits) > _MOST_COMMENTS:
            continue
        if all(_is_possible(edit, hunks.get(edit.path, ()), comments) for edit in fix.edits):
            comments += [_comment(finding.title, fix, edit) for edit in fix.edits]
            fingerprints.append(finding.fingerprint)
    return Review(tuple(comments), tuple(fingerprints))


def _is_possible(edit: Edit, hunks: Iterable[range], taken: Iterable[ReviewComment]) -> bool:
    # Also leaves out files whose lines end with CRLF: the suggestion would change their ends.
    if not edit.before or has_control_characters(edit.before + edit.after):
        return False
    if any(it.path == edit.path and it.start_line <= edit.end_line and edit.start_line <= it.end_line for it in taken):
        return False
    return any(edit.start_line in hunk and edit.end_line in hunk for hunk in hunks)


def _comment(title: str, fix: Fix, edit: Edit) -> ReviewComment:
    parts = [f"**{prose(one_line(title))}**", prose(fix.summary)]
    if fix.packages:
        parts.append(f"Needs {', '.join(map(code_span, fix.packages))}.")
    if len(fix.edits) > 1:
        parts.append(f"This fix has {len(fix.edits)} suggestions. Commit them together.")
    body = "\n\n".join([*parts, fenced(edit.after, "suggestion")])
    return ReviewComment(edit.path, edit.start_line, edit.end_line, body)
