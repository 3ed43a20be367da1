"""Response models of `system`."""

from typing import Any, Literal

from pydantic import Field

from controlplane.platform.core.roles import Role
from controlplane.platform.http.envelope import Wire
from controlplane.platform.http.fields import OptionalTimestamp


class Database(Wire):
    """The health of the database."""

    ok: bool = Field(description="True: the database responded.")


class Health(Wire):
    """The health of the service."""

    ok: bool = Field(description="True: the service and its dependencies responded.")
    database: Database


class Region(Wire):
    """A region in which the configurations of consent instances are served."""

    id: str = Field(description="The `region` to send when creating a project.", examples=["eu-central"])
    label: str = Field(description="The display name.", examples=["Europe (Frankfurt)"])


def _of_some(description: str, example: object) -> Any:
    """Returns a field that is omitted, not null, for a kind of principal that doesn't have it."""
    return Field(None, exclude_if=lambda value: value is None, description=description, examples=[example])


class CallingPrincipal(Wire):
    """The identity of the caller."""

    type: Literal["session", "api_key", "oauth"] = Field(description="The kind of credential.", examples=["oauth"])
    user_id: str | None = _of_some("The user's ID. Session and oauth principals only.", "usr_5w1n8q2k7m3r9t4v")
    key_id: str | None = _of_some("The key's ID. API keys only.", "key_3f8k2m9q7r1s5t6v01jq2m4n5p6r7s8t9v")
    organization_id: str | None = _of_some(
        "The organization that the key belongs to. API keys only.", "org_3f8k2m9q7r1s5t6v"
    )
    created_by: str | None = _of_some(
        "The user who created the key, for attribution only. API keys only.", "usr_5w1n8q2k7m3r9t4v"
    )
    project_ids: list[str] | None = _of_some(
        "The projects that the key is limited to. Only for API keys that are.",
        ["prj_3f8k2m9q7r1s5t6v01kb2m3n4p5q6r7s8t"],
    )
    expires_at: OptionalTimestamp = _of_some(
        "The time from which the key is rejected. Only for API keys that expire.", "2027-01-01T00:00:00.000Z"
    )
    active_organization_id: str | None = Field(
        None, description="The organization used if a request doesn't name one.", examples=["org_3f8k2m9q7r1s5t6v"]
    )


class ReachableOrganization(Wire):
    """An organization, under the field names of both API generations: `id` and `organizationId`, and so on."""

    id: str = Field(description="The organization's ID.", examples=["org_3f8k2m9q7r1s5t6v"])
    slug: str = Field(description="The name used in URLs.", examples=["acme"])
    name: str = Field(description="The display name.", examples=["Acme"])
    organization_id: str = Field(description="The same as `id`.", examples=["org_3f8k2m9q7r1s5t6v"])
    organization_slug: str = Field(description="The same as `slug`.", examples=["acme"])
    organization_name: str = Field(description="The same as `name`.", examples=["Acme"])
    role: Role = Field(description="The role of the calling credential.", examples=["owner"])


class CallingCredential(Wire):
    """The credential that authenticated the request."""

    principal: CallingPrincipal
    active_organization_id: str | None = Field(
        description="The organization used if a request doesn't name one.", examples=["org_3f8k2m9q7r1s5t6v"]
    )
    scopes: list[str] = Field(
        description="The credential's scopes, sorted.", examples=[["organizations.read", "projects.read"]]
    )
    organizations: list[ReachableOrganization] = Field(
        description="The organizations that the credential can access. Empty without the scope organizations.read."
    )


class ReceivedWebhook(Wire):
    """The result of a webhook. If it isn't accepted, it is a duplicate, or the service doesn't react to such events."""

    accepted: bool = Field(description="Whether the webhook was accepted now.")
