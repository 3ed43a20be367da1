"""The response models of what the analysis adds to a code finding: its confidence, and code that fixes it."""

from typing import Annotated

from pydantic import Field

from controlplane.findings import items as inbox_items
from controlplane.platform.http.envelope import Wire

FindingConfidence = Annotated[
    inbox_items.Confidence,
    Field(
        description="How sure the analysis is that the code runs, and that it runs without consent. `low` means that "
        "it can't tell: the description says what is unknown.",
        examples=["high"],
    ),
]


class Fix(Wire):
    """Code that fixes a finding in this project."""

    summary: str = Field(
        description="What the code does.",
        examples=["c15t 2.2 loads PostHog after consent. Remove the code that loads it today."],
    )
    language: str = Field(description="The language of the code, as in a Markdown code block.", examples=["tsx"])
    code: str = Field(
        description="The code to paste. Its placeholders are in capital letters.",
        examples=["import { posthog } from '@c15t/scripts/posthog';"],
    )
    packages: list[str] = Field(
        description="The npm packages that the code needs, with the version that it was written for.",
        examples=[["@c15t/nextjs@^2.2", "@c15t/scripts@^2.2"]],
    )
