"""The repositories that pages offer to choose from."""

from controlplane.code_host import repositories
from controlplane.code_host.items import RepositoryItem

# They fit in one response of DynamoDB.
_CHOICES = 500


def list_choices(organization_id: str) -> list[RepositoryItem]:
    """Returns the most recently connected repositories, sorted by name. Needs one read."""
    found = repositories.list_repositories(organization_id, _CHOICES, None).items
    return sorted(found, key=lambda it: (it.owner.lower(), it.name.lower()))
