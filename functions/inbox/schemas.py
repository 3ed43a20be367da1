"""Request and response models of `inbox`."""

from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    ValidationInfo,
    model_validator,
)
from pydantic_core import PydanticCustomError

from controlplane.findings import items as inbox_items
from controlplane.findings.batches import Outcome
from controlplane.findings.inbox import KEPT, ItemChange, UnknownItem
from controlplane.findings.items import Source, Status
from controlplane.platform.core.priorities import Priority
from controlplane.platform.http.envelope import Wire, public_details
from controlplane.platform.http.fields import Time, to_timestamp

DATE_TIME: dict[str, Any] = {"format": "date-time"}
URI: dict[str, Any] = {"format": "uri"}

UserId = Annotated[str, Field(min_length=1, max_length=100)]
Reason = Annotated[str, Field(max_length=1_000)]


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


class GithubIssue(Wire):
    """The GitHub issue that was opened for a finding, or linked to it."""

    number: int = Field(description="The issue's number in the repository.", ge=1, examples=[42])
    url: str = Field(
        description="The issue's page on GitHub.",
        json_schema_extra=URI,
        examples=["https://github.com/acme/shop/issues/42"],
    )
    created_at: str = Field(description="The time the issue was opened.", json_schema_extra=DATE_TIME)
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
    updated_at: str = Field(description="The time of the last change.", json_schema_extra=DATE_TIME)
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
