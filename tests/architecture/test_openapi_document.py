"""Rules for docs/openapi.json that every new route must follow."""

import json
import re
from collections.abc import Callable
from typing import Any

from controlplane.platform.core.errors import CATALOG
from controlplane.platform.core.scopes import API_KEY_SCOPES
from controlplane.platform.http.route import refusals_of
from controlplane.scans.findings import MOST_ISSUES
from openassent_analysis.findings import CATEGORIES, SEVERITIES
from tests.support.api import FORM
from tests.support.documented import (
    PATH,
    DocumentedOperation,
    document,
    documented_operations,
    headers,
    parts,
    resolve,
    samples,
)
from tests.support.operations import operations

JSON = "application/json"
# Python name conversion would split the first header's name into four words.
RATE_HEADERS = {"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}
# Rejections that happen before the credential is known.
UNCOUNTED = {401, 413}
ROUTES = {operation.name: operation for operation in operations() if operation.route.include_in_schema}


def every_operation(check: Callable[[Any, DocumentedOperation], None]) -> Callable[[Any], None]:
    """Turns a check of one operation into a test of all. The failure names the operation."""

    def test(self: Any) -> None:
        for operation in documented_operations():
            try:
                check(self, operation)
            except AssertionError as failure:
                failure.add_note(operation.name)
                raise

    return test


def _requires(operation: DocumentedOperation):
    return ROUTES[operation.name].requires


def _parameters(operation: DocumentedOperation):
    return [resolve(parameter) for parameter in operation.content.get("parameters", [])]


class TestDocument:
    def test_the_document_describes_every_route_except_pages(self):
        assert document()["openapi"].startswith("3.1.")
        assert {operation.name for operation in documented_operations()} == ROUTES.keys()

    def test_the_document_is_small_enough_for_an_assistant_to_read(self):
        """If this fails, look for what is repeated: errors and examples have been."""
        assert PATH.stat().st_size < 320_000

    def test_the_document_has_the_codes_and_limits_of_the_product(self):
        schemas, scans = document()["components"]["schemas"], "/v1/code-audit/scans/{scanId}/issues"
        fields = schemas["Issue"]["properties"]
        assert resolve(fields["category"])["x-extensible-enum"] == [*CATEGORIES]
        assert resolve(fields["severity"])["x-extensible-enum"] == [*SEVERITIES]
        assert schemas["ErrorCode"]["x-extensible-enum"] == [*CATALOG]
        assert f"A scan keeps up to {MOST_ISSUES} findings." in document()["paths"][scans]["get"]["description"]
        assert re.findall(r"Successful Response|HTTPValidationError|\"title\":\"[^\"]*Id\"", PATH.read_text()) == []


class TestNames:
    """`make lint` checks that operations have an ID, tags, and a description, and that all examples are valid."""

    @every_operation
    def test_an_operation_has_a_short_id_and_summary(self, operation: DocumentedOperation):
        assert re.fullmatch(r"[a-z]+([A-Z][a-z]*)+", operation.content["operationId"])
        assert re.fullmatch(r"[A-Z][^.]{3,50}", operation.content["summary"])


class TestSecurity:
    @every_operation
    def test_the_documented_security_is_what_the_route_requires(self, operation: DocumentedOperation):
        requires = _requires(operation)
        kinds = [kind for one in operation.content["security"] for kind in one]
        if requires is None:
            assert kinds == []
            return
        scopes = [scope for scope in (requires.scope, requires.or_scope) if scope]
        by_key = not requires.user_token and (not scopes or not {*scopes}.isdisjoint(API_KEY_SCOPES))
        assert kinds == (["organizationApiKey", "userToken"] if by_key else ["userToken"])
        assert operation.content.get("x-required-scopes", []) == scopes
        assert all(f"`{scope}`" in operation.content["description"] for scope in scopes)

    @every_operation
    def test_roles_are_documented_unless_every_member_is_allowed(self, operation: DocumentedOperation):
        requires = _requires(operation)
        expected = {None: None, "member": None, "admin": ["admin", "owner"], "owner": ["owner"]}
        assert operation.content.get("x-required-roles") == expected[requires and requires.role]


class TestRequests:
    @every_operation
    def test_every_parameter_has_a_description_and_an_example(self, operation: DocumentedOperation):
        for parameter in _parameters(operation):
            assert {"description", "example", "schema"} <= parameter.keys(), parameter["name"]
            assert parameter["description"].endswith(".")
            assert "null" not in json.dumps(parameter["schema"])

    @every_operation
    def test_the_body_has_an_example_in_every_media_type(self, operation: DocumentedOperation):
        described = ROUTES[operation.name]
        taken = {JSON} if described.route.body_field is not None else set()
        content = dict(operation.content.get("requestBody", {}).get("content", {}))
        if described.anonymous is not None:
            taken.add(FORM)
            content |= operation.content["x-form-encoded"]["requestBody"]["content"]
        assert content.keys() == taken
        assert all(samples().examples(media) for media in content.values())

    def test_creations_that_accept_an_idempotency_key_document_it(self):
        keyed = {
            operation.name: operation
            for operation in documented_operations()
            if any(parameter["name"] == "Idempotency-Key" for parameter in _parameters(operation))
        }
        assert "POST /v1/projects" in keyed
        for operation in keyed.values():
            answers = operation.responses()
            assert "KeyOfAnotherRequest" in json.dumps(answers[400])
            assert {"RequestInFlight", "AnswerLost"} <= answers[409]["content"][JSON]["examples"].keys()
            for status in answers:
                assert ("Idempotency-Replayed" in headers(operation, status)) is (status < 300)


class TestResponses:
    @every_operation
    def test_a_response_has_a_description_an_example_and_its_statuss_headers(self, operation: DocumentedOperation):
        assert {400, 429, 500} <= operation.responses().keys()
        counts = _requires(operation) is not None
        for status, answer in operation.responses().items():
            found = headers(operation, status)
            expected = {"X-Request-Id", *{429: ["Retry-After"], 401: ["WWW-Authenticate"]}.get(status, [])}
            assert expected <= {*found}, status
            assert (found >= RATE_HEADERS) is (counts and status not in UNCOUNTED), status
            assert answer["description"]
            assert status == 304 or samples().examples(answer["content"][JSON]), status

    def test_every_header_has_an_example(self):
        for name, header in (document()["components"]["headers"] | document()["x-common-headers"]).items():
            assert {"description", "example", "schema"} <= header.keys(), name

    @every_operation
    def test_errors_that_depend_on_the_request_are_documented_only_if_possible(self, operation: DocumentedOperation):
        described, statuses = ROUTES[operation.name], operation.responses().keys()
        assert (413 in statuses) is (415 in statuses) is (described.route.body_field is not None)
        if described.requires is not None:
            assert {401, 402} <= statuses
            assert (403 in statuses) or described.requires.scope is None
        elif described.anonymous is None:
            assert statuses.isdisjoint({401, 402, 403})

    @every_operation
    def test_an_error_has_the_code_of_its_status_and_each_of_a_routes_own_errors_an_example(
        self, operation: DocumentedOperation
    ):
        shown: dict[str, Any] = {}
        for status, answer in operation.responses().items():
            examples = samples().examples(answer["content"][JSON]) if status >= 400 else {}
            shown |= answer["content"][JSON]["examples"] if status >= 400 else {}
            codes = {body["error"]["code"] for body in examples.values()}
            assert all(CATALOG[code] == status or (status, code) == (415, "INVALID_PAYLOAD") for code in codes)
        own = [kind.__name__ for kind in refusals_of(ROUTES[operation.name].route.service_endpoint)]
        assert {*own} <= {name.rpartition(".")[2] for name in shown}
        # Errors of other operations aren't shown.
        assert len([name for name in shown if "." in name]) <= len(own) + 1


class TestFields:
    def test_every_schema_and_field_has_a_description(self):
        """A field that refers to a schema uses that schema's description."""
        schemas = document()["components"]["schemas"]
        silent = [name for name, schema in schemas.items() if "description" not in schema]
        fields = [
            (name, key, it) for name, schema in schemas.items() for key, it in schema.get("properties", {}).items()
        ]
        assert silent + [(name, key) for name, key, it in fields if not it.get("description", "$ref" in it)] == []

    def test_fields_have_examples_and_times_urls_and_counts_their_format(self):
        wrong = []
        for at, schema in parts(document()["components"]["schemas"], "#/components/schemas"):
            for name, field in schema.get("properties", {}).items():
                kinds, written = field.get("type", ()), field.get("format")
                # An object field shows the values of its own fields.
                plain = "type" in schema and field and "$ref" not in json.dumps(field) and "properties" not in field
                # Any boolean and any time is an example of itself.
                plain = plain and "boolean" not in kinds and written != "date-time"
                is_wrong = (
                    (plain and "examples" not in field)
                    or (re.search(r"(At|_at)$", name) and "string" in kinds and written != "date-time")
                    or (re.search(r"(?i)(ur[il]|uri_complete)$", name) and written != "uri")
                    or ("integer" in kinds and not {"minimum", "exclusiveMinimum"} & field.keys())
                )
                wrong += [f"{at}/{name}"] * bool(is_wrong)
        assert wrong == []
