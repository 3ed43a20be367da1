"""What `organizations` takes and answers."""

from pydantic import Field

from controlplane.envelope import Wire
from controlplane.naming import Name
from controlplane.store.organizations import Role


class OrganizationCreate(Wire):
    """An organization to create."""

    name: Name = Field(description="Trimmed; without control characters.", examples=["Acme Shops"])
    slug: str | None = Field(
        None,
        min_length=3,
        max_length=20,
        pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$",
        description="Lowercase letters and digits, with single hyphens between groups. Made from the name when absent.",
        examples=["acme-shops"],
    )


class Organization(Wire):
    """An organization, as the calling credential sees it."""

    id: str = Field(description="The organization's id.", examples=["org_3f8k2m9q7r1s5t6v"])
    slug: str = Field(description="Its name in addresses.", examples=["acme-shops"])
    name: str = Field(description="Its name for people.", examples=["Acme Shops"])
    role: Role = Field(description="The role of the calling credential.", examples=["owner"])


class OrganizationListItem(Wire):
    """An organization, as lists show it."""

    organization_id: str = Field(description="The organization's id.", examples=["org_3f8k2m9q7r1s5t6v"])
    organization_slug: str = Field(description="Its name in addresses.", examples=["acme-shops"])
    organization_name: str = Field(description="Its name for people.", examples=["Acme Shops"])
    role: Role = Field(description="The role of the calling credential.", examples=["owner"])
