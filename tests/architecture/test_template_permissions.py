"""What the functions may do, and that the functional tests can tell when it is too little or too much.

That each permission is made use of is judged by those tests together: tests/support/permissions.py.
"""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from local.template import load_template
from tests.support import permissions
from tests.support.permissions import Permission, Run
from tests.support.template import policies, resources

ROOT = Path(__file__).parents[2]
POLICIES = policies()
FUNCTIONS = {Path(it["Properties"]["CodeUri"]).name: it for it in resources("AWS::Serverless::Function").values()}
# The service whose actions belong to a resource.
SERVICES = {
    "AWS::DynamoDB::Table": "dynamodb",
    "AWS::SQS::Queue": "sqs",
    "AWS::SecretsManager::Secret": "secretsmanager",
}
# AWS's own policies are full of wildcards. Who has one, and why no other will do.
WILDCARDS = {
    "GatewayLogRole": "API Gateway refuses a role that may not write every log group",
}
# Lambda calls these in the name of a queue's worker.
POLLING = {"sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"}


def granted(function: str, service: str) -> dict[str, set[str]]:
    """What a function may do by service, by target."""
    found: dict[str, set[str]] = {}
    for statement in POLICIES[function]:
        for target in statement.targets:
            for action in statement.actions:
                if action.startswith(f"{service}:"):
                    found.setdefault(target, set()).add(action)
    return found


@pytest.mark.parametrize("function", POLICIES)
class TestEachFunction:
    def test_may_call_named_actions_of_the_service_that_a_resource_belongs_to(self, function: str):
        types = {name: entry["Type"] for name, entry in load_template()["Resources"].items()}
        assert POLICIES[function]
        for statement in POLICIES[function]:
            for target in statement.targets:
                service = SERVICES[types[target.partition("/")[0]]]
                assert all(re.fullmatch(rf"{service}:[A-Z][A-Za-z]+", action) for action in statement.actions)

    def test_reads_the_app_s_key_where_it_signs_as_the_app_and_nowhere_else(self, function: str):
        variables = FUNCTIONS[function]["Properties"]["Environment"]["Variables"]
        signs = any("controlplane.github" in path.read_text() for path in (ROOT / "functions" / function).glob("*.py"))
        assert ("GITHUB_APP_SECRET_ARN" in variables) is signs
        expected = {"GithubAppKey": {"secretsmanager:GetSecretValue"}} if signs else {}
        assert granted(function, "secretsmanager") == expected

    def test_has_the_messages_of_its_own_queue_polled_and_of_no_other(self, function: str):
        polled = {target for target, actions in granted(function, "sqs").items() if POLLING & actions}
        queues = {
            mapping["Properties"]["EventSourceArn"]["Fn::GetAtt"][0]
            for mapping in resources("AWS::Lambda::EventSourceMapping").values()
            if FUNCTIONS[function] is resources("AWS::Serverless::Function")[_function_of(mapping)]
        }
        assert polled == queues
        for queue in queues:
            assert granted(function, "sqs")[queue] == POLLING | {"sqs:ChangeMessageVisibility"}


def _function_of(mapping: dict) -> str:
    return mapping["Properties"]["FunctionName"]["Ref"].removesuffix(".Alias")


class TestAllPolicies:
    def test_have_no_wildcard(self):
        for name, entry in load_template()["Resources"].items():
            if entry["Type"] == "AWS::IAM::ManagedPolicy":
                for statement in entry["Properties"]["PolicyDocument"]["Statement"]:
                    assert "*" not in f"{statement['Action']}{statement['Resource']}", name

    def test_of_aws_s_own_are_those_that_aws_forces(self):
        holders = {name for name, entry in load_template()["Resources"].items() if "ManagedPolicyArns" in str(entry)}
        assert holders == set(WILDCARDS)

    def test_the_key_s_users_are_all_functions(self):
        roles = {role["Ref"] for role in load_template()["Resources"]["KeyUse"]["Properties"]["Roles"]}
        assert roles == {f"{name}Role" for name in resources("AWS::Serverless::Function")}


class TestRecording:
    """A recording that sees nothing, or takes anything for granted, would let every policy pass."""

    @pytest.fixture(autouse=True)
    def _nothing_seen(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(permissions, "seen", set())

    def test_that_saw_nothing_finds_every_permission_unused(self):
        assert len(permissions.unused()) == len(permissions.granted()) > 100
        assert permissions.missing() == []

    def test_notices_one_permission_too_many(self):
        one = Permission("billing", "dynamodb:GetItem", "Table")
        assert one in permissions.granted()
        permissions.seen.update(permissions.granted() - {one})
        assert permissions.unused() == ["billing: dynamodb:GetItem on Table"]

    def test_notices_one_permission_too_few(self):
        permissions.seen.update(permissions.granted() | {Permission("billing", "dynamodb:PutItem", "Table")})
        assert permissions.missing() == ["billing: dynamodb:PutItem on Table"]

    def test_asks_for_the_permissions_of_a_transaction_s_legs(self):
        legs = [{"Put": {}}, {"ConditionCheck": {}}, {"Update": {}}, {"Delete": {}}]
        group = "billing"  # as tests/support/api.py has it in the frame that calls a function
        code = compile(
            "note('dynamodb', 'TransactWriteItems', {'TransactItems': legs})", "tests/support/api.py", "exec"
        )
        exec(code, {"note": permissions.note, "legs": legs, "group": group})
        actions = {"PutItem", "ConditionCheckItem", "UpdateItem", "DeleteItem"}
        assert permissions.seen == {Permission("billing", f"dynamodb:{action}", "Table") for action in actions}

    def test_takes_no_test_for_a_function(self):
        permissions.note("dynamodb", "Scan", {})
        assert permissions.seen == set()

    @pytest.mark.parametrize(("deselected", "whole"), [([], True), (["one"], False)])
    def test_judges_only_a_run_of_all_functional_tests(self, deselected, whole):
        run = Run()
        run.pytest_deselected(
            [SimpleNamespace(path=permissions.FUNCTIONAL / "test_every_route.py") for _ in deselected]
        )
        session = SimpleNamespace(items=[SimpleNamespace(path=it) for it in permissions.FUNCTIONAL.rglob("test_*.py")])
        run.pytest_collection_finish(session)
        assert run.whole is whole
        session.items.pop()
        run.pytest_collection_finish(session)
        assert run.whole is False
