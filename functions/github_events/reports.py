"""Reports on pull requests: one check run for each commit, and one comment, that show the state of the scan.

A review suggests fixes for new findings, once for each finding.

The report is computed from the table, and compared with the one that was shown last. A report that was interrupted is
therefore continued by the next message. Before something is created, that is recorded: if its outcome is unknown, it is
searched for first, by an external id or a hidden marker.
"""

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from controlplane.code_host import pull_requests
from controlplane.code_host.github import reviews
from controlplane.code_host.github.errors import CodeHostError, OutcomeUnknown, RepositoryGone
from controlplane.code_host.github.reviews import MOST_ANNOTATIONS, CheckState, ReviewHost
from controlplane.code_host.items import RepositoryItem
from controlplane.code_host.pull_requests import PullRequestItem
from controlplane.code_host.repositories import find_linked_projects
from controlplane.platform.core import clock
from controlplane.platform.core.ids import ProjectId
from controlplane.platform.core.settings import settings
from controlplane.platform.queues.messages import ReportPullRequest
from controlplane.platform.queues.worker import Postponed
from controlplane.platform.table import keys, leases
from controlplane.scans.findings import FindingItem
from github_events import outcomes, suggestions
from github_events.outcomes import Outcome

# How long something that was sent may be missing from GitHub's lists.
_UNLISTED_SECONDS = 60


def external_id(item: PullRequestItem) -> str:
    """Returns the external ID of the pull request's check runs, by which they are found again."""
    return f"{item.project_id}:{item.number}"


def parse_external_id(text: str) -> tuple[ProjectId, int] | None:
    """Parses the external ID to the project and the number. Returns None if it isn't ours."""
    project, _, number = text.partition(":")
    project_id = ProjectId.parse(project)
    return (project_id, int(number)) if project_id and number.isdecimal() and len(number) < 10 else None


def report(message: ReportPullRequest, repository: RepositoryItem) -> None:
    """Makes GitHub show the state of the scan. Raises Postponed, leases.LeaseLost, and errors of `github`."""
    project_id = ProjectId.stored(message.project_id)
    key = keys.pull_request(repository.repository_id, message.number, project_id.local)
    try:
        claimed = pull_requests.claim(key)
    except leases.Held as busy:
        raise Postponed(busy.seconds, "another report is in progress", may_end_sooner=True) from None
    if claimed is None:
        return
    claim, item = claimed
    try:
        project = find_linked_projects([repository]).get(project_id)
        if project is not None:
            _Report(repository, item, claim, f"{settings.service_brand}/{project.slug}").show()
    finally:
        pull_requests.release(key, claim)


class _Report:
    """One report under a claim."""

    def __init__(self, repository: RepositoryItem, item: PullRequestItem, claim: str, title: str) -> None:
        self._host: ReviewHost = reviews.connect(repository.installation_id)
        self._names = (repository.owner, repository.name)
        self._repository, self._item, self._claim, self._title = repository, item, claim, title
        self._checks: dict[str, dict[str, Any]] = {sha: dict(check) for sha, check in item.checks.items()}

    def show(self) -> None:
        outcome = outcomes.outcome_of(self._item, self._repository)
        self._end_superseded()
        if not self._item.closed or self._item.head_sha in self._checks:
            self._show_check(outcome)
        if outcome.comment is not None and not self._item.closed:
            self._show_comment(outcome.comment)
        if outcome.fixable and not self._item.closed and self._item.reviewed_sha != self._item.head_sha:
            # Last: the installation may not grant it, or GitHub may refuse a line, and then the check has to do.
            self._suggest(outcome.fixable)

    def _end_superseded(self) -> None:
        """Completes the check runs of earlier commits, whose scans were canceled."""
        for sha, check in [*self._checks.items()]:
            if sha == self._item.head_sha:
                continue
            if not check["completed"]:
                self._host.update_check_run(*self._names, check["id"], outcomes.SUPERSEDED)
            del self._checks[sha]
            self._record(checks=self._checks)

    def _show_check(self, outcome: Outcome) -> None:
        sha, state = self._item.head_sha, outcome.state
        shown = _digest(repr((state, outcome.annotations)))
        check = self._checks.get(sha)
        if check is None:
            run_id, _ = self._create(
                {"what": "check", "of": sha},
                lambda: self._find_check(sha),
                lambda: (
                    self._host.create_check_run(
                        *self._names, sha, self._title, external_id(self._item), CheckState("queued", *outcomes.QUEUED)
                    ).check_run_id
                ),
            )
            check = self._checks[sha] = {"id": run_id, "shown": "", "completed": False}
            self._record(checks=self._checks, creating=None)
        if check["shown"] == shown:
            return
        self._annotate(check, outcome)
        check |= {"shown": shown, "completed": state.conclusion is not None}
        self._record(checks=self._checks)

    def _find_check(self, sha: str) -> int | None:
        found = self._host.find_check_run(*self._names, sha, self._title, external_id(self._item))
        return found.check_run_id if found else None

    def _annotate(self, check: dict[str, Any], outcome: Outcome) -> None:
        """Changes the check run. GitHub adds annotations to those that it has, so each is sent once.

        GitHub's own count says where an interrupted report ended, also if the last request's response was lost.
        """
        added = 0
        if outcome.annotations:
            added = self._host.get_check_run(*self._names, check["id"]).annotations
        while True:
            part = outcome.annotations[added : added + MOST_ANNOTATIONS]
            self._host.update_check_run(*self._names, check["id"], outcome.state, part)
            added += len(part)
            if added >= len(outcome.annotations):
                return

    def _show_comment(self, text: str) -> None:
        body = f"<!-- {settings.service_brand}:{self._item.marker} -->\n{text}"
        shown = _digest(body)
        number = self._item.number
        if self._item.comment == shown:
            return
        comment_id, is_new = self._item.comment_id, False
        if comment_id is None:
            comment_id, is_new = self._create(
                {"what": "comment"},
                lambda: self._host.find_comment(*self._names, number, self._item.marker),
                lambda: self._host.create_comment(*self._names, number, body),
            )
            self._record(commentId=comment_id, creating=None)
        if not is_new:
            with suppress(RepositoryGone):  # a person deleted it, and doesn't want another one
                self._host.update_comment(*self._names, comment_id, body)
        self._record(comment=shown)

    def _suggest(self, fixable: Sequence[FindingItem]) -> None:
        """Creates the commit's review, unless no fix can be suggested that wasn't suggested before."""
        number, sha, suggested = self._item.number, self._item.head_sha, self._item.suggested
        wanted = [it for it in fixable if it.fingerprint not in suggested][: suggestions.MOST_FINDINGS - len(suggested)]
        if not wanted:
            return
        review = suggestions.compose(wanted, self._host.list_hunks(*self._names, number))
        if not review.comments:
            return
        marker = f"{self._item.marker}:{sha}"
        body = f"<!-- {settings.service_brand}:{marker} -->\n{suggestions.TEXT}"
        self._create(
            {"what": "review", "of": sha},
            lambda: self._host.find_review(*self._names, number, marker),
            lambda: self._host.create_review(*self._names, number, sha, body, review.comments),
        )
        self._record(reviewedSha=sha, suggested=[*suggested, *review.fingerprints], creating=None)

    def _create(
        self, what: dict[str, str], find: Callable[[], int | None], create: Callable[[], int]
    ) -> tuple[int, bool]:
        """Returns the id of the check run, comment, or review, and whether it was created just now."""
        sent = dict(self._item.creating or {})
        sent_at = sent.pop("sentAt", 0)
        if sent == what:
            found = find()
            if found is not None:
                return found, False
            if clock.now() < sent_at + _UNLISTED_SECONDS:
                raise Postponed(_UNLISTED_SECONDS, "the outcome is not known yet")
        self._record(creating={**what, "sentAt": int(clock.now())})
        try:
            return create(), True
        except OutcomeUnknown:
            raise
        except CodeHostError:
            self._record(creating=None)  # certainly nothing was created
            raise

    def _record(self, **values: Any) -> None:
        pull_requests.record(self._item.key, self._claim, **values)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
