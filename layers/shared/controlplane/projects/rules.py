"""Rules of projects: valid values of their fields."""

from collections.abc import Mapping, Sequence

from controlplane.platform.core.errors import InvalidOrigin, InvalidRegion, NotFound, did_you_mean, problem
from controlplane.platform.core.settings import settings
from controlplane.projects import origins
from controlplane.projects.items import NO_BRANDING, Address, ConsentItem, ProjectItem

BRANDINGS = (settings.service_brand, settings.library_brand, NO_BRANDING)
MAX_DESCRIPTION = 512


class UnsupportedRegion(InvalidRegion):
    problem = "invalid_region"
    path = ("region",)

    def __init__(self, region: str) -> None:
        offered = [it.id for it in settings.regions]
        message = f"There is no such region. Use one of these: {', '.join(offered)}." + did_you_mean(region, offered)
        super().__init__(message)


class UnusableOrigin(InvalidOrigin):
    """A website address is invalid. `details` has the path and reason of each, the message the first."""

    def __init__(self, path: list[str], reasons: Mapping[int, str]) -> None:
        details = [problem([*path, str(position)], reason, "invalid_origin") for position, reason in reasons.items()]
        super().__init__(details=details)


class NoConsent(NotFound):
    message = "This project has no consent instance."


def require_region(region: str) -> str:
    """Returns the region. Raises UnsupportedRegion."""
    if region not in (it.id for it in settings.regions):
        raise UnsupportedRegion(region)
    return region


def parse_addresses(path: list[str], listed: Sequence[str]) -> list[Address]:
    """Returns the addresses in their stored form, in order and without duplicates. Raises UnusableOrigin.

    path: where the addresses come from, for the error's details.
    """
    addresses: list[Address] = []
    reasons: dict[int, str] = {}
    for position, text in enumerate(listed):
        try:
            addresses.append(origins.parse_origin(text))
        except origins.InvalidOrigin as error:
            reasons[position] = error.reason
    if reasons:
        raise UnusableOrigin(path, reasons)
    return [*dict.fromkeys(addresses)]


def get_consent(project: ProjectItem) -> ConsentItem:
    """Returns the project's consent instance. Raises NoConsent."""
    if project.consent is None:
        raise NoConsent
    return project.consent
