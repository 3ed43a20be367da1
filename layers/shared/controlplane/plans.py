"""Plans and what each allows: the one table of limits."""

from dataclasses import dataclass

from controlplane.settings import settings

API_KEYS_PER_ORGANIZATION = 50
# What opening the rest of a scan's findings costs.
SCAN_UNLOCK_CREDITS = 50


@dataclass(frozen=True, slots=True)
class Plan:
    """`requests_per_minute` is the rate of one API key, `organization_rate` what the organization's own limit is a
    multiple of: the same, except that an organization without API access is used by people."""

    id: str
    name: str
    api_access: bool
    requests_per_minute: int
    organization_rate: int
    projects: int
    remove_branding: bool
    full_scans: bool

    @property
    def organization_requests_per_minute(self) -> int:
        """Requests of an organization's keys and people together: overload protection, not a quota."""
        return settings.organization_rate_factor * self.organization_rate


PLANS: dict[str, Plan] = {
    plan.id: plan
    for plan in (
        Plan("free", "Free", False, 0, 600, 10, False, False),
        Plan("starter", "Starter", True, 600, 600, 50, False, False),
        Plan("pro", "Pro", True, 1_500, 1_500, 200, True, True),
        Plan("enterprise", "Enterprise", True, 3_000, 3_000, 1_000, True, True),
    )
}
