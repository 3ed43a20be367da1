"""`assent billing`: the plan and the credits."""

from openassent_cli.commands.shared import Group
from openassent_cli.invocation import invocation
from openassent_cli.output import show

app = Group("The organization's plan and credits.")


@app.add("show")
def show_billing() -> None:
    """Show the plan, its limits, and the credits."""
    with invocation().client() as client:
        found = client.billing.get()
    limits, usage, top_up = found.limits, found.usage, found.top_up
    show(
        found,
        [
            ("Plan", found.plan.name),
            ("Credits", found.credits.balance),
            ("Projects", f"{usage.projects} of {limits.projects}"),
            ("API keys", f"{usage.api_keys} of {limits.api_keys}"),
            ("Requests per minute", limits.requests_per_minute),
            ("API access", found.features.api_access),
            ("Top-up", f"{top_up.amount} below {top_up.threshold}" if top_up.enabled else "off"),
            ("Over the limit", [it.limit for it in found.over_limit] or None),
        ],
    )
