"""Arguments that several commands share, and their validation."""

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any

import typer

from controlplane.billing import store as billing
from controlplane.organizations import store as organizations
from controlplane.organizations.items import OrganizationItem
from controlplane.people import users
from controlplane.people.identities import IdentityItem
from controlplane.people.users import UserItem
from controlplane.platform.core import clock, ids
from controlplane.platform.core.ids import OwnedId, ProjectId
from controlplane.platform.table import keys
from controlplane.platform.table.table import table
from controlplane.projects import store as projects
from controlplane.projects.items import ProjectItem
from ops.output import NotFound, fields

_LIFE = re.compile(r"([1-9][0-9]{0,8})([smhd])")
_FULL_NAME = re.compile(r"([A-Za-z0-9][A-Za-z0-9_-]{0,99})/((?!\.\.?$)[A-Za-z0-9._-]{1,100})")
_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
MAX_LIFE_SECONDS = 3650 * 86_400


def one_of(values: Iterable[str]) -> Callable[[str], str]:
    """Returns a parser that accepts these values. It raises BadParameter, which becomes exit code 2."""
    known = tuple(values)

    def parse(text: str) -> str:
        if text not in known:
            raise typer.BadParameter(f"{text!r} is not one of {', '.join(known)}.")
        return text

    return parse


def parse_life(text: str) -> int:
    """Converts 90s, 30m, 1h, or 7d to seconds. Raises BadParameter."""
    match = _LIFE.fullmatch(text)
    if match is None:
        raise typer.BadParameter("Use a number followed by s, m, h, or d, for example 1h.")
    seconds = int(match[1]) * _UNIT_SECONDS[match[2]]
    if seconds > MAX_LIFE_SECONDS:
        raise typer.BadParameter("The maximum lifetime is 3650d.")
    return seconds


def parse_moment(text: str) -> datetime:
    """Parses a time with its zone. Raises BadParameter."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise typer.BadParameter("Write the time like this: 2026-03-04T05:06:07Z.")
    return moment


def parse_full_name(text: str) -> str:
    """Accepts the full name of a repository. Raises BadParameter."""
    if not _FULL_NAME.fullmatch(text):
        raise typer.BadParameter("Write OWNER/NAME, for example acme/shop.")
    return text


def new_group(about: str) -> typer.Typer:
    """Returns a group of commands with this help. A command returns a `Result`."""
    return typer.Typer(
        help=about, no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
    )


User = Annotated[str, typer.Argument(metavar="USER", help="Email address or user id.")]
Organization = Annotated[str, typer.Argument(metavar="ORGANIZATION", help="Slug or organization id.")]
Project = Annotated[str, typer.Argument(metavar="PROJECT_ID", help="prj_…")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def find_user(reference: str) -> UserItem | None:
    """Returns the profile of the user with this email address or id, or None."""
    if "@" in reference:
        return users.find_user_by_email(reference)
    return users.find_user(reference) if ids.is_root(ids.USER, reference) else None


def get_user(reference: str) -> UserItem:
    """Returns the user's profile. Raises NotFound."""
    profile = find_user(reference)
    if profile is None:
        raise NotFound(f"There is no user {reference}.")
    return profile


def find_organization(reference: str) -> OrganizationItem | None:
    """Returns the organization with this slug or id, or None."""
    organization_id = reference
    if not ids.is_root(ids.ORGANIZATION, reference):
        pointer = table.get(keys.organization_slug(reference))
        if pointer is None:
            return None
        organization_id = pointer["organizationId"]
    return organizations.find_organization(organization_id)


def get_organization(reference: str) -> OrganizationItem:
    """Returns the organization. Raises NotFound."""
    organization = find_organization(reference)
    if organization is None:
        raise NotFound(f"There is no organization {reference}.")
    return organization


def get_organization_id(reference: str) -> str:
    return get_organization(reference).organization_id


def get_project(reference: str) -> ProjectItem:
    """Returns the project with this id. Raises NotFound."""
    with suppress(projects.UnknownProject):
        return projects.get_project(parse_id(ProjectId, reference, "project"))
    raise NotFound(f"There is no project {reference}.")


def parse_id[Id: OwnedId](kind: type[Id], text: str, noun: str) -> Id:
    """Returns the id. Raises NotFound if the text isn't one."""
    parsed = kind.parse(text)
    if parsed is None:
        raise NotFound(f"There is no {noun} {text}.")
    return parsed


def user_document(profile: UserItem) -> dict[str, Any]:
    """Returns the displayed fields of a user, without organizations."""
    return fields(profile, "user_id", "email", "name", "image", "saved_organization_id", "created_at")


def identity_document(identity: IdentityItem) -> dict[str, Any]:
    return fields(identity, "issuer", "subject", "created_at")


def organization_document(organization_id: str) -> dict[str, Any]:
    """Returns the displayed fields of an organization. Raises UnknownOrganization."""
    organization, account = billing.get_billing(organization_id)
    top_up = account.top_up
    used = {"usedThisMonth": top_up.used_in(clock.month())}
    return {
        "organizationId": organization_id,
        **fields(organization, "slug", "name", "plan"),
        "credits": account.credits,
        "topUp": fields(top_up, "enabled", "threshold", "amount", "monthly_limit") | used,
        "owners": organization.owners,
        "apiKeys": organization.keys,
        **fields(organization, "projects", "created_at"),
    }
