"""The contents of docs/openapi.json, prepared for readers: tags, operations, fields in words, examples."""

import json
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

FORM = "application/x-www-form-urlencoded"


@dataclass
class Field:
    """One member of a body, or one parameter. `facts` are its bounds in words, as Markdown."""

    name: str
    type: str
    required: bool
    description: str = ""
    deprecated: bool = False
    facts: list[str] = field(default_factory=list)
    children: list["Field"] = field(default_factory=list)
    variants: list["Variant"] = field(default_factory=list)


@dataclass
class Variant:
    """One of several shapes that a value can have."""

    title: str
    description: str
    fields: list[Field]


@dataclass
class Example:
    """An example request or response body in one media type."""

    title: str
    value: Any
    media_type: str

    @property
    def text(self) -> str:
        if isinstance(self.value, str):
            return self.value
        if self.media_type == FORM:
            return urlencode(self.value)
        return json.dumps(self.value, indent=2, ensure_ascii=False)


@dataclass
class Body:
    """A request or response body in one media type."""

    media_type: str
    type: str
    variants: list[Variant]
    examples: list[Example]
    is_paged: bool = False
    is_enveloped: bool = False


@dataclass
class Response:
    status: str
    name: str
    description: str
    headers: list[Field]
    bodies: list[Body]

    @property
    def is_success(self) -> bool:
        return self.status < "400"


@dataclass
class Operation:
    id: str
    method: str
    path: str
    summary: str
    description: str
    credential: str
    scopes: list[str]
    role: str | None
    deprecated: bool
    parameters: dict[str, list[Field]]
    body_required: bool
    bodies: list[Body]
    responses: list[Response]
    request: str
    command: str
    program: str

    @property
    def samples(self) -> list[dict[str, str]]:
        """The three forms of the request as Redoc's `x-codeSamples`."""
        forms = [
            ("shell", "curl", self.request),
            ("shell", "Command line", self.command),
            ("python", "Python", self.program),
        ]
        return [{"lang": language, "label": label, "source": source} for language, label, source in forms if source]

    @property
    def other_requests(self) -> list[Example]:
        """The other example bodies, apart from the one in the sample request."""
        return [example for body in self.bodies for example in body.examples][1:]

    @property
    def successes(self) -> list[Response]:
        return [response for response in self.responses if response.is_success]

    @property
    def errors(self) -> list[Response]:
        return [response for response in self.responses if not response.is_success]


@dataclass
class Tag:
    name: str
    slug: str
    description: str
    operations: list[Operation]


def slug(text: str) -> str:
    """Returns the anchor of a heading."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
