"""The screen that `make run` shows when the stack is ready: its address, and commands to paste."""

from typing import Any

from jinja2 import Template

from controlplane.platform.core.plans import REGIONS
from local.checkout import CREDENTIALS, ROOT

_TEMPLATE = ROOT / "local/templates/screen.txt"


def render(credentials: dict[str, Any]) -> str:
    """Renders the screen for the contents of credentials.json."""
    key, users = credentials["apiKeys"][0], credentials["users"]
    organization = next(it for it in credentials["organizations"] if it["organizationId"] == key["organizationId"])
    owner = next(it for it in users if (it["organizationId"], it["role"]) == (key["organizationId"], "owner"))
    text: str = Template(_TEMPLATE.read_text()).render(
        users=users,
        width=max(len(it["email"]) for it in users),
        base_url=credentials["baseUrl"],
        slug=organization["slug"],
        key=key["key"],
        token=owner["accessToken"],
        region=next(iter(REGIONS)),
        repository=credentials["repositories"][0]["repositoryId"],
        credentials=CREDENTIALS.relative_to(ROOT, walk_up=True),
    )
    return f"\n{text}"
