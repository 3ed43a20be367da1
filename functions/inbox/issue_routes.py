"""The route of `inbox` that opens or links the GitHub issue of a finding."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from pydantic_core import PydanticCustomError

from controlplane.access.access import Access, Requires
from controlplane.findings import issues
from controlplane.findings import items as inbox_items
from controlplane.findings.issues import ISSUE_INVALID
from controlplane.platform.http.app import ControlRouter
from controlplane.platform.http.envelope import Wire
from controlplane.platform.http.route import refuses
from inbox.fields import ITEM, with_assignees
from inbox.schemas import InboxItem

router = ControlRouter(tags=["Inbox"])

OpensIssue = Annotated[
    Access[inbox_items.InboxItem], Requires("inbox.write", role="admin", resource=ITEM, user_token=True)
]
IssueNumber = Annotated[int, Field(ge=1, strict=True)]
IssueText = Annotated[str, Field(min_length=1, max_length=500)]


def _in_one_problem(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    """Describes what is wrong with the issue once, instead of for each type that the field accepts."""
    try:
        return validate(value)
    except ValidationError:
        raise PydanticCustomError("issue_invalid", ISSUE_INVALID) from None


Issue = Annotated[IssueNumber | IssueText, WrapValidator(_in_one_problem)]


class IssueRequest(Wire):
    """The issue to link. Without `existingIssue`, an issue is opened."""

    # An unknown field could be a misspelled one, for which an issue would be opened.
    model_config = ConfigDict(extra="forbid")

    existing_issue: Issue | None = Field(
        None,
        description="The number of an issue in the finding's repository, or the URL of its page.",
        examples=[42],
    )


@router.post(
    "/v1/inbox/{itemId}/github-issue",
    summary="Open or link an issue for a finding",
    status_code=201,
    response_description="The item with its issue, opened or linked now or earlier.",
)
@refuses(
    issues.NotACodeFinding,
    issues.FindingsLocked,
    issues.RepositoryNotLinked,
    issues.HasAnotherIssue,
    issues.CreationPending,
    issues.CreationRefused,
    issues.LinkRefused,
)
async def create_github_issue(access: OpensIssue, body: IssueRequest | None = None) -> InboxItem:
    """Opens a GitHub issue for a code finding in the finding's repository. Needs no body.

    A finding has one issue: if it was opened before, the item is returned with that `githubIssue`. An error whose
    `details.status` is `creation_pending` means that the outcome isn't known yet. Retry later: a retry never opens a
    second issue. `creation_refused` means that GitHub rejected the issue, for the reason in `details.reason`.

    With `existingIssue`, that issue is linked to the finding, and none is opened. Several findings can have the same
    issue. `link_refused` means that the repository has no such issue, or that it is a pull request.
    """
    existing = None if body is None else body.existing_issue
    (item,) = with_assignees(access, await issues.open_issue(access.resource, access.user_id, existing))
    return InboxItem.of(item)
