"""Plans and what each allows: the one table of limits."""

from dataclasses import dataclass

API_KEYS_PER_ORGANIZATION = 50
# What opening the rest of a scan's findings costs.
SCAN_UNLOCK_CREDITS = 50


@dataclass(frozen=True, slots=True)
class Plan:
    """What a plan allows.

    requests_per_minute: the rate of one API key.
    organization_rate: what the limit of the whole organization is a multiple of (`owner_limits`): the same, but people
        also use organizations without API access.
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
