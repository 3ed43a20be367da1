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


def _optional(name: str, description: str, example: str) -> Any:
    """Returns a field that can be omitted but not null: its default factory isn't shown in the document."""
    return Field(default_factory=str, max_length=FIELD_LIMITS[name], description=description, examples=[example])


class FeedbackCreate(Wire):
    """A report on one issue. All fields are trimmed before limits apply. Unknown fields are rejected."""

    # Accepts fields by alias only: the Python names aren't properties of the body.
    model_config = ConfigDict(extra="forbid", validate_by_name=False)

    category: Annotated[Category, Trimmed] = Field(description="The kind of report.", examples=["docs_mismatch"])
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
    expected: Text = _optional(
        "expected", "What you expected to happen.", "201 and a project whose website is *.example.com."
    )
    actual: Text = _optional("actual", "What happened instead.", "400 INVALID_ORIGIN.")
    reproduction: Text = _optional(
        "reproduction",
        "The smallest steps that reproduce the issue.",
        'POST /v1/projects with "websites": ["*.example.com"].',
    )
    request_id: Text = _optional(
        "requestId",
        "The `X-Request-Id` of the response that the report is about.",
        "1f0c2b9e-7d3a-4a55-9a51-6f1f8f0c9a11",
    )
    operation: Text = _optional(
        "operation", "The operation, command, or page that the report is about.", "createProject"
    )
    client_name: Text = _optional("clientName", "The name of the reporting program.", "build-agent")
    client_version: Text = _optional("clientVersion", "The version of the reporting program.", "2.4.0")

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
    already_submitted: bool = Field(description="Whether the same report was already submitted on this UTC day.")
