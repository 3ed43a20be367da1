"""The functions' permissions, and whether the functional tests detect missing and excess permissions.

The functional tests together check that each permission is used: tests/support/permissions.py.
"""

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from local.template import load_template
from tests.support import permissions
from tests.support.calls import intercepted
from tests.support.each import each
from tests.support.permissions import Permission, Run
from tests.support.template import api_functions, functions, listed, policies, resources, target_of

ROOT = Path(__file__).parents[2]
POLICIES = policies()
FUNCTIONS = {Path(it["Properties"]["CodeUri"]).name: it for it in functions().values()}
WORKERS = {*POLICIES} - {Path(it["Properties"]["CodeUri"]).name for it in api_functions().values()}
# What each request writes before anything else, in the policy of every function of the API but that of the pages.
(COUNTING,) = [it for it in POLICIES["billing"] if it.actions == ["dynamodb:UpdateItem"]]
# Maps each resource type to the service of its actions.
SERVICES = {
    "AWS::DynamoDB::Table": "dynamodb",
    "AWS::SQS::Queue": "sqs",
    "AWS::SecretsManager::Secret": "secretsmanager",
    "AWS::SES::ConfigurationSet": "ses",
}
# AWS managed policies are full of wildcards. Lists who uses one, and why there is no alternative. The boundary
# restricts the ones that SAM adds to each function's role for logging and tracing.
AWS_POLICIES = {
    "BackupRole": "AWS changes what AWS Backup calls, and keeps the policy in step",
    "DeploymentRole": "AWS changes what CodeDeploy calls, and keeps the policy in step",
    "GatewayLogRole": "API Gateway refuses a role that may not write every log group",
}
# Actions on all resources, and why.
WILDCARDS = {
    "xray:PutTelemetryRecords": "X-Ray knows no resources",
    "xray:PutTraceSegments": "X-Ray knows no resources",
    "ses:SendEmail": "whether the sender's address or its domain is verified isn't known; a condition names the sender",
    "logs:CreateLogStream": "a pattern of the stack's log groups, whose ARNs would take half of the policy's length",
    "logs:PutLogEvents": "the same",
}
# Workers that don't share out their queue, so no message has to wait in it for others of its organization.
UNSHARED = {"finding_intake"}
# Lambda calls these on behalf of a queue's worker.
POLLING = {"sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"}


def granted(function: str, service: str) -> dict[str, set[str]]:
    """Returns the actions that a function may perform, by service and target."""
    found: dict[str, set[str]] = {}
    for statement in POLICIES[function]:
        for target in statement.targets:
            for action in statement.actions:
                if action.startswith(f"{service}:"):
                    found.setdefault(target, set()).add(action)
    return found


def plain(statements: list[dict]) -> list[dict]:
    """Returns the statements, with conditional ones unwrapped."""
    return [it["Fn::If"][1] if "Fn::If" in it else it for it in statements]


@each("function", POLICIES)
class TestEachFunction:
    def test_each_function_may_call_only_named_actions_of_matching_resources(self, function: str):
        types = {name: entry["Type"] for name, entry in load_template()["Resources"].items()}
        types["EmailIdentity"] = types["EmailConfiguration"]
        assert POLICIES[function]
        for statement in POLICIES[function]:
            for target in statement.targets:
                service = SERVICES[types[target.partition("/")[0]]]
                assert all(re.fullmatch(rf"{service}:[A-Z][A-Za-z]+", action) for action in statement.actions)

    def test_only_functions_that_use_the_apps_secrets_can_read_them(self, function: str):
        variables = FUNCTIONS[function]["Properties"]["Environment"]["Variables"]
        signs = any("controlplane.github" in path.read_text() for path in (ROOT / "functions" / function).glob("*.py"))
        assert ("GITHUB_APP_SECRET_ARN" in variables) is signs
        readable = {"GithubAppKey": signs, "GithubClientSecret": function == "dashboard"}
        assert ("GITHUB_CLIENT_SECRET_ARN" in variables) is readable["GithubClientSecret"]
        expected = {name: {"secretsmanager:GetSecretValue"} for name, is_readable in readable.items() if is_readable}
        assert granted(function, "secretsmanager") == expected

    def test_each_worker_can_receive_only_its_own_queues_messages(self, function: str):
        polled = {target for target, actions in granted(function, "sqs").items() if POLLING & actions}
        queues = {
            mapping["Properties"]["EventSourceArn"]["Fn::GetAtt"][0]
            for mapping in resources("AWS::Lambda::EventSourceMapping").values()
            if FUNCTIONS[function] is functions()[_function_of(mapping)]
        }
        assert polled == queues
        for queue in queues:
            sends = set() if function in UNSHARED else {"sqs:SendMessage"}
            assert granted(function, "sqs")[queue] == POLLING | {"sqs:ChangeMessageVisibility"} | sends


def _function_of(mapping: dict) -> str:
    return mapping["Properties"]["FunctionName"]["Ref"].removesuffix(".Alias")


class TestLeadingKeys:
    """Limits each function's table access to the partition key prefixes that it needs.

    The two sides of a membership are an exception: the organization's side (`ORG#…`, sort key `MEMBER#…`) has the same
    partition key as everything else in the organization, and IAM can't restrict sort keys.
    """

    # Functions that may write each kind of item that grants access, beyond counting a credential's calls in it. The
    # dashboard deletes organizations with their keys, and revokes devices; the sweeper removes leftovers, also of
    # accounts whose deletion was interrupted. The API keys' function also revokes tokens that were found in public.
    WRITERS = {  # noqa: RUF012
        "KH#*": {"api_keys", "dashboard", "sweeper"},
        "TH#*": {"api_keys", "device_auth", "dashboard", "sweeper"},
        "FAMILY#*": {"api_keys", "device_auth", "dashboard", "sweeper"},
        "DC#*": {"device_auth", "dashboard", "sweeper"},
        "UC#*": {"device_auth", "dashboard"},
        "USER#*": {"organizations", "members", "dashboard", "sweeper"},
        "EMAIL#*": {"dashboard"},
        "IDENTITY#*": {"dashboard", "sweeper"},
        "INVITEE#*": {"members", "dashboard", "sweeper"},
    }
    # A check of a condition only tells whether it holds. With the writes, it would allow writing the checked items.
    READS = {f"dynamodb:{action}" for action in ("BatchGetItem", "ConditionCheckItem", "GetItem", "Query")}  # noqa: RUF012
    WRITES = {f"dynamodb:{action}Item" for action in ("BatchWrite", "Delete", "Put", "Update")}  # noqa: RUF012

    @each("function", POLICIES)
    def test_leading_keys_limit_every_statement_on_the_table(self, function: str):
        for statement in POLICIES[function]:
            assert bool(statement.keys) == (statement.targets == ["Table"])
            # One prefix each, in the format of tests/support/permissions.py.
            assert all(re.fullmatch(r"[A-Z]+(#\*)?", keys) for keys in statement.keys)

    @each("function", POLICIES)
    def test_leading_keys_are_part_of_every_allowed_call(self, function: str):
        """ForAllValues also matches calls without partition keys, such as Scan and PartiQL. None is allowed."""
        actions = {action for statement in POLICIES[function] if statement.keys for action in statement.actions}
        assert actions <= self.READS | self.WRITES

    @each("function", POLICIES)
    def test_leading_keys_are_separate_for_reads_and_writes(self, function: str):
        for statement in POLICIES[function]:
            if statement.keys:
                assert set(statement.actions) <= self.READS or set(statement.actions) <= self.WRITES

    @each("function", POLICIES)
    def test_leading_keys_of_all_reads_are_in_one_statement(self, function: str):
        """A statement has to allow all keys of a batch. The same holds for writes: see the next two tests."""
        assert len([it for it in POLICIES[function] if it.keys and set(it.actions) <= self.READS]) == 1

    @each("function", POLICIES)
    def test_a_function_of_the_api_has_one_statement_for_writes_besides_what_every_request_counts(self, function: str):
        writes = [it for it in POLICIES[function] if it.keys and set(it.actions) <= self.WRITES]
        if function not in WORKERS:
            others = [it for it in writes if it != COUNTING]
            assert len(others) <= 1
            assert len(writes) - len(others) == (function != "dashboard")

    @each("function", WORKERS)
    def test_a_worker_has_a_statement_for_each_action_that_writes(self, function: str):
        """Limits what it may write of what it reads, which comes from strangers."""
        writes = [it.actions for it in POLICIES[function] if it.keys and set(it.actions) <= self.WRITES]
        assert all(len(actions) == 1 for actions in writes)
        assert len(writes) == len({action for actions in writes for action in actions}) <= 4

    def test_only_the_writing_functions_reach_credentials_sessions_and_memberships(self):
        assert self._writers({"dynamodb:UpdateItem"}) == self.WRITERS

    def test_api_functions_can_count_a_credentials_call_and_workers_cant(self):
        counting = {function for writers in self._writers(set(), "KH#*", "TH#*").values() for function in writers}
        assert counting & WORKERS == {"sweeper"}
        assert {*POLICIES} == counting | WORKERS

    def _writers(self, counts: set[str], *kinds: str) -> dict[str, set[str]]:
        """Returns the functions that may write items of these kinds; for keys and tokens, more than their counters."""
        found: dict[str, set[str]] = {}
        for function, statements in POLICIES.items():
            for statement in statements:
                for keys in set(statement.keys) & set(kinds or self.WRITERS):
                    ignored = counts if keys in {"KH#*", "TH#*"} else set()
                    if set(statement.actions) & self.WRITES - ignored:
                        found.setdefault(keys, set()).add(function)
        return found


class TestAllPolicies:
    def test_policies_have_no_wildcard_except_those_that_aws_requires(self):
        found = set()
        for entry in resources("AWS::IAM::ManagedPolicy").values():
            for statement in plain(entry["Properties"]["PolicyDocument"]["Statement"]):
                assert "*" not in str(statement["Action"])
                if "*" in str(statement["Resource"]):
                    found.update(statement["Action"])
        assert found == set(WILDCARDS)

    def test_managed_policies_are_those_that_aws_requires(self):
        holders = {name for name, entry in load_template()["Resources"].items() if "ManagedPolicyArns" in str(entry)}
        assert holders == set(AWS_POLICIES)

    def test_all_functions_can_use_the_encryption_key(self):
        roles = {role["Ref"] for role in plain(load_template()["Resources"]["KeyUse"]["Properties"]["Roles"])}
        assert roles == {f"{name}Role" for name in resources("AWS::Serverless::Function")}


class TestBoundary:
    """The permissions boundary that limits every function, whatever its role allows."""

    def statements(self, service: str) -> list[dict[str, Any]]:
        entry = load_template()["Resources"]["FunctionBoundary"]
        found = plain(entry["Properties"]["PolicyDocument"]["Statement"])
        return [it for it in found if it["Action"][0].startswith(f"{service}:")]

    def allowed(self, service: str) -> tuple[set[str], set[str]]:
        """Returns the actions and targets of one service."""
        (statement,) = self.statements(service)
        return set(statement["Action"]), {target_of(it) for it in listed(statement["Resource"])}

    def test_every_function_has_the_permissions_boundary(self):
        assert load_template()["Globals"]["Function"]["PermissionsBoundary"] == {"Ref": "FunctionBoundary"}

    @pytest.mark.parametrize("service", SERVICES.values())
    def test_the_boundary_is_the_union_of_the_functions_policies(self, service: str):
        actions, targets = self.allowed(service)
        together = [granted(function, service) for function in POLICIES]
        assert actions == {action for targets in together for found in targets.values() for action in found}
        assert targets >= {target for targets in together for target in targets}

    def test_the_boundary_allows_only_log_groups_named_after_the_stack(self):
        (statement,) = self.statements("logs")
        assert set(statement["Action"]) == {"logs:CreateLogStream", "logs:PutLogEvents"}
        place, name = statement["Resource"]["Fn::Sub"].split(":log-group:")
        assert place == "arn:${AWS::Partition}:logs:${AWS::Region}:${AWS::AccountId}"
        for function in FUNCTIONS.values():
            group = resources("AWS::Logs::LogGroup")[function["Properties"]["LoggingConfig"]["LogGroup"]["Ref"]]
            assert group["Properties"]["LogGroupName"]["Fn::Sub"].startswith(name.removesuffix("*"))

    def test_the_boundary_names_only_resources_of_the_template(self):
        indexes = resources("AWS::DynamoDB::Table")["Table"]["Properties"]["GlobalSecondaryIndexes"]
        assert self.allowed("dynamodb")[1] == {"Table", *(f"Table/index/{it['IndexName']}" for it in indexes)}
        assert self.allowed("sqs")[1] == set(resources("AWS::SQS::Queue"))

    def test_the_boundary_allows_the_encryption_key_if_there_is_one(self):
        assert self.allowed("kms")[1] == {"KmsKeyArn"}


class TestRecording:
    """A recorder that sees nothing, or that assumes permissions, would accept every policy."""

    @pytest.fixture(autouse=True)
    def _nothing_seen(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(permissions, "used", set())

    def test_an_empty_recording_finds_every_action_and_every_kind_unused(self):
        assert permissions.missing() == []
        idle = permissions.unused()
        assert len(permissions.granted()) > 100
        for function, action, target, keys in permissions.granted():
            assert f"{function}: {action} on {target}" in idle
            assert not keys or any(
                it.startswith(function) and it.endswith(f" on {target} with keys {keys}") for it in idle
            )

    @each(
        ("superfluous", "line"),
        [
            (
                lambda it: it.action == "dynamodb:BatchGetItem",
                "dynamodb:BatchGetItem on Table",
            ),
            (
                lambda it: it.keys == "USER#*",
                "dynamodb:BatchGetItem, dynamodb:GetItem, dynamodb:Query on Table with keys USER#*",
            ),
            (
                lambda it: it.keys == "RATE#*",
                "dynamodb:UpdateItem on Table with keys RATE#*",
            ),
        ],
    )
    def test_one_superfluous_action_or_kind_is_detected(self, superfluous: Callable[[Permission], bool], line: str):
        permissions.used.clear()
        permissions.used.update(it for it in permissions.granted() if it.function != "billing" or not superfluous(it))
        assert permissions.unused() == [f"billing: {line}"]

    def test_one_superfluous_resource_is_detected(self):
        one = Permission("code_audit", "sqs:SendMessage", "ScanExecutionQueue")
        permissions.used.update(permissions.granted() - {one})
        assert permissions.unused() == ["code_audit: sqs:SendMessage on ScanExecutionQueue"]

    def test_a_kind_that_is_only_read_is_superfluous_among_the_writes(self):
        kind = {it for it in permissions.granted() if it.function == "projects" and it.keys == "ORG#*"}
        reads = {it for it in kind if it.action in TestLeadingKeys.READS}
        counting = {it for it in kind if it.action == "dynamodb:UpdateItem"}
        permissions.used.update(permissions.granted() - kind | reads | counting)
        found = "dynamodb:DeleteItem, dynamodb:PutItem on Table with keys ORG#*"
        assert permissions.unused() == [f"projects: {found}"]

    def test_one_missing_permission_is_detected(self):
        permissions.used.update(permissions.granted() | {Permission("billing", "dynamodb:PutItem", "Table", "TH#*")})
        assert permissions.missing() == ["billing: dynamodb:PutItem on Table with keys TH#*"]

    def test_a_call_for_items_of_another_kind_is_detected(self):
        permissions.used.update(permissions.granted() | {Permission("billing", "dynamodb:GetItem", "Table", "KH#*")})
        assert permissions.missing() == ["billing: dynamodb:GetItem on Table with keys KH#*"]

    def test_a_call_without_a_partition_key_is_detected(self):
        self.record_call(
            "Query", {"KeyConditionExpression": "pk = :other", "ExpressionAttributeValues": {":other": {}}}
        )
        assert permissions.missing() == ["billing: dynamodb:Query on Table"]

    def test_a_transactions_legs_require_their_permissions(self):
        key, other = {"pk": {"S": "TH#9f86d0"}}, {"pk": {"S": "SCANWATCH"}}
        legs = [{"Put": {"Item": other}}, *({kind: {"Key": key}} for kind in ("ConditionCheck", "Update", "Delete"))]
        self.record_call("TransactWriteItems", {"TransactItems": legs})
        actions = {"ConditionCheckItem", "UpdateItem", "DeleteItem"}
        assert permissions.used == {
            Permission("billing", "dynamodb:PutItem", "Table", "SCANWATCH"),
            *(Permission("billing", f"dynamodb:{action}", "Table", "TH#*") for action in actions),
        }

    def test_every_item_of_a_batch_or_query_requires_its_key(self):
        keys = [{"pk": {"S": "ORG#1"}, "sk": {"S": "META"}}, {"pk": {"S": "USER#1"}, "sk": {"S": "PROFILE"}}]
        self.record_call("BatchGetItem", {"RequestItems": {"t": {"Keys": keys}}})
        writes = [{"PutRequest": {"Item": keys[0]}}, {"DeleteRequest": {"Key": keys[1]}}]
        self.record_call("BatchWriteItem", {"RequestItems": {"t": writes}})
        self.record_call("Query", {"ExpressionAttributeValues": {":pk": {"S": "OUTBOX#3"}}})
        expected = {(f"Batch{kind}Item", keys) for kind in ("Get", "Write") for keys in ("ORG#*", "USER#*")}
        assert permissions.used == {
            Permission("billing", f"dynamodb:{action}", "Table", keys)
            for action, keys in expected | {("Query", "OUTBOX#*")}
        }

    def test_a_call_that_a_test_lets_proceed_is_attributed_to_the_function_and_the_tests_own_call_is_not(self):
        """As one of the functional tests intercepts it."""
        names: dict[str, Any] = {"record_call": permissions.record_call}
        source = """def around(call, proceed):
            record_call("dynamodb", "GetItem", {"Key": {"pk": {"S": "TESTS"}}})
            return proceed()"""
        exec(compile(source, f"{permissions.FUNCTIONAL}/test_x.py", "exec"), names)
        client = SimpleNamespace(call=lambda *call: permissions.record_call("dynamodb", *call))
        with intercepted(client, names["around"]):
            run_as_billing("call('GetItem', {'Key': {'pk': {'S': 'HEALTH'}}})", call=client.call)
        assert permissions.used == {Permission("billing", "dynamodb:GetItem", "Table", "HEALTH")}

    def record_call(self, operation: str, parameters: dict) -> None:
        """Records a call as if the function `billing` had made it."""
        run_as_billing(
            "record('dynamodb', operation, parameters)",
            record=permissions.record_call,
            operation=operation,
            parameters=parameters,
        )

    def test_calls_of_tests_are_not_attributed_to_a_function(self):
        permissions.record_call("dynamodb", "Scan", {})
        assert permissions.used == set()

    @pytest.mark.parametrize(("deselected", "whole"), [([], True), (["one"], False)])
    def test_only_a_run_of_all_functional_tests_is_judged(self, deselected, whole):
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


def run_as_billing(source: str, **names: Any) -> None:
    """Runs code in a frame like the one in which tests/support/api.py calls the function `billing`."""
    exec(compile(source, "tests/support/api.py", "exec"), {**names, "group": "billing"})
