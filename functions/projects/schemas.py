"""Request and response models of `projects`.

A project has two JSON shapes, one for each API generation. `Project` has the fields of both.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, PlainSerializer, PlainValidator
from pydantic_core import PydanticCustomError, PydanticKnownError

from controlplane.organizations.store import Membership
from controlplane.platform.core.errors import Problems, problem
from controlplane.platform.core.naming import Name
from controlplane.platform.core.settings import settings
from controlplane.platform.core.urls import consent_backend_url, project_page
from controlplane.platform.http.deprecations import CONSENT_ORIGINS, OLDER_PROJECT
from controlplane.platform.http.envelope import Changes, Row, Wire
from controlplane.platform.http.fields import OptionalUrl, OrganizationId, OrganizationSlug, ProjectId, Timestamp, Url
from controlplane.platform.http.validation import checked
from controlplane.projects.changes import MAX_WEBSITES
from controlplane.projects.items import NO_BRANDING, Address, AddressKind, ConsentItem, ProjectItem, WebsiteItem
from controlplane.projects.origins import InvalidOrigin, parse_origin
from controlplane.projects.rules import BRANDINGS, MAX_DESCRIPTION, require_region


def _known(branding: str) -> str:
    if branding not in BRANDINGS:
        raise PydanticCustomError("enum", "Must be one of {expected}.", {"expected": ", ".join(BRANDINGS)})
    return branding


def _parse_address(text: Any) -> Address:
    if not isinstance(text, str):
        raise PydanticKnownError("string_type")
    try:
        return parse_origin(text)
    except InvalidOrigin as error:
        raise PydanticCustomError("invalid_origin", "{reason}", {"reason": error.reason}) from None


Branding = Annotated[str, AfterValidator(_known), Field(json_schema_extra={"enum": [*BRANDINGS]})]
# A text in JSON.
AddressText = Annotated[
    Address,
    PlainValidator(_parse_address, json_schema_input_type=str),
    PlainSerializer(lambda address: address.origin, return_type=str),
]
Addresses = Annotated[list[AddressText], Field(max_length=MAX_WEBSITES, examples=[["example.com"]])]
SomeAddresses = Annotated[Addresses, Field(min_length=1)]

_ORIGIN_FORMS = (
    "Each is a domain, a wildcard (`*.example.com` or `*`), an IP address (IPv6 in brackets), a local address "
    "(`localhost:3000`, `web:3000`, `shop.test`), or an app origin with a custom scheme. Duplicates are ignored."
)
_BRANDING = f"The branding of the banner. `{NO_BRANDING}` needs a plan that includes `removeBranding`."


_ALONE = "Send websites alone; every website loads consent."
_MIXED = "A body with organizationId or trustedOrigins must list its addresses in trustedOrigins only."


def _has_origins(given: Mapping[str, Any]) -> bool:
    return isinstance(consent := given.get("consent"), dict) and "trusted_origins" in consent


def _contradiction(path: list[str], message: str) -> dict[str, Any]:
    return problem(path, message, "contradiction")


class ConsentCreate(Wire):
    """The settings of a new consent instance."""

    # A field that can be omitted but not null has a default factory, which the document doesn't show as a value.
    trusted_origins: Annotated[Addresses, CONSENT_ORIGINS] = Field(
        default_factory=list, description=CONSENT_ORIGINS.notice
    )
    branding: Branding = Field(
        default_factory=lambda: settings.service_brand, description=_BRANDING, examples=[settings.service_brand]
    )


_OLDER_FIELDS = {"organization_id", "trusted_origins"}


class ProjectCreate(Wire):
    """A project to create, with its addresses in `websites` or in `consent.trustedOrigins`, not in both.

    The older shape has `organizationId` and `trustedOrigins` instead. A body that mixes both shapes is rejected.
    """

    model_config = ConfigDict(json_schema_extra={"dependentRequired": {"trustedOrigins": ["organizationId"]}})

    name: Name = Field(
        description="The project's name. Determines the slug and the name of the consent instance.", examples=["Shop"]
    )
    region: Annotated[str, checked(require_region)] = Field(
        min_length=1,
        description="An `id` from `GET /v1/regions`: where the configuration of the consent instance is served.",
        examples=["eu-central"],
    )
    websites: SomeAddresses = Field(default_factory=list, description=_ORIGIN_FORMS)
    consent: ConsentCreate = Field(default_factory=ConsentCreate)
    organization_id: Annotated[OrganizationId, OLDER_PROJECT] = Field(
        default_factory=str, min_length=1, description=OLDER_PROJECT.notice
    )
    trusted_origins: Annotated[Addresses, OLDER_PROJECT] = Field(default_factory=list, description=OLDER_PROJECT.notice)

    @property
    def is_older_shape(self) -> bool:
        return not self.model_fields_set.isdisjoint(_OLDER_FIELDS)

    @property
    def addresses(self) -> list[Address]:
        """The addresses of either shape, each once."""
        return [*dict.fromkeys([*self.websites, *self.consent.trusted_origins, *self.trusted_origins])]

    @classmethod
    def contradictions(cls, given: Mapping[str, Any]) -> Problems:
        origins, has_both = ["consent", "trustedOrigins"], _has_origins(given) and "websites" in given
        problems = [_contradiction(origins, _ALONE)] if has_both else []
        if given.keys().isdisjoint(_OLDER_FIELDS):
            return problems
        if "organization_id" not in given:
            problems.append(problem(["organizationId"], "Required in a body with trustedOrigins.", "missing"))
        if "websites" in given or _has_origins(given):
            problems.append(_contradiction(origins if _has_origins(given) else ["websites"], _MIXED))
        return problems


class ConsentUpdate(Changes):
    """Changes to a consent instance."""

    # With another change of the project, it may be empty.
    model_config = ConfigDict(json_schema_extra={})

    branding: Branding = Field(default_factory=str, description=_BRANDING, examples=[settings.library_brand])
    trusted_origins: Annotated[SomeAddresses, CONSENT_ORIGINS] = Field(
        default_factory=list,
        description="The complete new list of consent entries, in order. Addresses that are websites keep their IDs. "
        f"Audited websites that it omits stay, but are no longer consent entries. {CONSENT_ORIGINS.notice}",
    )


class ProjectUpdate(Changes):
    """Changes to a project: at least one field. Omitted fields keep their values.

    The addresses are in `websites` or in `consent.trustedOrigins`, not in both.
    """

    project_name: Name = Field(
        default_factory=str, description="The new name. Also regenerates the slug.", examples=["Shop"]
    )
    name: Name = Field(default_factory=str, description="The same as `projectName`.", examples=["Shop"])
    description: str | None = Field(
        None, description="The new description; null removes it.", max_length=MAX_DESCRIPTION, examples=["The web shop"]
    )
    websites: SomeAddresses = Field(
        default_factory=list,
        description="The complete new list, in order. Addresses that remain keep their IDs. Audited websites that it "
        "omits stay, but are no longer consent entries. Removing an address needs the role `admin` or `owner`.",
        examples=[["example.com", "*.example.com"]],
    )
    consent: ConsentUpdate = Field(default_factory=ConsentUpdate)

    @classmethod
    def contradictions(cls, given: Mapping[str, Any]) -> Problems:
        problems = []
        if "websites" in given and _has_origins(given):
            problems.append(_contradiction(["consent", "trustedOrigins"], _ALONE))
        if given.keys() >= {"name", "project_name"} and _trimmed(given["name"]) != _trimmed(given["project_name"]):
            problems.append(_contradiction(["name"], "projectName is another name. Send one of them."))
        return problems


def _trimmed(name: Any) -> Any:
    return name.strip() if isinstance(name, str) else name


# Fields that a project has in more than one response.
Slug = Annotated[str, Field(examples=["shop"])]
DisplayName = Annotated[str, Field(description="The display name.", examples=["Shop"])]
Description = Annotated[str | None, Field(description="The project's description.", examples=["The web shop"])]
ProjectPage = Annotated[
    Url,
    Field(
        description="The page in the dashboard.",
        examples=["https://dashboard.assent.example/organizations/acme/projects/shop"],
    ),
]
ConsentPage = Annotated[
    ProjectPage, Field(examples=["https://dashboard.assent.example/organizations/acme/projects/shop/consent"])
]
BackendUrl = Annotated[
    OptionalUrl,
    Field(
        description="The instance's URL in the project's region. Its configuration is at `/configuration` below it.",
        examples=["https://api.assent.example/v1/consent-instances/ins_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"],
    ),
]
ConfigurationVersion = Annotated[
    str, Field(description="The version of the instance's configuration.", examples=["9f2c41d7e05b8a36"])
]
ShownBranding = Annotated[
    str,
    Field(
        description=f"The branding of the banner. While the plan doesn't include `removeBranding`, "
        f"`{settings.service_brand}` replaces `{NO_BRANDING}`.",
        examples=[settings.service_brand],
        json_schema_extra={"enum": [*BRANDINGS]},
    ),
]


class Website(Wire):
    """An address that a project runs on."""

    id: str = Field(description="The website's ID.", examples=["web_01kb2m3n4p5q6r7s8t"])
    origin: str = Field(description="The address in normalized form.", examples=["example.com"])
    kind: AddressKind = Field(
        description="The kind of address. Only `domain` websites can be audited.", examples=["domain"]
    )
    primary: bool = Field(description="Whether this is the first domain, shown as the project's site.")
    audited: bool = Field(description="Whether an audit uses this website. Deleting the website deletes the audit.")

    @classmethod
    def of(cls, website: WebsiteItem, *, primary: bool) -> Self:
        return cls.showing(website, id=website.website_id, primary=primary, audited=bool(website.audits))


class ListedConsent(Wire):
    """A consent instance in the older shape."""

    instance_id: str = Field(description="The instance's ID.", examples=["ins_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"])
    instance_slug: Slug = Field(description="The name used in URLs.")
    instance_name: DisplayName
    trusted_origins: list[str] = Field(
        description="The consent entries alone. Consent loads on audited websites too.", examples=[["example.com"]]
    )
    branding: ShownBranding
    backend_url: BackendUrl = Field(alias="backendURL")
    dashboard_url: ConsentPage = Field(alias="dashboardURL")
    backend_version: ConfigurationVersion

    @classmethod
    def of(cls, organization: Membership, project: ProjectItem, consent: ConsentItem) -> Self:
        return cls.model_validate(cls.row(project_page(organization.slug, project.slug), project, consent))

    @staticmethod
    def row(page: str, project: ProjectItem, consent: ConsentItem) -> Row:
        return {
            "instanceId": consent.instance_id,
            "instanceSlug": consent.slug,
            "instanceName": consent.name,
            "trustedOrigins": project.trusted_origins,
            "branding": consent.branding,
            "backendURL": consent_backend_url(project.region, consent.instance_id),
            "dashboardURL": f"{page}/consent",
            "backendVersion": project.version,
        }


class Consent(Wire):
    """A consent instance in the current shape."""

    trusted_origins: Annotated[list[str], CONSENT_ORIGINS] = Field(
        description=f"The consent entries alone. {CONSENT_ORIGINS.notice}",
        examples=[["example.com"]],
    )
    branding: ShownBranding
    backend_url: BackendUrl
    dashboard_url: ConsentPage
    version: ConfigurationVersion


class Products(Wire):
    """The products that a project uses, in the older shape."""

    consent: ListedConsent | None = Field(description="The consent instance.")

    @staticmethod
    def row(page: str, project: ProjectItem) -> Row:
        return {"consent": ListedConsent.row(page, project, project.consent) if project.consent else None}


class ListedProject(Wire):
    """A project in lists, after a change, and after a creation in the older shape."""

    project_id: ProjectId
    project_slug: Slug = Field(description="The name used in URLs. Regenerated when the name changes.")
    project_name: DisplayName
    description: Description
    organization_id: OrganizationId
    organization_slug: OrganizationSlug
    dashboard_url: ProjectPage = Field(alias="dashboardURL")
    products: Products

    @classmethod
    def of(cls, organization: Membership, project: ProjectItem) -> Self:
        return cls.model_validate(cls.row(organization, project))

    @staticmethod
    def row(organization: Membership, project: ProjectItem) -> Row:
        page = project_page(organization.slug, project.slug)
        return {
            "projectId": project.project_id,
            "projectSlug": project.slug,
            "projectName": project.name,
            "description": project.description,
            "organizationId": organization.organization_id,
            "organizationSlug": organization.slug,
            "dashboardURL": page,
            "products": Products.row(page, project),
        }


class CreatedProject(Wire):
    """A newly created project."""

    id: ProjectId
    slug: Slug = Field(description="The name used in URLs, derived from the display name.")
    name: DisplayName
    description: Description = Field(examples=[None])
    organization_id: OrganizationId
    organization_slug: OrganizationSlug
    dashboard_url: ProjectPage
    websites: list[Website] = Field(
        description="The addresses the project runs on, in order. The consent runtime allows these origins."
    )
    consent: Consent | None = Field(description="The consent instance.")

    @classmethod
    def of(cls, organization: Membership, project: ProjectItem, **more: Any) -> Self:
        page, consent, primary = project_page(organization.slug, project.slug), project.consent, project.primary_website
        shown = consent and Consent.showing(
            consent,
            trusted_origins=project.trusted_origins,
            backend_url=consent_backend_url(project.region, consent.instance_id),
            dashboard_url=f"{page}/consent",
            version=project.version,
        )
        return cls.showing(
            project,
            id=project.project_id,
            organization_id=organization.organization_id,
            organization_slug=organization.slug,
            dashboard_url=page,
            websites=[Website.of(website, primary=website is primary) for website in project.websites],
            consent=shown,
            **more,
        )


class Project(CreatedProject):
    """A project, under the field names of both API generations: `id` and `projectId`, and so on."""

    project_id: ProjectId = Field(description="The same as `id`.")
    project_slug: Slug = Field(description="The same as `slug`.")
    project_name: DisplayName = Field(description="The same as `name`.")
    dashboard_url_older: ProjectPage = Field(description="The same as `dashboardUrl`.", alias="dashboardURL")
    products: Products
    region: str = Field(
        description="The region in which the configuration of the consent instance is served.", examples=["eu-central"]
    )
    created_at: Timestamp = Field(description="The time the project was created.")

    @classmethod
    def of(cls, organization: Membership, project: ProjectItem, **more: Any) -> Self:
        page = project_page(organization.slug, project.slug)
        older = {"project_slug": project.slug, "project_name": project.name, "dashboard_url_older": page}
        products = Products.model_validate(Products.row(page, project))
        return super().of(organization, project, **older, products=products, **more)


class DeletedProject(Wire):
    """The result of deleting a project."""

    deleted: Literal[True] = Field(description="True: the project was deleted.")
    project_id: ProjectId
    deleted_websites: int = Field(description="The number of websites deleted with the project.", ge=0, examples=[2])
    deleted_audits: int = Field(description="The number of audits deleted with the websites.", ge=0, examples=[1])


class DeletedWebsite(Wire):
    """The result of deleting a website."""

    website_id: str = Field(description="The website's ID.", examples=["web_01kb2m3n4p5q6r7s8t"])
    deleted_audits: int = Field(description="The number of audits deleted with the website.", ge=0, examples=[1])
