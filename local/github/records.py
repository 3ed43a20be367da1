"""Issues, pull requests, comments, reviews, and check runs on disk, in <root>/<owner>/<name>.json."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from controlplane.platform.core import clock


class Denied(Exception):
    """The request is rejected with that status."""

    def __init__(self, status: int = 404, message: str = "Not Found") -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(frozen=True, slots=True)
class StoredIssue:
    """Times are Unix seconds; GitHub shows no smaller unit."""

    number: int
    title: str
    body: str | None
    labels: list[str]
    created_seconds: int
    updated_seconds: int
    state: str = "open"


@dataclass(frozen=True, slots=True)
class PullRequest:
    """`fork`: the owner of the repository that the branch is in, if it isn't in this one."""

    number: int
    title: str
    head: str
    base: str
    created_seconds: int
    state: str = "open"
    fork: str | None = None


@dataclass(frozen=True, slots=True)
class Comment:
    comment_id: int
    number: int
    body: str
    created_seconds: int


@dataclass(frozen=True, slots=True)
class Review:
    """A review of a pull request, with its comments as they were sent."""

    review_id: int
    number: int
    body: str
    commit_id: str
    comments: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class CheckRun:
    """A check run. `output` is the last one that was sent, and `annotations` are all of them."""

    check_run_id: int
    name: str
    head_sha: str
    external_id: str
    status: str = "queued"
    conclusion: str | None = None
    output: dict[str, Any] = field(default_factory=dict)
    annotations: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class Records:
    """Everything of one repository, oldest first. Issues and pull requests share their numbers.

    Every operation raises Denied if what it is about doesn't exist.
    """

    issues: list[StoredIssue] = field(default_factory=list)
    pull_requests: list[PullRequest] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    check_runs: list[CheckRun] = field(default_factory=list)
    reviews: list[Review] = field(default_factory=list)

    def next_number(self) -> int:
        return 1 + len(self.issues) + len(self.pull_requests)

    def add_issue(self, title: str, body: str | None, labels: Sequence[str]) -> StoredIssue:
        now = int(clock.now())
        self.issues.append(StoredIssue(self.next_number(), title, body, [*labels], now, now))
        return self.issues[-1]

    def get_issue(self, number: int) -> StoredIssue:
        return _get(self.issues, lambda it: it.number == number)

    def get_pull_request(self, number: int) -> PullRequest:
        return _get(self.pull_requests, lambda it: it.number == number)

    def get_check_run(self, check_run_id: int) -> CheckRun:
        return _get(self.check_runs, lambda it: it.check_run_id == check_run_id)

    def set_issue_state(self, number: int, state: str) -> StoredIssue:
        changes = {"state": state, "updated_seconds": int(clock.now())}
        return _change(self.issues, self.get_issue(number), **changes)

    def set_pull_request_state(self, number: int, state: str) -> PullRequest:
        return _change(self.pull_requests, self.get_pull_request(number), state=state)

    def add_comment(self, number: int, body: str) -> Comment:
        self.get_pull_request(number)
        comment = Comment(1 + len(self.comments), number, body, int(clock.now()))
        self.comments.append(comment)
        return comment

    def edit_comment(self, comment_id: int, body: str) -> Comment:
        return _change(self.comments, _get(self.comments, lambda it: it.comment_id == comment_id), body=body)

    def add_review(self, number: int, body: str, commit_id: str, comments: list[dict[str, Any]]) -> Review:
        self.get_pull_request(number)
        review = Review(1 + len(self.reviews), number, body, commit_id, comments)
        self.reviews.append(review)
        return review

    def put_check_run(self, check_run_id: int | None, sent: dict[str, Any]) -> CheckRun:
        """Creates a check run, or updates the one with that id."""
        if check_run_id is None:
            check_run_id = 1 + len(self.check_runs)
            self.check_runs.append(CheckRun(check_run_id, sent["name"], sent["head_sha"], sent.get("external_id", "")))
        run = self.get_check_run(check_run_id)
        # A conclusion completes the run, and another status takes it back.
        status = "completed" if "conclusion" in sent else sent.get("status", run.status)
        conclusion = sent.get("conclusion", run.conclusion) if status == "completed" else None
        output = dict(sent.get("output", run.output))
        annotations = run.annotations + output.pop("annotations", [])
        changes = {"status": status, "conclusion": conclusion, "output": output, "annotations": annotations}
        return _change(self.check_runs, run, **changes)


def _get[T](entries: list[T], is_wanted: Callable[[T], bool]) -> T:
    for entry in entries:
        if is_wanted(entry):
            return entry
    raise Denied


def _change[T](entries: list[T], former: T, **changes: Any) -> T:
    changed = replace(former, **changes)  # type: ignore[type-var]
    entries[entries.index(former)] = changed
    return changed


_FORMAT = TypeAdapter(Records)


class Store:
    """The records of every repository below `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = threading.Lock()

    def read(self, owner: str, name: str) -> Records:
        try:
            return _FORMAT.validate_json(self._path(owner, name).read_bytes())
        except FileNotFoundError:
            return Records()

    @contextmanager
    def change(self, owner: str, name: str) -> Iterator[Records]:
        """Yields the records, and writes them at the end."""
        with self._lock:
            records = self.read(owner, name)
            yield records
            path = self._path(owner, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_suffix(".new")
            unfinished.write_bytes(_FORMAT.dump_json(records, indent=1))
            unfinished.replace(path)

    def _path(self, owner: str, name: str) -> Path:
        return self._root / owner / f"{name}.json"
