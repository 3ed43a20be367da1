"""Events are delivered to the endpoints that want them, and retried for a day."""

import json
import re

from controlplane.api_keys import leaked
from controlplane.api_keys import store as api_keys
from controlplane.api_keys.leaked import Leak
from controlplane.findings import publications
from controlplane.notify import webhooks
from controlplane.notify.webhook_deliveries import RETRY_SECONDS
from controlplane.organizations.store import get_organization
from controlplane.platform.core import clock, tokens
from controlplane.platform.core.plans import LOW_CREDITS
from controlplane.platform.queues import events, messages
from controlplane.platform.queues.messages import OrganizationEvent, Queue
from notifications import formats
from notifications.service import process
from ops import members
from tests.functional.projects.builders import make_project
from tests.support.audit_reports import complete_audit, finding
from tests.support.audits import make_issue, make_scan
from tests.support.calls import recorded_calls
from tests.support.endpoints import SECRET, documented_fields, endpoint
from tests.support.world import table_dump


def later(line, now, seconds=1):
    now.advance(seconds)
    line.sweep()


def create_key(company):
    return api_keys.create_key(company.organization_id, "deploy", company.owner.user_id, "test").secret


def join(company, person):
    members.add_member(get_organization(company.organization_id), person.user_id, "admin")


def run_low(company):
    process(OrganizationEvent.model_validate(events.entry(company.organization_id, "credits.low").message))


def sent(line):
    return [json.loads(body) for _, body, _ in line.receiver.requests]


def test_each_event_has_the_documented_fields_and_no_code_no_evidence_and_no_person(line, company, world, now):
    endpoint(company)
    repository = world.connected_repository(company)
    messages.dispatch(*publications.publish_findings([world.discovery(company, repository)]))
    make_scan(repository, issues=[make_issue(1)])
    secret = create_key(company)
    join(company, world.person("grace@example.com", "Grace"))
    run_low(company)
    later(line, now)
    leaked.revoke_key(tokens.digest(secret), Leak("commit", None))
    audited = complete_audit(make_project(company), finding())
    later(line, now)
    assert not re.search("index.html|<script|example.com/consent|[Gg]race|Ada|@|assent_", json.dumps(sent(line)))
    stored = [it for it in table_dump() if it["sk"]["S"].startswith("WEBHOOK")]
    assert SECRET[6:] not in str(stored)
    data_of = {it["type"]: it["data"] for it in sent(line)}
    assert data_of.keys() == {*events.WEBHOOK_EVENTS} - {"finding.resolved"}
    for event, data in data_of.items():
        assert set(data.pop("organization")) == {"id", "name", "slug"}
        parts = [part[0] if isinstance(part, list) else part for part in data.values()]
        found = {*data, *(field for part in parts if isinstance(part, dict) for field in part)}
        assert found == documented_fields(event), event
    told = data_of["audit.completed"]["auditRun"]
    assert (told["id"], told["outcome"], told["findingCount"]) == (audited.run_id, "failed", 1)
    assert told["url"].endswith(f"/projects/shop/audits/{audited.audit_id}/runs/{audited.run_id}")


def test_a_leaked_keys_event_says_where_it_was_found(line, company, now):
    endpoint(company, events=("key.leaked",))
    place = "https://github.com/octocat/hello-world/blob/1f0c2b9e/.env#L3"
    assert leaked.revoke_key(tokens.digest(create_key(company)), Leak("commit", place))
    later(line, now)
    (event,) = sent(line)
    assert (event["type"], event["data"]["apiKey"]["name"]) == ("key.leaked", "deploy")
    assert event["data"]["leak"] == {"source": "commit", "url": place}
    assert f"was found at <{place}|{place}>, and is revoked" in formats.text_of(event)


def test_slack_gets_a_text_for_each_event(line, company, world, now):
    endpoint(company, format="slack")
    repository = world.connected_repository(company, name="shop")
    hostile = world.discovery(company, repository, title="<!channel> & <https://evil.example|x>")
    messages.dispatch(*publications.publish_findings([hostile]))
    messages.dispatch(*publications.publish_findings([world.discovery(company) for _ in range(12)]))
    make_scan(repository, issues=[make_issue(1)])
    world.credits(company, LOW_CREDITS)
    run_low(company)
    create_key(company)
    join(company, world.person("grace@example.com"))
    complete_audit(make_project(company), finding())
    complete_audit(make_project(company), outcome="blocked", reason={"code": "login", "message": "It asks to sign in."})
    later(line, now)
    texts = "\n\n".join(sorted(it["text"] for it in sent(line)))
    page = f"https://dashboard.assent.test/organizations/{company.slug}"
    for expected in (
        f"*Acme*: 1 finding opened\n• P2 <{page}/inbox/{hostile.item_id}|&lt;!channel&gt; &amp; &lt;https://",
        "|x&gt;> in shop",
        "*Acme*: 12 findings opened\n• P2",
        "and 2 more",
        "|Scan> of shop (main) completed: 1 finding",
        "|audit> of https://example.com/ failed: 1 finding, 1 new",
        "|audit> of https://example.com/ was blocked (login)",
        f"*Acme*: <{page}/billing|100 credits are left>",
        "|deploy> was created",
        f"*Acme*: <{page}/members|an admin> joined",
    ):
        assert expected in texts
    assert {*formats._TEXTS} == {*events.WEBHOOK_EVENTS}


def test_only_enabled_endpoints_that_existed_and_want_the_event_get_it(line, company, world, now):
    with recorded_calls() as calls:
        line.tell()
    assert [it.operation for it in calls].count("Query") == 1, "without an endpoint, an event costs one read"
    line.happen()
    now.advance(1)
    wanted, disabled = endpoint(company), endpoint(company)
    others = [disabled, endpoint(company, events=("scan.completed",)), endpoint(world.company())]
    webhooks.update_webhook(disabled, {"status": "disabled"}, company.owner.user_id)
    line.work()
    line.tell()
    assert [len(line.deliveries(it)) for it in (wanted, *others)] == [1, 0, 0, 0]


def test_an_event_whose_items_are_gone_is_not_delivered(line, company):
    webhook = endpoint(company)
    for event, subject, length in (
        ("scan.completed", "scn", 34),
        ("key.created", "key", 34),
        ("key.leaked", "key", 34),
        ("member.joined", "mem", 32),
        ("finding.opened", "inb", 34),
    ):
        gone = f"{subject}_{company.organization_id[4:]}{'0' * (length - 16)}"
        message = events.entry(company.organization_id, event, gone).message
        process(OrganizationEvent.model_validate(message))
    assert line.deliveries(webhook) == []


def test_a_failing_delivery_is_attempted_for_a_day_and_then_disables_its_endpoint(line, company, now):
    webhook, other = endpoint(company), endpoint(company, url="https://other.example.com/")
    line.receiver.answer = 500
    line.happen()
    started = now.seconds
    line.work()
    for number, pause in enumerate(RETRY_SECONDS, 1):
        (delivery,) = line.deliveries(webhook)
        assert delivery.next_attempt_at == clock.timestamp(now.seconds + pause)
        later(line, now, pause - 2)
        assert line.deliveries(webhook)[0].attempts == delivery.attempts == number
        later(line, now, 3)
    assert now.seconds - started == 86_400 + len(RETRY_SECONDS)
    (delivery,) = line.deliveries(webhook)
    assert (delivery.status, delivery.attempts, delivery.next_attempt_at) == ("failed", 9, None)
    assert (len({*line.receiver.ids}), len({body for _, body, _ in line.receiver.requests})) == (1, 1)
    assert [(line.read(it).status, line.read(it).disabled_reason) for it in (webhook, other)] == [
        ("disabled", "failing")
    ] * 2
    assert line.sqs.at(Queue.NOTIFICATIONS.dead_letters_url) == []


def test_a_success_ends_the_retries_and_forgets_the_failures(line, company, now):
    webhook = endpoint(company)
    line.receiver.answer = 503
    line.tell()
    assert line.read(webhook).failing_since == now.seconds
    line.receiver.answer = 204
    later(line, now, 61)
    assert [(it.status, it.error) for it in line.deliveries(webhook)[0].log] == [(503, "status"), (204, None)]
    assert line.read(webhook).failing_since is None


def test_each_failure_has_a_reason(line, company, now):
    webhook = endpoint(company)
    for answer, reason in ((302, "redirect"), (404, "status"), ("tls", "tls"), ("address", "address")):
        line.receiver.answer = answer
        line.tell()
        assert line.deliveries(webhook)[0].log[-1].error == reason
        now.advance(1)


def test_an_endpoint_that_hangs_rests_and_delays_only_itself(line, company, now):
    slow, fast = endpoint(company), endpoint(company, url="https://fast.example.com/", events=("key.created",))
    line.receiver.answer = "timeout"
    line.tell()
    for _ in range(5):
        line.happen()
    line.receiver.answer = 200
    create_key(company)
    later(line, now)
    assert [it.status for it in line.deliveries(fast)] == ["succeeded"]
    assert sorted(it.attempts for it in line.deliveries(slow)) == [0] * 6 + [1]
    later(line, now, 120)
    assert {it.status for it in line.deliveries(slow)} == {"succeeded"}


def test_an_endpoint_that_is_slow_three_times_in_a_row_rests_for_a_minute(line, company, now, monkeypatch):
    webhook = endpoint(company)
    monkeypatch.setattr(clock, "monotonic_source", now)
    for took, rests_until in ((2.1, 0), (2.1, 0), (2, 0), (2.1, 0), (2.1, 0), (2.1, 60), (2.1, 60), (2, 0)):
        line.receiver.before = lambda seconds=took: now.advance(seconds)
        line.tell()
        assert line.read(webhook).rests_until == (rests_until and int(now()) + rests_until)
        now.advance(60)
    assert {it.status for it in line.deliveries(webhook)} == {"succeeded"}
    assert line.read(webhook) == webhook


def test_at_most_two_attempts_at_an_endpoint_run_at_the_same_time(line, company, now):
    webhook = endpoint(company)
    for _ in range(5):
        line.happen()
    running = []

    def start_others():
        running.append(len(running) + 1)
        line.work()

    line.receiver.before = start_others
    line.work()
    assert max(running) == 2
    line.receiver.before = lambda: None
    later(line, now, 60)
    assert {it.status for it in line.deliveries(webhook)} == {"succeeded"}


def test_a_delivery_to_a_disabled_or_deleted_endpoint_is_not_sent(line, company, now):
    disabled, deleted = endpoint(company), endpoint(company)
    line.receiver.answer = 500
    line.tell()
    webhooks.update_webhook(disabled, {"status": "disabled"}, company.owner.user_id)
    webhooks.delete_webhook(deleted, company.owner.user_id)
    later(line, now, 61)
    assert len(line.receiver.requests) == 2
    (delivery,) = line.deliveries(disabled)
    assert (delivery.status, delivery.log[-1].error) == ("failed", "disabled")


def test_a_message_that_cannot_be_read_is_retried_and_then_dead_lettered(line, now):
    line.sqs.send_message(QueueUrl=Queue.NOTIFICATIONS.url, MessageBody='{"kind": "deliver-webhook", "version": 1}')
    for seconds in (5, 20, 80, 320):
        line.work()
        assert line.sqs.next_at(Queue.NOTIFICATIONS.url) == now() + seconds
        now.advance(seconds)
    line.work()
    (dead,) = line.sqs.at(Queue.NOTIFICATIONS.dead_letters_url)
    assert dead.attributes["reason"]["StringValue"].startswith("malformed: ")
