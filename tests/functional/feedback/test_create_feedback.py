"""POST /v1/feedback: a day's duplicates share one reference, ten new reports an hour, and a switch to pause."""

import json
import typing

from controlplane.core import ids
from controlplane.store import feedback
from tests.functional.feedback.conftest import Reporter, stored, taken
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
REPORT = {"category": "bug", "message": "It fails."}
LAST_MILLISECOND, MIDNIGHT = 1_772_668_799.999, 1_772_668_800.0


def test_a_report_is_stored_and_found_by_its_reference(reporter):
    reply = reporter.send(**WHOLE)
    reference = reply.data["reference"]
    assert (reply.status, reply.data) == (201, {"reference": reference, "alreadySubmitted": False})
    (item,) = stored()
    assert item == {
        **WHOLE,
        "pk": item["pk"],
        "sk": item["sk"],
        "reference": reference,
        "callerId": reporter.person.user_id,
        "createdAt": "2026-03-04T05:06:07.000Z",
        "expiresAt": 1_772_600_767 + 400 * 86_400,
    }
    assert item["pk"].startswith("FEEDBACK#2026-03-04#")
    assert reference.startswith("FDB-20260304-")
    expected = feedback.ReportItem.from_items(item, None)
    assert feedback.get_report(reference) == feedback.get_report(f" {reference.lower()} ") == expected
    assert taken() == [1]


def test_a_report_needs_no_scope_role_or_organization_and_costs_no_credits(reporter, api, world):
    company = world.company("starter")
    world.credits(company, 7)
    tokens = [world.token(reporter.person.user_id, []), world.key(company), company.owner.token]
    replies = [reporter.report(who=token) for token in tokens]
    assert {reply.status for reply in replies} == {201}
    assert len({reply.data["reference"] for reply in replies}) == 3, "each caller has its own report"
    assert {it["callerId"] for it in stored()} == {
        reporter.person.user_id, company.organization_id, company.owner.user_id,
    }  # fmt: skip
    assert api.get("/v1/billing", company.owner.token).data["credits"]["balance"] == 7


def test_omitted_fields_are_not_stored_and_texts_are_trimmed_and_otherwise_kept(reporter):
    message = "Zeile 1\nZeile 2\t\u202e\u05e9\u05dc\u202c \U0001f986 e\u0301"
    reporter.send(category="bug", message=f" \n\t\u00a0{message}\u2003\r\n")
    (item,) = stored()
    assert {name: item[name] for name in WHOLE if name in item} == {"category": "bug", "message": message}


@each("field", sorted(feedback.FIELD_LIMITS))
def test_a_text_has_a_greatest_length_after_trimming(field, reporter):
    longest = "ü" * feedback.FIELD_LIMITS[field]
    reply = reporter.report(**{field: f" \n\t\u00a0{longest}\u2003\r\n"})
    assert (reply.status, feedback.get_report(reply.data["reference"]).fields[field]) == (201, longest)
    before = stored(), taken()
    refused = reporter.report(**{field: " x" + longest})
    assert (refused.status, refused.error["details"][0]["path"]) == (400, [field])
    assert (stored(), taken()) == before


@each(
    ("field", "values"),
    [
        *((field, ["", " ", "\n\t \u00a0\u3000", None, 1, True, [], {}, ["x"]]) for field in feedback.FIELD_LIMITS),
        *((field, ["", " ", "BUG", "bugs", None, 1, []]) for field in ("category", "surface")),
        *((field, ["x"]) for field in ("title", "severity", "request_id", "client_name", "Message", "organizationId")),
    ],
)
def test_an_invalid_field_returns_400_and_stores_nothing(field, values, reporter):
    for value in values:
        reply = reporter.send(**{**REPORT, field: value})
        assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD"), value
        assert [field] in [problem["path"] for problem in reply.error["details"]], value
    assert (stored(), taken()) == ([], [])


def test_a_category_and_a_message_are_required(reporter):
    for field, value in REPORT.items():
        reply = reporter.send(**{field: value})
        assert (reply.status, [it["path"] for it in reply.error["details"]]) == (400, [[*REPORT.keys() - {field}]])


@each("field", ["category", "surface"])
def test_each_choice_is_accepted(field, api, world):
    reporter = Reporter(api, world)
    choices = typing.get_args(feedback.Category if field == "category" else feedback.Surface)
    replies = [reporter.send(**{**REPORT, field: choice}) for choice in choices]
    assert {reply.status for reply in replies} == {201}
    assert len({reply.data["reference"] for reply in replies}) == len(choices)


def test_the_same_report_returns_the_same_reference_and_is_not_counted(reporter, now):
    first = reporter.send(**WHOLE)
    before = stored(), taken()
    same = [WHOLE] * 12 + [{name: f"  {WHOLE[name]}\n" for name in reversed(WHOLE)}]
    now.seconds = LAST_MILLISECOND
    for body in same:
        again = reporter.send(**body)
        assert again.status == 200
        assert again.data == {"reference": first.data["reference"], "alreadySubmitted": True}
    assert (stored(), taken()) == before


def test_another_key_of_the_same_organization_repeats_the_report(reporter, world):
    company = world.company()
    assert [reporter.send(world.key(company), **WHOLE).status for _ in range(2)] == [201, 200]


def test_no_surface_is_the_same_as_other(reporter):
    bodies = [REPORT, {**REPORT, "surface": "other"}, {**REPORT, "surface": " other\n"}]
    assert [reporter.send(**body).status for body in bodies] == [201, 200, 200]
    assert len(stored()) == 1


@each("more", [{}, {"surface": "docs"}, {"expected": "Größe"}])
def test_the_reference_is_derived_from_caller_and_fields_so_that_later_releases_recognize_it(more, reporter):
    content = json.dumps(REPORT | more, sort_keys=True, ensure_ascii=False)
    expected = ids.derived_local(reporter.person.user_id, content).upper()
    assert reporter.send(**REPORT, **more).data["reference"].replace("-", "").endswith(expected)


def test_another_idempotency_key_repeats_the_same_report(reporter):
    first, again, replayed = (
        reporter.send(headers={"Idempotency-Key": key}, **WHOLE) for key in ("7d3a1f0c", "another", "another")
    )
    assert (again.status, again.data["reference"]) == (200, first.data["reference"])
    assert (replayed.status, replayed.text) == (200, again.text)


def test_the_same_report_is_new_on_the_next_day(reporter, now):
    replies = []
    for now.seconds in (LAST_MILLISECOND, MIDNIGHT):
        replies.append(reporter.send(**WHOLE))
    assert [(it.status, it.data["reference"][:13]) for it in replies] == [
        (201, "FDB-20260304-"),
        (201, "FDB-20260305-"),
    ]
    assert {item["createdAt"] for item in stored()} == {"2026-03-04T23:59:59.999Z", "2026-03-05T00:00:00.000Z"}
    assert taken() == [1, 1]


def test_one_reading_of_the_clock_decides_everything(monkeypatch):
    readings = []

    def tick():
        # The clock passes midnight between the first and the second reading.
        readings.append(LAST_MILLISECOND + len(readings))
        return readings[-1]

    monkeypatch.setattr("controlplane.core.clock.source", tick)
    receipt = feedback.submit_report("usr_0123456789abcdef", REPORT)
    assert (len(readings), receipt.reference[:13]) == (1, "FDB-20260304-")
    assert stored()[0]["createdAt"] == "2026-03-04T23:59:59.999Z"


def test_the_11th_new_report_in_an_hour_returns_429_for_all_tokens_of_the_person(reporter, world):
    first = reporter.fill()[3]
    before = stored(), taken()
    reply = reporter.report(10, world.token(reporter.person.user_id))
    assert (reply.status, reply.code) == (429, "RATE_LIMITED")
    assert reply.error["details"] == {"reason": "feedback_quota", "limit": 10}
    assert reply.headers["retry-after"] == str(3600 - 6 * 60 - 7)
    assert int(reply.headers["x-ratelimit-remaining"]) > 0
    again = reporter.report(3, world.token(reporter.person.user_id))
    assert (again.status, again.data["reference"]) == (200, first.data["reference"])
    assert (stored(), taken()) == before


def test_an_organizations_keys_share_a_quota_that_is_not_their_users(reporter, world):
    company = world.company()
    reporter.fill(company.owner.token)
    reporter.fill(world.key(company))
    assert reporter.report(10, world.key(company)).status == 429
    assert reporter.report(10).status == 201


def test_the_quota_ends_with_its_hour_and_retry_after_says_when(reporter, now):
    for now.seconds, retry_after in ((LAST_MILLISECOND, "1"), (MIDNIGHT, "3600")):
        reporter.fill()
        refused = reporter.report(10)
        assert (refused.status, refused.headers["retry-after"]) == (429, retry_after)


def test_a_new_report_returns_503_during_a_pause_and_is_not_counted(reporter):
    first = reporter.fill(count=9)[0]
    reporter.report(title="x")
    before = stored(), taken()
    feedback.set_intake(paused=True)
    refused = reporter.report(9)
    assert (refused.status, refused.code) == (503, "SERVICE_UNAVAILABLE")
    assert reporter.report(0).data == {"reference": first.data["reference"], "alreadySubmitted": True}
    assert (stored(), taken()) == before
    feedback.set_intake(paused=False)
    assert [reporter.report(number).status for number in (9, 10)] == [201, 429]
