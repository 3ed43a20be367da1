"""Response models of `consent_instances`."""

from typing import Literal, Self

from pydantic import Field

from controlplane.platform.http.envelope import Wire
from controlplane.platform.http.fields import VendorId
from controlplane.projects.items import ProjectItem
from controlplane.projects.rules import BRANDINGS


class ConfigurationVendor(Wire):
    """A vendor of the project, detected or decided on."""

    vendor_id: VendorId
    name: str | None = Field(description="The vendor's name. Null until it is detected.", examples=["Segment"])
    domain: str | None = Field(description="The domain that the vendor is loaded from.", examples=["segment.com"])
    category: str | None = Field(description="The vendor's purpose, if it is known.", examples=["analytics"])
    state: Literal["approved", "ignored"] | None = Field(
        description="The decision. Null until there is one.", examples=["approved"]
    )


class InstanceConfiguration(Wire):
    """The configuration of a consent instance, as it is in force."""

    instance_id: str = Field(description="The instance's ID.", examples=["ins_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"])
    version: str = Field(
        description="Changes with the project. The `backendVersion` of the project's consent instance.",
        examples=["9f2c41d7e05b8a36"],
    )
    origins: list[str] = Field(
        description="The addresses of all websites of the project, on which consent loads.",
        examples=[["example.com", "*.example.com"]],
    )
    branding: str = Field(
        description="The branding of the banner that the plan allows.",
        examples=["assent"],
        json_schema_extra={"enum": [*BRANDINGS]},
    )
    vendors: list[ConfigurationVendor] = Field(
        description="The vendors, ordered by `vendorId`: all with a decision, at most 400, and others while the list "
        "has fewer than 200."
    )

    @classmethod
    def of(cls, project: ProjectItem) -> Self:
        if project.consent is None:
            raise LookupError("there is no consent instance")
        return cls.showing(
            project.consent,
            version=project.version,
            origins=[website.origin for website in project.websites],
            vendors=sorted(project.vendors),
        )
