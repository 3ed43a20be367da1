"""Converts the shapes of the bodies of `projects`. `controlplane.projects.rules` has the rules."""

from typing import NamedTuple

from controlplane.platform.core.errors import InvalidPayload
from controlplane.projects import rules
from controlplane.projects.changes import ProjectChange
from controlplane.projects.items import Address
from projects.schemas import ProjectCreate, ProjectUpdate


class Draft(NamedTuple):
    """A project to create, validated without the database."""

    name: str
    region: str
    addresses: list[Address]
    branding: str


def read_draft(body: ProjectCreate) -> Draft:
    """Converts either shape of the body. Raises InvalidPayload, UnsupportedRegion, UnusableOrigin."""
    given, consent = body.model_fields_set, body.consent
    path, listed = ["websites"], body.websites
    if "trusted_origins" in consent.model_fields_set:
        if "websites" in given:
            raise _contradiction(["consent", "trustedOrigins"], "Send websites alone; every website loads consent.")
        path, listed = ["consent", "trustedOrigins"], consent.trusted_origins
    if body.is_older_shape:
        if "organization_id" not in given:
            raise InvalidPayload.at(["organizationId"], "Required in a body with trustedOrigins.", "missing")
        if "websites" in given or "trusted_origins" in consent.model_fields_set:
            raise _contradiction(
                path, "A body with organizationId or trustedOrigins must list its addresses in trustedOrigins only."
            )
        path, listed = ["trustedOrigins"], body.trusted_origins
    rules.require_region(body.region)
    return Draft(body.name, body.region, rules.parse_addresses(path, listed), consent.branding)


def read_change(body: ProjectUpdate) -> ProjectChange:
    """Converts the body. Raises InvalidPayload, UnusableOrigin."""
    given, consent = body.model_fields_set, body.consent
    change = ProjectChange()
    if "project_name" in given:
        change["name"] = body.project_name
    if "description" in given:
        change["description"] = body.description
    if "branding" in consent.model_fields_set:
        change["branding"] = consent.branding
    if "websites" in given:
        if "trusted_origins" in consent.model_fields_set:
            raise _contradiction(["consent", "trustedOrigins"], "Send websites alone; every website loads consent.")
        change["websites"] = rules.parse_addresses(["websites"], body.websites)
    elif "trusted_origins" in consent.model_fields_set:
        change["trusted_origins"] = rules.parse_addresses(["consent", "trustedOrigins"], consent.trusted_origins)
    if not change:
        raise InvalidPayload.at([], "Name at least one thing to change.", "empty")
    return change


def _contradiction(path: list[str], message: str) -> InvalidPayload:
    return InvalidPayload.at(path, message, "contradiction")
