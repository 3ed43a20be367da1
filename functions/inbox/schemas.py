"""Request and response models of `inbox`."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from controlplane.findings import conversations
from controlplane.findings import items as inbox_items
from controlplane.findings.batches import Outcome
from controlplane.findings.conversations import LONGEST_COMMENT
from controlplane.findings.inbox import KEPT, ItemChange, UnknownItem
from controlplane.findings.issues import ISSUE_INVALID
from controlplane.findings.items import Source, Status
from controlplane.findings.responses import AppliedDecision, FindingConfidence, Fix
from controlplane.organizations.store import MemberItem
from controlplane.platform.core.priorities import Priority
from controlplane.platform.http.envelope import Wire, public_details
from controlplane.platform.http.fields import Time, Timestamp, to_timestamp

_SCAN_ID = "scn_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"
_DATE_TIME: dict[str, Any] = {"format": "date-time"}
_URI: dict[str, Any] = {"format": "uri"}

UserId = Annotated[str, Field(min_length=1, max_length=100)]
Reason = Annotated[str, Field(max_length=1_000)]
IssueNumber = Annotated[int, Field(ge=1, strict=True)]
IssueText = Annotated[str, Field(min_length=1, max_length=500)]


def _in_one_problem(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    """Describes what is wrong with the issue once, instead of for each type that the field accepts."""
    try:
        return validate(value)
    except ValidationError:
        raise PydanticCustomError("issue_invalid", ISSUE_INVALID) from None


Issue = Annotated[IssueNumber | IssueText, WrapValidator(_in_one_problem)]


def _require_change(status: Status | None, info: ValidationInfo) -> Status | None:
    if status is None and info.data.get("assignee_id") == KEPT:
        raise PydanticCustomError("empty", "Send a status, an assigneeId, or both")
    return status


class InboxItemUpdate(Wire):
    """A change of status, of the assignee, or both."""

    assignee_id: UserId | None = Field(
        default_factory=lambda: KEPT,
        description="The user ID of the member to assign it to, `me`, or null for none.",
        examples=["me"],
    )
    status: Annotated[Status | None, AfterValidator(_require_change)] = Field(
        None, validate_default=True, description="The new status.", examples=["dismissed"]
    )
    version: str = Field(
        min_length=1,
        max_length=200,
        description="The `version` of the item as you read it.",
        examples=["0f9c2b4d7e1a4c3f8b6d5e2a19c70b48"],
    )
    reason: Reason | None = Field(
        None,
        description="The reason for the change, shown with the item.",
        examples=["Loaded by the consent manager itself"],
    )
    until: Time | None = Field(
        None, description="When a dismissed finding opens again by itself.", examples=["2027-01-01T00:00:00Z"]
    )

    @model_validator(mode="after")
    def _require_dismissal(self) -> Self:
        if self.until is not None and self.status != "dismissed":
            raise PydanticCustomError("until", "Only a dismissal can have an end")
        return self

    def to_change(self, user_id: str) -> ItemChange:
        """Returns the change for this person."""
        assignee = user_id if self.assignee_id == "me" else self.assignee_id
        return ItemChange(self.status, self.reason, to_timestamp(self.until), assignee)


class InboxItemChange(InboxItemUpdate):
    """A change of one of the items."""

    id: str = Field(
        min_length=1, max_length=100, description="The item's ID.", examples=["inb_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"]
    )


def _require_distinct(changes: list[InboxItemChange]) -> list[InboxItemChange]:
    if len({change.id for change in changes}) < len(changes):
        raise PydanticCustomError("duplicate", "An item is named more than once. Send one change for each")
    return changes


class InboxItemsUpdate(Wire):
    """Changes of distinct items."""

    items: Annotated[list[InboxItemChange], AfterValidator(_require_distinct)] = Field(
        min_length=1, max_length=100, description="The changes, of 1 to 100 distinct items."
    )


class IssueRequest(Wire):
    """The issue to link. Without `existingIssue`, an issue is opened."""

    # An unknown field could be a misspelled one, for which an issue would be opened.
    model_config = ConfigDict(extra="forbid")

    existing_issue: Issue | None = Field(
        None,
        description="The number of an issue in the finding's repository, or the URL of its page.",
        examples=[42],
    )


class GithubIssue(Wire):
    """The GitHub issue that was opened for a finding, or linked to it."""

    number: int = Field(description="The issue's number in the repository.", ge=1, examples=[42])
    url: str = Field(
        description="The issue's page on GitHub.",
        json_schema_extra=_URI,
        examples=["https://github.com/acme/shop/issues/42"],
    )
    created_at: str = Field(description="The time the issue was opened.", json_schema_extra=_DATE_TIME)
    state: Literal["open", "closed"] = Field(
        description="Whether the issue is open. A closed issue doesn't resolve the item: the next scan decides.",
        examples=["open"],
    )


class RuntimeVendor(Wire):
    """The vendor of a runtime finding. `projectId` and `vendorId` are the path parameters of the decision."""

    project_id: str = Field(
        description="The project on which the vendor was seen.", examples=["prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"]
    )
    vendor_id: str = Field(description="The vendor's ID.", examples=["segment"])
    name: str = Field(description="The vendor's name.", examples=["Segment"])
    domain: str = Field(description="The domain that the vendor was loaded from.", examples=["segment.com"])


class Person(Wire):
    """A person. Name and email are null if the person has left, or without the scope `members.read`."""

    id: str = Field(description="The user ID.", examples=["usr_3f8k2m9q7r1s5t6v"])
    name: str | None = Field(description="The name.", examples=["Ada Lovelace"])
    email: str | None = Field(description="The email address.", examples=["ada@example.com"])


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


class InboxItem(Wire):
    """A finding in lists and after changes."""

    id: str = Field(description="The item's ID.", examples=["inb_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"])
    organization_id: str = Field(description="The organization's ID.", examples=["org_3f8k2m9q7r1s5t6v"])
    title: str = Field(
        description="A short description of the finding.", examples=["Google Analytics loads before consent"]
    )
    summary: str | None = Field(
        description="A longer description, in one or two sentences.",
        examples=["The tag is in the page's head, where no consent is asked for yet."],
    )
    priority: Priority | None = Field(description="The priority. P0 is the most urgent.", examples=["P1"])
    status: Status = Field(description="The status of the finding.", examples=["open"])
    source: Source = Field(description="The source of the finding.", examples=["code-audit"])
    project_id: str | None = Field(
        description="The project that the finding concerns.", examples=["prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"]
    )
    repository_name: str | None = Field(
        description="The repository of a code finding, or of an advisory about a package.", examples=["shop"]
    )
    github_issue: GithubIssue | None = Field(description="The issue that was opened for the finding, or linked to it.")
    runtime_vendor: RuntimeVendor | None = Field(description="The vendor to decide about, of a runtime finding.")
    assignee: Person | None = Field(description="The member to whom the finding is assigned.")
    updated_at: str = Field(description="The time of the last change.", json_schema_extra=_DATE_TIME)
    version: str = Field(
        description="The item's version. Required to change the status.", examples=["0f9c2b4d7e1a4c3f8b6d5e2a19c70b48"]
    )

    @classmethod
    def of(cls, item: inbox_items.InboxItem) -> Self:
        return cls.showing(item, id=item.item_id, assignee=shown_assignee(item))


def shown_assignee(item: inbox_items.InboxItem) -> Person | None:
    assignee = item.assignee
    return Person(id=assignee.user_id, name=assignee.name, email=assignee.email) if assignee else None


class InboxItemFailure(Wire):
    """Why an item wasn't changed: the error that changing this item alone would return."""

    code: str = Field(description="The error code, for programs.", examples=["CONFLICT"])
    message: str = Field(
        description="A message for people that says what to do next.",
        examples=["The item has changed since you read it. Read it again, then retry."],
    )
    details: dict[str, Any] = Field(
        description="Details by code, `docsUrl`, where the error is documented, and `hint`, the next step.",
        examples=[{"currentVersion": "4b1d8e63a9c24f0d9e7a5b2c81f3d604", "currentStatus": "accepted"}],
    )


class InboxItemResult(Wire):
    """The result for one item: the item, or the error."""

    id: str = Field(description="The item's ID.", examples=["inb_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"])
    status_code: int = Field(
        description="The status that changing this item alone would return: 200, 404, or 409.", ge=200, examples=[200]
    )
    item: InboxItem | None = Field(description="The item after the change, or null if it failed.")
    error: InboxItemFailure | None = Field(description="The error, or null if the item has the status.")

    @classmethod
    def of(cls, item_id: str, outcome: Outcome) -> Self:
        failure = outcome.failure
        if failure is None and outcome.item is not None:
            return cls(id=item_id, status_code=200, item=InboxItem.of(outcome.item), error=None)
        error = failure or UnknownItem()
        failed = InboxItemFailure(code=error.code, message=error.public, details=public_details(error))
        return cls(id=item_id, status_code=error.status, item=None, error=failed)


class InboxItemResults(Wire):
    """The results of changing several items."""

    results: list[InboxItemResult] = Field(description="A result for each item, in the order of the request.")


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
        json_schema_extra=_URI,
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
        description="The end of the dismissal.", json_schema_extra=_DATE_TIME, examples=[None]
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
