"""What `system` answers."""

from typing import Literal

from pydantic import Field

from controlplane.envelope import Wire
from controlplane.store.organizations import Role


class Database(Wire):
    """Whether the database answers."""

    ok: bool = Field(description="True: it answered.", examples=[True])


class Health(Wire):
    """Whether the service works."""

    ok: bool = Field(description="True: everything that is needed answered.", examples=[True])
    database: Database


class Region(Wire):
    """A place where consent instances run."""

    id: str = Field(description="What project creation takes as `region`.", examples=["eu-central"])
    label: str = Field(description="Its name for people.", examples=["Europe (Frankfurt)"])


def _is_absent(value: str | None) -> bool:
    """Fields that a kind of principal does not have are left out, not null."""
    return value is None


class CallingPrincipal(Wire):
    """Who calls."""

    type: Literal["session", "api_key", "oauth"] = Field(description="The kind of credential.", examples=["oauth"])
    user_id: str | None = Field(
        None, exclude_if=_is_absent, description="Session and oauth principals only.", examples=["usr_5w1n8q2k7m3r9t4v"]
    )
    key_id: str | None = Field(
        None,
        exclude_if=_is_absent,
        description="API keys only.",
        examples=["key_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v"],
    )
    organization_id: str | None = Field(
        None,
        exclude_if=_is_absent,
        description="API keys only: the organization the key belongs to.",
        examples=["org_3f8k2m9q7r1s5t6v"],
    )
    created_by: str | None = Field(
        None,
        exclude_if=_is_absent,
        description="API keys only: who minted the key. Attribution, no authority.",
        examples=["usr_5w1n8q2k7m3r9t4v"],
    )
    active_organization_id: str | None = Field(
        None, description="The organization acted in where none is named.", examples=["org_3f8k2m9q7r1s5t6v"]
    )


class ReachableOrganization(Wire):
    """An organization under both generations of field names: `id` and `organizationId`, and so on."""

    id: str = Field(description="The organization's id.", examples=["org_3f8k2m9q7r1s5t6v"])
    slug: str = Field(description="Its name in addresses.", examples=["acme"])
    name: str = Field(description="Its name for people.", examples=["Acme"])
    organization_id: str = Field(description="The same as `id`.", examples=["org_3f8k2m9q7r1s5t6v"])
    organization_slug: str = Field(description="The same as `slug`.", examples=["acme"])
    organization_name: str = Field(description="The same as `name`.", examples=["Acme"])
    role: Role = Field(description="The role of the calling credential.", examples=["owner"])


class CallingCredential(Wire):
    """The credential of the request."""

    principal: CallingPrincipal
    active_organization_id: str | None = Field(
        description="The organization acted in where none is named.", examples=["org_3f8k2m9q7r1s5t6v"]
    )
    scopes: list[str] = Field(
        description="What the credential may do, sorted.", examples=[["organizations.read", "projects.read"]]
    )
    organizations: list[ReachableOrganization] = Field(description="Empty without the scope organizations.read.")
