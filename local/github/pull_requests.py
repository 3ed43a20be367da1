"""Pull requests, their comments, and check runs on disk: <root>/<owner>/<name>.json has those of one repository."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from controlplane.platform.core import clock


@dataclass(frozen=True, slots=True)
class PullRequest:
    """`fork`: the owner of the repository that the branch is in, if it isn't in this one."""

    number: int
    title: str
    head: str
    base: str
    state: str = "open"
    fork: str | None = None


@dataclass(frozen=True, slots=True)
class Comment:
    comment_id: int
    number: int
    body: str
    created_seconds: int
    updated_seconds: int


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
class Reviews:
    """Everything of one repository, oldest first."""

    pull_requests: list[PullRequest] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    check_runs: list[CheckRun] = field(default_factory=list)

    def find_pull_request(self, number: int) -> PullRequest | None:
        return next((it for it in self.pull_requests if it.number == number), None)

    def put_pull_request(self, changed: PullRequest) -> None:
        self.pull_requests = [it for it in self.pull_requests if it.number != changed.number] + [changed]

    def add_comment(self, number: int, body: str) -> Comment:
        now = int(clock.now())
        comment = Comment(1 + len(self.comments), number, body, now, now)
        self.comments.append(comment)
        return comment

    def edit_comment(self, comment_id: int, body: str) -> Comment | None:
        for place, comment in enumerate(self.comments):
            if comment.comment_id == comment_id:
                self.comments[place] = replace(comment, body=body, updated_seconds=int(clock.now()))
                return self.comments[place]
        return None

    def put_check_run(self, check_run_id: int | None, sent: dict[str, Any]) -> CheckRun | None:
        """Creates a check run, or updates the one with that id. Returns None if it doesn't exist."""
        if check_run_id is None:
            run = CheckRun(1 + len(self.check_runs), sent["name"], sent["head_sha"], sent.get("external_id", ""))
            self.check_runs.append(run)
        place = next((n for n, it in enumerate(self.check_runs) if check_run_id in (None, it.check_run_id)), None)
        place = len(self.check_runs) - 1 if check_run_id is None else place
        if place is None:
            return None
        run = self.check_runs[place]
        output = sent.get("output", run.output)
        # A conclusion completes the run, and another status takes it back.
        status = "completed" if "conclusion" in sent else sent.get("status", run.status)
        self.check_runs[place] = replace(
            run,
            status=status,
            conclusion=sent.get("conclusion", run.conclusion) if status == "completed" else None,
            output={name: value for name, value in output.items() if name != "annotations"},
            annotations=run.annotations + sent.get("output", {}).get("annotations", []),
        )
        return self.check_runs[place]


class PullRequests:
    """The reviews of every repository below `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = threading.Lock()

    def read(self, owner: str, name: str) -> Reviews:
        try:
            content = json.loads(self._path(owner, name).read_text())
        except FileNotFoundError:
            return Reviews()
        return Reviews(
            [PullRequest(**it) for it in content["pull_requests"]],
            [Comment(**it) for it in content["comments"]],
            [CheckRun(**it) for it in content["check_runs"]],
        )

    @contextmanager
    def change(self, owner: str, name: str) -> Iterator[Reviews]:
        """Yields the reviews, and writes them at the end."""
        with self._lock:
            reviews = self.read(owner, name)
            yield reviews
            path = self._path(owner, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_suffix(".new")
            unfinished.write_text(json.dumps(asdict(reviews), indent=1))
            unfinished.replace(path)

    def _path(self, owner: str, name: str) -> Path:
        return self._root / owner / f"{name}.json"
