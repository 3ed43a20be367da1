"""Response models of a finding's parts: its confidence, its fix, and decisions on its vendors."""

from typing import Annotated, Literal

from pydantic import Field

from controlplane.findings import items as inbox_items
from controlplane.platform.http.envelope import Wire
from controlplane.platform.http.fields import Timestamp

FindingConfidence = Annotated[
    inbox_items.Confidence,
    Field(
        description="How sure the analysis is that the code runs, and that it runs without consent. `low` means that "
        "it can't tell: the description says what is unknown.",
        examples=["high"],
    ),
]


class Edit(Wire):
    """A change of whole lines of a file."""

    path: str = Field(description="The file's path, relative to the repository's root.", examples=["src/app.tsx"])
    start_line: int = Field(description="The first of the lines, starting at 1.", ge=1, examples=[12])
    before: str = Field(
        description="The lines as they are, without the last line break. Empty for a new file.",
        examples=['<script src="a.js"></script>'],
    )
    after: str = Field(
        description="The lines that replace them.", examples=['<script type="text/plain" src="a.js"></script>']
    )


class Fix(Wire):
    """A fix of a finding in this project: edits of its files, or code to paste."""

    summary: str = Field(
        description="What the fix does.",
        examples=["c15t 2.2 loads PostHog after consent. Remove the code that loads it today."],
    )
    language: str = Field(description="The language of the code, as in a Markdown code block.", examples=["tsx"])
    code: str = Field(
        description="The code to paste if there are no edits. Its placeholders are in capital letters.",
        examples=["import { posthog } from '@c15t/scripts/posthog';"],
    )
    packages: list[str] = Field(
        description="The npm packages that it needs, with the version that it was written for.",
        examples=[["@c15t/nextjs@^2.2", "@c15t/scripts@^2.2"]],
    )
    edits: list[Edit] = Field(
        description="The edits that fix it, all of them together. Empty if no edit is safe: then use the code."
    )


class AppliedDecision(Wire):
    """A project's decision on a vendor, applied to a finding about that vendor."""

    vendor_id: str = Field(description="The project's ID of the vendor.", examples=["segment"])
    state: Literal["approved", "ignored"] = Field(description="The decision.", examples=["approved"])
    decided_at: Timestamp = Field(description="The time of the decision.")
