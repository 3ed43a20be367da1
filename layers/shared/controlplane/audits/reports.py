"""The report of a run: the message with which the worker reports an audit, version 1 (docs/intake.md).

The worker runs the code of strangers, so nothing of a report is believed: every part has a length, an address is one,
and what is compressed is unpacked within a limit.
"""

import base64
import binascii
import gzip
import json
import zlib
from functools import cached_property
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StringConstraints,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from controlplane.audits.items import Outcome, ProofMethod, RunVendor
from controlplane.findings.intake import Moment, ProjectText, bare
from controlplane.platform.core import clock
from controlplane.platform.core.ids import ProjectId, RunId
from controlplane.platform.core.priorities import Priority
from controlplane.platform.queues.messages import Message

MOST_FINDINGS, MOST_VENDORS, MOST_EVIDENCE = 100, 200, 5
_MOST_UNPACKED_BYTES = 3_000_000
# Of the stored report. An item of the table has at most 400 KB.
_MOST_STORED_BYTES = 300_000
_JPEG = b"\xff\xd8\xff"

Choice = Literal["untouched", "refused", "accepted"]
CHOICES: tuple[Choice, ...] = get_args(Choice)
Kind = Literal[
    "loaded-before-consent",
    "loads-after-refusal",
    "cookie-before-consent",
    "no-way-to-refuse",
    "lives-longer-than-declared",
    "consent-mode-signals-missing",
]


def _of_run(text: str) -> str:
    if RunId.parse(text) is None:
        raise ValueError("not the id of a run")
    return text


def _address(text: str) -> str:
    return bare(text) if text else text


# No control characters, so that each stays on its line.
_SHOWN = r"^[^\x00-\x1f\x7f-\x9f]*$"
Name = Annotated[str, StringConstraints(max_length=300, pattern=_SHOWN)]
Text = Annotated[str, StringConstraints(max_length=500, pattern=_SHOWN)]
Title = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200, pattern=_SHOWN)]
# Empty if the recorder doesn't know. A browser reads a backslash as the end of the host, unlike `urlsplit`.
_ADDRESS = r"^((https?|wss?)://[^\x00-\x1f\x7f-\x9f/\\]+(/[^\x00-\x1f\x7f-\x9f]*)?)?$"
Address = Annotated[str, StringConstraints(max_length=300, pattern=_ADDRESS), AfterValidator(_address)]
VendorName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9._-]{1,100}$")]
Number = Annotated[int, Field(strict=True, ge=0, le=2**31)]
Texts = Annotated[dict[Name, Name], Field(max_length=20)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", alias_generator=to_camel, validate_by_name=True)


class Sent(_Part):
    """A request of a visit. at: milliseconds since the visit began. chain: what led to it, nearest first."""

    url: Address
    kind: Name
    at: Number
    page: Address
    after_choice: StrictBool
    chain: tuple[Address, ...] = Field((), max_length=12)
    consent: Texts = {}
    vendor_id: VendorName | None = None


class Cookie(_Part):
    name: Name
    pattern: Name
    domain: Name
    path: Name
    lifetime_seconds: Number | None
    secure: StrictBool
    http_only: StrictBool
    same_site: Name
    set_by: Address
    page: Address
    at: Number
    after_choice: StrictBool
    identifies: StrictBool


class Stored(_Part):
    origin: Name
    kind: Literal["local", "session"]
    key: Name
    after_choice: StrictBool


class Command(_Part):
    command: Name
    signals: Texts


class Tcf(_Part):
    cmp_id: Number | None
    event_status: Name


class Visit(_Part):
    """The record of a visit, without values and TCF strings. See `openassent_audit.report`."""

    choice: Choice
    answered_by: Name | None
    halted: Text | None
    pages: tuple[Address, ...] = Field(max_length=10)
    consent_mode: tuple[Command, ...] = Field(max_length=200)
    tcf: Tcf | None
    request_count: Number
    requests: tuple[Sent, ...] = Field(max_length=300)
    cookies: tuple[Cookie, ...] = Field(max_length=200)
    storage: tuple[Stored, ...] = Field(max_length=200)
    refused: Texts


class Banner(_Part):
    library: Name | None
    is_shown: StrictBool
    accepts: StrictBool
    refuses: StrictBool
    buttons: tuple[Name, ...] = Field(max_length=12)


class Recorded(_Part):
    visits: tuple[Visit, ...] = Field(max_length=3)
    banner: Banner | None
    pages: tuple[Address, ...] = Field(max_length=10)

    @cached_property
    def packed(self) -> str:
        """Returns the report as its item stores it: compressed JSON in base64."""
        text = json.dumps(self.model_dump(mode="json", by_alias=True), separators=(",", ":"))
        return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def _unpacked(packed: Any) -> Recorded:
    """Returns the unpacked bytes. Stops at the limit. Raises ValueError."""
    if not isinstance(packed, str):
        raise ValueError("not base64")  # noqa: TRY004  (pydantic reports a ValueError)
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        text = unpacking.decompress(base64.b64decode(packed, validate=True), _MOST_UNPACKED_BYTES)
    except (binascii.Error, zlib.error):
        raise ValueError("not compressed") from None
    if not unpacking.eof:
        raise ValueError("too long, or not whole")
    return Recorded.model_validate_json(text)


def _picture(encoded: str) -> str:
    """Returns the picture as it is stored. Raises ValueError if it isn't a small JPEG."""
    try:
        picture = base64.b64decode(encoded, validate=True)
    except binascii.Error:
        raise ValueError("not base64") from None
    if not picture.startswith(_JPEG) or len(picture) > 60_000:
        raise ValueError("not a picture of at most 60 kB")
    return encoded


class Evidence(_Part):
    description: Text
    visit: Choice
    page: Address
    at: Number
    url: Address | None = None
    chain: tuple[Address, ...] = Field((), max_length=12)


class Finding(_Part):
    """A finding. id: its kind and what is wrong, the same in every run."""

    id: Annotated[str, StringConstraints(min_length=1, max_length=300, pattern=_SHOWN)]
    kind: Kind
    title: Title
    summary: Text
    priority: Priority
    vendor_id: VendorName | None = None
    evidence: tuple[Evidence, ...] = Field(max_length=MOST_EVIDENCE)

    @model_validator(mode="after")
    def _names_its_kind(self) -> Self:
        if not self.id.startswith(f"{self.kind}:"):
            raise PydanticCustomError("contradiction", "The ID is of another kind.")
        return self


class Vendor(_Part):
    """A third party, and when it got requests: before a choice, after refusal, after acceptance."""

    vendor_id: VendorName
    name: Title
    domain: Annotated[str, StringConstraints(pattern=r"^[a-z0-9._:-]{1,253}$")]
    category: Annotated[str, StringConstraints(pattern=r"^[a-z0-9 -]{1,50}$")] | None
    alias_of: Name | None
    needs_consent: StrictBool
    before: StrictBool
    refused: StrictBool
    accepted: StrictBool
    pages: tuple[Address, ...] = Field(max_length=5)

    def as_item(self) -> RunVendor:
        return RunVendor(**self.model_dump())


class Reason(_Part):
    code: Annotated[str, StringConstraints(pattern=r"^[a-z-]{1,40}$")]
    message: Text


class WebsiteAuditReport(Message):
    """The report of a run.

    claim: the run's, which only the worker knows that got the run's message. made: the visits that ran to their end.
    proof: how the website proves that it is the organization's, if it does.
    """

    kind: Literal["website-audit-report"] = "website-audit-report"
    run_id: Annotated[str, AfterValidator(_of_run)]
    audit_id: str = Field(pattern=r"^[a-z]{3}_[0-9a-z]{1,40}$")
    project_id: ProjectText
    claim: str = Field(pattern=r"^[0-9a-f]{32}$")
    outcome: Outcome
    reason: Reason | None = None
    finished_at: Moment
    proof: ProofMethod | None = None
    made: tuple[Choice, ...] = Field(max_length=3)
    findings: tuple[Finding, ...] = Field(max_length=MOST_FINDINGS)
    vendors: tuple[Vendor, ...] = Field(max_length=MOST_VENDORS)
    visits: Annotated[Recorded, BeforeValidator(_unpacked)]
    picture: Annotated[str, AfterValidator(_picture)] | None = None

    @model_validator(mode="after")
    def _is_one_story(self) -> Self:
        if (self.outcome == "failed") != bool(self.findings) or (self.outcome == "blocked" and self.reason is None):
            raise PydanticCustomError("contradiction", "The outcome and the findings contradict each other.")
        for found in ([it.id for it in self.findings], [it.vendor_id for it in self.vendors]):
            if len(found) != len(set(found)):
                raise PydanticCustomError("contradiction", "The report has one of them twice.")
        if RunId.stored(self.run_id).organization_id != self.organization_id:
            raise PydanticCustomError("contradiction", "The run is of another organization.")
        vendors = json.dumps([it.model_dump() for it in self.vendors])
        if len(self.visits.packed) + len(self.picture or "") + len(vendors) > _MOST_STORED_BYTES:
            raise PydanticCustomError("too_long", "The report is too long.")
        return self

    @property
    def organization_id(self) -> str:
        return ProjectId.stored(self.project_id).organization_id

    @property
    def at(self) -> str:
        """Returns the end of the audit in the table's format."""
        return clock.timestamp(self.finished_at.timestamp())
