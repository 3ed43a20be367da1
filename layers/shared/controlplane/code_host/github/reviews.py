"""Pull requests at the code host, and our reports on them: check runs, comments, and reviews."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from controlplane.code_host.github.app_auth import WRITE_ISSUES, Purpose
from controlplane.code_host.github.client import CodeHost, checked_commit, get_transport, repository_names
from controlplane.code_host.github.errors import OutcomeUnknown

READ_PULL_REQUESTS: Purpose = (("metadata", "read"), ("pull_requests", "read"))
WRITE_PULL_REQUESTS: Purpose = (("metadata", "read"), ("pull_requests", "write"))
WRITE_CHECKS: Purpose = (("checks", "write"), ("metadata", "read"))

# GitHub's maxima. Characters beyond 16 bits may count twice, so texts stay well below.
MOST_ANNOTATIONS = 50
TEXT_LIMIT = 60_000
_PAGE_SIZE = 100
_MOST_PAGES = 50
_MOST_LISTED_PAGES = 10
# GitHub lists no more than 3,000 files of a pull request.
_MOST_FILE_PAGES = 30

_PULL_REQUEST = "/repos/{owner}/{repo}/pulls/{pull_number}"
_PULL_REQUESTS = "/repos/{owner}/{repo}/pulls"
_FILES = "/repos/{owner}/{repo}/pulls/{pull_number}/files"
_REVIEWS = "/repos/{owner}/{repo}/pulls/{pull_number}/reviews"
_CHECK_RUNS = "/repos/{owner}/{repo}/check-runs"
_CHECK_RUN = "/repos/{owner}/{repo}/check-runs/{check_run_id}"
_CHECK_RUNS_OF_COMMIT = "/repos/{owner}/{repo}/commits/{ref}/check-runs"
_COMMENTS = "/repos/{owner}/{repo}/issues/{issue_number}/comments"
_COMMENT = "/repos/{owner}/{repo}/issues/comments/{comment_id}"

# The header of a hunk with its lines in the new version. A line of code begins with a sign or a space.
_HUNK = re.compile(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PullRequest:
    """A pull request's current state. Its head commit may come from a fork, but is in the repository, too."""

    number: int
    is_open: bool
    head_sha: str
    head_branch: str


class CheckRun(NamedTuple):
    """A check run. `external_id` is the name that we gave it. `annotations` is their number."""

    check_run_id: int
    external_id: str
    annotations: int = 0


class Annotation(NamedTuple):
    """A message about lines of a file."""

    path: str
    start_line: int
    end_line: int
    level: Literal["notice", "warning", "failure"]
    title: str
    message: str

    def to_body(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "start_line": self.start_line,
            "end_line": self.end_line,
            "annotation_level": self.level,
            "title": self.title,
            "message": self.message,
        }


class ReviewComment(NamedTuple):
    """A comment on lines of a file, which are in one hunk of the pull request's diff."""

    path: str
    start_line: int
    end_line: int
    body: str

    def to_body(self) -> dict[str, Any]:
        several = {"start_line": self.start_line, "start_side": "RIGHT"} if self.start_line < self.end_line else {}
        return {"path": self.path, "line": self.end_line, "side": "RIGHT", "body": self.body, **several}


@dataclass(frozen=True, slots=True)
class CheckState:
    """The content of a check run. A conclusion completes it."""

    status: Literal["queued", "in_progress", "completed"]
    title: str
    summary: str
    conclusion: Literal["success", "failure", "neutral", "cancelled"] | None = None

    def to_body(self) -> dict[str, Any]:
        body: dict[str, Any] = {"status": self.status, "output": {"title": self.title, "summary": self.summary}}
        return body if self.conclusion is None else {**body, "conclusion": self.conclusion}


class ReviewHost(CodeHost):
    """The code host with the permissions of one installation, for pull requests.

    All operations raise RepositoryGone, also if the pull request, check run, or comment is gone; AccessLost, also if
    the installation hasn't accepted the permissions; RateLimitedByHost, and HostUnavailable.
    """

    def get_pull_request(self, owner: str, name: str, number: int) -> PullRequest:
        """Returns the pull request."""
        names = repository_names(owner, name) | {"pull_number": str(number)}
        return self._send("GET", READ_PULL_REQUESTS, _PULL_REQUEST, names).read(_to_pull_request)

    def list_open_pull_requests(self, owner: str, name: str) -> Iterator[PullRequest]:
        """Yields the open pull requests, the newest first, at most 1,000."""
        names, deadline = repository_names(owner, name), self._deadline()
        for page in range(1, _MOST_LISTED_PAGES + 1):
            query = {"state": "open", "per_page": str(_PAGE_SIZE), "page": str(page)}
            response = self._send("GET", READ_PULL_REQUESTS, _PULL_REQUESTS, names, query=query, deadline=deadline)
            found = response.read(lambda content: [*map(_to_pull_request, content)])
            yield from found
            if len(found) < _PAGE_SIZE:
                return

    def list_hunks(self, owner: str, name: str, number: int) -> dict[str, list[range]]:
        """Returns the lines of each file that are in the pull request's diff. Only these can have comments."""
        names, deadline = repository_names(owner, name) | {"pull_number": str(number)}, self._deadline()
        hunks: dict[str, list[range]] = {}
        for page in range(1, _MOST_FILE_PAGES + 1):
            query = {"per_page": str(_PAGE_SIZE), "page": str(page)}
            response = self._send("GET", READ_PULL_REQUESTS, _FILES, names, query=query, deadline=deadline)
            # A file that is binary, or whose diff is large, has no patch.
            found = response.read(lambda content: {it["filename"]: _to_hunks(it.get("patch") or "") for it in content})
            hunks |= found
            if len(found) < _PAGE_SIZE:
                break
        return hunks

    # Reviews

    def find_review(self, owner: str, name: str, number: int, marker: str) -> int | None:
        """Returns the id of the pull request's first review whose text contains the marker, or None."""
        names = repository_names(owner, name) | {"pull_number": str(number)}
        return self._find_text(READ_PULL_REQUESTS, _REVIEWS, names, marker)

    def create_review(  # noqa: PLR0917 (as GitHub has them)
        self, owner: str, name: str, number: int, sha: str, body: str, comments: Sequence[ReviewComment]
    ) -> int:
        """Creates a review of the commit, which neither approves nor rejects it, and returns its id. Never repeated.

        Raises Refused with 422 if a line isn't in the diff, and OutcomeUnknown if it may have been created.
        """
        names = repository_names(owner, name) | {"pull_number": str(number)}
        sent = {"commit_id": checked_commit(sha), "event": "COMMENT", "body": body}
        content = {**sent, "comments": [it.to_body() for it in comments]}
        response = self._send("POST", WRITE_PULL_REQUESTS, _REVIEWS, names, body=content, is_repeated=False)
        return response.read(lambda content: int(content["id"]), OutcomeUnknown)

    # Check runs

    def get_check_run(self, owner: str, name: str, check_run_id: int) -> CheckRun:
        """Returns the check run."""
        names = repository_names(owner, name) | {"check_run_id": str(check_run_id)}
        return self._send("GET", WRITE_CHECKS, _CHECK_RUN, names).read(_to_check_run)

    def find_check_run(self, owner: str, name: str, sha: str, title: str, external_id: str) -> CheckRun | None:
        """Returns the check run of the commit that we created under this external id, or None."""
        names = repository_names(owner, name) | {"ref": checked_commit(sha)}
        query = {"check_name": title, "filter": "all", "per_page": str(_PAGE_SIZE)}
        response = self._send("GET", WRITE_CHECKS, _CHECK_RUNS_OF_COMMIT, names, query=query)
        runs = response.read(lambda content: [*map(_to_check_run, content["check_runs"])])
        return next((run for run in runs if run.external_id == external_id), None)

    def create_check_run(  # noqa: PLR0917 (as GitHub has them)
        self, owner: str, name: str, sha: str, title: str, external_id: str, state: CheckState
    ) -> CheckRun:
        """Creates a check run. The request is never repeated. Raises OutcomeUnknown if it may have been created."""
        body = {"name": title, "head_sha": checked_commit(sha), "external_id": external_id, **state.to_body()}
        names = repository_names(owner, name)
        response = self._send("POST", WRITE_CHECKS, _CHECK_RUNS, names, body=body, is_repeated=False, status=201)
        return response.read(_to_check_run, OutcomeUnknown)

    def update_check_run(
        self, owner: str, name: str, check_run_id: int, state: CheckState, annotations: Sequence[Annotation] = ()
    ) -> None:
        """Changes the check run, and adds at most 50 annotations to it.

        A request with annotations is never repeated. Raises OutcomeUnknown if they may have been added.
        """
        names = repository_names(owner, name) | {"check_run_id": str(check_run_id)}
        body = state.to_body()
        if annotations:
            body["output"] |= {"annotations": [it.to_body() for it in annotations]}
        self._send("PATCH", WRITE_CHECKS, _CHECK_RUN, names, body=body, is_repeated=not annotations)

    # Comments

    def find_comment(self, owner: str, name: str, number: int, marker: str) -> int | None:
        """Returns the id of the pull request's first comment that contains the marker, or None."""
        return self._find_text(
            WRITE_ISSUES, _COMMENTS, repository_names(owner, name) | {"issue_number": str(number)}, marker
        )

    def create_comment(self, owner: str, name: str, number: int, body: str) -> int:
        """Creates a comment and returns its id. Never repeated. Raises OutcomeUnknown if it may have been created."""
        names = repository_names(owner, name) | {"issue_number": str(number)}
        response = self._send(
            "POST", WRITE_ISSUES, _COMMENTS, names, body={"body": body}, is_repeated=False, status=201
        )
        return response.read(lambda content: int(content["id"]), OutcomeUnknown)

    def update_comment(self, owner: str, name: str, comment_id: int, body: str) -> None:
        """Replaces the comment's text."""
        names = repository_names(owner, name) | {"comment_id": str(comment_id)}
        self._send("PATCH", WRITE_ISSUES, _COMMENT, names, body={"body": body})

    def _find_text(self, purpose: Purpose, operation: str, names: Mapping[str, str], marker: str) -> int | None:
        """Returns the id of the first listed text that contains the marker, or None."""
        for page in range(1, _MOST_PAGES + 1):
            query = {"per_page": str(_PAGE_SIZE), "page": str(page)}
            response = self._send("GET", purpose, operation, names, query=query)
            found = response.read(lambda content: [(int(it["id"]), it["body"]) for it in content])
            for text_id, body in found:
                if marker in (body or ""):
                    return text_id
            if len(found) < _PAGE_SIZE:
                return None
        return None


def connect(installation_id: int) -> ReviewHost:
    """Returns the configured code host as the installation. Sends no request."""
    return ReviewHost(*get_transport(), installation_id)


def _to_pull_request(content: Any) -> PullRequest:
    return PullRequest(
        number=int(content["number"]),
        is_open=content["state"] == "open",
        head_sha=checked_commit(content["head"]["sha"]),
        head_branch=content["head"]["ref"],
    )


def _to_hunks(patch: str) -> list[range]:
    """Returns the lines of the new version in each hunk."""
    hunks = ((int(start), int(count or 1)) for start, count in _HUNK.findall(patch))
    return [range(start, start + count) for start, count in hunks]


def _to_check_run(content: Any) -> CheckRun:
    return CheckRun(int(content["id"]), content["external_id"] or "", int(content["output"]["annotations_count"]))
