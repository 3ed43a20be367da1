"""The slug of a new organization."""

import hashlib
import re
import secrets
from collections.abc import Mapping

from controlplane.organizations import store as organizations
from controlplane.organizations.store import Membership
from controlplane.platform.core.naming import slugify
from controlplane.platform.core.settings import settings
from controlplane.platform.table.table import Leg

SLUG_SHORTEST, SLUG_LONGEST = 3, 20
SLUG_PATTERN = r"^[a-z0-9]+(-[a-z0-9]+)*$"
_SLUG = re.compile(SLUG_PATTERN)
_SUGGESTIONS = 3
_NUMBERED = range(2, 9)
_RANDOM_BYTES = 2
_RANDOM_TRIES = 5


def create_organization(
    user_id: str, name: str, slug: str | None, extra_legs: Mapping[str, Leg] | None = None
) -> Membership:
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


def is_slug(text: str) -> bool:
    """Returns True if an organization can have this slug."""
    return SLUG_SHORTEST <= len(text) <= SLUG_LONGEST and _SLUG.fullmatch(text) is not None


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
