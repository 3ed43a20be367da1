"""Events are delivered to the endpoints that want them, signed, and retried for a day."""

import json

import pytest

from controlplane.core import clock, sealing, tokens
from controlplane.core.ids import EventId
from controlplane.core.plans import LOW_CREDITS
from controlplane.core.settings import SigningSecret, settings
from controlplane.queues import messages
from controlplane.queues.messages import OrganizationEvent, Queue
from controlplane.store import api_keys, events, keys, leaked_keys, publications, webhook_deliveries, webhooks
from controlplane.store.inbox_items import Discovery
from controlplane.store.leaked_keys import Leak
from controlplane.store.organization_items import OrganizationItem
from controlplane.store.organizations import get_organization
from controlplane.store.outbox import Entry
from controlplane.store.table import Delete, Update, table
from controlplane.store.webhook_deliveries import RETRY_SECONDS, EndpointBusy, Held, UnknownDelivery
from controlplane.store.webhook_items import TIMEOUT, Attempt, WebhookItem
from notifications import formats
from notifications.service import process
from ops import members
from tests.functional.conftest import FakeClock
from tests.support.audits import make_issue, make_scan
from tests.support.calls import Call, Proceed, intercepted
from tests.support.endpoints import (
    FAILED,
    SECRET,
    URL,
    Line,
    begin,
    delivered,
    documented_fields,
    documented_verify,
    endpoint,
)
from tests.support.table import PREPARED
from tests.support.world import Company, World, table_dump

SUCCEEDED = Attempt("2026-03-04T05:06:07.000Z", 200, None, 1)
TIMED_OUT = Attempt("2026-03-04T05:06:07.000Z", None, TIMEOUT, 1)


def attempt(company: Company, webhook: WebhookItem, made: Attempt) -> None:
    """Makes the first attempt at the delivery of a new event."""
    webhook_deliveries.finish_attempt(begin(delivered(company, webhook)), made, events.leave_to_sweep)


class TestADelivery:
    def test_is_signed_so_that_the_documented_code_verifies_it(self, line: Line, company: Company, now: FakeClock):
        webhook = endpoint(company)
        item_id = line.happen()
        line.work()
        ((url, body, headers),) = line.receiver.requests
        event_id = documented_verify()(SECRET, headers, body, clock.now())
        assert (url, event_id) == (URL, line.deliveries(webhook)[0].event_id)
        for wrong in (body + b" ", body.replace(b"open", b"shut")):
            with pytest.raises(ValueError, match="signature"):
                documented_verify()(SECRET, headers, wrong, clock.now())
        with pytest.raises(ValueError, match="signature"):
            documented_verify()("whsec_" + "Ab3y" * 9, headers, body, clock.now())
        with pytest.raises(ValueError, match="old"):
            documented_verify()(SECRET, headers, body, clock.now() + 301)
        event = json.loads(body)
        assert (event["type"], [it["id"] for it in event["data"]["findings"]]) == ("finding.opened", [item_id])
        (delivery,) = line.deliveries(webhook)
        assert (delivery.status, delivery.attempts, delivery.next_attempt_at) == ("succeeded", 1, None)
        assert [(it.status, it.error) for it in delivery.log] == [(200, None)]
        assert delivery.expires_at == now.seconds + 30 * 86_400

    def test_contains_no_code_no_evidence_and_no_person(
        self, line: Line, company: Company, world: World, now: FakeClock
    ):
        endpoint(company)
        repository = world.connected_repository(company)
        publications.publish_findings([world.discovery(company, repository)], messages.dispatch)
        members.add_member(_organization(company), world.person("grace@example.com", "Grace").user_id, "admin")
        api_keys.create_key(company.organization_id, "deploy", company.owner.user_id, "test")
        now.advance(1)
        line.sweep()
        sent = b"".join(body for _, body, _ in line.receiver.requests).decode()
        assert len(line.receiver.requests) == 3
        for private in ("index.html", "<script", "example.com/consent", "grace", "Grace", "Ada", "@", "assent_"):
            assert private not in sent
        stored = [it for it in table_dump() if it["sk"]["S"].startswith("WEBHOOK")]
        assert SECRET not in str(stored)
        assert SECRET[6:] not in str(stored)

    def test_has_the_documented_fields(self, line: Line, company: Company, world: World, now: FakeClock):
        endpoint(company)
        repository = world.connected_repository(company)
        publications.publish_findings([world.discovery(company, repository)], messages.dispatch)
        make_scan(repository, issues=[make_issue(1)])
        secret = api_keys.create_key(company.organization_id, "deploy", company.owner.user_id, "test").secret
        members.add_member(_organization(company), world.person().user_id, "admin")
        process(OrganizationEvent.model_validate(events.entry(company.organization_id, "credits.low").message))
        now.advance(1)
        line.sweep()
        leaked_keys.revoke(tokens.digest(secret), Leak("commit", None))
        now.advance(1)
        line.sweep()
        sent = {it["type"]: it["data"] for it in (json.loads(body) for _, body, _ in line.receiver.requests)}
        assert sent.keys() == {*events.WEBHOOK_EVENTS} - {"finding.resolved"}
        for event, data in sent.items():
            assert set(data.pop("organization")) == {"id", "name", "slug"}
            parts = [part[0] if isinstance(part, list) else part for part in data.values()]
            found = {*data, *(field for part in parts if isinstance(part, dict) for field in part)}
            assert found == documented_fields(event), event

    def test_of_a_leaked_key_says_where_it_was_found(self, line: Line, company: Company, now: FakeClock):
        endpoint(company, events=("key.leaked",))
        secret = api_keys.create_key(company.organization_id, "deploy", company.owner.user_id, "test").secret
        place = "https://github.com/octocat/hello-world/blob/1f0c2b9e/.env#L3"
        assert leaked_keys.revoke(tokens.digest(secret), Leak("commit", place))
        now.advance(1)
        line.sweep()
        ((_, body, _),) = line.receiver.requests
        event = json.loads(body)
        assert event["type"] == "key.leaked"
        assert event["data"]["apiKey"]["name"] == "deploy"
        assert event["data"]["leak"] == {"source": "commit", "url": place}
        assert b"assent_" not in body
        assert f"was found at <{place}|{place}>, and is revoked" in formats.text_of(event)

    def test_reaches_only_enabled_endpoints_that_want_the_event(self, line: Line, company: Company, world: World):
        wanted = endpoint(company)
        others = [endpoint(company, events=("scan.completed",)), endpoint(company), endpoint(world.company())]
        webhooks.update_webhook(others[1], {"status": "disabled"}, company.owner.user_id)
        line.happen()
        line.work()
        assert [len(line.deliveries(it)) for it in (wanted, *others)] == [1, 0, 0, 0]

    def test_of_what_happened_before_the_endpoint_was_created_is_not_made(
        self, line: Line, company: Company, now: FakeClock
    ):
        line.happen()
        now.advance(1)
        webhook = endpoint(company)
        line.work()
        assert line.deliveries(webhook) == []

    def test_of_an_organization_without_endpoints_costs_one_read(self, line: Line):
        calls: list[str] = []

        def around(call: Call, proceed: Proceed) -> object:
            calls.append(call.operation)
            return proceed()

        line.happen()
        with intercepted(table.client, around):
            line.work()
        assert calls == ["Query"]

    def test_of_an_event_whose_items_are_gone_is_not_made(self, line: Line, company: Company):
        webhook = endpoint(company)
        for name in ("scan.completed", "key.created", "key.leaked", "member.joined", "finding.opened"):
            subject = {"scan": "scn", "key": "key", "member": "mem", "finding": "inb"}[name.partition(".")[0]]
            length = 32 if subject == "mem" else 34
            gone = f"{subject}_{company.organization_id[4:]}{'0' * (length - 16)}"
            message = events.entry(company.organization_id, name, gone).message  # type: ignore[arg-type]
            process(OrganizationEvent.model_validate(message))
        assert line.deliveries(webhook) == []


def _organization(company: Company) -> OrganizationItem:
    return get_organization(company.organization_id)


class TestRetries:
    def test_a_failing_delivery_is_attempted_for_a_day_and_then_disables_its_endpoint(
        self, line: Line, company: Company, now: FakeClock
    ):
        webhook, healthy = endpoint(company), endpoint(company, url="https://other.example.com/")
        line.receiver.answer = 500
        line.happen()
        started, seen = now.seconds, []
        line.work()
        for pause in RETRY_SECONDS:
            (delivery,) = line.deliveries(webhook)
            seen.append(delivery.attempts)
            assert delivery.next_attempt_at == clock.timestamp(now.seconds + pause)
            line.receiver.answer = 500
            now.advance(pause - 2)
            line.sweep()
            assert line.deliveries(webhook)[0].attempts == delivery.attempts
            now.advance(3)
            line.sweep()
        assert seen == [1, 2, 3, 4, 5, 6, 7, 8]
        assert now.seconds - started == 86_400 + len(RETRY_SECONDS)
        (delivery,) = line.deliveries(webhook)
        assert (delivery.status, delivery.attempts, delivery.next_attempt_at) == ("failed", 9, None)
        assert len({*line.receiver.ids}) == 1
        assert len({body for _, body, _ in line.receiver.requests}) == 1
        assert (line.read(webhook).status, line.read(webhook).disabled_reason) == ("disabled", "failing")
        assert line.read(healthy).status == "disabled"
        assert line.sqs.at(Queue.NOTIFICATIONS.dead_letters_url) == []

    def test_a_success_ends_the_retries_and_forgets_the_failures(self, line: Line, company: Company, now: FakeClock):
        webhook = endpoint(company)
        line.receiver.answer = 503
        line.happen()
        line.work()
        assert line.read(webhook).failing_since == now.seconds
        line.receiver.answer = 204
        now.advance(61)
        line.sweep()
        assert [(it.status, it.error) for it in line.deliveries(webhook)[0].log] == [(503, "status"), (204, None)]
        assert line.read(webhook).failing_since is None

    def test_each_failure_has_a_reason(self, line: Line, company: Company, now: FakeClock):
        webhook = endpoint(company)
        for answer, reason in ((302, "redirect"), (404, "status"), ("tls", "tls"), ("address", "address")):
            line.receiver.answer = answer
            line.happen()
            line.work()
            assert line.deliveries(webhook)[0].log[-1].error == reason
            now.advance(1)

    def test_an_endpoint_that_hangs_rests_and_delays_only_itself(self, line: Line, company: Company, now: FakeClock):
        slow, fast = endpoint(company), endpoint(company, url="https://fast.example.com/", events=("key.created",))
        line.receiver.answer = "timeout"
        line.happen()
        line.work()
        for _ in range(5):
            line.happen()
        line.receiver.answer = 200
        api_keys.create_key(company.organization_id, "deploy", company.owner.user_id, "test")
        now.advance(1)
        line.sweep()
        assert [it.status for it in line.deliveries(fast)] == ["succeeded"]
        assert sorted(it.attempts for it in line.deliveries(slow)) == [0] * 6 + [1]
        now.advance(120)
        line.sweep()
        assert {it.status for it in line.deliveries(slow)} == {"succeeded"}

    def test_a_message_that_cannot_be_read_is_retried_and_then_dead_lettered(self, line: Line, now: FakeClock):
        line.sqs.send_message(QueueUrl=Queue.NOTIFICATIONS.url, MessageBody='{"kind": "deliver-webhook", "version": 1}')
        for seconds in (5, 20, 80, 320):
            line.work()
            assert line.sqs.next_at(Queue.NOTIFICATIONS.url) == now() + seconds
            now.advance(seconds)
        line.work()
        (dead,) = line.sqs.at(Queue.NOTIFICATIONS.dead_letters_url)
        assert dead.attributes["reason"]["StringValue"].startswith("malformed: ")

    def test_at_most_two_attempts_at_an_endpoint_run_at_the_same_time(
        self, line: Line, company: Company, now: FakeClock
    ):
        webhook = endpoint(company)
        for _ in range(5):
            line.happen()
        running: list[int] = []

        def start_others() -> None:
            running.append(len(running) + 1)
            line.work()

        line.receiver.before = start_others
        line.work()
        assert max(running) == 2
        line.receiver.before = lambda: None
        now.advance(60)
        line.sweep()
        assert {it.status for it in line.deliveries(webhook)} == {"succeeded"}

    def test_a_delivery_to_a_disabled_or_deleted_endpoint_is_not_sent(
        self, line: Line, company: Company, now: FakeClock
    ):
        disabled, deleted = endpoint(company), endpoint(company)
        line.receiver.answer = 500
        line.happen()
        line.work()
        webhooks.update_webhook(disabled, {"status": "disabled"}, company.owner.user_id)
        webhooks.delete_webhook(deleted, company.owner.user_id)
        now.advance(61)
        line.sweep()
        assert len(line.receiver.requests) == 2
        (delivery,) = line.deliveries(disabled)
        assert (delivery.status, delivery.log[-1].error) == ("failed", "disabled")

    def test_an_endpoint_rests_longer_after_each_timeout_until_it_answers(self, company: Company, now: FakeClock):
        webhook = endpoint(company)
        for number in range(1, 17):
            attempt(company, webhook, TIMED_OUT)
            now.advance(min(60 * number, 900) - 1)
            with pytest.raises(EndpointBusy) as busy:
                attempt(company, webhook, SUCCEEDED)
            assert busy.value.seconds == 1
            now.advance(1)
        attempt(company, webhook, SUCCEEDED)
        assert webhooks.get_webhook(webhook.webhook_id) == webhook

    def test_an_endpoint_that_took_more_than_two_seconds_three_times_in_a_row_rests_for_a_minute(
        self, line: Line, company: Company, now: FakeClock, monkeypatch: pytest.MonkeyPatch
    ):
        webhook = endpoint(company)
        monkeypatch.setattr(clock, "monotonic_source", now)
        for took, rests_until in ((2.1, 0), (2.1, 0), (2, 0), (2.1, 0), (2.1, 0), (2.1, 60), (2.1, 60), (2, 0)):
            line.receiver.before = lambda seconds=took: now.advance(seconds)
            line.happen()
            line.work()
            assert webhooks.get_webhook(webhook.webhook_id).rests_until == (rests_until and int(now()) + rests_until)
            now.advance(60)
        assert {it.status for it in line.deliveries(webhook)} == {"succeeded"}
        assert webhooks.get_webhook(webhook.webhook_id) == webhook

    def test_a_slow_failure_counts_as_slow(self, company: Company, now: FakeClock):
        webhook = endpoint(company)
        for _ in range(3):
            attempt(company, webhook, FAILED._replace(milliseconds=2_001))
        with pytest.raises(EndpointBusy) as busy:
            attempt(company, webhook, SUCCEEDED)
        assert busy.value.seconds == 60

    def test_an_endpoint_that_is_enabled_again_starts_anew(self, company: Company):
        webhook = endpoint(company)
        attempt(company, webhook, TIMED_OUT)
        for status in ("disabled", "enabled"):
            webhooks.update_webhook(webhook, {"status": status}, company.owner.user_id)
        assert webhooks.get_webhook(webhook.webhook_id) == webhook

    @pytest.mark.parametrize(("seconds", "status"), [(86_399, "enabled"), (86_400, "disabled")])
    def test_an_endpoint_is_disabled_by_a_failure_a_day_after_the_first(
        self, seconds: int, status: str, company: Company, now: FakeClock
    ):
        webhook = endpoint(company)
        attempt(company, webhook, FAILED)
        now.advance(seconds)
        attempt(company, webhook, FAILED)
        assert webhooks.get_webhook(webhook.webhook_id).status == status

    def test_an_attempt_waits_until_another_workers_lease_ends(self, company: Company, now: FakeClock):
        delivery = delivered(company)
        begin(delivery)
        now.advance(webhook_deliveries.LEASE_SECONDS - 1)
        with pytest.raises(Held) as held:
            begin(delivery)
        assert held.value.seconds == 1
        now.advance(1)
        begin(delivery)

    def test_the_latest_20_attempts_are_kept(self, company: Company):
        webhook, owner = endpoint(company), company.owner.user_id
        webhook_id, event_id = webhook.webhook_id, delivered(company, webhook).event_id
        for number in range(1, 23):
            begun = webhook_deliveries.begin_attempt(webhook_id, event_id, number)
            assert begun is not None
            made = FAILED._replace(milliseconds=number)
            webhook_deliveries.finish_attempt(begun, made, events.leave_to_sweep)
            webhook_deliveries.replay_delivery(webhook, event_id, owner)
        kept = webhook_deliveries.get_delivery(webhook_id, event_id)[0].log
        assert [it.milliseconds for it in kept] == [*range(3, 23)]
        webhooks.update_webhook(webhook, {"status": "disabled"}, owner)
        assert webhook_deliveries.begin_attempt(webhook_id, event_id, 23) is None
        after = webhook_deliveries.get_delivery(webhook_id, event_id)[0].log
        assert (after[:-1], after[-1].error) == (kept[1:], "disabled")

    def test_every_attempt_sends_what_the_first_one_did(self, company: Company):
        delivery = delivered(company)
        webhook_deliveries.keep_body(delivery.event_id, "credits.low", '{"changed": true}')
        assert begin(delivery).body == "{}"

    def test_what_is_sent_is_kept_as_long_as_its_deliveries(self, company: Company):
        delivery = delivered(company)
        stored = table.get(keys.webhook_event(*delivery.event_id.location))
        assert stored is not None
        assert stored["expiresAt"] == delivery.expires_at

    def test_an_event_that_has_expired_is_neither_sent_nor_replayed(self, company: Company):
        delivery = delivered(company)
        webhook_id, event_id = delivery.webhook_id, delivery.event_id
        table.delete(Delete(keys.webhook_event(*event_id.location)), PREPARED)
        assert webhook_deliveries.begin_attempt(webhook_id, event_id, 1) is None
        ended, _ = webhook_deliveries.get_delivery(webhook_id, event_id)
        assert (ended.status, ended.attempts, ended.log[-1].error) == ("failed", 0, "expired")
        with pytest.raises(UnknownDelivery):
            webhook_deliveries.replay_delivery(webhooks.get_webhook(webhook_id), event_id, company.owner.user_id)


class TestReplays:
    def test_a_replay_of_a_delivery_that_changed_since_it_was_read_follows_its_last_attempt(self, company: Company):
        delivery, owner = delivered(company), company.owner.user_id
        webhook, event_id = webhooks.get_webhook(delivery.webhook_id), delivery.event_id
        for end in (
            lambda: webhook_deliveries._give_up(delivery, "disabled"),
            lambda: webhook_deliveries.finish_attempt(begin(delivery), FAILED, events.leave_to_sweep),
        ):
            seen = webhook_deliveries.get_delivery(webhook.webhook_id, event_id)
            end()
            replayed, message = webhook_deliveries.replay_delivery(webhook, event_id, owner, seen)
            assert replayed == webhook_deliveries.get_delivery(webhook.webhook_id, event_id)[0]
            assert message.message["attempt"] == replayed.attempts + 1

    def test_an_event_of_another_organization_is_unknown(self, company: Company, world: World):
        delivery = delivered(company)
        foreign = EventId.of(world.company().organization_id, delivery.event_id.local)
        with pytest.raises(UnknownDelivery):
            webhook_deliveries.get_delivery(delivery.webhook_id, foreign)

    def test_a_replay_sends_the_same_event_again_and_is_retried(self, line: Line, company: Company, now: FakeClock):
        webhook = endpoint(company)
        line.happen()
        line.work()
        (delivery,) = line.deliveries(webhook)
        now.advance(86_400)
        line.receiver.answer = 500
        replayed, message = webhook_deliveries.replay_delivery(webhook, delivery.event_id, company.owner.user_id)
        assert (replayed.status, replayed.attempts) == ("pending", 1)
        messages.dispatch(message)
        line.work()
        line.receiver.answer = 200
        now.advance(61)
        line.sweep()
        (first, _, third) = line.receiver.requests
        assert first[1] == third[1]
        assert len({*line.receiver.ids}) == 1
        assert [(it.status, it.attempts) for it in line.deliveries(webhook)] == [("succeeded", 3)]


class TestLateAttempts:
    """An attempt that ends after its endpoint has changed."""

    def test_the_slot_of_another_delivery_stays_taken(self, company: Company, now: FakeClock):
        late = begin(delivered(company))
        now.advance(webhook_deliveries.LEASE_SECONDS)
        other = begin(delivered(company, late.webhook))
        assert other.slot == late.slot
        webhook_deliveries.finish_attempt(late, FAILED, events.leave_to_sweep)
        assert webhooks.get_webhook(late.webhook.webhook_id).slots[late.slot] == other.until

    @pytest.mark.parametrize(
        ("name", "value", "status"), [("failingSince", 1_772_600_767, "enabled"), ("status", "disabled", "disabled")]
    )
    def test_an_endpoint_that_recovered_or_was_disabled_isnt_disabled(
        self, name: str, value: object, status: str, company: Company
    ):
        delivery = delivered(company)
        key = webhooks.get_webhook(delivery.webhook_id).key
        table.update(Update(key, "SET #failingSince = :then", None, {"then": 1}), PREPARED)
        begun = begin(delivery)
        table.update(Update(key, f"SET #{name} = :value", None, {"value": value}), PREPARED)
        told: list[Entry] = []
        assert webhook_deliveries.finish_attempt(begun, FAILED, told.append) is not None
        after = webhooks.get_webhook(delivery.webhook_id)
        assert (after.status, after.disabled_reason, told) == (status, None, [])


class TestSecrets:
    def test_a_rotated_secret_signs_together_with_the_old_one_for_a_day(
        self, line: Line, company: Company, now: FakeClock
    ):
        webhook, verify = endpoint(company), documented_verify()
        new = "whsec_" + "Zz9x" * 9
        webhooks.rotate_secret(webhook, new, company.owner.user_id, {})
        for elapsed, valid in ((0, {SECRET, new}), (86_399, {SECRET, new}), (1, {new})):
            now.advance(elapsed)
            line.happen()
            line.work()
            _, body, headers = line.receiver.requests[-1]
            for secret in (SECRET, new):
                if secret in valid:
                    verify(secret, headers, body, clock.now())
                else:
                    with pytest.raises(ValueError, match="signature"):
                        verify(secret, headers, body, clock.now())

    def test_secrets_survive_a_rotation_of_the_signing_secret(
        self, line: Line, company: Company, monkeypatch: pytest.MonkeyPatch
    ):
        webhook = endpoint(company)
        webhooks.rotate_secret(webhook, SECRET, company.owner.user_id, {})
        webhook = line.read(webhook)  # with two secrets
        old = settings.signing_secret
        assert old is not None
        between = SigningSecret(current="another-signing-secret-of-enough-length", previous=old.current)
        after = SigningSecret(current=between.current)
        for secret in (between, after):
            monkeypatch.setattr(
                "controlplane.core.keyring.settings", settings.model_copy(update={"signing_secret": secret})
            )
            line.happen()
            line.work()
        assert [it.status for it in line.deliveries(webhook)] == ["succeeded", "succeeded"]
        assert line.read(webhook).secret != webhook.secret

    def test_both_secrets_are_sealed_with_the_current_signing_secret_unless_one_was_replaced(
        self, line: Line, company: Company, monkeypatch: pytest.MonkeyPatch
    ):
        outdated, first = endpoint(company), settings.signing_secret
        assert first is not None

        def sign_with(current: str, previous: str | None = None) -> None:
            secret = SigningSecret(current=current, previous=previous)
            monkeypatch.setattr(
                "controlplane.core.keyring.settings", settings.model_copy(update={"signing_secret": secret})
            )

        second = "another-signing-secret-of-enough-length"
        sign_with(second, first.current)
        webhooks.rotate_secret(outdated, SECRET, company.owner.user_id, {})
        webhook = line.read(outdated)
        webhooks.seal_again(outdated)
        assert line.read(outdated) == webhook
        webhooks.seal_again(webhook)
        sign_with(second)
        texts = [sealing.unseal(webhook.webhook_id, it).text for it in line.read(webhook).sealed_secrets]
        assert texts == [SECRET, SECRET]

    def test_a_secret_that_no_key_opens_fails_visibly_until_it_is_rotated(
        self, line: Line, company: Company, monkeypatch: pytest.MonkeyPatch
    ):
        webhook = endpoint(company)
        lost = SigningSecret(current="another-signing-secret-of-enough-length")
        monkeypatch.setattr("controlplane.core.keyring.settings", settings.model_copy(update={"signing_secret": lost}))
        line.happen()
        line.work()
        assert line.deliveries(webhook)[0].log[-1].error == "secret"
        assert line.receiver.requests == []


class TestFormats:
    def test_slack_gets_a_text_for_each_event(self, line: Line, company: Company, world: World, now: FakeClock):
        endpoint(company, format="slack")
        repository = world.connected_repository(company, name="shop")
        hostile: Discovery = world.discovery(company, repository, title="<!channel> & <https://evil.example|x>")
        publications.publish_findings([hostile], messages.dispatch)
        publications.publish_findings([world.discovery(company) for _ in range(12)], messages.dispatch)
        make_scan(repository, issues=[make_issue(1)])
        world.credits(company, LOW_CREDITS)
        process(OrganizationEvent.model_validate(events.entry(company.organization_id, "credits.low").message))
        api_keys.create_key(company.organization_id, "deploy", company.owner.user_id, "test")
        members.add_member(_organization(company), world.person("grace@example.com").user_id, "admin")
        now.advance(1)
        line.sweep()
        texts = "\n\n".join(sorted(json.loads(body)["text"] for _, body, _ in line.receiver.requests))
        page = f"https://dashboard.assent.test/organizations/{company.slug}"
        for expected in (
            f"*Acme*: 1 finding opened\n• P2 <{page}/inbox/{hostile.item_id}|&lt;!channel&gt; &amp; &lt;https://",
            "|x&gt;> in shop",
            "*Acme*: 12 findings opened\n• P2",
            "and 2 more",
            "|Scan> of shop (main) completed: 1 finding",
            f"*Acme*: <{page}/billing|100 credits are left>",
            "|deploy> was created",
            f"*Acme*: <{page}/members|an admin> joined",
        ):
            assert expected in texts

    def test_every_event_has_a_text(self):
        assert {*formats._TEXTS} == {*events.WEBHOOK_EVENTS}
