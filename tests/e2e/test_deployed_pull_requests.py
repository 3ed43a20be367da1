"""A pull request in the deployed product: from connecting GitHub to the check run and the comment."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from controlplane.code_host import pull_requests
from controlplane.platform.core.ids import ProjectId, RepositoryId
from local.github.records import CheckRun, Comment
from local.github.setup import DEMO_BRANCH, DEMO_FILES, installation_id
from tests.e2e.deployment import Stack
from tests.e2e.external import ExternalServices
from tests.e2e.failures import paused
from tests.e2e.people import Caller, Device, Operator, Person
from tests.e2e.story import Scans, eventually
from tests.support.browser import text_of
from tests.support.world import World

OWNER, NAME = "open-shop", "storefront"
FULL_NAME = f"{OWNER}/{NAME}"
TRACKER = '<!doctype html><script async src="https://www.googletagmanager.com/gtag/js?id=G-1"></script>'
VIDEO = '<!doctype html><iframe src="https://www.youtube.com/embed/1"></iframe>'
_WAITING = "ApproximateNumberOfMessages"


@dataclass
class Shop:
    """Hedy's organization, whose repository is connected and linked, and has a completed scan."""

    stack: Stack
    external: ExternalServices
    hedy: Person
    slug: str
    call: Caller
    project_id: str
    repository_id: str

    def change(self, page: str, **fields: str) -> str:
        """Submits a form of the code host, which sends a signed webhook. Returns the pull request's head commit."""
        reply = httpx.post(f"{self.external.url}/{FULL_NAME}/{page}", data=fields, trust_env=False, timeout=60)
        assert reply.status_code == 303, reply.text
        self._require_delivered()
        head = self._repository.find_commit("refs/pull/1/head")
        assert head is not None
        return head.sha

    def _require_delivered(self) -> None:
        """Redelivers the last webhook, as a person does at GitHub, if the response took too long."""
        webhooks = self.external.webhooks
        sent = webhooks.sent[-1]
        status = sent.status or eventually(lambda: webhooks.deliver(sent), "a response to a webhook", self.stack)
        assert status == 202, self.stack.errors()

    @property
    def _repository(self) -> Any:
        return self.external.github.repositories.find(OWNER, NAME)

    @property
    def checks(self) -> list[CheckRun]:
        return self.external.github.reviews.read(OWNER, NAME).check_runs

    @property
    def comments(self) -> list[Comment]:
        return self.external.github.reviews.read(OWNER, NAME).comments

    def conclusions(self) -> list[tuple[str, str | None]]:
        """Returns the commit and the conclusion of each check run, in the order of their creation."""
        return [(it.head_sha, it.conclusion) for it in self.checks]

    def wait_for_checks(self, *expected: tuple[str, str | None]) -> list[CheckRun]:
        """Waits until the code host shows these check runs: the commit and the conclusion of each."""
        try:
            return eventually(
                lambda: self.checks if self.conclusions() == [*expected] else None, f"check runs {expected}", self.stack
            )
        except AssertionError as late:
            late.add_note(f"found: {self.conclusions()}")
            raise

    def scans(self) -> dict[str, str]:
        """Returns the statuses of the pull request's scans, by commit."""
        found = self.call(200, "GET", f"/v1/code-audit/scans?repositoryId={self.repository_id}")
        return {it["headCommitSha"]: it["status"] for it in found if it["pullRequestNumber"] == 1}

    def wait_for_scan(self, head: str, status: str) -> None:
        eventually(lambda: self.scans().get(head) == status or None, f"a {status} scan of {head}", self.stack)

    def wait_for_end(self) -> None:
        """Waits until the product knows that the pull request is closed, and has taken every later event."""
        names = RepositoryId.stored(self.repository_id), ProjectId.stored(self.project_id), 1
        url, sqs = self.stack.physical_ids["GithubEventsQueue"], self.stack.client("sqs")

        def poll() -> bool | None:
            item = pull_requests.find(*names)
            counted = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[_WAITING])["Attributes"]
            return (item is not None and item.closed and counted[_WAITING] == "0") or None

        eventually(poll, "the end of the pull request", self.stack)


def scan_first(stack: Stack, hedy: Person, slug: str) -> None:
    """Installs the App as the person, and starts the first scan of the repository for a new project."""
    page = hedy.open(303, f"/organizations/{slug}/github").headers["location"]
    installation = page.replace("/installations/new", f"/installations/{installation_id(OWNER)}")
    callback = httpx.get(installation, trust_env=False).headers["location"]
    stack.secrets.update(parse_qs(urlsplit(callback).query)["code"])
    assert FULL_NAME in text_of(hedy.open(200, callback))
    hedy.press(303, "Start the first scan")


@pytest.fixture(scope="module")
def shop(stack: Stack, operator: Operator, external: ExternalServices, world: World) -> Shop:
    external.github.repositories.create(OWNER, NAME, DEMO_FILES, DEMO_BRANCH)
    hedy = Person(stack, "hedy@shop.example.com", "Hedy Lamarr")
    hedy.sign_in("/organizations")
    device = Device(stack, "Hedy's laptop")
    device.approved_by(hedy)
    device.redeem()
    call = Caller(stack, device.access_token)
    slug = call(201, "POST", "/v1/organizations", {"name": "Open shop"})["slug"]
    operator("plan", "set", slug, "starter")
    scan_first(stack, hedy, slug)
    (project,) = call(200, "GET", "/v1/projects")
    (repository,) = call(200, "GET", "/v1/code-audit/repositories")
    listed = f"/v1/code-audit/scans?repositoryId={repository['id']}"
    (scan,) = eventually(lambda: call(200, "GET", listed) or None, "the first scan", stack)
    assert Scans(call, repository["id"]).wait_for_end(scan["id"])["status"] == "completed"
    return Shop(stack, external, hedy, slug, call, project["projectId"], repository["id"])


def test_a_pull_request_is_followed_from_its_opening_to_its_end(shop: Shop):
    first = shop.change("pulls", title="A change", path="new.html", content=TRACKER)
    (check,) = shop.wait_for_checks((first, "failure"))
    assert {it["path"] for it in check.annotations} == {"new.html"}
    (comment,) = eventually(lambda: shop.comments or None, "the comment", shop.stack)
    assert "new.html" in comment.body

    # Each push is noticed before the next one, and the scan of the first is canceled before it starts. Its check run
    # must exist by then: a commit that is superseded before its first report gets none.
    with paused(shop.stack, shop.stack.physical_ids["ScanExecutionMessages"]):
        second = shop.change("pull/1/push", path="second.html", content=VIDEO)
        shop.wait_for_scan(second, "queued")
        shop.wait_for_checks((first, "failure"), (second, None))
        third = shop.change("pull/1/push", path="third.html", content=VIDEO)
        shop.wait_for_scan(second, "canceled")
    ended = (first, "failure"), (second, "cancelled"), (third, "failure")
    assert {it["path"] for it in shop.wait_for_checks(*ended)[-1].annotations} >= {"new.html", "third.html"}
    edited = eventually(lambda: [it for it in shop.comments if "third.html" in it.body] or None, "an edit", shop.stack)
    assert [it.comment_id for it in shop.comments] == [it.comment_id for it in edited] == [comment.comment_id]

    # A push to a pull request that is closed has no effect.
    shop.change("pull/1/state", state="closed")
    shop.change("pull/1/push", path="fourth.html", content=TRACKER)
    shop.wait_for_end()
    assert shop.scans() == {first: "completed", second: "canceled", third: "completed"}
    assert shop.conclusions() == [*ended]
    assert shop.comments == edited
    assert "Pull request #1" in text_of(shop.hedy.open(200, f"/organizations/{shop.slug}/scans"))
