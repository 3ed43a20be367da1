"""The rules of `organizations`: which ones a credential sees, and how a new one gets its slug."""

import hashlib
import secrets
from collections.abc import Mapping

from controlplane.access import Principal, key_organization
from controlplane.errors import Conflict, Unauthorized
from controlplane.naming import slugify
from controlplane.settings import settings
from controlplane.store import organizations, users
from controlplane.store.organizations import Membership
from controlplane.store.table import Leg

SLUG_SHORTEST, SLUG_LONGEST = 3, 20
_SUGGESTIONS = 3
_NUMBERED = range(2, 9)
_RANDOM_BYTES = 2
_RANDOM_TRIES = 5


class SlugTaken(Conflict):
    """Also the answer to a creation repeated without an Idempotency-Key: the first one is in the caller's list."""

    message = "Another organization uses this slug. Choose a different one, such as one of details.suggestions."

    def __init__(self, slug: str) -> None:
        super().__init__(details={"field": "slug", "slug": slug, "suggestions": suggest_slugs(slug)})


class OwnsTooMany(Conflict):
    message = "You already own the maximum number of organizations. Hand one over, or ask the operator."

    def __init__(self, current: int, limit: int | None) -> None:
        super().__init__(details={"reason": "organization_limit", "limit": limit, "current": current})


def list_organizations(principal: Principal) -> list[Membership]:
    """The organizations the credential reaches, by slug."""
    if principal.user_id is None:
        return [key_organization(principal)]
    memberships = organizations.get_account(principal.user_id).memberships
    return sorted(memberships, key=lambda membership: membership.slug)


def create_organization(user_id: str, name: str, slug: str | None, beside: Mapping[str, Leg]) -> Membership:
    """Returns a new organization on the free plan, owned by the person. Raises SlugTaken, OwnsTooMany, Unauthorized.

    A slug made from the name is refused like a chosen one when it is taken: a numbered one in its place would make
    a second organization of every repeated request.
    """
    profile = users.find_user(user_id)
    if profile is None:
        raise Unauthorized(reason="the account of this token is gone")
    slug = slug or derive_slug(name)
    try:
        return organizations.create_organization(name, slug, profile, beside, limit=settings.organizations_per_person)
    except organizations.SlugTaken:
        raise SlugTaken(slug) from None
    except organizations.OwnsTooMany as refusal:
        raise OwnsTooMany(refusal.current, refusal.limit) from None
    except organizations.AccountGone:
        raise Unauthorized(reason="the account of this token is gone") from None


def derive_slug(name: str) -> str:
    """The slug of a name: its letters, or for a name with too few of them a digest. The same for the same name."""
    slug = _fit(slugify(name), SLUG_LONGEST)
    if len(slug) >= SLUG_SHORTEST:
        return slug
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{slug or 'org'}-{digest}"


def suggest_slugs(slug: str) -> list[str]:
    """Three free ones: the lowest numbers behind the slug, or random endings where these are taken. One round trip."""
    endings = [str(number) for number in _NUMBERED]
    endings += [secrets.token_hex(_RANDOM_BYTES) for _ in range(_RANDOM_TRIES)]
    # Distinct ones, since two random endings can be the same.
    candidates = list(dict.fromkeys(f"{_fit(slug, SLUG_LONGEST - len(end) - 1)}-{end}" for end in endings))
    taken = organizations.slugs_taken(candidates)
    return [candidate for candidate, used in zip(candidates, taken, strict=True) if not used][:_SUGGESTIONS]


def _fit(slug: str, longest: int) -> str:
    return slug[:longest].strip("-")
