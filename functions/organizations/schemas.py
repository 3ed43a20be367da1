"""Request and response models of `organizations`."""

from pydantic import Field

from controlplane.organizations.rules import SLUG_LONGEST, SLUG_PATTERN, SLUG_SHORTEST
from controlplane.platform.core.naming import Name
from controlplane.platform.core.roles import Role
from controlplane.platform.http.envelope import Wire
from controlplane.platform.http.validation import described


class OrganizationCreate(Wire):
    """An organization to create."""

    name: Name = Field(
        description="The display name. Trimmed. Control characters aren't allowed.", examples=["Acme Shops"]
    )
    slug: str | None = Field(
        None,
        min_length=SLUG_SHORTEST,
        max_length=SLUG_LONGEST,
        pattern=described(SLUG_PATTERN, "Must have lowercase letters, digits, and single hyphens between them"),
        description="Lowercase letters, digits, and single hyphens between them. Derived from the name if omitted.",
        examples=["acme-shops"],
    )


class Organization(Wire):
    """An organization, with the role of the calling credential."""

    id: str = Field(description="The organization's ID.", examples=["org_3f8k2m9q7r1s5t6v"])
    slug: str = Field(description="The name used in URLs.", examples=["acme-shops"])
    name: str = Field(description="The display name.", examples=["Acme Shops"])
    role: Role = Field(description="The role of the calling credential.", examples=["owner"])


class ActiveOrganizationSave(Wire):
    """The organization to save as the default."""

    organization_id: str = Field(
        min_length=1, description="One of the caller's organizations.", examples=["org_3f8k2m9q7r1s5t6v"]
    )


class ActiveOrganization(Wire):
    """The person's default organization."""

    active_organization_id: str = Field(
        description="The organization used if a request doesn't name one.", examples=["org_3f8k2m9q7r1s5t6v"]
    )


class OrganizationListItem(Wire):
    """An organization in a list."""

    organization_id: str = Field(description="The organization's ID.", examples=["org_3f8k2m9q7r1s5t6v"])
    organization_slug: str = Field(description="The name used in URLs.", examples=["acme-shops"])
    organization_name: str = Field(description="The display name.", examples=["Acme Shops"])
    role: Role = Field(description="The role of the calling credential.", examples=["owner"])
