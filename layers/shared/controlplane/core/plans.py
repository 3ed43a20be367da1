"""The plans and their limits."""

from dataclasses import dataclass

API_KEYS_PER_ORGANIZATION = 50
# The price of unlocking a scan's remaining findings.
SCAN_UNLOCK_CREDITS = 50


@dataclass(frozen=True, slots=True)
class Plan:
    """Features and limits of a plan.

    requests_per_minute: the rate limit of one API key.
    organization_rate: base of the organization's rate limit, which is a multiple of it (`owner_limits`). Equals
        requests_per_minute, but is also set for plans without API access, because people use those organizations.
    """

    id: str
    name: str
    api_access: bool
    requests_per_minute: int
    organization_rate: int
    projects: int
    remove_branding: bool
    full_scans: bool


PLANS: dict[str, Plan] = {
    plan.id: plan
    for plan in (
        Plan("free", "Free", False, 0, 600, 10, False, False),
        Plan("starter", "Starter", True, 600, 600, 50, False, False),
        Plan("pro", "Pro", True, 1_500, 1_500, 200, True, True),
        Plan("enterprise", "Enterprise", True, 3_000, 3_000, 1_000, True, True),
    )
}
