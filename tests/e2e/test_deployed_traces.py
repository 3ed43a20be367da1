"""The logs that the deployed functions leave, and the actions that their roles allow."""

import json

import pytest

from tests.e2e.deployment import Stack
from tests.e2e.external import ExternalServices
from tests.e2e.failures import QUEUES
from tests.e2e.people import Caller, Person
from tests.support.template import functions

FUNCTIONS = functions()


@pytest.mark.usefixtures(
    "decision", "issue", "vendor_decision", "advisory", "reported", "refused_scan", "dead_letters", "grace"
)
class TestLogs:
    """The functions' logs after everything else has run."""

    def test_every_function_has_written_to_its_own_log_group(self, stack: Stack, key: str):
        Caller(stack, key).ask(404, "GET", "/v1/projects/prj_unknown")
        stack.call("GET", "/v1/consent-instances/ins_unknown/configuration")
        written = {name for name, messages in stack.logs().items() if messages}
        groups = {resource["Properties"]["LoggingConfig"]["LogGroup"]["Ref"] for resource in FUNCTIONS.values()}
        assert written == {stack.physical_ids[group] for group in groups}

    def test_logs_contain_no_credential(self, stack: Stack, external: ExternalServices):
        secrets = (
            stack.secrets | external.secrets | {stack.function_environment("DeviceAuthFunction")["SIGNING_SECRET"]}
        )
        assert len(secrets) > 30
        leaked = {
            f"{secret[:12]}... in {group}"
            for group, messages in stack.logs().items()
            for secret in secrets
            if any(secret in message for message in messages)
        }
        assert leaked == set()

    def test_logs_contain_no_email_address(self, stack: Stack, ada: Person, grace: Person):
        written = "\n".join(message for messages in stack.logs().values() for message in messages)
        assert [person.email for person in (ada, grace) if person.email in written] == []

    def test_logs_contain_only_the_provoked_failures(self, stack: Stack):
        """This also covers calls that a role denied without failing a request.

        Whether two deliveries overlap, so that one of them is postponed, depends on timing.
        """
        lines = stack.errors().splitlines()
        told = [json.loads(line) if line.startswith("{") else {"message": line} for line in lines]
        found = {(it["message"], it.get("errorType", "")) for it in told}
        expected = {("message failed", "Malformed"), ("message dead-lettered", "")}
        assert found - {("message failed", "Postponed")} == expected, "\n".join(lines)


class TestRoles:
    """Calls that the local AWS makes for a function without checking its role. AWS would deny them."""

    @pytest.mark.parametrize("queue", QUEUES)
    def test_a_workers_role_allows_receiving_its_queues_messages(self, stack: Stack, queue: str):
        worker = "FindingIntake" if queue == "AuditReports" else queue
        function, url = stack.physical_ids[f"{worker}Function"], stack.physical_ids[f"{queue}Queue"]
        role = stack.client("lambda").get_function_configuration(FunctionName=function)["Role"]
        described = stack.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        actions = ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes", "ChangeMessageVisibility")
        decided = stack.client("iam").simulate_principal_policy(
            PolicySourceArn=role,
            ActionNames=[f"sqs:{action}" for action in actions],
            ResourceArns=[described["Attributes"]["QueueArn"]],
        )
        assert {it["EvalDecision"] for it in decided["EvaluationResults"]} == {"allowed"}
