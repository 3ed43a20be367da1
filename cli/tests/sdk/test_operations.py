"""The SDK reaches every operation of the document, and parses every example of a response."""

import inspect
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any

import httpx
from pydantic import BaseModel

from cli.tests.support.documented_service import DocumentedService, examples, operations
from cli.tests.support.script import run
from openassent import Assent, AsyncAssent, AsyncPages, DeviceLogin, Pages
from openassent.models import InboxItemChange
from scripts.reference.calls import CALLS
from tests.support.documented import resolve
from tests.support.each import each

NAMES = {"UTC": UTC, "datetime": datetime, "InboxItemChange": InboxItemChange}
ADDRESS = "https://api.assent.test"
EXAMPLES = [(name, number) for name, it in operations().items() for number in range(len(examples(it)))]


def plain(result: Any) -> Any:
    """Returns what the SDK has read as the JSON that the service sent."""
    if isinstance(result, DeviceLogin):
        result = result.code
    if isinstance(result, BaseModel):
        return result.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return [plain(it) for it in result] if isinstance(result, list) else result


def comparable(value: Any) -> Any:
    """Returns JSON with times in one format."""
    if isinstance(value, dict):
        return {name: comparable(it) for name, it in value.items()}
    if isinstance(value, list):
        return [comparable(it) for it in value]
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", value):
        return datetime.fromisoformat(value).timestamp()
    return value


def expected(operation_id: str, number: int) -> Any:
    body = examples(operations()[operation_id])[number][1]
    content = body["data"] if "success" in body else body
    return content["results"] if operation_id == "updateInboxItems" else content


def evaluated(operation_id: str, client: Assent | AsyncAssent, more: str = "") -> Any:
    """Evaluates the example of a call. more: further arguments."""
    return eval(f"{CALLS[operation_id].removesuffix(')')}{more})", {"client": client, **NAMES})


def those_with(parameter: str) -> set[str]:
    """Returns the operations that have this parameter, by its name among the document's components."""
    reference = {"$ref": f"#/components/parameters/{parameter}"}
    return {name for name, operation in operations().items() if reference in operation.get("parameters", [])}


def requests_of(calls: Iterable[str], more: str = "", organization: str | None = None) -> dict[str, httpx.Request]:
    """Returns the last request of each operation, sent by a client that acts in the organization."""
    sent: dict[str, httpx.Request] = {}

    def answer(request: httpx.Request) -> httpx.Response:
        response = service(request)
        sent[service.called[-1]] = request
        return response

    service, transport = DocumentedService(), httpx.MockTransport(answer)
    with Assent(base_url=ADDRESS, api_key="assent_secret", organization=organization, transport=transport) as client:
        for operation_id in calls:
            result = evaluated(operation_id, client, more)
            if isinstance(result, Pages):
                result.page()
    return sent


class TestEveryOperation:
    def test_has_an_example_of_a_call(self):
        assert {*CALLS} == {*operations()}

    @each(("operation_id", "number"), EXAMPLES)
    def test_returns_what_the_service_sent(self, operation_id, number):
        service = DocumentedService(number)
        with Assent(base_url=ADDRESS, api_key="assent_secret", transport=httpx.MockTransport(service)) as client:
            result = evaluated(operation_id, client)
            if isinstance(result, Pages):
                result = result.page().items
        assert service.called == [operation_id]
        assert comparable(plain(result)) == comparable(expected(operation_id, number))

    def test_returns_the_same_to_the_asynchronous_client(self):
        async def scenario() -> None:
            for operation_id in CALLS:
                service = DocumentedService()
                transport = httpx.MockTransport(service)
                async with AsyncAssent(base_url=ADDRESS, api_key="assent_secret", transport=transport) as client:
                    result = evaluated(operation_id, client)
                    result = (await result.page()).items if isinstance(result, AsyncPages) else await result
                assert service.called == [operation_id]
                assert comparable(plain(result)) == comparable(expected(operation_id, 0))

        run(scenario())

    def test_that_creates_has_an_idempotency_key(self):
        sent = requests_of(CALLS)
        assert {name for name, it in sent.items() if "Idempotency-Key" in it.headers} == those_with("IdempotencyKey")

    def test_acts_in_the_organization_of_the_client(self):
        organization = "org_3f8k2m9q7r1s5t6v"
        sent = requests_of(CALLS, organization=organization)
        acting = {name for name, it in sent.items() if it.url.params.get("organizationId") == organization}
        assert acting == those_with("OrganizationId")

    def test_that_changes_something_can_be_a_dry_run(self):
        sent = requests_of(those_with("DryRun"), ", dry_run=True")
        assert {name for name, it in sent.items() if it.url.params.get("dryRun") == "true"} == those_with("DryRun")


def test_methods_take_every_parameter_and_field_of_their_operations():
    """Compares the arguments with the document, apart from what the SDK doesn't offer."""
    client = Assent(base_url=ADDRESS)
    for operation_id, call in CALLS.items():
        method = attrgetter(call.removeprefix("client.").partition("(")[0])(client)
        offered = {*inspect.signature(method).parameters} | NOT_OFFERED.get(operation_id, set())
        assert documented(operations()[operation_id]) - offered == set(), operation_id


# Older shapes of requests, and fields that the SDK fills in or names differently.
NOT_OFFERED = {
    "getConfiguration": {"if_none_match"},
    "createProject": {"trusted_origins", "consent"},
    "updateProject": {"project_name", "consent"},
    "createDeviceCode": {"code_challenge", "code_challenge_method", "scope"},
    "createDeviceToken": {"grant_type", "device_code", "code_verifier", "client_id", "scope"},
    "revokeDeviceToken": {"token_type_hint", "client_id"},
    "getOpenapi": {"if_none_match"},
    "getScan": {"prefer"},
    "startScan": {"prefer"},
    "updateInboxItems": {"items"},
}


def documented(operation: dict[str, Any]) -> set[str]:
    names = [resolve(it)["name"] for it in operation.get("parameters", [])]
    body = operation.get("requestBody")
    if body is not None:
        names += resolve(body["content"]["application/json"]["schema"]).get("properties", {})
    return {re.sub(r"(?<=[a-z])[A-Z]|-", lambda it: "_" + it[0].strip("-"), name).lower() for name in names}
