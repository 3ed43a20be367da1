"""The repositories that pages offer to choose from."""

from controlplane.code_host import repositories
from controlplane.code_host.items import RepositoryItem

# They fit in one response of DynamoDB.
_CHOICES = 500


def list_choices(organization_id: str) -> list[RepositoryItem]:
    """Returns the repositories to choose from, by name: those that were connected last, so that one read suffices."""
    found = repositories.list_repositories(organization_id, _CHOICES, None).items
    return sorted(found, key=lambda it: (it.owner.lower(), it.name.lower()))
