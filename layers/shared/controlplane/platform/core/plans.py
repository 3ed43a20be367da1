"""The plans and their limits."""

from dataclasses import dataclass

API_KEYS_PER_ORGANIZATION = 50
# Of these, rolled ones whose old secrets still work. A transaction that changes every secret has at most 100 items.
KEYS_IN_GRACE_PER_ORGANIZATION = 20
# The price of unlocking a scan's remaining findings.
SCAN_UNLOCK_CREDITS = 50
# A balance below this is low: it unlocks at most one more scan.
LOW_CREDITS = 2 * SCAN_UNLOCK_CREDITS


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Features and limits of a plan.

    requests_per_minute: the rate limit of one API key.
    organization_rate: base of the organization's rate limit, which is a multiple of it (`owner_limits`). Equals
        requests_per_minute, but is also set for plans without API access, because people use those organizations.
    pull_request_scans: whether pull requests are scanned. Their findings are free to read on every plan that has them.
    automatic_scans: how many scans of an organization may be running for another one to start by itself.
    """

    id: str
    name: str
    api_access: bool
    requests_per_minute: int
    organization_rate: int
    projects: int
    remove_branding: bool
    full_scans: bool
    pull_request_scans: bool
    automatic_scans: int

    @property
    def api_keys(self) -> int:
        """The number of API keys that the plan lets an organization use."""
        return API_KEYS_PER_ORGANIZATION if self.api_access else 0


PLANS: dict[str, Plan] = {
    plan.id: plan
    for plan in (
        Plan(
            id="free",
            name="Free",
            api_access=False,
            requests_per_minute=0,
            organization_rate=600,
            projects=10,
            remove_branding=False,
            full_scans=False,
            pull_request_scans=False,
            automatic_scans=1,
        ),
        Plan(
            id="starter",
            name="Starter",
            api_access=True,
            requests_per_minute=600,
            organization_rate=600,
            projects=50,
            remove_branding=False,
            full_scans=False,
            pull_request_scans=True,
            automatic_scans=2,
        ),
        Plan(
            id="pro",
            name="Pro",
            api_access=True,
            requests_per_minute=1_500,
            organization_rate=1_500,
            projects=200,
            remove_branding=True,
            full_scans=True,
            pull_request_scans=True,
            automatic_scans=5,
        ),
        Plan(
            id="enterprise",
            name="Enterprise",
            api_access=True,
            requests_per_minute=3_000,
            organization_rate=3_000,
            projects=1_000,
            remove_branding=True,
            full_scans=True,
            pull_request_scans=True,
            automatic_scans=20,
        ),
    )
}
