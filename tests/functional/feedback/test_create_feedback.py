"""POST /v1/feedback: a day's duplicates share one reference, ten new reports an hour, and a switch to pause."""

import json

from controlplane.feedback import store as feedback
from controlplane.platform.core import ids
from tests.functional.feedback.conftest import Reporter, report, stored, taken
from tests.support.each import each

WHOLE = {
    "category": "docs_mismatch",
    "surface": "docs",
    "message": "The reference names a field that no answer has.",
    "expected": "A field called region.",
    "actual": "No such field.",
    "reproduction": "GET /v1/projects",
    "requestId": "1f0c2b9e-7d3a-4a55-9a51-6f1f8f0c9a11",
    "operation": "listProjects",
    "clientName": "build-agent",
    "clientVersion": "2.4.0",
}
LAST_OF_THE_DAY = 1_772_668_799.999
LIMITS = feedback.FIELD_LIMITS


class TestNew:
    def test_returns_a_reference_and_stores_the_report(self, api, world):
        person = world.person()
        reply = Reporter(api, person.token).post(WHOLE)
        reference = reply.data["reference"]
        assert (reply.status, reply.data) == (201, {"reference": reference, "alreadySubmitted": False})
        (item,) = stored()
        assert item == {
            **WHOLE,
            "pk": item["pk"],
            "sk": item["sk"],
            "reference": reference,
            "callerId": person.user_id,
            "createdAt": "2026-03-04T05:06:07.000Z",
            "expiresAt": 1_772_600_767 + 400 * 86_400,
        }
        assert (item["pk"].startswith("FEEDBACK#2026-03-04#"), taken()) == (True, [1])
        assert reference.startswith("FDB-20260304-")
        expected = feedback.ReportItem.from_items(item, None)
        assert feedback.get_report(reference) == feedback.get_report(f" {reference.lower()} ") == expected

    def test_needs_no_scope_role_organization_or_credits_and_keys_report_for_their_organization(self, reporter, world):
        company = world.company("starter")
        world.credits(company, 7)
        for token in (world.token(world.person().user_id, []), company.owner.token, world.key(company)):
            assert reporter.post(report(), token).status == 201
        assert company.organization_id in {item["callerId"] for item in stored()}
        assert not {*WHOLE} - {"category", "message"} & {*stored()[0]}
        balance = reporter.api.get("/v1/billing", company.owner.token).data["credits"]["balance"]
        assert balance == 7

    @each("field", sorted(LIMITS))
    def test_texts_of_any_script_are_trimmed_before_limits_apply(self, reporter, field):
        longest = "Zeile 1\nZeile 2\t\u202e\u05e9\u05dc\u202c \U0001f986 e\u0301".ljust(LIMITS[field], "ü")
        reply = reporter.post(report(**{field: f" \n\t\u00a0{longest[: LIMITS[field]]}\u2003\r\n"}))
        assert reply.status == 201
        assert feedback.get_report(reply.data["reference"]).fields[field] == longest[: LIMITS[field]]

    def test_different_reports_and_those_of_other_callers_have_their_own_references(self, reporter, world):
        changes = ({}, {"category": "friction"}, {"surface": "api"}, {"expected": "x"}, {"actual": "x"})
        company = world.company()
        others = [company.owner.token, world.member(company).token, world.key(company)]
        replies = [*(reporter.post(report(**it)) for it in changes), *(reporter.post(report(), it) for it in others)]
        assert {reply.status for reply in replies} == {201}
        assert len({reply.data["reference"] for reply in replies}) == 8
        assert taken() == [1, 1, 1, 5]


class TestRepeated:
    def test_the_same_report_of_the_same_caller_returns_the_same_reference_and_is_not_counted(self, reporter, world):
        """Whatever the order of its fields and the spaces around them."""
        first = reporter.post(WHOLE)
        before = stored(), taken()
        spaced = {name: f"  {WHOLE[name]}\n" for name in reversed(WHOLE)}
        for body in (*[WHOLE] * 11, spaced):
            again = reporter.post(body)
            assert (again.status, again.data) == (200, {**first.data, "alreadySubmitted": True})
        assert (stored(), taken()) == before
        replies = [reporter.post(report(**it)) for it in ({}, {"surface": "other"}, {"surface": " other\n"})]
        assert [reply.status for reply in replies] == [201, 200, 200]
        assert len({reply.data["reference"] for reply in replies}) == 1
        person, company = world.person(), world.company()
        for credential in (lambda: world.token(person.user_id), lambda: world.key(company)):
            assert [reporter.post(WHOLE, credential()).status for _ in range(2)] == [201, 200]

    def test_a_report_of_the_version_before_is_still_repeated(self, api, world):
        person = world.person()
        fields = {"category": "bug", "message": "It fails."}
        # Without a surface, or with one other than `other`, the same fields are compared as before.
        for more in ({}, {"surface": "docs"}, {"expected": "Größe"}):
            content = json.dumps(fields | more, sort_keys=True, ensure_ascii=False)
            expected = ids.derived_local(person.user_id, content).upper()
            reference = Reporter(api, person.token).post(fields | more).data["reference"]
            assert reference.replace("-", "").endswith(expected)

    def test_a_repeated_report_succeeds_when_the_quota_is_used_up_and_while_intake_is_paused(self, reporter):
        reference = reporter.fill()[3]
        for is_paused in (False, True):
            feedback.set_intake(paused=is_paused)
            again = reporter.post(report(3))
            assert (again.status, again.data) == (200, {"reference": reference, "alreadySubmitted": True})
            refused = reporter.post(report(10))
            assert (refused.status, refused.headers["retry-after"]) == (429, str(3600 - 6 * 60 - 7))

    def test_another_idempotency_key_repeats_the_same_report(self, reporter):
        first = reporter.post(WHOLE, **{"Idempotency-Key": "7d3a1f0c"})
        again = reporter.post(WHOLE, **{"Idempotency-Key": "another"})
        assert (again.status, again.data["reference"]) == (200, first.data["reference"])
        replayed = reporter.post(WHOLE, **{"Idempotency-Key": "another"})
        assert (replayed.status, replayed.text) == (200, again.text)


class TestMidnight:
    def test_a_report_is_repeated_until_the_end_of_its_day_and_new_on_the_next(self, reporter, world, now):
        user_id = world.person().user_id
        replies = []
        for now.seconds in (1_772_600_767.0, LAST_OF_THE_DAY, 1_772_668_800.0):
            replies.append(reporter.post(WHOLE, world.token(user_id)))
        assert [reply.status for reply in replies] == [201, 200, 201]
        assert [reply.data["reference"][:13] for reply in replies] == ["FDB-20260304-"] * 2 + ["FDB-20260305-"]
        assert replies[0].data["reference"] == replies[1].data["reference"]
        assert {item["createdAt"] for item in stored()} == {"2026-03-04T05:06:07.000Z", "2026-03-05T00:00:00.000Z"}
        assert taken() == [1, 1]

    def test_the_quota_ends_with_its_hour_and_retry_after_says_when(self, reporter, world, now):
        now.seconds = LAST_OF_THE_DAY
        token = world.person().token
        for now.seconds, seconds in ((LAST_OF_THE_DAY, "1"), (1_772_668_800.0, "3600")):
            reporter.fill(token)
            refused = reporter.post(report(10), token)
            assert (refused.status, refused.headers["retry-after"]) == (429, seconds)


@each("name", ["title", "request_id", "client_name", "Message"])
def test_returns_400_with_the_unknown_field(reporter, name):
    reply = reporter.post(report(**{name: "x"}))
    assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")
    assert [name] in [problem["path"] for problem in reply.error["details"]]
    assert stored() == taken() == []


class TestQuota:
    def test_returns_429_for_the_11th_new_report_in_an_hour(self, reporter, world):
        reporter.fill()
        before = stored(), taken()
        reply = reporter.post(report(10))
        assert (reply.status, reply.code) == (429, "RATE_LIMITED")
        assert reply.error["details"] == {"reason": "feedback_quota", "limit": 10}
        assert reply.headers["retry-after"] == str(3600 - 6 * 60 - 7)
        assert int(reply.headers["x-ratelimit-remaining"]) > 0
        assert (stored(), taken()) == before
        assert reporter.post(report(10), world.person().token).status == 201

    def test_another_token_or_key_doesnt_reset_the_quota(self, reporter, world):
        company = world.company()
        for credential in (lambda: world.token(company.owner.user_id), lambda: world.key(company)):
            reporter.fill(credential())
            assert reporter.post(report(10), credential()).status == 429

    def test_refused_reports_are_not_counted(self, reporter):
        reporter.fill(count=9)
        assert reporter.post(report(title="x")).status == 400
        feedback.set_intake(paused=True)
        refused = reporter.post(report(10), **{"Idempotency-Key": "7d3a1f0c"})
        assert (refused.status, refused.code, len(stored()), taken()) == (503, "SERVICE_UNAVAILABLE", 9, [9])
        feedback.set_intake(paused=False)
        assert reporter.post(report(10), **{"Idempotency-Key": "7d3a1f0c"}).status == 201
