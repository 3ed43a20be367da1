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

from local.github import shapes
from local.github.api import describe
from local.github.records import CheckRun, PullRequest, StoredIssue
from local.github.repositories import GitRepository, stable_id

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
    """The App's webhooks, unless there is no URL. Like GitHub, it doesn't repeat what failed by itself."""

    def __init__(self, url: str = "", secret: str = "") -> None:  # nosec B107  # none
        self.url = url
        self.secret = secret
        self.sent: deque[Sent] = deque(maxlen=100)
        """The last deliveries, oldest first."""

    def pull_request(self, repository: GitRepository, changed: PullRequest, action: str, base: str) -> None:
        """Sends that a pull request was opened, pushed to (`synchronize`), closed, or reopened."""
        content = {"action": action, "number": changed.number, "pull_request": describe(repository, changed, base)}
        self._send("pull_request", repository, content, base)

    def push(self, repository: GitRepository, branch: str, base: str) -> None:
        """Sends that a branch was pushed to."""
        head = repository.find_commit(f"refs/heads/{branch}")
        if head is not None:
            content = {"ref": f"refs/heads/{branch}", "before": head.parents[0], "after": head.sha}
            self._send("push", repository, content, base)

    def issue(self, repository: GitRepository, stored: StoredIssue, base: str) -> None:
        """Sends that an issue was closed or reopened."""
        action = "closed" if stored.state == "closed" else "reopened"
        content = {"action": action, "issue": shapes.issue(repository, stored, base)}
        self._send("issues", repository, content, base)

    def check_run(self, repository: GitRepository, run: CheckRun, base: str) -> None:
        """Sends that a person requested a check run again."""
        content = {"action": "rerequested", "check_run": shapes.check_run(repository, run, base)}
        self._send("check_run", repository, content, base)

    def _send(self, event: str, repository: GitRepository, content: dict[str, Any], base: str) -> None:
        common = {
            "installation": {"id": stable_id(repository.owner)},
            "repository": shapes.repository(repository, base),
            "sender": shapes.account(repository.owner, base),
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
        status = self._post(sent.body, headers) if self.url else None
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
