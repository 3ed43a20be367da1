"""One item's issue, and everything that can happen to it at once, as a state machine.

People and workers are acts in their own threads, as in a schedule. Each stops before every call that concerns the item
and before every request to the code host, and the test, or Hypothesis, chooses which of them goes on, dies, or loses a
response. After each call, the properties of the item, its attempt, and the code host are checked.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any, NamedTuple
from unittest import mock

from awsclient.errors import NoAnswer
from controlplane.code_host import repositories
from controlplane.code_host.github import transport
from controlplane.findings import inbox, issue_attempts
from controlplane.findings.issue_attempts import IssueExists, RepositoryUnlinked, RoleLost
from controlplane.findings.items import GithubIssue
from controlplane.platform.core import clock, deadline
from controlplane.platform.queues.messages import Queue
from controlplane.platform.queues.worker import Delayed, LeftToSweep, Postponed, Rejected
from controlplane.platform.table import keys
from controlplane.platform.table.legs import decode_item, encode_item
from controlplane.platform.table.retry import StoreError
from controlplane.platform.table.table import Delete, Update, table
from issue_creation.service import settle_attempt
from ops import issues as operators
from ops.output import Refused
from tests.races.schedules import Actor, current
from tests.races.stage import RACE_TIME
from tests.support.calls import Call, Proceed, intercepted
from tests.support.issue_host import HostedIssue, IssueHost
from tests.support.outcomes import Aborted, Outcome
from tests.support.sqs import FakeSqs
from tests.support.sweeping import swept
from tests.support.table import PREPARED
from tests.support.world import World

# A pause can last until a worker's timeout, the code host's list can lag, and both together take less than the time
# after which an issue that isn't listed doesn't exist.
WORKER_SECONDS = 60
LAGS_SECONDS = (0, 30, 400)
# An issue of the item that a person has opened, and that a request links.
EXISTING = 42
FAULTS = ("crash before", "crash after", "request lost", "response lost", "sent twice")
_NUMBERS = count(1)
_ROUNDS = 12

type Step = tuple[str, *tuple[Any, ...]]


class Died(Aborted):
    """The process died here."""


class Violated(AssertionError):
    """A property doesn't hold."""


class State(NamedTuple):
    """The item and its attempt as stored, or None, and how many issues the product has opened for the item."""

    item: dict[str, Any] | None
    attempt: dict[str, Any] | None
    opened: int

    @property
    def link(self) -> int | None:
        return self.item["githubIssue"]["number"] if self.item and "githubIssue" in self.item else None

    @property
    def refusal(self) -> Any:
        return self.item and self.item.get("issueRefusal")

    @property
    def claimed(self) -> tuple[Any, ...] | None:
        """Returns what identifies the attempt, its state, and the worker that is sending."""
        if self.attempt is None:
            return None
        marker, state, claim = (self.attempt.get(name) for name in ("marker", "state", "claim"))
        return marker, state, claim if state == "sending" else None


class Act(Actor):
    """A person's or a worker's act. `seen`: what it last read or wrote; `written`: the attempt as it last wrote it."""

    def __init__(self, kind: str, act: Callable[[], Any], person: str = "") -> None:
        super().__init__(act)
        self.kind, self.person, self.started = kind, person, clock.now()
        self.fault: str | None = None
        self.seen: State | None = None
        self.written: tuple[Any, ...] | None = None
        self.struck = self.dead = self.began = False


class IssueModel:
    """`step` does one step by name, so that a list of steps is a schedule that can be printed and repeated."""

    def __init__(
        self, client: Any, world: World, host: IssueHost, sqs: FakeSqs, set_clock: Callable[[float], None]
    ) -> None:
        self.host, self.sqs, self.set_clock = host, sqs, set_clock
        set_clock(RACE_TIME)
        company = world.company()
        self.repository = world.connected_repository(
            company, name=f"shop{next(_NUMBERS)}", installation_id=next(_NUMBERS)
        )
        self.people = [company.owner.user_id, world.member(company, "admin").user_id]
        self.organization_id = company.organization_id
        item = world.finding(company, self.repository)
        self.item_id, self.title = item.item_id, item.title
        self._hosted_name = f"{self.repository.owner}/{self.repository.name}"
        host.issues[self._hosted_name] = [HostedIssue(EXISTING, "By hand", "", RACE_TIME, RACE_TIME)]
        host.lag_seconds, host.around = 0, self._around_host
        host.script.clear()
        host.list_script.clear()
        self._call = client.call  # not intercepted
        self.acts: list[Act] = []
        self.demoted: set[str] = set()
        self.is_removed = self.is_ended_by_hand = self.is_unlinked = False
        self.steps: list[Step] = []
        self._violations: list[BaseException] = []
        self._last: State | None = None

    @classmethod
    @contextmanager
    def opened(cls, client: Any, *parts: Any) -> Iterator["IssueModel"]:
        model = cls(client, *parts)
        with (
            intercepted(client, model._around_table),
            mock.patch.object(time, "sleep"),
            # Acts wait for each other, on a busy machine longer than any of the product's time limits.
            mock.patch.object(deadline, "source", return_value=0.0),
            mock.patch.object(transport.Deadline, "remaining_seconds", WORKER_SECONDS),
        ):
            try:
                yield model
            finally:
                for act in model.acts:
                    act.abandon()

    def step(self, name: str, *arguments: Any) -> None:
        self.steps.append((name, *arguments))
        self._last = None
        try:
            getattr(self, name)(*arguments)
        except BaseException as error:
            error.add_note("Schedule:\n" + "\n".join(f"    {step!r}," for step in self.steps))
            raise

    # Acts, which start with their first call pending

    def request(self, person: int, existing: int | None) -> None:
        user_id = self.people[person]
        repository_id = self.repository.repository_id

        def begin() -> tuple[issue_attempts.AttemptItem, bool]:
            return issue_attempts.begin_attempt(self.item_id, user_id, existing, repository_id=repository_id)

        self._start(Act("request", begin, user_id))

    def deliver(self, calls: int = 0) -> None:
        """Delivers the item's message, in time, late, or once more, and lets the worker make some calls."""
        self._start(Act("worker", lambda: settle_attempt(self.item_id)))
        self.go(-1, calls)

    def correct(self) -> None:
        """An operator who sees an issue that the product has opened records it."""
        found = [issue for issue in self._issues() if issue.number != EXISTING]
        if found:
            self._start(Act("correction", lambda: self._complete(found[0])))

    def withdraw(self) -> None:
        """An operator who sees no issue confirms that the attempt opened none."""
        progress = issue_attempts.find_progress(self.item_id)
        if progress is None or progress.attempt is None or self.state().opened:
            return
        attempt, self.is_ended_by_hand = progress.attempt, True
        act = Act("withdrawal", lambda: operators.withdraw(attempt))
        act.seen = self.state()
        self._start(act)

    def go(self, index: int, calls: int) -> None:
        """Lets one of the running acts make some calls."""
        act = self._running(index)
        for _ in range(calls):
            if act is not None and act.outcome is None:
                self._go(act)

    def strike(self, index: int, fault: str) -> None:
        act = self._running(index)
        if act is not None:
            act.fault = fault
            self._go(act)

    # What happens at once

    def link_by_hand(self) -> None:
        """A person records the issue that exists, unless one may be under way."""
        state = self.state()
        if state.item and state.link is None and not state.opened and (state.attempt or {}).get("state") != "sending":
            (issue,) = self._issues()
            self._complete(issue)
            self.is_ended_by_hand = True

    def answer_next(self, outcome: Any) -> None:
        """Chooses the outcome of the next request for an issue."""
        self.host.script.append(outcome)

    def fail_next_list(self, status: int) -> None:
        self.host.list_script.append(status)

    def lag(self, seconds: int) -> None:
        self.host.lag_seconds = seconds

    def advance(self, seconds: int) -> None:
        """Workers have a timeout. People don't."""
        self.set_clock(clock.now() + seconds)
        for act in self.acts:
            if act.kind == "worker" and clock.now() - act.started >= WORKER_SECONDS:
                act.dead = True
                act.abandon()

    def sweep(self) -> None:
        self.sqs.letters.clear()
        swept(issue_attempts.resend_overdue)

    def demote(self, person: int) -> None:
        key = keys.membership(self.people[person], self.organization_id)
        table.update(Update(key, "SET #role = :role", None, {"role": "member"}), PREPARED)
        self.demoted.add(self.people[person])

    def unlink(self) -> None:
        """Unlinks the repository from its project."""
        if not self.is_unlinked:
            repositories.unlink_project(self.repository.repository_id, self.repository.links[0].project_id)
            self.is_unlinked = True

    def remove(self) -> None:
        """Deletes the item with its repository, and so its attempt."""
        table.delete(Delete(keys.issue_attempt(self.item_id)), PREPARED)
        self.expire()

    def expire(self) -> None:
        """Deletes the item by its time to live."""
        table.delete(Delete(keys.inbox_item(*self.item_id.location)), PREPARED)
        self.is_removed = True

    def settle(self) -> None:
        """Ends all acts. Then sweeps, whenever the attempt is due, have to finish what is left."""
        for act in self.acts:
            act.abandon()
        if self.is_removed:
            return
        self.host.script.clear()
        self.host.list_script.clear()
        pending = self.state().attempt
        for _ in range(_ROUNDS):
            attempt = self.state().attempt
            if attempt is None:
                break
            self.set_clock(max(clock.now(), attempt["dueAt"]))
            self.sweep()
            sent = [letter for letter in self.sqs.at(Queue.ISSUE_CREATION.url) if self.item_id in letter.body]
            self._require(len(sent) == 1, "the sweep doesn't see the attempt")
            with suppress(Postponed, Delayed, LeftToSweep):
                settle_attempt(self.item_id)
        state = self.state()
        self._require(state.attempt is None, "the attempt stays open")
        wanted = pending.get("existing") if pending else None
        if wanted is not None and wanted not in {issue.number for issue in self._issues()}:
            self._require(state.refusal, "the attempt to link a missing issue ended without a reason")
        else:
            self._require(not pending or state.link is not None, "the attempt ended without an issue")
        if state.link is not None:
            found = issue_attempts.find_items(self.repository.repository_id, state.link)
            self._require(found == [self.item_id], "the issue doesn't lead to the item")

    # Observation

    def state(self) -> State:
        places = [keys.inbox_item(*self.item_id.location)._asdict(), keys.issue_attempt(self.item_id)._asdict()]
        request = {"Keys": [encode_item(place) for place in places], "ConsistentRead": True}
        answer = self._call("BatchGetItem", {"RequestItems": {table.name: request}})
        found = {item["pk"]: item for item in map(decode_item, answer["Responses"][table.name])}
        opened = sum(issue.number != EXISTING for issue in self._issues())
        return State(found.get(places[0]["pk"]), found.get(places[1]["pk"]), opened)

    def _issues(self) -> list[HostedIssue]:
        return self.host.issues[self._hosted_name]

    def _complete(self, issue: HostedIssue) -> None:
        url = f"https://github.com/{self._hosted_name}/issues/{issue.number}"
        made = GithubIssue(issue.number, url, clock.timestamp(issue.created_seconds))
        issue_attempts.complete(self.item_id, None, made, self.repository.repository_id)

    # The steps of an act

    def _running(self, index: int) -> Act | None:
        running = [act for act in self.acts if act.outcome is None and not act.dead]
        return running[index % len(running)] if running else None

    def _start(self, act: Act) -> None:
        self.acts.append(act)
        act.start()
        self._ended(act)

    def _go(self, act: Act) -> None:
        act.step()
        self._ended(act)

    def _ended(self, act: Act) -> None:
        if self._violations:
            raise self._violations[0]
        if act.outcome is not None and not act.dead:
            self._check_outcome(act, act.outcome)

    def _around_table(self, call: Call, proceed: Proceed) -> Any:
        act = current.get()
        if not isinstance(act, Act) or self.item_id.local not in json.dumps(call.parameters):
            return proceed()
        return act.around(call, lambda: self._make(act, call, proceed))

    def _around_host(self, operation: str, proceed: Proceed) -> Any:
        act = current.get()
        if not isinstance(act, Act):
            return proceed()
        return act.around(Call(operation, {}), lambda: self._make(act, Call(operation, {}), proceed))

    def _make(self, act: Act, call: Call, proceed: Proceed) -> Any:
        """Makes the call with the act's fault, in the act's thread, and checks what it has changed."""
        if act.dead:
            raise Died
        before = self._last or self.state()
        try:
            return self._make_with_fault(act, call, proceed)
        finally:
            self._last = after = self.state()
            try:
                self._check(act, call, before, after)
            except Violated as violation:
                self._violations.append(violation)

    def _make_with_fault(self, act: Act, call: Call, proceed: Proceed) -> Any:
        fault, act.fault = act.fault, None
        if call.operation in {"list", "get", "create"} and fault in {"request lost", "response lost", "sent twice"}:
            fault = None  # the code host's script has these
        act.struck |= fault is not None
        act.dead = fault in {"crash before", "crash after"}
        if fault in {"crash after", "response lost", "sent twice"}:
            call.parameters.setdefault("ClientRequestToken", "t") if call.operation == "TransactWriteItems" else None
            if fault == "sent twice":
                with suppress(Exception):
                    proceed()
                return proceed()
            with suppress(Exception):
                proceed()
        if act.dead:
            raise Died
        if fault in {"request lost", "response lost"}:
            raise NoAnswer(fault)
        return proceed()

    # Properties

    def _require(self, holds: object, reason: str) -> None:
        if not holds:
            raise Violated(reason)

    def _check(self, act: Act, call: Call, before: State, after: State) -> None:
        """Checks what a call has changed, and notes what the act has seen."""
        self._check_host(act, call, before, after)
        if after.item is None or before.item is None:
            self._require(after.item is None, "a removed item is back")
            self._require(act.kind != "request" or after.attempt == before.attempt, "began an attempt for no item")
        elif after.link != before.link:
            self._check_link(act, before, after)
        elif after.attempt != before.attempt or after.refusal != before.refusal:
            self._check_attempt(act, before, after)
        if call.operation in {"BatchGetItem", "UpdateItem"} or after.attempt != before.attempt:
            act.seen = after  # an update whose condition fails returns the item
        if after.attempt != before.attempt:
            act.written = after.claimed

    def _check_host(self, act: Act, call: Call, before: State, after: State) -> None:
        require = self._require
        require(after.opened <= 1, "the code host has two issues of the item")
        require(not (after.opened and after.link == EXISTING) or self.is_ended_by_hand, "the item has another issue")
        if after.item is not None and after.opened and after.link is None:
            require((after.attempt or {}).get("state") == "sending", "the item doesn't say that it may have an issue")
        if call.operation == "create" and before.item is not None:
            claimed = act.written is not None and act.written[1] == "sending"
            require(claimed and before.claimed == act.written, "sent without a claim")

    def _check_link(self, act: Act, before: State, after: State) -> None:
        self._require(before.link is None, "the item's issue was replaced")
        self._require(any(issue.number == after.link for issue in self._issues()), "linked to no issue")
        self._require(after.attempt is None, "the item's issue is known, and its attempt goes on")
        is_own = act.seen and act.seen.claimed and before.claimed and before.claimed[0] == act.seen.claimed[0]
        self._require(act.kind == "correction" or before.attempt is None or is_own, "ended another attempt")

    def _check_attempt(self, act: Act, before: State, after: State) -> None:
        require = self._require
        if act.kind == "request":
            require(before.attempt is None, "replaced an attempt")
            require(before.link is None, "began an attempt at an issue that exists")
            require(act.person not in self.demoted, "began an attempt without the role")
            require(not self.is_unlinked, "began an attempt without a project")
            act.began = True
            return
        require(act.seen and before.claimed == act.seen.claimed, "changed an attempt that isn't as it was read")
        is_refused = after.refusal != before.refusal
        require(
            (after.attempt is None) == is_refused, "an attempt ends without an issue if it is refused, and only then"
        )

    def _check_outcome(self, act: Act, outcome: Outcome) -> None:
        error, state = outcome.error, self.state()
        if act.kind == "request" and error is None:
            attempt, is_new = outcome.value
            self._require(is_new == act.began, "two callers, or none, have to send the attempt's message")
            self._require(attempt.item_id == self.item_id, "another item's attempt")
        if act.kind == "worker" and error is None and state.claimed is not None:
            gave_up = state.claimed == act.written and state.claimed[1] == "sending"
            self._require(not gave_up, "the worker gave up the attempt that it has claimed")
        expected = {
            RoleLost: act.person in self.demoted,
            RepositoryUnlinked: self.is_unlinked,
            IssueExists: state.link is not None,
            inbox.UnknownItem: self.is_removed,
            Rejected: self.is_removed or self.is_ended_by_hand,
            Postponed: act.kind == "worker",
            Delayed: act.kind == "worker",
            LeftToSweep: act.kind == "worker",
        }
        holds = [expected[kind] for kind in expected if isinstance(error, kind)]
        if holds:
            self._require(holds[0], f"wrong outcome: {error!r}")
        elif error is not None and not isinstance(error, Aborted):
            concurrent = act.kind in {"correction", "withdrawal"} and isinstance(error, StoreError | Refused)
            lost = act.struck and isinstance(error, StoreError | NoAnswer)
            if not (concurrent or lost):
                raise Violated(f"wrong outcome: {error!r}") from error
