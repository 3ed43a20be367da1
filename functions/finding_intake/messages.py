"""The messages that `finding_intake` accepts, version 1. docs/intake.md documents them for senders.

Unlike the messages between our own functions, these carry the finding itself, because it isn't stored anywhere else.
They contain no personal data: page addresses are reduced to origin and path.
"""

from datetime import UTC, datetime
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, AwareDatetime, Field, StrictBool, StringConstraints, TypeAdapter, model_validator
from pydantic_core import PydanticCustomError

from controlplane.platform.core import ids
from controlplane.platform.queues.messages import Message

MOST_ADDRESSES = 20
_LABEL = "[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?"


def _bare(address: str) -> str:
    """Returns the address without query and fragment, which may identify a person.

    Raises ValueError if it has credentials or no host.
    """
    parts = urlsplit(address)
    if not parts.hostname or parts.username is not None:
        raise ValueError("an address has a host and no credentials")
    return f"{parts.scheme}://{parts.netloc}{parts.path}"


def _of_project(text: str) -> str:
    if ids.ProjectId.parse(text) is None:
        raise ValueError("not the id of a project")
    return text


def _of_organization(text: str) -> str:
    if not ids.is_root(ids.ORGANIZATION, text):
        raise ValueError("not the id of an organization")
    return text


Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=4_000)]
# Published unchanged, because its query may identify a page or a document.
Reference = Annotated[str, StringConstraints(pattern=r"^https?://[^\s]+$", max_length=2_000)]
Address = Annotated[Reference, AfterValidator(_bare)]
ProjectId = Annotated[str, AfterValidator(_of_project)]
# RFC 3339 with an offset. Times before the product existed are rejected as bogus.
Moment = Annotated[AwareDatetime, Field(strict=True, ge=datetime(2020, 1, 1, tzinfo=UTC))]
OrganizationId = Annotated[str, AfterValidator(_of_organization)]


class RuntimeVendorDetection(Message):
    """A third party that the consent runtime detected on a project's website.

    vendor_id: identifies the vendor, and is the same in all its detections.
    before_consent: the vendor was loaded before the visitor consented.
    category: the vendor's purpose, if the detector recognized it.
    seen_on: pages on which it was detected; query and fragment are dropped.
    observed_at: time of detection. The latest one of a vendor wins, in whatever order messages arrive.
    """

    kind: Literal["runtime-vendor-detection"] = "runtime-vendor-detection"
    project_id: ProjectId
    vendor_id: str = Field(pattern=r"^[a-z0-9._-]{1,100}$")
    name: Line
    domain: str = Field(max_length=253, pattern=rf"^{_LABEL}(\.{_LABEL})*$")
    category: Line | None = None
    before_consent: StrictBool = False
    seen_on: tuple[Address, ...] = Field((), max_length=MOST_ADDRESSES)
    observed_at: Moment


class Advisory(Message):
    """A notice that concerns an organization, or one of its projects.

    advisory_id: identifies the advisory, and is the same in all its editions.
    published_at: when this edition was published. The latest edition wins.
    """

    kind: Literal["advisory"] = "advisory"
    organization_id: OrganizationId
    project_id: ProjectId | None = None
    advisory_id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,99}$")
    title: Line
    summary: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1_000)] | None = None
    priority: Literal["P0", "P1", "P2", "P3"] | None = None
    description: Text | None = None
    remediation: Text | None = None
    references: tuple[Reference, ...] = Field((), max_length=MOST_ADDRESSES)
    published_at: Moment

    @model_validator(mode="after")
    def _is_of_one_organization(self) -> Self:
        project_id = ids.ProjectId.parse(self.project_id) if self.project_id else None
        if project_id is not None and project_id.organization_id != self.organization_id:
            raise PydanticCustomError("contradiction", "The project belongs to another organization.")
        return self


type Finding = RuntimeVendorDetection | Advisory

ACCEPTED: TypeAdapter[Finding] = TypeAdapter(Annotated[RuntimeVendorDetection | Advisory, Field(discriminator="kind")])
