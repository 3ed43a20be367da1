"""Models of requests and responses about one item: its details and comments."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Self

from pydantic import Field, StringConstraints

from controlplane.findings import conversations
from controlplane.findings import items as inbox_items
from controlplane.findings.conversations import LONGEST_COMMENT
from controlplane.findings.responses import AppliedDecision, FindingConfidence, Fix
from controlplane.organizations.store import MemberItem
from controlplane.platform.http.envelope import Wire
from controlplane.platform.http.fields import Timestamp
from inbox.schemas import DATE_TIME, URI, InboxItem, Person, shown_assignee

_SCAN_ID = "scn_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"


class Comment(Wire):
    """A comment on a finding."""

    id: str = Field(description="The comment's ID.", examples=["cmt_01kb2m3n4p5q6r7s8t"])
    author: Person = Field(description="The person who wrote it.")
    text: str = Field(
        description="The text. Mentioned members are named, or `@` and the user ID.",
        examples=["@Ada Lovelace Is this tag still needed?"],
    )
    created_at: Timestamp = Field(description="The time it was written.")

    @classmethod
    def of(cls, comment: inbox_items.Comment, people: Mapping[str, MemberItem]) -> Self:
        """people: the members who are named."""
        by = people.get(comment.by)
        author = Person(id=comment.by, name=by.name if by else None, email=by.email if by else None)
        text = conversations.shown_text(comment, people)
        return cls(id=comment.id, author=author, text=text, created_at=comment.at)


class CommentCreate(Wire):
    """A comment to add."""

    text: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_COMMENT)] = Field(
        description="Plain text. `@` and a member's user ID or, with the scope `members.read`, email address mentions "
        "them: the first 10 count.",
        examples=["@ada@example.com Is this tag still needed?"],
    )


class CodeLine(Wire):
    """A line of a file."""

    number: int = Field(description="The number of the line, starting at 1.", ge=1, examples=[12])
    text: str = Field(
        description="The line without indentation that all have, cut after 160 characters.", examples=["<head>"]
    )


class CodeLocation(Wire):
    """A range of lines in a file."""

    path: str = Field(
        description="The path of the file, relative to the repository's root.", examples=["src/index.html"]
    )
    start_line: int | None = Field(description="The first line, starting at 1.", ge=1, examples=[12])
    end_line: int | None = Field(description="The last line.", ge=1, examples=[14])
    snippet: str | None = Field(
        description="The code on these lines.",
        examples=['<script src="https://www.googletagmanager.com/gtag/js"></script>'],
    )
    lines: list[CodeLine] = Field(description="The lines from five before these to five after them.")


class Evidence(Wire):
    """A piece of evidence for a finding."""

    description: str = Field(description="A description of the evidence.", examples=["src/index.html, line 12"])
    url: str | None = Field(
        description="A link to the evidence. For code, the permalink of the lines.",
        json_schema_extra=URI,
        examples=["https://github.com/acme/shop/blob/1f0c2b9e7d3a4a559a516f1f8f0c9a11d2e3f4a5/src/index.html#L12-L14"],
    )
    location: CodeLocation | None = Field(description="The location in the repository, for code.")


class ResolvedBy(Wire):
    """The scan that resolved an item."""

    scan_id: str = Field(description="The scan's ID.", examples=[_SCAN_ID])


class LockedFindings(Wire):
    """The new findings of a repository that are locked. Unlock the scan's report to see them."""

    scan_id: str = Field(description="The ID of the scan to unlock.", examples=[_SCAN_ID])
    new_count: int = Field(description="The number of new findings that are locked.", ge=1, examples=[12])
    unlock_credits: int = Field(description="The price of unlocking them, in credits.", ge=0, examples=[50])


class InboxItemDetail(InboxItem):
    """A finding with its details and evidence."""

    description: str | None = Field(description="The meaning of the finding and why it matters.", examples=[None])
    confidence: FindingConfidence | None = Field(
        description="How sure the analysis is of a code finding. `low` means that it can't tell whether the code runs "
        "without consent: the description says what is unknown. Null for other sources.",
        examples=["high"],
    )
    fix: Fix | None = Field(description="The fix of a code finding, or null if none fits.")
    remediation: str | None = Field(
        description="How to fix the finding.", examples=["Load the tag once the visitor has agreed to measurement."]
    )
    references: list[str] = Field(
        description="Links to further reading.",
        examples=[["https://developers.google.com/tag-platform/security/guides/consent"]],
    )
    evidence: list[Evidence] = Field(description="The evidence for the finding.")
    status_reason: str | None = Field(description="The reason for the last change of status.", examples=[None])
    dismissed_until: str | None = Field(
        description="The end of the dismissal.", json_schema_extra=DATE_TIME, examples=[None]
    )
    resolved_by: ResolvedBy | None = Field(description="The scan that resolved the item, if a scan did.")
    vendor_ids: list[str] = Field(
        description="The vendors that a finding of a scan or an audit is about.",
        examples=[["google-analytics"]],
    )
    decisions: list[AppliedDecision] = Field(
        description="The decisions on these vendors. A finding about loading them isn't open if all are ignored."
    )
    comments: list[Comment] = Field(description="The comments, oldest first: at most 50.")
    locked_findings: LockedFindings | None = Field(
        description="Set for the item that announces a repository's locked findings. Null for findings."
    )

    @classmethod
    def of(cls, item: inbox_items.InboxItem, comments: Sequence[Comment] = ()) -> Self:
        return cls.showing(
            item,
            id=item.item_id,
            assignee=shown_assignee(item),
            comments=list(comments),
            evidence=[Evidence.showing(it, location=None if it.path is None else it) for it in item.evidence],
            resolved_by=ResolvedBy(scan_id=item.resolved_by) if item.resolved_by else None,
        )
