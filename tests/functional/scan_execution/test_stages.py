"""A scan's stages as a client that polls the scan sees them: its progress, and its inventory."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from controlplane.billing import store as billing
from controlplane.code_host.items import RepositoryItem
from controlplane.platform.core import clock
from controlplane.platform.queues.messages import ExecuteScan
from controlplane.platform.table.table import table
from controlplane.scans.items import STAGES, ScanItem
from openassent_analysis.sandbox import Sandbox
from scan_execution import service
from scan_execution.service import SECONDS_BETWEEN_REPORTS
from tests.functional.scan_execution.test_execute_scan import Interrupted, deliver, send
from tests.support.api import Api
from tests.support.audits import make_scan
from tests.support.calls import Call, Proceed, intercepted
from tests.support.code_host import SHA, FakeHost, archive
from tests.support.outcomes import Aborted
from tests.support.sqs import FakeSqs
from tests.support.world import Company, World

WRITES = {"BatchWriteItem", "PutItem", "TransactWriteItems", "UpdateItem"}
FILES: dict[str, str | bytes] = {
    "Gemfile": 'gem "rails", "~> 8.0"\n',
    "Gemfile.lock": "x",
    "package.json": '{"dependencies": {"next": "^15.3.0", "posthog-js": "^1.2.0", "@stripe/stripe-js": "*"}, '
    '"packageManager": "pnpm@9.1.0"}',
    "app/models/user.rb": "class User; end\n",
    "app/models/shop.rb": "class Shop; end\n",
    "app/views/home.html.erb": "<p>",
    "app/index.html": '<script src="https://static.hotjar.com/c/hotjar-1.js"></script>\n',
    "app/consent.js": "if (consent.given) { const s = document.createElement('script'); "
    "s.src = 'https://eu.posthog.com/static/array.js'; }\n",
    "logo.png": b"\x89PNG",
}


class Line:
    """A company with one scan, polled by its owner."""

    def __init__(self, world: World, api: Api, sqs: FakeSqs, **scan: Any) -> None:
        self.company: Company = world.company()
        self.repository: RepositoryItem = world.connected_repository(self.company)
        self.scan: ScanItem = make_scan(self.repository, status="queued", **scan)
        self.api, self._world, self._sqs = api, world, sqs
        self._polling = False
        self.seen: list[tuple[str, str | None, int]] = []
        self._letter = send(sqs, ExecuteScan(scan_id=self.scan.scan_id))

    def poll(self) -> dict[str, Any]:
        self._polling = True
        token = self._world.token(self.company.owner.user_id)  # a new session: hours may have passed
        reply = self.api.get(f"/v1/code-audit/scans/{self.scan.scan_id}", token)
        self._polling = False
        assert reply.status == 200, reply.text
        progress = reply.data["progress"]
        assert progress["totalStages"] == len(STAGES)
        self.seen.append((progress["stage"], progress["stageStatus"], progress["completedStages"]))
        return reply.data

    def deliver(self, host: FakeHost | None = None) -> None:
        deliver(self._sqs, self._letter, host or FakeHost(archives={SHA: archive(FILES)}))

    @contextmanager
    def polled_around_every_write(self) -> Iterator[None]:
        """While open, polls before and after every write of the worker."""

        def around(call: Call, proceed: Proceed) -> Any:
            if self._polling or call.operation not in WRITES:
                return proceed()
            self.poll()
            answer = proceed()
            self.poll()
            return answer

        with intercepted(table.client, around):
            yield


def _hooked(on_examine: Callable[[], object]) -> type[Sandbox]:
    """Returns a sandbox that runs a callback before the first file: once in each stage that examines files."""

    class Hooked(service.Sandbox):  # type: ignore[misc, name-defined]  # the one of the tests, whose start is shared
        def examine(self, requests: Any, deadline: float) -> Any:
            on_examine()
            yield from super().examine(requests, deadline)

    return Hooked


def distinct[T](values: list[T]) -> list[T]:
    return [value for number, value in enumerate(values) if number == 0 or value != values[number - 1]]


@pytest.fixture
def line(world: World, api: Api, sqs: FakeSqs) -> Line:
    return Line(world, api, sqs)


class TestProgress:
    def test_the_stages_are_shown_in_order_around_every_write(self, line):
        with line.polled_around_every_write():
            line.deliver()
        expected = [("fetch", "pending", 0)]
        for number, stage in enumerate(STAGES):
            expected += [(stage, "running", number), (stage, "completed", number + 1)]
        assert distinct(line.seen) == expected
        # The inventory is null until its stage is completed, and shown from then on.
        polled = [reply.data for reply in line.api.replies if "inventory" in (reply.data or {})]
        assert len(polled) == len(line.seen)
        for scan in polled:
            assert (scan["inventory"] is not None) is (scan["progress"]["completedStages"] >= 2)

    @pytest.mark.parametrize("dies_in", STAGES)
    def test_a_retry_shows_its_stage_and_the_completed_stages_dont_decrease(self, dies_in, line, now, monkeypatch):
        deaths = [dies_in]

        def die() -> None:
            if deaths == [line.poll()["progress"]["stage"]]:
                deaths.clear()
                raise Aborted

        monkeypatch.setattr(service, "Sandbox", _hooked(die))

        def around(call: Call, proceed: Proceed) -> Any:
            if call.operation == "BatchWriteItem":
                die()
            return proceed()

        with intercepted(table.client, around):
            with pytest.raises(Aborted):
                line.deliver(Interrupted(die, FILES))
            now.advance(2_520)
            with line.polled_around_every_write():
                line.deliver(Interrupted(line.poll, FILES))
        completed = [count for _, _, count in line.seen]
        assert completed == sorted(completed)
        died_after = STAGES.index(dies_in)
        assert ("fetch", "running", died_after) in line.seen
        for number, stage in enumerate(STAGES):
            assert (stage, "running", max(number, died_after)) in line.seen
            assert (stage, "completed", max(number + 1, died_after)) in line.seen
        assert line.poll()["status"] == "completed"
        assert line.seen[-1] == ("publish", "completed", 4)

    def test_a_long_analysis_counts_its_files(self, line, monkeypatch, now):
        counts: list[Any] = []

        class Slow(service.Sandbox):  # type: ignore[misc, name-defined]
            def examine(self, requests: Any, deadline: float) -> Any:
                for answer in super().examine(requests, float("inf")):
                    now.advance(SECONDS_BETWEEN_REPORTS / 2)
                    yield answer
                    progress = line.poll()["progress"]
                    counts.append((progress["stage"], progress["analyzedFiles"], progress["filesToAnalyze"]))

        monkeypatch.setattr(service, "Sandbox", Slow)
        monkeypatch.setattr(clock, "monotonic_source", now)
        source = {f"src/{number}.js": f"a({number})\n" for number in range(5)}
        line.deliver(FakeHost(archives={SHA: archive({**source, "logo.png": "x"})}))
        assert counts == [
            ("analyze", None, None), ("analyze", 2, 5), ("analyze", 2, 5), ("analyze", 4, 5), ("analyze", 4, 5),
        ]  # fmt: skip
        progress = line.poll()["progress"]
        assert (progress["analyzedFiles"], progress["filesToAnalyze"]) == (None, None)


class TestInventory:
    def test_lists_languages_frameworks_package_managers_and_vendors(self, world, api, sqs):
        line = Line(world, api, sqs, again="full")
        line.deliver()
        assert line.poll()["inventory"] == {
            "files": 9,
            "languages": [
                {"name": "Ruby", "files": 3, "bytes": 54},
                {"name": "JavaScript", "files": 1, "bytes": 117},
                {"name": "HTML", "files": 1, "bytes": 64},
                {"name": "HTML+ERB", "files": 1, "bytes": 3},
            ],
            "frameworks": [
                {"id": "nextjs", "name": "Next.js", "version": "^15.3.0", "path": "package.json"},
                {"id": "rails", "name": "Ruby on Rails", "version": "~> 8.0", "path": "Gemfile"},
            ],
            "packageManagers": [
                {"id": "bundler", "name": "Bundler", "version": None, "path": "Gemfile"},
                {"id": "pnpm", "name": "pnpm", "version": "9.1.0", "path": "package.json"},
            ],
            "vendors": [
                {
                    "id": "hotjar", "name": "Hotjar", "category": "session-replay", "packages": [],
                    "hosts": ["static.hotjar.com"], "loadingFiles": 1, "ungatedFiles": 1,
                },
                {
                    "id": "posthog", "name": "PostHog", "category": "analytics",
                    "packages": [{"name": "posthog-js", "version": "^1.2.0", "path": "package.json"}],
                    "hosts": ["eu.posthog.com"], "loadingFiles": 1, "ungatedFiles": 0,
                },
                {
                    "id": "stripe", "name": "Stripe", "category": "payments",
                    "packages": [{"name": "@stripe/stripe-js", "version": None, "path": "package.json"}],
                    "hosts": [], "loadingFiles": None, "ungatedFiles": None,
                },
            ],
            "truncated": False,
        }  # fmt: skip

    @pytest.mark.parametrize("access", ["free-preview", "locked"])
    def test_of_a_scan_with_locked_findings_shows_only_what_manifests_name(self, access, world, api, sqs):
        line = Line(world, api, sqs, **({} if access == "free-preview" else {"again": access}))
        line.deliver()
        shown = line.poll()
        assert (shown["access"], shown["status"]) == (access, "completed")
        vendors = {it.pop("id"): it for it in shown["inventory"]["vendors"]}
        assert set(vendors) == {"posthog", "stripe"}
        assert vendors["posthog"] == {
            "name": "PostHog", "category": "analytics", "hosts": [], "loadingFiles": None, "ungatedFiles": None,
            "packages": [{"name": "posthog-js", "version": "^1.2.0", "path": "package.json"}],
        }  # fmt: skip
        assert len(shown["inventory"]["languages"]) == 4

    def test_of_a_failed_scan_is_kept_if_its_stage_was_completed(self, line, now, monkeypatch):
        def die_in_analysis() -> None:
            if line.poll()["progress"]["stage"] == "analyze":
                raise LookupError

        monkeypatch.setattr(service, "Sandbox", _hooked(die_in_analysis))
        for _ in range(4):
            line.deliver()
            now.advance(2_520)
        shown = line.poll()
        assert shown["status"] == "failed"
        assert (shown["progress"]["stage"], shown["progress"]["stageStatus"]) == ("analyze", "failed")
        assert shown["inventory"]["files"] == 9

    def test_of_an_unlocked_scan_shows_what_the_code_loads_and_is_in_no_list(self, line):
        line.deliver()
        coverage = line.poll()["coverage"]
        assert (coverage["files"], coverage["analyzedFiles"], coverage["skipped"]) == (9, 4, {"other kind of file": 5})
        ruby, *others = coverage["kinds"]
        assert ruby == {"name": "Ruby", "analyzedFiles": 0, "unassessedFiles": 2}
        names = ["ERB", "HTML", "JavaScript and TypeScript", "package manifests"]
        assert [(it["name"], it["analyzedFiles"]) for it in others] == [(name, 1) for name in names]
        assert "inventory" not in (table.get(line.scan.key) or {"inventory": None})
        path, token = "/v1/code-audit/scans", line.company.owner.token
        (listed,) = line.api.get(f"{path}?organizationId={line.company.organization_id}", token).data
        assert "inventory" not in listed
        billing.add_credits(line.company.organization_id, 50)
        assert line.api.post(f"{path}/{line.scan.scan_id}/unlock", token).status == 200
        assert "hotjar" in {it["id"] for it in line.poll()["inventory"]["vendors"]}
