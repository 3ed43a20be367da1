"""The SDK reaches every operation of the document, and parses every example of a response."""

import inspect
import re
from collections.abc import Callable
from datetime import UTC, datetime
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


def evaluated(operation_id: str, client: Assent | AsyncAssent) -> Any:
    return eval(CALLS[operation_id], {"client": client, **NAMES})


def those_with(parameter: str) -> set[str]:
    """Returns the operations that have this parameter, by its name among the document's components."""
    reference = {"$ref": f"#/components/parameters/{parameter}"}
    return {name for name, operation in operations().items() if reference in operation.get("parameters", [])}


def requests_of_all(organization: str | None = None) -> dict[str, httpx.Request]:
    """Returns the last request of each operation, sent by a client that acts in the organization."""
    sent: dict[str, httpx.Request] = {}

    def answer(request: httpx.Request) -> httpx.Response:
        response = service(request)
        sent[service.called[-1]] = request
        return response

    service, transport = DocumentedService(), httpx.MockTransport(answer)
    with Assent(base_url=ADDRESS, api_key="assent_secret", organization=organization, transport=transport) as client:
        for operation_id in CALLS:
            result = evaluated(operation_id, client)
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
        sent = requests_of_all()
        assert {name for name, it in sent.items() if "Idempotency-Key" in it.headers} == those_with("IdempotencyKey")

    def test_acts_in_the_organization_of_the_client(self):
        organization = "org_3f8k2m9q7r1s5t6v"
        sent = requests_of_all(organization)
        acting = {name for name, it in sent.items() if it.url.params.get("organizationId") == organization}
        assert acting == those_with("OrganizationId")

    def test_that_changes_something_can_be_a_dry_run(self):
        service, urls = DocumentedService(), []

        def answer(request: httpx.Request) -> httpx.Response:
            urls.append(request.url)
            return service(request)

        with Assent(base_url=ADDRESS, api_key="assent_secret", transport=httpx.MockTransport(answer)) as client:
            for operation_id in those_with("DryRun"):
                eval(f"{CALLS[operation_id][:-1]}, dry_run=True)", {"client": client, **NAMES})
                assert urls[-1].params.get("dryRun") == "true", operation_id


def methods(client_type: type) -> dict[str, Callable[..., Any]]:
    """Returns the public methods of a client's resources by name, such as `projects.list`."""
    client = client_type(base_url=ADDRESS)
    return {
        f"{resource}.{name}": method
        for resource, value in vars(client).items()
        if not resource.startswith("_")
        for name, method in inspect.getmembers(value, inspect.ismethod)
        if not name.startswith("_")
    }


class TestMethods:
    def test_are_the_same_in_both_clients(self):
        both = methods(Assent), methods(AsyncAssent)
        parameters = [{name: [*inspect.signature(it).parameters] for name, it in found.items()} for found in both]
        assert parameters[0] == parameters[1]

    def test_take_every_parameter_and_field_of_the_operation(self):
        """Compares the arguments with the document, apart from what the SDK doesn't offer."""
        for operation_id, call in CALLS.items():
            operation = operations()[operation_id]
            (name,) = re.findall(r"client\.(\w+\.\w+)\(", call)
            offered = {*inspect.signature(methods(Assent)[name]).parameters} | NOT_OFFERED.get(operation_id, set())
            assert documented(operation) - offered == set(), operation_id


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
