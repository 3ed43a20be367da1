"""Business rules of `projects`: input validation, and the role needed to remove websites."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from controlplane.core.errors import ApiError, InvalidPayload, NotFound, Problems, summarize
from controlplane.core.regions import REGIONS
from controlplane.store import projects
from controlplane.store.organizations import Role
from controlplane.store.project_items import Address, AddressKind, ConsentItem, ProjectItem
from controlplane.store.projects import ProjectChange
from projects.origins import InvalidOrigin, parse_origin
from projects.schemas import ProjectCreate, ProjectUpdate


class UnsupportedRegion(ApiError):
    code = "INVALID_REGION"
    message = "There is no such region. GET /v1/regions lists them."

    def __init__(self) -> None:
        super().__init__(details=[{"code": "invalid_region", "message": self.message, "path": ["region"]}])


class UnusableOrigin(ApiError):
    """A website address is invalid. `details` has the path and reason of each, the message the first."""

    code = "INVALID_ORIGIN"

    def __init__(self, path: list[str], reasons: Mapping[int, str]) -> None:
        details: Problems = [
            {"code": "invalid_origin", "message": reason, "path": [*path, str(position)]}
            for position, reason in reasons.items()
        ]
        super().__init__(summarize(details), details=details)


class NoConsent(NotFound):
    message = "This project has no consent instance."


class Draft(NamedTuple):
    """A project to create, validated as far as possible without the database."""

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
            raise InvalidPayload.at(
                ["organizationId"], "A body with trustedOrigins names its organizationId as well.", "missing"
            )
        if "websites" in given or "trusted_origins" in consent.model_fields_set:
            raise _contradiction(
                path, "A body with organizationId or trustedOrigins has its origins in trustedOrigins."
            )
        path, listed = ["trustedOrigins"], body.trusted_origins
    if body.region not in REGIONS:
        raise UnsupportedRegion
    return Draft(body.name, body.region, _parse(path, listed), consent.branding)


def get_consent(project: ProjectItem) -> ConsentItem:
    """Returns the project's consent instance. Raises NoConsent."""
    if project.consent is None:
        raise NoConsent
    return project.consent


class Change(NamedTuple):
    """A change, validated as far as possible without the database. `of_consent` is True if the body has `consent`."""

    fields: ProjectChange
    of_consent: bool


def read_change(body: ProjectUpdate) -> Change:
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
        change["websites"] = _parse(["websites"], body.websites)
    elif "trusted_origins" in consent.model_fields_set:
        change["trusted_origins"] = _parse(["consent", "trustedOrigins"], consent.trusted_origins)
    if not change:
        raise InvalidPayload.at([], "Name at least one thing to change.", "empty")
    return Change(change, "consent" in given)


def update_project(project: ProjectItem, role: Role, change: Change) -> ProjectItem:
    """Applies the change and returns the updated project.

    Raises NoConsent, WebsiteRemovalNeedsAdmin, BrandingNotIncluded, InvalidPayload for too many websites, and
    UnknownProject if the project was deleted.
    """
    if change.of_consent:
        get_consent(project)
    return projects.update_project(project, change.fields, may_remove_websites=role != "member")


def _contradiction(path: list[str], message: str) -> InvalidPayload:
    return InvalidPayload.at(path, message, "contradiction")


def _parse(path: list[str], listed: Sequence[str]) -> list[Address]:
    """Returns the addresses in their stored form, in order and without duplicates. Raises UnusableOrigin."""
    kinds: dict[str, AddressKind] = {}
    reasons: dict[int, str] = {}
    for position, text in enumerate(listed):
        try:
            origin = parse_origin(text)
        except InvalidOrigin as error:
            reasons[position] = error.reason
        else:
            kinds[origin.origin] = origin.kind
    if reasons:
        raise UnusableOrigin(path, reasons)
    return [Address(origin, kind) for origin, kind in kinds.items()]
