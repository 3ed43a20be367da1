"""Request and response models of `feedback`."""

from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, StringConstraints

from controlplane.feedback.store import FIELD_LIMITS, Category, Surface
from controlplane.platform.http.envelope import Wire

Text = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1), Field(json_schema_extra={"pattern": r"\S"})
]


def _trim(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value


Trimmed = BeforeValidator(_trim)


class FeedbackCreate(Wire):
    """A report on one issue. All fields are trimmed before limits apply. Unknown fields are rejected."""

    # Accepts fields by alias only: the Python names aren't properties of the body.
    model_config = ConfigDict(extra="forbid", validate_by_name=False)

    category: Annotated[Category, Trimmed] = Field(description="The kind of report.", examples=["docs_mismatch"])
    # A field that can be omitted but not null has a default factory, which the document doesn't show as a value.
    surface: Annotated[Surface, Trimmed] = Field(
        default_factory=lambda: "other",
        description="The part of the service that the report is about. `other`, the default, if nothing else fits.",
        examples=["api"],
    )
    message: Text = Field(
        max_length=FIELD_LIMITS["message"],
        description="What happened. Send one report per issue. Don't include credentials, personal data, or payloads.",
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
        description="What happened instead.",
        examples=["400 INVALID_ORIGIN."],
    )
    reproduction: Text = Field(
        default_factory=str,
        max_length=FIELD_LIMITS["reproduction"],
        description="The smallest steps that reproduce the issue.",
        examples=['POST /v1/projects with "websites": ["*.example.com"].'],
    )
    request_id: Text = Field(
        default_factory=str,
        max_length=FIELD_LIMITS["requestId"],
        description="The `X-Request-Id` of the response that the report is about.",
        examples=["1f0c2b9e-7d3a-4a55-9a51-6f1f8f0c9a11"],
    )
    operation: Text = Field(
        default_factory=str,
        max_length=FIELD_LIMITS["operation"],
        description="The operation, command, or page that the report is about.",
        examples=["createProject"],
    )
    client_name: Text = Field(
        default_factory=str,
        max_length=FIELD_LIMITS["clientName"],
        description="The name of the reporting program.",
        examples=["build-agent"],
    )
    client_version: Text = Field(
        default_factory=str,
        max_length=FIELD_LIMITS["clientVersion"],
        description="The version of the reporting program.",
        examples=["2.4.0"],
    )

    @property
    def given(self) -> dict[str, str]:
        """Returns the fields that the request set, by alias."""
        return self.model_dump(by_alias=True, exclude_unset=True)


class FeedbackReceipt(Wire):
    """The receipt for a report."""

    reference: str = Field(
        description="The report's reference. Quote it in questions about the report.",
        examples=["FDB-20260304-7K3M9Q-XA2B4C-8D1E0F"],
    )
    already_submitted: bool = Field(
        description="Whether the same report was already submitted on this UTC day.", examples=[False]
    )
