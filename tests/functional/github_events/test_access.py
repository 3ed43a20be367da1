"""Events of installations and repositories: names, and whether our App still has access."""

from dataclasses import fields, replace
from unittest import mock

import pytest

from controlplane.code_host import installations, repositories
from controlplane.code_host.github import connecting
from controlplane.code_host.github.errors import AppKeyUnreadable, AppNotConfigured, HostUnavailable, Refused
from controlplane.code_host.items import HostedRepository, RepositoryItem
from controlplane.platform.core import clock
from controlplane.platform.queues import messages
from controlplane.platform.queues.messages import Queue
from controlplane.platform.table import keys
from controlplane.platform.table.table import Put, Update, table
from tests.functional.github_events.conftest import DEMO, INSTALLATION, by_name, connect, read
from tests.support.audit_log import all_entries
from tests.support.audits import describe
from tests.support.calls import before_the_transaction
from tests.support.cleanup import swept
from tests.support.github_faults import Fault
from tests.support.lagging import settle
from tests.support.table import PREPARED


def stored_name(repository: RepositoryItem, name: str) -> str | None:
    item = table.get(keys.repository_name(repository.organization_id, DEMO[0], name))
    return item["repositoryId"] if item else None


class TestAccess:
    def test_is_lost_with_a_suspended_removed_or_smaller_installation_and_found_again(
        self, events, repository, code_host, now
    ):
        faults = code_host.stand_in.faults
        for lose, regain in (
            (lambda: faults.suspended.add(INSTALLATION), faults.suspended.clear),
            (lambda: faults.removed.add("/".join(DEMO)), faults.removed.clear),
        ):
            lose()
            now.advance(1)
            at = clock.timestamp()
            events.take("installation")
            assert read(repository).access_lost_at == at
            now.advance(1)
            events.take("installation")
            assert read(repository).access_lost_at == at
            regain()
            events.take("installation")
            assert replace(read(repository), html_url=repository.html_url) == repository

    def test_is_found_again_although_the_branch_to_scan_is_gone_or_if_a_person_connects_again(self, events, company):
        repository = connect(company, scan_on_push=True, production_branch="gone")
        hosted = {field.name: getattr(repository, field.name) for field in fields(HostedRepository)}
        installations.lose_access(repository)
        lost_at = read(repository).access_lost_at
        again = repositories.connect_repository(repository.organization_id, HostedRepository(**hosted))
        assert again == read(repository) == repository
        (entry,) = (it for it in all_entries() if it["action"] == "repository.update")
        assert (entry["before"], entry["after"]) == ({"accessLostAt": lost_at}, {"accessLostAt": None})
        installations.lose_access(repository)
        events.take("installation")
        assert read(repository).access_lost_at is None

    def test_repositories_of_other_installations_are_left_alone(self, events, company, code_host):
        repository = connect(company)
        table.put(Put({**table.get(repository.key), "installationId": 5}), PREPARED)
        code_host.stand_in.faults.suspended.add(INSTALLATION)
        events.take("installation")
        assert read(repository).access_lost_at is None
        assert code_host.exchanges == []


class TestNames:
    @pytest.mark.parametrize("stored", [lambda it: it, by_name])
    def test_a_renamed_repository_keeps_its_links_under_its_new_name(
        self, stored, events, repository, code_host, monkeypatch
    ):
        before = stored(repository)
        item = {**table.get(repository.key), "hostedId": before.hosted_id}
        table.put(Put({name: value for name, value in item.items() if value is not None}), PREPARED)
        found = code_host.stand_in.repositories.find(*DEMO)
        old = found.path
        old.rename(old.with_name("renamed.git"))
        code_host.stand_in.faults.renamed["/".join(DEMO)] = f"{DEMO[0]}/renamed"
        monkeypatch.setattr("local.github.repositories.GitRepository.repository_id", repository.hosted_id)
        events.take("repository")
        after = read(repository)
        assert (after.name, after.hosted_id, after.links) == ("renamed", repository.hosted_id, repository.links)
        assert stored_name(repository, "renamed") == repository.repository_id
        assert stored_name(repository, DEMO[1]) is None
        repositories.disconnect_repository(repository.repository_id)
        assert stored_name(repository, "renamed") is None

    def test_one_that_was_connected_by_name_and_is_gone_loses_access_and_the_others_are_described(
        self, events, repository, company, code_host, world
    ):
        gone = world.connected_repository(company, owner=DEMO[0], name="gone", installation_id=INSTALLATION)
        key = repository.key
        table.put(Put({**table.get(key), "visibility": "public"}), PREPARED)
        settle()
        events.take("installation")
        assert read(gone).access_lost_at is not None
        assert read(repository).visibility == "private"

    def test_a_repository_is_what_github_says_and_another_one_under_its_name_isnt_taken_for_it(
        self, events, repository, code_host
    ):
        item = table.get(repository.key)
        table.put(Put({**item, "visibility": "public", "defaultBranch": "master"}), PREPARED)
        events.take("repository")
        assert (read(repository).visibility, read(repository).default_branch) == ("private", "main")
        table.put(Put({**item, "hostedId": 1}), PREPARED)
        events.take("repository")
        assert read(repository).access_lost_at is not None


def reconnect(repository: RepositoryItem) -> None:
    """Connects the repository through another installation."""
    key = repository.key
    table.update(Update(key, "SET #installationId = :other", None, {"other": 5}), PREPARED)


class TestConcurrentChanges:
    """A repository that changes after the worker of an event has read it."""

    def test_another_installation_keeps_its_description_and_its_access(self, repository):
        with before_the_transaction(table.client, lambda: reconnect(repository)):
            describe(repository, visibility="public")
        installations.lose_access(repository)
        assert read(repository) == replace(repository, installation_id=5)

    @pytest.mark.parametrize(("owner", "name"), [("other", DEMO[1]), (DEMO[0], "renamed")])
    def test_a_repository_has_one_name(self, owner, name, repository):
        with before_the_transaction(table.client, lambda: describe(repository, owner=owner, name=name)):
            describe(repository, visibility="public")
        assert read(repository) == replace(repository, visibility="public")
        assert stored_name(repository, DEMO[1]) == repository.repository_id
        assert table.get(keys.repository_name(repository.organization_id, owner, name)) is None

    @pytest.mark.parametrize("is_late", [False, True])
    def test_another_repository_keeps_the_name_that_it_took(self, is_late, repository, company, world):
        other = world.connected_repository(company, installation_id=INSTALLATION)

        def take() -> None:
            describe(other, owner=DEMO[0], name=DEMO[1])

        if not is_late:
            take()
        with before_the_transaction(table.client, take if is_late else lambda: None):
            describe(repository, name="renamed")
        assert stored_name(repository, "renamed") == repository.repository_id
        assert stored_name(repository, DEMO[1]) == other.repository_id


class TestRetries:
    @pytest.mark.parametrize("failure", [AppKeyUnreadable, AppNotConfigured, HostUnavailable, Refused(401)])
    def test_an_event_waits_longer_than_the_queue_for_github_and_for_a_key_that_works(  # noqa: PLR0917
        self, failure, events, repository, code_host, sqs, now
    ):
        code_host.stand_in.faults.removed.add("/".join(DEMO))
        with mock.patch.object(connecting, "list_granted", side_effect=failure):
            events.take("installation")
            for _ in range(12):
                now.advance(361)
                swept(messages.resend)
                events.work()
        for _ in range(3):
            now.advance(361)
            swept(messages.resend)
            events.work()
        assert read(repository).access_lost_at is not None
        assert sqs.at(Queue.GITHUB_EVENTS.dead_letters_url) == []

    def test_a_rate_limit_postpones_the_event_without_receives_and_after_a_day_it_is_a_dead_letter(
        self, events, repository, code_host, sqs, now
    ):
        limited = Fault(403, {"Retry-After": "700"})
        operation = "POST /app/installations/{installation_id}/access_tokens"
        code_host.stand_in.faults.add(operation, limited, limited)
        events.take("installation")
        assert sqs.letters == []
        now.advance(699)
        assert swept(messages.resend) == 0
        now.advance(86_400)
        assert swept(messages.resend) == 1
        events.work()
        (dead,) = sqs.at(Queue.GITHUB_EVENTS.dead_letters_url)
        assert dead.attributes["reason"]["StringValue"] == "rate limited by the code host"
