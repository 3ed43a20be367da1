"""The rules of `scan_preparation`: which commit a request scans, and how much of the result is visible."""

from collections.abc import Callable

from controlplane.code_host.github.reviews import ReviewHost, connect
from controlplane.platform.core.errors import known
from controlplane.platform.core.ids import ScanRequestId
from controlplane.platform.core.plans import PLANS
from controlplane.platform.queues import messages
from controlplane.platform.queues.messages import PrepareScan
from controlplane.platform.table.leases import Lease
from controlplane.scans import requests
from controlplane.scans.execution import PermanentFailure, code_host_errors, run_attempt
from controlplane.scans.items import Access, Failure, RequestItem
from controlplane.scans.requests import Subject, Target

# The function's timeout in template.yaml: any invocation still running by then has been killed.
LEASE_SECONDS = 30

_NOT_LINKED = Failure("REPOSITORY_NOT_LINKED", "The repository is no longer linked to the project. Link it again.")
_CLOSED = Failure("PULL_REQUEST_CLOSED", "The pull request is closed.")
_NO_BRANCH = Failure("BRANCH_GONE", "The repository has no production branch: it has no commit yet.")


def prepare_scan(message: PrepareScan, connect_host: Callable[[int], ReviewHost] = connect) -> None:
    """Creates a scan of the production branch's or pull request's head, or fails the request with a reason.

    Raises Postponed, Rejected.
    """

    request_id = ScanRequestId.stored(message.request_id)

    def prepare(lease: Lease, request: RequestItem) -> None:
        subject = requests.find_subject(request)
        target = _find_target(subject, request, connect_host)
        is_pull_request = request.cause.pull_request_number is not None
        access = "full" if is_pull_request else _access(target, subject.plan if subject else "")
        _, sent = requests.start_scan(request, lease, target, access)
        messages.dispatch(*sent)

    run_attempt(request_id, lambda: requests.acquire_request(request_id, LEASE_SECONDS), prepare)


def _find_target(subject: Subject | None, request: RequestItem, connect_host: Callable[[int], ReviewHost]) -> Target:
    """Returns the repository, branch, and commit to scan. Raises PermanentFailure, Postponed."""
    link = subject.repository.find_link(request.project_id) if subject and subject.project_exists else None
    if subject is None or link is None:
        raise PermanentFailure(_NOT_LINKED)
    repository = subject.repository
    number = request.cause.pull_request_number
    if number is not None:
        with code_host_errors(repository.installation_id):
            host = connect_host(repository.installation_id)
            found = host.get_pull_request(repository.owner, repository.name, number)
        if not found.is_open:
            raise PermanentFailure(_CLOSED)
        return Target(repository, link, found.head_branch, found.head_sha)
    branch = known(link.production_branch or repository.default_branch, PermanentFailure(_NO_BRANCH))
    with code_host_errors(repository.installation_id):
        host = connect_host(repository.installation_id)
        sha = host.get_branch_head(repository.owner, repository.name, branch)
    return Target(repository, link, branch, sha)


def _access(target: Target, plan: str) -> Access:
    """Returns full access if the plan has it, except for a repository's first scan, which is a free preview."""
    return "full" if target.repository.preview_used and PLANS[plan].full_scans else "free-preview"
