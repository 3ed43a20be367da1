"""POST /v1/feedback: a day's duplicates share one reference, ten new reports an hour, and a switch to pause."""

import json
from typing import Any

import pytest

from controlplane.core import ids
from controlplane.store import codec, feedback
from tests.support.api import Api, Reply
from tests.support.each import each
from tests.support.world import World, table_dump

PATH = "/v1/feedback"
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
OPTIONAL = sorted(set(WHOLE) - {"category", "message"})
TEXTS = sorted(feedback.FIELD_LIMITS)


def report(number: int = 0, **fields: Any) -> dict[str, Any]:
    return {"category": "bug", "message": f"It fails in the way number {number}.", **fields}


def stored() -> list[dict[str, Any]]:
    """Returns the reports in the table."""
    items = [codec.decode_item(item) for item in table_dump()]
    return [item for item in items if item["pk"].startswith("FEEDBACK#")]


def taken() -> list[int]:
    """Returns how many reports each caller was charged for in each hour."""
    items = [codec.decode_item(item) for item in table_dump()]
    return sorted(item["taken"] for item in items if item["pk"].startswith("FEEDBACKQUOTA#"))


@pytest.fixture
def token(world: World) -> str:
    return world.person().token


def fill(api: Api, token: str, count: int = feedback.NEW_PER_HOUR) -> list[Reply]:
    replies = [api.post(PATH, token, json_body=report(number)) for number in range(count)]
    assert {reply.status for reply in replies} == {201}
    return replies


class Test201:
    def test_returns_a_reference_and_stores_the_report(self, api: Api, world: World):
        person = world.person()
        reply = api.post(PATH, person.token, json_body=WHOLE)
        assert reply.status == 201
        assert reply.data == {"reference": reply.data["reference"], "alreadySubmitted": False}
        (item,) = stored()
        assert item == {
            **WHOLE,
            "pk": item["pk"],
            "sk": item["sk"],
            "reference": reply.data["reference"],
            "callerId": person.user_id,
            "createdAt": "2026-03-04T05:06:07.000Z",
            "expiresAt": 1_772_600_767 + 400 * 86_400,
        }
        assert item["pk"].startswith("FEEDBACK#2026-03-04#")
        assert taken() == [1]

    def test_the_reference_has_a_prefix_and_finds_the_report(self, api: Api, token: str):
        reference = api.post(PATH, token, json_body=WHOLE).data["reference"]
        assert reference.startswith("FDB-20260304-")
        expected = feedback.ReportItem.from_items(stored()[0], None)
        assert feedback.get_report(reference) == feedback.get_report(f" {reference.lower()} ") == expected

    def test_needs_no_scope_role_or_organization(self, api: Api, world: World):
        bare = world.token(world.person().user_id, [])
        assert api.post(PATH, bare, json_body=report()).status == 201

    def test_an_api_key_reports_for_its_organization(self, api: Api, world: World):
        company = world.company("starter")
        assert api.post(PATH, world.key(company), json_body=report()).status == 201
        assert stored()[0]["callerId"] == company.organization_id

    def test_costs_no_credits(self, api: Api, world: World):
        company = world.company()
        world.credits(company, 7)
        api.post(PATH, company.owner.token, json_body=report())
        assert api.get("/v1/billing", company.owner.token).data["credits"]["balance"] == 7

    def test_omitted_fields_are_not_stored(self, api: Api, token: str):
        api.post(PATH, token, json_body=report())
        assert {"category", "message"} == set(stored()[0]) & {"category", "message", *OPTIONAL}

    @each("category", ["bug", "friction", "docs_mismatch", "feature_request", "performance"])
    def test_accepts_each_category(self, api: Api, token: str, category: str):
        assert api.post(PATH, token, json_body=report(category=category)).status == 201

    @each("surface", ["api", "mcp", "cli", "docs", "sdk", "dashboard", "other"])
    def test_accepts_each_surface(self, api: Api, token: str, surface: str):
        assert api.post(PATH, token, json_body=report(surface=surface)).status == 201

    @each("field", TEXTS)
    def test_texts_are_trimmed_before_limits_apply(self, api: Api, token: str, field: str):
        longest = "ü" * feedback.FIELD_LIMITS[field]
        reply = api.post(PATH, token, json_body=report(**{field: f" \n\t\u00a0{longest}\u2003\r\n"}))
        assert reply.status == 201
        assert feedback.get_report(reply.data["reference"]).fields[field] == longest

    def test_line_breaks_and_any_script_are_kept(self, api: Api, token: str):
        message = "Zeile 1\nZeile 2\t\u202e\u05e9\u05dc\u202c \U0001f986 e\u0301"
        api.post(PATH, token, json_body=report(message=message))
        assert stored()[0]["message"] == message

    def test_different_reports_have_different_references(self, api: Api, token: str):
        bodies = [
            report(),
            report(category="friction"),
            report(surface="api"),
            report(expected="x"),
            report(actual="x"),
        ]
        assert len({api.post(PATH, token, json_body=body).data["reference"] for body in bodies}) == 5
        assert taken() == [5]

    def test_the_same_report_of_another_caller_is_another_report(self, api: Api, world: World):
        company = world.company()
        tokens = [company.owner.token, world.member(company).token, world.key(company)]
        replies = [api.post(PATH, token, json_body=report()) for token in tokens]
        assert [reply.status for reply in replies] == [201, 201, 201]
        assert len({reply.data["reference"] for reply in replies}) == 3


class Test200:
    def test_the_same_report_returns_the_same_reference_and_is_not_counted(self, api: Api, token: str):
        first = api.post(PATH, token, json_body=WHOLE)
        before = stored(), taken()
        for _ in range(12):
            again = api.post(PATH, token, json_body=WHOLE)
            assert again.status == 200
            assert again.data == {"reference": first.data["reference"], "alreadySubmitted": True}
        assert (stored(), taken()) == before

    def test_field_order_and_surrounding_spaces_make_no_difference(self, api: Api, token: str):
        first = api.post(PATH, token, json_body=WHOLE)
        body = {name: f"  {WHOLE[name]}\n" for name in reversed(WHOLE)}
        again = api.post(PATH, token, json_body=body)
        assert (again.status, again.data["reference"]) == (200, first.data["reference"])

    def test_no_surface_is_the_same_as_other(self, api: Api, token: str):
        plain = {"category": "bug", "message": "It fails."}
        replies = [
            api.post(PATH, token, json_body=body)
            for body in (plain, {**plain, "surface": "other"}, {**plain, "surface": " other\n"})
        ]
        assert [reply.status for reply in replies] == [201, 200, 200]
        assert len({reply.data["reference"] for reply in replies}) == 1
        assert len(stored()) == 1

    def test_a_report_of_the_version_before_is_still_repeated(self, api: Api, world: World):
        person = world.person()
        fields = {"category": "bug", "message": "It fails."}
        # Without a surface, or with one other than `other`, the same fields are compared as before.
        for more in ({}, {"surface": "docs"}, {"expected": "Größe"}):
            content = json.dumps(fields | more, sort_keys=True, ensure_ascii=False)
            expected = ids.derived_local(person.user_id, content).upper()
            reference = api.post(PATH, person.token, json_body=fields | more).data["reference"]
            assert reference.replace("-", "").endswith(expected)

    def test_another_token_of_the_same_user_repeats_the_report(self, api: Api, world: World):
        person = world.person()
        api.post(PATH, person.token, json_body=WHOLE)
        assert api.post(PATH, world.token(person.user_id), json_body=WHOLE).status == 200

    def test_another_key_of_the_same_organization_repeats_the_report(self, api: Api, world: World):
        company = world.company()
        api.post(PATH, world.key(company), json_body=WHOLE)
        assert api.post(PATH, world.key(company), json_body=WHOLE).status == 200

    def test_the_report_is_repeated_until_the_last_millisecond_of_the_day(self, api: Api, world: World, now):
        person = world.person()
        first = api.post(PATH, person.token, json_body=WHOLE)
        now.seconds = 1_772_668_799.999
        again = api.post(PATH, world.token(person.user_id), json_body=WHOLE)
        assert (again.status, again.data["reference"]) == (200, first.data["reference"])

    def test_a_repeated_report_succeeds_when_the_quota_is_used_up(self, api: Api, token: str):
        first = fill(api, token)[3]
        again = api.post(PATH, token, json_body=report(3))
        assert (again.status, again.data["reference"]) == (200, first.data["reference"])

    def test_a_repeated_report_succeeds_while_intake_is_paused(self, api: Api, token: str):
        first = api.post(PATH, token, json_body=WHOLE)
        feedback.set_intake(paused=True)
        again = api.post(PATH, token, json_body=WHOLE)
        assert again.status == 200
        assert again.data == {"reference": first.data["reference"], "alreadySubmitted": True}


class TestMidnight:
    def test_the_same_report_is_new_on_the_next_day(self, api: Api, world: World, now):
        now.seconds = 1_772_668_799.999
        token = world.person().token
        last = api.post(PATH, token, json_body=WHOLE)
        now.seconds = 1_772_668_800.0
        first = api.post(PATH, token, json_body=WHOLE)
        assert [last.status, first.status] == [201, 201]
        assert last.data["reference"].startswith("FDB-20260304-")
        assert first.data["reference"].startswith("FDB-20260305-")
        assert {item["createdAt"] for item in stored()} == {"2026-03-04T23:59:59.999Z", "2026-03-05T00:00:00.000Z"}
        assert taken() == [1, 1]

    def test_the_quota_ends_with_its_hour_and_retry_after_says_when(self, api: Api, world: World, now):
        now.seconds = 1_772_668_799.999
        token = world.person().token
        fill(api, token)
        refused = api.post(PATH, token, json_body=report(10))
        assert refused.status == 429
        assert refused.headers["retry-after"] == "1"
        now.seconds = 1_772_668_800.0
        fill(api, token)
        refused = api.post(PATH, token, json_body=report(10))
        assert refused.headers["retry-after"] == "3600"

    def test_one_reading_of_the_clock_decides_everything(self, api: Api, token: str, now, monkeypatch):
        readings = []

        def tick() -> float:
            # The clock passes midnight between the first and the second reading.
            readings.append(1_772_668_799.999 + len(readings))
            return readings[-1]

        monkeypatch.setattr("controlplane.core.clock.source", tick)
        receipt = feedback.submit_report("usr_0123456789abcdef", report())
        assert len(readings) == 1
        assert receipt.reference.startswith("FDB-20260304-")
        assert stored()[0]["createdAt"] == "2026-03-04T23:59:59.999Z"


class Test400:
    @pytest.mark.parametrize("field", ["category", "message"])
    def test_returns_400_without_a_required_field(self, api: Api, token: str, field: str):
        body = {name: value for name, value in report().items() if name != field}
        self._refused(api, token, body, field)

    @each("field", TEXTS)
    @each("value", ["", " ", "\n\t \u00a0\u3000", None, 1, True, [], {}, ["x"]], ids=repr)
    def test_returns_400_for_an_empty_or_non_string_text(self, api: Api, token: str, field: str, value: Any):
        self._refused(api, token, report(**{field: value}), field)

    @each("field", TEXTS)
    def test_returns_400_for_a_text_that_is_too_long_after_trimming(self, api: Api, token: str, field: str):
        self._refused(api, token, report(**{field: " " + "x" * (feedback.FIELD_LIMITS[field] + 1)}), field)

    @each("field", ["category", "surface"])
    @each("value", ["", " ", "BUG", "bugs", None, 1, []], ids=repr)
    def test_returns_400_for_an_unknown_choice(self, api: Api, token: str, field: str, value: Any):
        self._refused(api, token, report(**{field: value}), field)

    @each("name", ["title", "severity", "request_id", "client_name", "Message", "organizationId"])
    def test_returns_400_for_an_unknown_property(self, api: Api, token: str, name: str):
        self._refused(api, token, report(**{name: "x"}), name)

    def _refused(self, api: Api, token: str, body: dict[str, Any], field: str) -> None:
        reply = api.post(PATH, token, json_body=body)
        assert (reply.status, reply.code) == (400, "INVALID_PAYLOAD")
        assert [field] in [problem["path"] for problem in reply.error["details"]]
        assert stored() == []
        assert taken() == []


class Test402:
    def test_returns_402_for_a_key_on_the_free_plan(self, api: Api, world: World):
        from controlplane.store import billing

        company = world.company()
        key = world.key(company)
        billing.change_plan(company.organization_id, "free")
        reply = api.post(PATH, key, json_body=report())
        assert (reply.status, reply.code) == (402, "PLAN_REQUIRED")
        assert stored() == []


class Test429:
    def test_returns_429_for_the_11th_new_report_in_an_hour(self, api: Api, token: str):
        fill(api, token)
        before = stored(), taken()
        reply = api.post(PATH, token, json_body=report(10))
        assert (reply.status, reply.code) == (429, "RATE_LIMITED")
        assert reply.error["details"] == {"reason": "feedback_quota", "limit": 10}
        assert reply.headers["retry-after"] == str(3600 - 6 * 60 - 7)
        assert int(reply.headers["x-ratelimit-remaining"]) > 0
        assert (stored(), taken()) == before

    def test_another_token_or_key_doesnt_reset_the_quota(self, api: Api, world: World):
        company = world.company()
        fill(api, company.owner.token)
        assert api.post(PATH, world.token(company.owner.user_id), json_body=report(10)).status == 429
        fill(api, world.key(company))
        assert api.post(PATH, world.key(company), json_body=report(10)).status == 429

    def test_other_callers_have_their_own_quota(self, api: Api, world: World, token: str):
        fill(api, token)
        assert api.post(PATH, world.person().token, json_body=report(10)).status == 201

    def test_refused_reports_are_not_counted(self, api: Api, token: str):
        fill(api, token, 9)
        api.post(PATH, token, json_body=report(title="x"))
        feedback.set_intake(paused=True)
        assert api.post(PATH, token, json_body=report(10)).status == 503
        feedback.set_intake(paused=False)
        assert api.post(PATH, token, json_body=report(10)).status == 201


class Test503:
    def test_returns_503_for_a_new_report_while_intake_is_paused(self, api: Api, token: str):
        feedback.set_intake(paused=True)
        reply = api.post(PATH, token, json_body=report())
        assert (reply.status, reply.code) == (503, "SERVICE_UNAVAILABLE")
        assert stored() == []
        assert taken() == []

    def test_accepts_reports_again_once_resumed(self, api: Api, token: str):
        feedback.set_intake(paused=True)
        feedback.set_intake(paused=False)
        assert api.post(PATH, token, json_body=report()).status == 201

    def test_a_503_leaves_the_idempotency_key_usable(self, api: Api, token: str):
        headers = {"Idempotency-Key": "7d3a1f0c"}
        feedback.set_intake(paused=True)
        assert api.post(PATH, token, json_body=report(), headers=headers).status == 503
        feedback.set_intake(paused=False)
        assert api.post(PATH, token, json_body=report(), headers=headers).status == 201


class TestIdempotencyKey:
    def test_a_repeated_idempotency_key_replays_the_first_response(self, api: Api, token: str):
        headers = {"Idempotency-Key": "7d3a1f0c"}
        first = api.post(PATH, token, json_body=WHOLE, headers=headers)
        again = api.post(PATH, token, json_body=WHOLE, headers=headers)
        assert (again.status, again.text) == (201, first.text)
        assert again.headers["idempotency-replayed"] == "true"

    def test_another_idempotency_key_repeats_the_same_report(self, api: Api, token: str):
        first = api.post(PATH, token, json_body=WHOLE, headers={"Idempotency-Key": "7d3a1f0c"})
        again = api.post(PATH, token, json_body=WHOLE, headers={"Idempotency-Key": "another"})
        assert (again.status, again.data["reference"]) == (200, first.data["reference"])
        replayed = api.post(PATH, token, json_body=WHOLE, headers={"Idempotency-Key": "another"})
        assert (replayed.status, replayed.text) == (200, again.text)
