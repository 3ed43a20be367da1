"""Rules of starting and listing scans."""

from collections.abc import Mapping
from typing import NamedTuple

from controlplane.code_host import repositories
from controlplane.code_host.items import Link, RepositoryItem
from controlplane.platform.core.errors import ApiError, NotFound
from controlplane.platform.core.ids import RepositoryId, ScanRequestId
from controlplane.platform.queues import messages
from controlplane.platform.table.table import Leg, StoreError
from controlplane.scans import reads, requests, waits
from controlplane.scans.items import RequestItem, Status
from controlplane.scans.reads import ScanPage
from controlplane.scans.recovery import message_of
from controlplane.scans.waits import Outcome


class RepositoryNotLinked(ApiError):
    code = "REPOSITORY_NOT_LINKED"
    message = "The repository isn't linked to that project, or to any project. Ask an admin to link it."


def get_repository(organization_id: str, repository_id: str) -> RepositoryItem:
    """Returns the repository. Raises NotFound, also if it belongs to another organization."""
    own_id = _parse_own(organization_id, repository_id)
    if own_id is None:
        raise NotFound
    return repositories.get_repository(own_id)


def find_repository(repository_id: str) -> RepositoryItem | None:
    """Returns the repository of any organization, for a caller whose organization isn't known yet, or None."""
    parsed = RepositoryId.parse(repository_id)
    return repositories.find_repository(parsed) if parsed is not None else None


def _parse_own(organization_id: str, repository_id: str) -> RepositoryId | None:
    """Returns the id if it is one of the organization's repositories."""
    parsed = RepositoryId.parse(repository_id)
    return parsed if parsed is not None and parsed.organization_id == organization_id else None


class Requested(NamedTuple):
    """A new request, and its state right after its message was sent. None if that couldn't be read."""

    request: RequestItem
    outcome: Outcome | None


def request_scan(
    repository: RepositoryItem, project_id: str | None, user_id: str, extra_legs: Mapping[str, Leg]
) -> Requested:
    """Requests a scan of the linked project, by default the first one that still exists.

    `extra_legs` precede those of the request in the transaction. Raises RepositoryNotLinked, ScanInProgress, and
    UnknownRepository.
    """
    request_id = requests.new_request_id(repository.organization_id)
    message = message_of(request_id)
    for link in _candidates(repository, project_id):
        try:
            request = requests.create_request(
                repository, link, request_id, message=message, requested_by=user_id, extra_legs=extra_legs
            )
        except repositories.ProjectGone:
            continue
        return Requested(request, messages.dispatch_and_read(message, lambda: _look(request_id)))
    raise RepositoryNotLinked


def _look(request_id: ScanRequestId) -> Outcome | None:
    """Returns the request's state, or None if it can't be read: the request exists, so its answer must not fail."""
    try:
        return waits.find_outcome(reads.get_request(request_id))
    except (StoreError, NotFound):
        return None


def _candidates(repository: RepositoryItem, project_id: str | None) -> list[Link]:
    return [link for link in repository.links if project_id in (None, link.project_id)]


def list_scans(
    organization_id: str, limit: int, after: str | None, repository_id: str | None, status: Status | None
) -> ScanPage:
    """Returns one page, newest first. The page is empty if the repository belongs to another organization."""
    own_id = _parse_own(organization_id, repository_id) if repository_id is not None else None
    if repository_id is not None and own_id is None:
        return ScanPage([], None)
    return reads.list_scans(organization_id, limit, after, own_id, status)
