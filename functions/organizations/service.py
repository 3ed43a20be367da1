"""Business rules of `organizations`: which ones a credential can list or save, and how a new one gets its slug."""

import hashlib
import secrets
from collections.abc import Mapping

from controlplane.core import ids
from controlplane.core.errors import Forbidden
from controlplane.core.naming import slugify
from controlplane.core.settings import settings
from controlplane.http.authentication import Principal, key_organization
from controlplane.store import default_organizations, organizations
from controlplane.store.organizations import Membership
from controlplane.store.table import Leg

SLUG_SHORTEST, SLUG_LONGEST = 3, 20
_SUGGESTIONS = 3
_NUMBERED = range(2, 9)
_RANDOM_BYTES = 2
_RANDOM_TRIES = 5


class NotOwnOrganization(Forbidden):
    message = "You aren't a member of this organization. Choose one from GET /v1/organizations."


def list_organizations(principal: Principal) -> list[Membership]:
    """Returns the organizations the credential can access, sorted by slug."""
    if principal.user_id is None:
        return [key_organization(principal)]
    memberships = organizations.get_account(principal.user_id).memberships
    return sorted(memberships, key=lambda membership: membership.slug)


def create_organization(user_id: str, name: str, slug: str | None, extra_legs: Mapping[str, Leg]) -> Membership:
    """Creates an organization on the free plan, owned by the user. Raises SlugTaken, OwnsTooMany, AccountGone.

    A slug derived from the name is rejected if taken, like a chosen one: a numbered slug instead would create a second
    organization for every retry.
    """
    slug = slug or derive_slug(name)
    try:
        return organizations.create_organization(
            name, slug, user_id, extra_legs, limit=settings.organizations_per_person
        )
    except organizations.SlugTaken:
        raise organizations.SlugTaken(slug, suggest_slugs(slug)) from None


def save_active_organization(user_id: str, organization_id: str) -> None:
    """Saves the user's default organization. Raises NotOwnOrganization if the user isn't a member."""
    if not ids.is_root(ids.ORGANIZATION, organization_id):
        raise NotOwnOrganization
    try:
        default_organizations.save(user_id, organization_id)
    except default_organizations.NotMember:
        raise NotOwnOrganization from None


def derive_slug(name: str) -> str:
    """Returns a deterministic slug for the name. If the name has too few usable characters, appends a digest."""
    slug = _fit(slugify(name), SLUG_LONGEST)
    if len(slug) >= SLUG_SHORTEST:
        return slug
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{slug or 'org'}-{digest}"


def suggest_slugs(slug: str) -> list[str]:
    """Returns three available slugs, with the lowest free numbers or random suffixes. Needs one round trip."""
    endings = [str(number) for number in _NUMBERED]
    endings += [secrets.token_hex(_RANDOM_BYTES) for _ in range(_RANDOM_TRIES)]
    # Removes duplicates: two random suffixes can be equal.
    candidates = list(dict.fromkeys(f"{_fit(slug, SLUG_LONGEST - len(end) - 1)}-{end}" for end in endings))
    taken = organizations.slugs_taken(candidates)
    return [candidate for candidate, used in zip(candidates, taken, strict=True) if not used][:_SUGGESTIONS]


def _fit(slug: str, longest: int) -> str:
    return slug[:longest].strip("-")
