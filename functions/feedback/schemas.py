"""What `feedback` takes and answers."""

from typing import Annotated

from pydantic import ConfigDict, Field, StringConstraints

from controlplane.envelope import Wire
from controlplane.store.feedback import FIELD_LIMITS, Category, Surface

Text = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1), Field(json_schema_extra={"pattern": r"\S"})
]


class FeedbackCreate(Wire):
    """One report on one issue. Texts are trimmed; limits apply after that. No other fields are taken."""

    # By its name alone: the names of the code are no properties of the body.
    model_config = ConfigDict(extra="forbid", validate_by_name=False)

    category: Category = Field(description="What kind of report it is.", examples=["docs_mismatch"])
    # Fields that may be absent but not null take their default from a factory, which no document shows as a value.
    surface: Surface = Field(
        default_factory=lambda: "other", description="`other` when none of the others fits.", examples=["api"]
    )
    message: Text = Field(
        max_length=FIELD_LIMITS["message"],
        description="What happened, in one report for each distinct issue. No credentials, personal data or payloads.",
        examples=["Creating a project with a wildcard website answers 400, although the reference allows wildcards."],
    )
    expected: Text = Field(
        default_factory=str,
        max_length=FIELD_LIMITS["expected"],
        description="What you expected to happen.",
        examples=["201 and a project whose website is *.example.com."],
    )
    actual: Text = Field(
        default_factory=str,
        max_length=FIELD_LIMITS["actual"],
        description="What happened in its place.",
        examples=["400 INVALID_ORIGIN."],
    )
    reproduction: Text = Field(
        default_factory=str,
        max_length=FIELD_LIMITS["reproduction"],
        description="The smallest way to see it again.",
        examples=['POST /v1/projects with "websites": ["*.example.com"].'],
    )
    request_id: Text = Field(
        default_factory=str,
        max_length=FIELD_LIMITS["requestId"],
        description="The `X-Request-Id` of the answer it is about.",
        examples=["1f0c2b9e-7d3a-4a55-9a51-6f1f8f0c9a11"],
    )
    operation: Text = Field(
        default_factory=str,
        max_length=FIELD_LIMITS["operation"],
        description="The operation, command or page it is about.",
        examples=["createProject"],
    )
    client_name: Text = Field(
        default_factory=str,
        max_length=FIELD_LIMITS["clientName"],
        description="The program that reports.",
        examples=["build-agent"],
    )
    client_version: Text = Field(
        default_factory=str, max_length=FIELD_LIMITS["clientVersion"], description="Its version.", examples=["2.4.0"]
    )

    @property
    def given(self) -> dict[str, str]:
        """What the report says, by the names on the wire, without what was left out."""
        return self.model_dump(by_alias=True, exclude_unset=True)


class FeedbackReceipt(Wire):
    """That a report was taken."""

    reference: str = Field(
        description="Quote it when you ask about the report.", examples=["FDB-20260304-7K3M9Q-XA2B4C-8D1E0F"]
    )
    already_submitted: bool = Field(
        description="Whether the same report had been taken before, on the same UTC day.", examples=[False]
    )
