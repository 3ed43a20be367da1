"""Request and response models of `projects`.

A project has two JSON shapes, one for each API generation. `Project` has the fields of both.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from controlplane.core.naming import Name
from controlplane.core.regions import REGIONS
from controlplane.core.settings import settings
from controlplane.core.urls import consent_runtime_url, project_page
from controlplane.http.envelope import Wire
from controlplane.store.organizations import Membership
from controlplane.store.project_items import ConsentItem, ProjectItem, WebsiteItem
from controlplane.store.projects import MAX_WEBSITES, NO_BRANDING
from controlplane.store.vendors import ReviewState, VendorState

BRANDINGS = (settings.service_brand, settings.library_brand, NO_BRANDING)


def _known(branding: str) -> str:
    if branding not in BRANDINGS:
        raise PydanticCustomError("enum", "Branding is one of {expected}.", {"expected": ", ".join(BRANDINGS)})
    return branding


Branding = Annotated[str, AfterValidator(_known), Field(json_schema_extra={"enum": [*BRANDINGS]})]
Addresses = Annotated[list[str], Field(max_length=MAX_WEBSITES)]
SomeAddresses = Annotated[list[str], Field(min_length=1, max_length=MAX_WEBSITES)]

_ORIGIN_FORMS = (
    "Each is a domain, a wildcard (`*.example.com` or `*`), an IPv6 address in brackets, a local address, or an app "
    "origin with a custom scheme. Duplicates are ignored."
)
# Not pydantic's `deprecated`, which warns whenever our own code reads the field.
_DEPRECATED: dict[str, Any] = {"deprecated": True}
_URI: dict[str, Any] = {"format": "uri"}
_BRANDING = f"The branding of the banner. `{NO_BRANDING}` needs a plan that includes `removeBranding`."


# JSON Schema for the fields that can't be combined with `trustedOrigins`.
_WITHIN_CONSENT: dict[str, Any] = {"properties": {"consent": {"required": ["trustedOrigins"]}}}
_TWO_LISTS: dict[str, Any] = {"not": {"required": ["websites", "consent"], **_WITHIN_CONSENT}}
_TWO_SHAPES: list[dict[str, Any]] = [
    {"not": {"required": ["organizationId", "websites"]}},
    {"not": {"required": ["organizationId", "consent"], **_WITHIN_CONSENT}},
]


class ConsentCreate(Wire):
    """The settings of a new consent instance."""

    # A field that can be omitted but not null has a default factory, which the document doesn't show as a value.
    trusted_origins: Addresses = Field(
        default_factory=list,
        description="Use `websites` instead.",
        examples=[["example.com"]],
        json_schema_extra=_DEPRECATED,
    )
    branding: Branding = Field(
        default_factory=lambda: settings.service_brand, description=_BRANDING, examples=[settings.service_brand]
    )


class ProjectCreate(Wire):
    """A project to create. The older shape has `organizationId` and `trustedOrigins` instead of `websites`."""

    model_config = ConfigDict(
        json_schema_extra={
            "dependentRequired": {"trustedOrigins": ["organizationId"]},
            "allOf": [_TWO_LISTS, *_TWO_SHAPES],
        }
    )

    name: Name = Field(
        description="The project's name. Determines the slug and the name of the consent instance.", examples=["Shop"]
    )
    region: str = Field(
        min_length=1,
        description="An `id` from `GET /v1/regions`.",
        examples=["eu-central"],
        json_schema_extra={"enum": [*REGIONS]},
    )
    websites: SomeAddresses = Field(default_factory=list, description=_ORIGIN_FORMS, examples=[["example.com"]])
    consent: ConsentCreate = Field(default_factory=ConsentCreate)
    organization_id: str = Field(
        default_factory=str,
        min_length=1,
        description="Older shape. Use the query parameter instead.",
        examples=["org_3f8k2m9q7r1s5t6v"],
        json_schema_extra=_DEPRECATED,
    )
    trusted_origins: Addresses = Field(
        default_factory=list,
        description="Older shape. Use `websites` instead.",
        examples=[["example.com"]],
        json_schema_extra=_DEPRECATED,
    )

    @property
    def is_older_shape(self) -> bool:
        return not self.model_fields_set.isdisjoint({"organization_id", "trusted_origins"})


class ConsentUpdate(Wire):
    """Changes to a consent instance."""

    branding: Branding = Field(default_factory=str, description=_BRANDING, examples=[settings.library_brand])
    trusted_origins: SomeAddresses = Field(
        default_factory=list,
        description="Use `websites` instead.",
        examples=[["example.com"]],
        json_schema_extra=_DEPRECATED,
    )


class ProjectUpdate(Wire):
    """Changes to a project. At least one field is required. Omitted fields keep their values."""

    model_config = ConfigDict(json_schema_extra=_TWO_LISTS)

    project_name: Name = Field(
        default_factory=str, description="The new name. Also regenerates the slug.", examples=["Shop"]
    )
    description: str | None = Field(
        None, description="The new description; null removes it.", max_length=512, examples=["The web shop"]
    )
    websites: SomeAddresses = Field(
        default_factory=list,
        description="The complete new list, in order. Addresses that remain keep their IDs. Removing an address "
        "deletes its audits and needs the role `admin` or `owner`.",
        examples=[["example.com", "*.example.com"]],
    )
    consent: ConsentUpdate = Field(default_factory=ConsentUpdate)


class VendorDecisionCreate(Wire):
    """A decision about a vendor."""

    decision: Literal["approve", "ignore"] = Field(
        description="`approve` allows the vendor; `ignore` dismisses it.", examples=["approve"]
    )


class Website(Wire):
    """An address that a project runs on."""

    id: str = Field(description="The website's ID.", examples=["web_01kb2m3n4p5q6r7s8t"])
    origin: str = Field(description="The address in normalized form.", examples=["example.com"])
    kind: Literal["domain", "wildcard", "any", "app", "development"] = Field(
        description="The kind of address. Only `domain` websites can be audited.", examples=["domain"]
    )
    primary: bool = Field(description="Whether this is the first domain, shown as the project's site.", examples=[True])
    audited: bool = Field(
        description="Whether an audit uses this website. Deleting the website deletes the audit.", examples=[False]
    )


class ListedConsent(Wire):
    """A consent instance in the older shape."""

    instance_id: str = Field(description="The instance's ID.", examples=["ins_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"])
    instance_slug: str = Field(description="The name used in URLs.", examples=["shop"])
    instance_name: str = Field(description="The display name.", examples=["Shop"])
    trusted_origins: list[str] = Field(
        description="The addresses on which consent is loaded.", examples=[["example.com"]]
    )
    branding: str = Field(
        description=_BRANDING, examples=[settings.service_brand], json_schema_extra={"enum": [*BRANDINGS]}
    )
    backend_url: str | None = Field(
        json_schema_extra=_URI,
        alias="backendURL",
        description="The URL at which the consent runtime serves the instance.",
        examples=[None],
    )
    dashboard_url: str = Field(
        description="The page in the dashboard.",
        json_schema_extra=_URI,
        alias="dashboardURL",
        examples=["https://dashboard.assent.example/organizations/acme/projects/shop/consent"],
    )
    backend_version: str = Field(description="The version of the consent runtime.", examples=["2.0.0"])

    @classmethod
    def of(cls, organization: Membership, project: ProjectItem, consent: ConsentItem) -> Self:
        return cls.model_validate(_older_consent(organization, project, consent))


class Consent(Wire):
    """A consent instance in the current shape."""

    trusted_origins: list[str] = Field(
        description="Use `websites` instead.", examples=[["example.com"]], json_schema_extra=_DEPRECATED
    )
    branding: str = Field(
        description=_BRANDING, examples=[settings.service_brand], json_schema_extra={"enum": [*BRANDINGS]}
    )
    backend_url: str | None = Field(
        json_schema_extra=_URI, description="The URL at which the consent runtime serves the instance.", examples=[None]
    )
    dashboard_url: str = Field(
        description="The page in the dashboard.",
        json_schema_extra=_URI,
        examples=["https://dashboard.assent.example/organizations/acme/projects/shop/consent"],
    )
    version: str = Field(description="The version of the consent runtime.", examples=["2.0.0"])

    @classmethod
    def of(cls, organization: Membership, project: ProjectItem, consent: ConsentItem) -> Self:
        return cls(
            trusted_origins=_origins(project),
            branding=consent.branding,
            backend_url=consent_runtime_url(consent.instance_id),
            dashboard_url=project_page(organization.slug, project.slug) + "/consent",
            version=settings.consent_runtime_version,
        )


class Products(Wire):
    """The products that a project uses, in the older shape."""

    consent: ListedConsent | None = Field(description="The consent instance.")


class ListedProject(Wire):
    """A project in lists, after a change, and after a creation in the older shape."""

    project_id: str = Field(description="The project's ID.", examples=["prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"])
    project_slug: str = Field(
        description="The name used in URLs. Regenerated when the name changes.", examples=["shop"]
    )
    project_name: str = Field(description="The display name.", examples=["Shop"])
    description: str | None = Field(description="The project's description.", examples=["The web shop"])
    organization_id: str = Field(description="The organization's ID.", examples=["org_3f8k2m9q7r1s5t6v"])
    organization_slug: str = Field(description="The organization's name used in URLs.", examples=["acme"])
    dashboard_url: str = Field(
        description="The page in the dashboard.",
        json_schema_extra=_URI,
        alias="dashboardURL",
        examples=["https://dashboard.assent.example/organizations/acme/projects/shop"],
    )
    products: Products

    @classmethod
    def of(cls, organization: Membership, project: ProjectItem) -> Self:
        return cls(**_older_fields(organization, project))


class CreatedProject(Wire):
    """A newly created project."""

    id: str = Field(description="The project's ID.", examples=["prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"])
    slug: str = Field(description="The name used in URLs, derived from the display name.", examples=["shop"])
    name: str = Field(description="The display name.", examples=["Shop"])
    description: str | None = Field(description="The project's description.", examples=[None])
    organization_id: str = Field(description="The organization's ID.", examples=["org_3f8k2m9q7r1s5t6v"])
    organization_slug: str = Field(description="The organization's name used in URLs.", examples=["acme"])
    dashboard_url: str = Field(
        description="The page in the dashboard.",
        json_schema_extra=_URI,
        examples=["https://dashboard.assent.example/organizations/acme/projects/shop"],
    )
    websites: list[Website] = Field(
        description="The addresses the project runs on, in order. The consent runtime allows these origins."
    )
    consent: Consent | None = Field(description="The consent instance.")

    @classmethod
    def of(cls, organization: Membership, project: ProjectItem) -> Self:
        return cls(**_current_fields(organization, project))


class Project(CreatedProject):
    """A project, under the field names of both API generations: `id` and `projectId`, and so on."""

    project_id: str = Field(description="The same as `id`.", examples=["prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"])
    project_slug: str = Field(description="The same as `slug`.", examples=["shop"])
    project_name: str = Field(description="The same as `name`.", examples=["Shop"])
    dashboard_url_older: str = Field(
        description="The same as `dashboardUrl`.",
        json_schema_extra=_URI,
        alias="dashboardURL",
        examples=["https://dashboard.assent.example/organizations/acme/projects/shop"],
    )
    products: Products
    region: str = Field(description="The region in which the consent instance runs.", examples=["eu-central"])
    created_at: str = Field(
        description="The time the project was created.",
        json_schema_extra={"format": "date-time"},
        examples=["2026-03-04T05:06:07.000Z"],
    )

    @classmethod
    def of(cls, organization: Membership, project: ProjectItem) -> Self:
        older = _older_fields(organization, project)
        older["dashboard_url_older"] = older["dashboard_url"]
        both = {**older, **_current_fields(organization, project)}
        return cls(**both, region=project.region, created_at=project.created_at)


class DeletedProject(Wire):
    """The result of deleting a project."""

    deleted: Literal[True] = Field(description="True: the project was deleted.", examples=[True])
    project_id: str = Field(description="The project's ID.", examples=["prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"])
    deleted_websites: int = Field(description="The number of websites deleted with the project.", ge=0, examples=[2])
    deleted_audits: int = Field(description="The number of audits deleted with the websites.", ge=0, examples=[1])


class DeletedWebsite(Wire):
    """The result of deleting a website."""

    website_id: str = Field(description="The website's ID.", examples=["web_01kb2m3n4p5q6r7s8t"])
    deleted_audits: int = Field(description="The number of audits deleted with the website.", ge=0, examples=[1])


class VendorDecision(Wire):
    """The result of a decision about a vendor."""

    inbox_item_id: str | None = Field(
        description="The runtime finding that the decision resolved, or null if there is no such finding.",
        examples=["inb_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"],
    )
    project_id: str = Field(description="The project's ID.", examples=["prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"])
    review_state: ReviewState = Field(
        description="The decision in the terms of the vendor review.", examples=["accepted"]
    )
    state: VendorState = Field(description="The state of the vendor.", examples=["approved"])
    vendor_id: str = Field(description="The vendor's ID.", examples=["segment"])


def _origins(project: ProjectItem) -> list[str]:
    return [website.origin for website in project.websites]


def _website(website: WebsiteItem, primary: WebsiteItem | None) -> Website:
    return Website.model_validate(
        {
            "id": website.website_id,
            "origin": website.origin,
            "kind": website.kind,
            "primary": website is primary,
            "audited": bool(website.audits),
        }
    )


# Builds nested dicts, not models: validating the whole once is faster than validating each part.
def _older_consent(organization: Membership, project: ProjectItem, consent: ConsentItem) -> dict[str, Any]:
    return {
        "instance_id": consent.instance_id,
        "instance_slug": consent.slug,
        "instance_name": consent.name,
        "trusted_origins": _origins(project),
        "branding": consent.branding,
        "backend_url": consent_runtime_url(consent.instance_id),
        "dashboard_url": project_page(organization.slug, project.slug) + "/consent",
        "backend_version": settings.consent_runtime_version,
    }


def _older_fields(organization: Membership, project: ProjectItem) -> dict[str, Any]:
    consent = project.consent
    return {
        "project_id": project.project_id,
        "project_slug": project.slug,
        "project_name": project.name,
        "description": project.description,
        "organization_id": organization.organization_id,
        "organization_slug": organization.slug,
        "dashboard_url": project_page(organization.slug, project.slug),
        "products": {"consent": _older_consent(organization, project, consent) if consent else None},
    }


def _current_fields(organization: Membership, project: ProjectItem) -> dict[str, Any]:
    consent = project.consent
    primary = project.primary_website
    return {
        "id": project.project_id,
        "slug": project.slug,
        "name": project.name,
        "description": project.description,
        "organization_id": organization.organization_id,
        "organization_slug": organization.slug,
        "dashboard_url": project_page(organization.slug, project.slug),
        "websites": [_website(website, primary) for website in project.websites],
        "consent": Consent.of(organization, project, consent) if consent else None,
    }
