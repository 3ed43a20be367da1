"""Webhooks that the stand-in sends, signed as GitHub signs them, when something changes on its pages."""

import hmac
import json
import logging
import uuid
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import urllib3
from urllib3.exceptions import HTTPError

from local.github import review_shapes, shapes
from local.github.pull_requests import PullRequest
from local.github.repositories import GitRepository, stable_id
from local.github.shapes import Address
from local.github.stand_in import StandIn

_TIMEOUT_SECONDS = 10
_logger = logging.getLogger("local.github")


@dataclass(frozen=True, slots=True)
class Sent:
    """A delivery. `status` is that of its response, or None without one."""

    delivery_id: str
    event: str
    body: bytes = field(repr=False)
    status: int | None = None


class Webhooks:
    """The App's webhooks. Like GitHub, it doesn't repeat what failed, unless a person redelivers it."""

    def __init__(self, stand_in: StandIn, url: str, secret: str) -> None:
        self._stand_in = stand_in
        self.url = url
        self.secret = secret
        self.sent: deque[Sent] = deque(maxlen=100)
        """The last deliveries, oldest first."""

    def pull_request(self, repository: GitRepository, changed: PullRequest, action: str, address: Address) -> None:
        """Sends that a pull request was opened, pushed to (`synchronize`), closed, or reopened."""
        head = repository.find_commit(f"refs/pull/{changed.number}/head")
        base = repository.find_commit(f"refs/heads/{changed.base}")
        if head is not None and base is not None:
            shown = review_shapes.pull_request(repository, changed, head.sha, base.sha, address)
            content = {"action": action, "number": changed.number, "pull_request": shown}
            if action == "synchronize":
                content |= {"before": head.parents[0], "after": head.sha}
            self._send("pull_request", repository, content, address)

    def push(self, repository: GitRepository, branch: str, address: Address) -> None:
        """Sends that a branch was pushed to."""
        head = repository.find_commit(f"refs/heads/{branch}")
        if head is not None:
            self._send("push", repository, shapes.push(repository, branch, head, address), address)

    def issue(self, repository: GitRepository, number: int, action: str, address: Address) -> None:
        """Sends that an issue was closed or reopened."""
        stored = self._stand_in.issues.find(repository.owner, repository.name, number)
        if stored is not None:
            content = {"action": action, "issue": shapes.issue(repository, stored, address)}
            self._send("issues", repository, content, address)

    def check_run(self, repository: GitRepository, check_run_id: int, address: Address) -> None:
        """Sends that a person requested a check run again."""
        for run in self._stand_in.reviews.read(repository.owner, repository.name).check_runs:
            if run.check_run_id == check_run_id:
                shown = review_shapes.check_run(repository, run, address)
                self._send("check_run", repository, {"action": "rerequested", "check_run": shown}, address)

    def _send(self, event: str, repository: GitRepository, content: dict[str, Any], address: Address) -> None:
        common = {
            "installation": {"id": stable_id(repository.owner), "node_id": "I_local"},
            "repository": shapes.repository(repository, address),
            "sender": shapes.account(repository.owner, address, "User"),
        }
        self.deliver(Sent(str(uuid.uuid4()), event, json.dumps({**content, **common}).encode()))

    def deliver(self, sent: Sent) -> int | None:
        """Sends a delivery, for the first time or again, and returns the status of the response."""
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "GitHub-Hookshot/local",
            "X-GitHub-Delivery": sent.delivery_id,
            "X-GitHub-Event": sent.event,
            "X-Hub-Signature-256": f"sha256={hmac.digest(self.secret.encode(), sent.body, 'sha256').hex()}",
        }
        status = self._post(sent.body, headers)
        self.sent.append(Sent(sent.delivery_id, sent.event, sent.body, status))
        return status

    def _post(self, body: bytes, headers: dict[str, str]) -> int | None:
        try:
            response = urllib3.request(
                "POST", self.url, body=body, headers=headers, timeout=_TIMEOUT_SECONDS, retries=False
            )
        except HTTPError as failure:
            _logger.warning("webhook not delivered: %s", type(failure).__name__)
            return None
        return response.status
