"""What `projects` takes and answers.

A project has two shapes on the wire, of two generations of the API; `Project` holds the fields of both.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from controlplane.addresses import consent_runtime_url, project_page
from controlplane.envelope import Wire
from controlplane.naming import Name
from controlplane.regions import REGIONS
from controlplane.settings import settings
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
    "A domain, a wildcard (`*.example.com` or `*`), an IPv6 address in brackets, a local address, or an app origin "
    "with a scheme of its own. Repeated ones count once."
)
# Not pydantic's own mark, which warns whoever reads the field, and that is us.
_DEPRECATED: dict[str, Any] = {"deprecated": True}
_URI: dict[str, Any] = {"format": "uri"}
_BRANDING = f"Banner branding. `{NO_BRANDING}` needs a plan with remove-branding."


# What `trustedOrigins` refuses to stand beside, as a document says it.
_WITHIN_CONSENT: dict[str, Any] = {"properties": {"consent": {"required": ["trustedOrigins"]}}}
_TWO_LISTS: dict[str, Any] = {"not": {"required": ["websites", "consent"], **_WITHIN_CONSENT}}
_TWO_SHAPES: list[dict[str, Any]] = [
    {"not": {"required": ["organizationId", "websites"]}},
    {"not": {"required": ["organizationId", "consent"], **_WITHIN_CONSENT}},
]


class ConsentCreate(Wire):
    """The settings of a consent instance to create."""

    # Fields that may be absent but not null take their default from a factory, which no document shows as a value.
    trusted_origins: Addresses = Field(
        default_factory=list,
        description="Use `websites`.",
        examples=[["example.com"]],
        json_schema_extra=_DEPRECATED,
    )
    branding: Branding = Field(
        default_factory=lambda: settings.service_brand, description=_BRANDING, examples=[settings.service_brand]
    )


class ProjectCreate(Wire):
    """The current shape, or the older one: that has `organizationId` or `trustedOrigins`, and not `websites`."""

    model_config = ConfigDict(
        json_schema_extra={
            "dependentRequired": {"trustedOrigins": ["organizationId"]},
            "allOf": [_TWO_LISTS, *_TWO_SHAPES],
        }
    )

    name: Name = Field(description="The slug is made from it, and the consent instance inherits it.", examples=["Shop"])
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
        description="Older shape; use the query parameter.",
        examples=["org_3f8k2m9q7r1s5t6v"],
        json_schema_extra=_DEPRECATED,
    )
    trusted_origins: Addresses = Field(
        default_factory=list,
        description="Older shape; use `websites`.",
        examples=[["example.com"]],
        json_schema_extra=_DEPRECATED,
    )

    @property
    def is_older_shape(self) -> bool:
        return not self.model_fields_set.isdisjoint({"organization_id", "trusted_origins"})


class ConsentUpdate(Wire):
    """What to change of a consent instance."""

    branding: Branding = Field(default_factory=str, description=_BRANDING, examples=[settings.library_brand])
    trusted_origins: SomeAddresses = Field(
        default_factory=list,
        description="Use `websites`.",
        examples=[["example.com"]],
        json_schema_extra=_DEPRECATED,
    )


class ProjectUpdate(Wire):
    """At least one field. What is absent stays as it is."""

    model_config = ConfigDict(json_schema_extra=_TWO_LISTS)

    project_name: Name = Field(default_factory=str, description="Also regenerates the slug.", examples=["Shop"])
    description: str | None = Field(
        None, description="The new description; null removes it.", max_length=512, examples=["The web shop"]
    )
    websites: SomeAddresses = Field(
        default_factory=list,
        description="The whole new list, in order. Addresses that stay keep their id; with one that goes, its audits "
        "go, and removing one takes the role admin or owner.",
        examples=[["example.com", "*.example.com"]],
    )
    consent: ConsentUpdate = Field(default_factory=ConsentUpdate)


class VendorDecisionCreate(Wire):
    """What to do about a vendor."""

    decision: Literal["approve", "ignore"] = Field(
        description="Whether the vendor may be loaded, or is to be left aside.", examples=["approve"]
    )


class Website(Wire):
    """An address that a project runs on."""

    id: str = Field(description="The website's id.", examples=["web_01kb2m3n4p5q6r7s8t"])
    origin: str = Field(description="The address, in its plain form.", examples=["example.com"])
    kind: Literal["domain", "wildcard", "any", "app", "development"] = Field(
        description="Only `domain` websites can be audited.", examples=["domain"]
    )
    primary: bool = Field(description="The first domain, shown as the project's site.", examples=[True])
    audited: bool = Field(
        description="An audit uses this website; deleting the website deletes the audit too.", examples=[False]
    )


class ListedConsent(Wire):
    """A consent instance in the older shape."""

    instance_id: str = Field(description="The instance's id.", examples=["ins_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"])
    instance_slug: str = Field(description="Its name in addresses.", examples=["shop"])
    instance_name: str = Field(description="Its name for people.", examples=["Shop"])
    trusted_origins: list[str] = Field(
        description="The addresses that consent is loaded on.", examples=[["example.com"]]
    )
    branding: str = Field(
        description=_BRANDING, examples=[settings.service_brand], json_schema_extra={"enum": [*BRANDINGS]}
    )
    backend_url: str | None = Field(
        json_schema_extra=_URI,
        alias="backendURL",
        description="Where the consent runtime serves the instance.",
        examples=[None],
    )
    dashboard_url: str = Field(
        description="Where people see it.",
        json_schema_extra=_URI,
        alias="dashboardURL",
        examples=["https://dashboard.assent.example/organizations/acme/projects/shop/consent"],
    )
    backend_version: str = Field(description="The consent runtime's version.", examples=["2.0.0"])

    @classmethod
    def of(cls, organization: Membership, project: ProjectItem, consent: ConsentItem) -> Self:
        return cls.model_validate(_older_consent(organization, project, consent))


class Consent(Wire):
    """A consent instance in the current shape."""

    trusted_origins: list[str] = Field(
        description="Use `websites`.", examples=[["example.com"]], json_schema_extra=_DEPRECATED
    )
    branding: str = Field(
        description=_BRANDING, examples=[settings.service_brand], json_schema_extra={"enum": [*BRANDINGS]}
    )
    backend_url: str | None = Field(
        json_schema_extra=_URI, description="Where the consent runtime serves the instance.", examples=[None]
    )
    dashboard_url: str = Field(
        description="Where people see it.",
        json_schema_extra=_URI,
        examples=["https://dashboard.assent.example/organizations/acme/projects/shop/consent"],
    )
    version: str = Field(description="The consent runtime's version.", examples=["2.0.0"])

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
    """What a project uses, in the older shape."""

    consent: ListedConsent | None = Field(description="The consent instance.")


class ListedProject(Wire):
    """A project as lists, changes and the older shape of creation answer it."""

    project_id: str = Field(description="The project's id.", examples=["prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"])
    project_slug: str = Field(description="Regenerated when the name changes.", examples=["shop"])
    project_name: str = Field(description="Its name for people.", examples=["Shop"])
    description: str | None = Field(description="What people wrote about it.", examples=["The web shop"])
    organization_id: str = Field(description="The organization's id.", examples=["org_3f8k2m9q7r1s5t6v"])
    organization_slug: str = Field(description="The organization's name in addresses.", examples=["acme"])
    dashboard_url: str = Field(
        description="Where people see it.",
        json_schema_extra=_URI,
        alias="dashboardURL",
        examples=["https://dashboard.assent.example/organizations/acme/projects/shop"],
    )
    products: Products

    @classmethod
    def of(cls, organization: Membership, project: ProjectItem) -> Self:
        return cls(**_older_fields(organization, project))


class CreatedProject(Wire):
    """A project as its creation answers it."""

    id: str = Field(description="The project's id.", examples=["prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"])
    slug: str = Field(description="Made from the name.", examples=["shop"])
    name: str = Field(description="Its name for people.", examples=["Shop"])
    description: str | None = Field(description="What people wrote about it.", examples=[None])
    organization_id: str = Field(description="The organization's id.", examples=["org_3f8k2m9q7r1s5t6v"])
    organization_slug: str = Field(description="The organization's name in addresses.", examples=["acme"])
    dashboard_url: str = Field(
        description="Where people see it.",
        json_schema_extra=_URI,
        examples=["https://dashboard.assent.example/organizations/acme/projects/shop"],
    )
    websites: list[Website] = Field(
        description="Every address the project runs on, in order; the consent runtime allows these origins."
    )
    consent: Consent | None = Field(description="The consent instance.")

    @classmethod
    def of(cls, organization: Membership, project: ProjectItem) -> Self:
        return cls(**_current_fields(organization, project))


class Project(CreatedProject):
    """A project under both generations of field names: `id` and `projectId`, and so on."""

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
    region: str = Field(description="Where the consent instance runs.", examples=["eu-central"])
    created_at: str = Field(
        description="When it was created.",
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
    """What was deleted."""

    deleted: Literal[True] = Field(description="True: it is gone.", examples=[True])
    project_id: str = Field(description="The project's id.", examples=["prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"])
    deleted_websites: int = Field(description="How many websites went with it.", ge=0, examples=[2])
    deleted_audits: int = Field(description="How many audits went with them.", ge=0, examples=[1])


class DeletedWebsite(Wire):
    """What was deleted."""

    website_id: str = Field(description="The website's id.", examples=["web_01kb2m3n4p5q6r7s8t"])
    deleted_audits: int = Field(description="How many audits went with it.", ge=0, examples=[1])


class VendorDecision(Wire):
    """What a decision about a vendor came to."""

    inbox_item_id: str | None = Field(
        description="The runtime finding that the decision resolved, if there is one.",
        examples=["inb_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"],
    )
    project_id: str = Field(description="The project's id.", examples=["prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"])
    review_state: ReviewState = Field(description="The same in the words of the vendor review.", examples=["accepted"])
    state: VendorState = Field(description="What was decided.", examples=["approved"])
    vendor_id: str = Field(description="The vendor's id.", examples=["segment"])


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


# Plain values down to the leaves: one validation of the whole takes less than one of each part.
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
