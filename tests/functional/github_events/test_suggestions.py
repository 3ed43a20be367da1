"""Suggestions of fixes in reviews of pull requests, for findings whose scan is made for it."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from controlplane.code_host import pull_requests
from controlplane.code_host.items import RepositoryItem
from controlplane.code_host.pull_requests import PullRequestItem
from controlplane.findings.fixes import Edit, Fix
from controlplane.platform.queues import messages
from controlplane.platform.table.stored import to_map
from controlplane.platform.table.table import Update, table
from controlplane.scans.findings import FindingItem
from controlplane.scans.items import Comparison
from local.github.records import Review
from local.github.stand_in import PERMISSIONS
from tests.functional.github_events.conftest import DEMO, Events
from tests.support.audits import make_issue, make_scan
from tests.support.github import GitHub
from tests.support.github_faults import Fault
from tests.support.table import PREPARED

REVIEWS = "POST /repos/{owner}/{repo}/pulls/{pull_number}/reviews"
TRACKER = '<script async src="a.js"></script>'
PAGE = "\n".join(["<!doctype html>", *(f"{TRACKER}<!-- {line} -->" for line in range(2, 31)), ""])


def fixed(number: int = 2, path: str = "new.html", after: str = "<b>", **changes: str) -> FindingItem:
    """Returns a finding in that line, with an edit of it."""
    edit = Edit(path, number, f"{TRACKER}<!-- {number} -->", after)._replace(**changes)
    return replace(make_issue(number, path=path), fix=Fix("It waits.", "html", "", edits=(edit,)))


class Change:
    """A pull request that adds files, by default `new.html`, and its scans."""

    def __init__(self, repository: RepositoryItem, events: Events, code_host: GitHub) -> None:
        self._repository, self._events, self._code_host = repository, events, code_host
        self._production = make_scan(repository)
        opened = code_host.stand_in.open_pull_request(*DEMO, "A change", {"new.html": PAGE, "other.html": PAGE})
        self.number, self.head = opened.pull_request.number, opened.head
        project_id = repository.links[0].project_id
        item = PullRequestItem(
            repository_id=repository.repository_id, project_id=project_id, number=self.number, head_sha=self.head
        )
        self._key = item.key
        table.put_all([item.to_item()], PREPARED)

    def push(self) -> None:
        files = {"other.html": PAGE + self.head}
        self.head = self._code_host.stand_in.push(*DEMO, self.number, files).head

    def scan(self, new: Sequence[FindingItem], *, has_base: bool = True) -> list[Review]:
        """Completes a scan of the head with these new findings, and returns the reviews after its report."""
        scan = make_scan(self._repository, access="full", issues=new, commit=self.head)
        compared = Comparison(self._production.scan_id if has_base else None, 0, ())
        table.update(Update(scan.key, "SET #comparison = :it", values={"it": to_map(compared)}), PREPARED)
        values = {"scan": scan.scan_id, "sha": self.head}
        table.update(Update(self._key, "SET #scanId = :scan, #headSha = :sha", values=values), PREPARED)
        return self.report()

    def report(self) -> list[Review]:
        report = pull_requests.report_entry(
            self._repository.repository_id, self._repository.links[0].project_id, self.number
        )
        messages.dispatch(report)
        self._events.work()
        return self._code_host.stand_in.reviews.read(*DEMO).reviews

    @property
    def item(self) -> PullRequestItem:
        return PullRequestItem.from_item(table.get(self._key) or {})


@pytest.fixture
def change(reviewed: RepositoryItem, events: Events, code_host: GitHub) -> Change:
    return Change(reviewed, events, code_host)


def checked(code_host: GitHub) -> list[str | None]:
    return [run.conclusion for run in code_host.stand_in.reviews.read(*DEMO).check_runs]


class TestReview:
    def test_suggests_the_lines_that_fix_a_finding_at_its_place(self, change, code_host):
        (review,) = change.scan([replace(fixed(after='<script type="text/plain">\n</script>'), title="It *is* loaded")])
        assert (review.number, review.commit_id) == (change.number, change.head)
        assert review.body == (
            f"<!-- assent:{change.item.marker}:{change.head} -->\n"
            "Fixes for findings that this pull request adds. Read each one before you commit it."
        )
        text = '**It \\*is\\* loaded**\n\nIt waits.\n\n```suggestion\n<script type="text/plain">\n</script>\n```'
        assert review.comments == [{"path": "new.html", "line": 2, "side": "RIGHT", "body": text}]
        assert change.item.suggested == (fixed().fingerprint,)
        assert checked(code_host) == ["failure"]

    def test_a_fix_of_several_lines_and_places_says_so_and_what_it_needs(self, change):
        lines = "\n".join(PAGE.split("\n")[4:7])
        edits = (Edit("new.html", 5, lines, ""), Edit("other.html", 3, f"{TRACKER}<!-- 3 -->", "<i>"))
        fix = Fix("It waits.", "html", "", ("c15t@^2.2",), edits)
        (review,) = change.scan([replace(make_issue(), fix=fix)])
        first, second = review.comments
        assert (first["start_line"], first["line"], first["start_side"]) == (5, 7, "RIGHT")
        needs = "It waits.\n\nNeeds `c15t@^2.2`.\n\nThis fix has 2 suggestions. Commit them together.\n\n"
        assert first["body"].endswith(f"{needs}```suggestion\n```")
        assert second["body"].endswith(f"{needs}```suggestion\n<i>\n```")

    def test_nothing_of_the_repository_leaves_the_block_or_mentions_a_person(self, change):
        after = "```\n@octocat #1\n````suggestion\n~~~"
        (review,) = change.scan([replace(fixed(after=after), title="See\n@octocat ```")])
        (comment,) = review.comments
        assert comment["body"].endswith(f"\n\n`````suggestion\n{after}\n`````")
        assert comment["body"].startswith("**See @\u200boctocat")
        assert "@octocat" not in comment["body"].partition("\n")[0]

    @pytest.mark.parametrize(
        "finding",
        [
            make_issue(),
            fixed(path="index.html"),
            fixed(path="consent.ts", number=1, before=""),
            fixed(number=30, before="a\nb\nc"),
            fixed(after="a\r\nb"),
            fixed(after="a\u202eb"),
        ],
        ids=["no edit", "not in the diff", "a new file", "ends after it", "other line ends", "another direction"],
    )
    def test_a_fix_that_cannot_be_suggested_there_is_left_to_the_check(self, finding, change, code_host):
        assert change.scan([finding]) == []
        assert code_host.sent(REVIEWS) == []
        assert checked(code_host) == ["failure"]

    def test_has_at_most_ten_comments_each_on_lines_of_its_own(self, change):
        overlapping = replace(fixed(), fingerprint="f" * 64)
        (review,) = change.scan([fixed(), overlapping, *(fixed(number) for number in range(3, 20))])
        assert [comment["line"] for comment in review.comments] == [*range(2, 12)]

    def test_findings_that_may_not_be_new_get_none(self, change, code_host):
        assert change.scan([fixed()], has_base=False) == []
        assert checked(code_host) == ["neutral"]


class TestOnce:
    def test_a_repeated_report_and_a_newer_commit_suggest_nothing_again(self, change):
        found = [fixed(number) for number in range(2, 14)]
        first = change.scan(found)
        assert change.report() == first
        change.push()
        # The two that were too many are suggested now.
        _, second = change.scan(found)
        assert [comment["line"] for comment in second.comments] == [12, 13]
        change.push()
        assert len(change.scan(found)) == 2

    def test_a_review_whose_response_was_lost_is_found_again(self, change, code_host, now):
        code_host.stand_in.faults.add(REVIEWS, Fault(502, takes_effect=True))
        change.scan([fixed()])
        assert change.item.suggested == ()
        now.advance(61)
        assert len(change.report()) == 1
        assert change.item.suggested == (fixed().fingerprint,)
        assert len(code_host.sent(REVIEWS)) == 1

    def test_a_review_that_github_did_not_create_is_sent_again(self, change, code_host, now):
        code_host.stand_in.faults.add(REVIEWS, Fault(502))
        assert change.scan([fixed()]) == []
        now.advance(61)
        assert len(change.report()) == 1

    def test_a_pull_request_gets_no_more_than_fifty(self, change):
        many = [fixed(number) for number in range(2, 31)]
        table.update(Update(change._key, "SET #suggested = :it", values={"it": ["0" * 64] * 49}), PREPARED)
        (review,) = change.scan(many)
        assert len(review.comments) == 1


class TestRefused:
    def test_the_check_and_the_comment_do_until_the_permission_is_granted(self, change, code_host, monkeypatch):
        with monkeypatch.context() as reduced:
            granted = {**PERMISSIONS, "pull_requests": "read"}
            reduced.setattr(code_host.stand_in, "permissions", lambda _: granted)
            assert change.scan([fixed()]) == []
        assert checked(code_host) == ["failure"]
        assert len(code_host.stand_in.reviews.read(*DEMO).comments) == 1
        assert (change.item.creating, change.item.suggested) == (None, ())
        assert len(change.report()) == 1

    def test_the_check_and_the_comment_do_if_github_rejects_the_lines(self, change, code_host, sqs):
        code_host.stand_in.faults.add(REVIEWS, Fault(422))
        assert change.scan([fixed()]) == []
        assert checked(code_host) == ["failure"]
        assert (change.item.creating, change.item.suggested, sqs.letters) == (None, (), [])
        assert len(code_host.sent(REVIEWS)) == 1
