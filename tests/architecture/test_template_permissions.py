"""The permissions of functions and of the check of deployments.

The functional tests together check that each permission is used: tests/support/permissions.py.
"""

import json
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any, ClassVar

import pytest

from deployment_check.hook import CHECKS
from local.template import load_template
from tests.support.each import each
from tests.support.template import (
    DEPLOYMENT_CHECK,
    KEY_USE,
    api_functions,
    functions,
    listed,
    policies,
    resources,
    routes_by_group,
    target_of,
    text_of,
)

ROOT = Path(__file__).parents[2]
RESOURCES = load_template()["Resources"]
INDEXES = [it["IndexName"] for it in RESOURCES["Table"]["Properties"]["GlobalSecondaryIndexes"]]
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
# How the ARNs of a service begin.
ACCOUNT = "arn:${{AWS::Partition}}:{}:${{AWS::Region}}:${{AWS::AccountId}}"
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
    **dict.fromkeys(
        (
            f"dynamodb:{action}Item"
            for action in ("BatchGet", "BatchWrite", "ConditionCheck", "Delete", "Get", "Put", "Update")
        ),
        "every index of the table, which a function's own policy names",
    ),
    "dynamodb:Query": "the same",
    **dict.fromkeys(
        (
            *("sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:GetQueueAttributes"),
            *("sqs:ReceiveMessage", "sqs:SendMessage"),
        ),
        "every queue of the account and region; a function's own policy names its queues",
    ),
}
# A check of a condition only tells whether it holds. With the writes, it would allow writing the checked items.
READS = {f"dynamodb:{action}" for action in ("BatchGetItem", "ConditionCheckItem", "GetItem", "Query")}
WRITES = {f"dynamodb:{action}Item" for action in ("BatchWrite", "Delete", "Put", "Update")}
# Workers that don't share out their queue, so no message has to wait in it for others of its organization.
UNSHARED = {"finding_intake", "website_audits"}
# It runs strangers' code, so it may only receive its messages, and send its reports.
WITHOUT_TABLE = "website_audits"
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
    def test_a_function_may_call_only_named_actions_of_matching_resources_each_once(self, function: str):
        types = {name: entry["Type"] for name, entry in RESOURCES.items()}
        types["EmailIdentity"] = types["EmailConfiguration"]
        assert POLICIES[function]
        for statement in POLICIES[function]:
            for target in statement.targets:
                service = SERVICES[types[target.partition("/")[0]]]
                assert all(re.fullmatch(rf"{service}:[A-Z][A-Za-z]+", action) for action in statement.actions)
                name, _, index = target.partition("/index/")
                assert not index or (statement.actions == ["dynamodb:Query"] and index in INDEXES), name
        # Functions that write what every request counts name that again.
        rights = [
            (action, target, kind)
            for statement in POLICIES[function]
            if statement != COUNTING
            for target in statement.targets
            for action in statement.actions
            for kind in statement.keys or [""]
        ]
        assert len(rights) == len(set(rights))

    def test_a_functions_policy_only_allows_in_the_current_language_version(self, function: str):
        for policy in FUNCTIONS[function]["Properties"]["Policies"]:
            assert policy["Version"] == "2012-10-17"
            for statement in plain(policy["Statement"]):
                assert (statement["Effect"], statement.keys() - {"Condition"}) == (
                    "Allow",
                    {"Effect", "Action", "Resource"},
                )

    def test_only_functions_that_use_the_apps_secrets_can_read_them(self, function: str):
        variables = FUNCTIONS[function]["Properties"]["Environment"]["Variables"]
        sources = [path.read_text() for path in (ROOT / "functions" / function).rglob("*.py")]
        signs = any("controlplane.code_host.github" in source for source in sources)
        readable = {"GithubAppKey": signs, "GithubClientSecret": function == "dashboard"}
        assert ("GITHUB_APP_SECRET_ARN" in variables) is signs
        assert ("GITHUB_CLIENT_SECRET_ARN" in variables) is readable["GithubClientSecret"]
        expected = {name: {"secretsmanager:GetSecretValue"} for name, is_readable in readable.items() if is_readable}
        assert granted(function, "secretsmanager") == expected

    def test_a_worker_can_receive_only_its_own_queues_messages(self, function: str):
        polled = {target for target, actions in granted(function, "sqs").items() if POLLING & actions}
        mappings = [it["Properties"] for it in resources("AWS::Lambda::EventSourceMapping").values()]
        own = [
            it for it in mappings if FUNCTIONS[function] is RESOURCES[it["FunctionName"]["Ref"].removesuffix(".Alias")]
        ]
        assert polled == {it["EventSourceArn"]["Fn::GetAtt"][0] for it in own}
        for queue in polled:
            sends = set() if function in UNSHARED else {"sqs:SendMessage"}
            assert granted(function, "sqs")[queue] == POLLING | {"sqs:ChangeMessageVisibility"} | sends

    def test_leading_keys_limit_every_statement_on_the_table(self, function: str):
        """ForAllValues also matches calls without partition keys, such as Scan and PartiQL. None is allowed.

        A statement has to allow all keys of a batch, so all reads are in one. Those of a function of the API also have
        one for writes, besides what every request counts. A worker has one for each action that writes, which limits
        what it may write of what it reads, because that comes from strangers.
        """
        for statement in POLICIES[function]:
            assert bool(statement.keys) == (statement.targets == ["Table"])
            # One prefix each, in the format of tests/support/permissions.py.
            assert all(re.fullmatch(r"[A-Z]+(#\*)?", keys) for keys in statement.keys)
        keyed = [it for it in POLICIES[function] if it.keys]
        if function == WITHOUT_TABLE:
            assert [(it.actions, it.targets) for it in POLICIES[function][1:]] == [
                (["sqs:SendMessage"], ["AuditReportsQueue"])
            ]
            assert keyed == []
            return
        reads, writes = ([it for it in keyed if {*it.actions} <= kind] for kind in (READS, WRITES))
        assert len(reads) + len(writes) == len(keyed)
        assert len(reads) == 1
        if function in WORKERS:
            assert len(writes) == len({action for it in writes for action in it.actions}) <= 4
            assert all(len(it.actions) == 1 for it in writes)
        else:
            assert len([it for it in writes if it != COUNTING]) <= 1
            assert (COUNTING in writes) is (function not in {"dashboard", "consent_instances"})


# Functions that may write each kind of item that grants access, beyond counting a credential's calls in it. The
# dashboard deletes organizations with their keys, and revokes devices; the sweeper removes leftovers, also of accounts
# whose deletion was interrupted. The API keys' function also revokes tokens that were found in public. IAM can't
# restrict sort keys, so the organization's side of a membership (`ORG#…`, `MEMBER#…`) isn't listed; it grants nothing.
WRITERS = {
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


class TestAllPolicies:
    def test_only_the_writing_functions_reach_credentials_sessions_and_memberships(self):
        assert writers(WRITERS, {"dynamodb:UpdateItem"}) == WRITERS

    def test_api_functions_can_count_a_credentials_call_and_workers_cant(self):
        counting = {function for functions_ in writers({"KH#*", "TH#*"}, set()).values() for function in functions_}
        assert counting & WORKERS == {"sweeper"}
        assert {*POLICIES} == counting | WORKERS | {"consent_instances"}  # it takes no credential

    def test_policies_have_no_wildcard_except_those_that_aws_requires(self):
        found = set()
        for entry in resources("AWS::IAM::ManagedPolicy").values():
            for statement in plain(entry["Properties"]["PolicyDocument"]["Statement"]):
                assert "*" not in str(statement["Action"])
                if "*" in str(statement["Resource"]):
                    found.update(statement["Action"])
        assert found == set(WILDCARDS)

    def test_managed_policies_are_those_that_aws_requires(self):
        assert {name for name, entry in RESOURCES.items() if "ManagedPolicyArns" in str(entry)} == set(AWS_POLICIES)

    def test_all_functions_can_use_the_encryption_key(self):
        condition, allowed, otherwise = KEY_USE["Fn::If"]
        assert (condition, allowed["Resource"], otherwise) == (
            "HasKmsKey",
            {"Ref": "KmsKeyArn"},
            {"Ref": "AWS::NoValue"},
        )
        policies = [it["Properties"]["Policies"][0] for it in functions().values()]
        policies += [RESOURCES[f"{DEPLOYMENT_CHECK}Role"]["Properties"]["Policies"][0]["PolicyDocument"]]
        assert [it for it in policies if it["Statement"].count(KEY_USE) != 1] == []


def writers(kinds: Collection[str], counts: set[str]) -> dict[str, set[str]]:
    """Returns the functions that may write items of these kinds; of keys and tokens, beyond the actions that count."""
    found: dict[str, set[str]] = {}
    for function, statements in POLICIES.items():
        for statement in statements:
            for keys in {*statement.keys} & {*kinds}:
                if {*statement.actions} & WRITES - (counts if keys in {"KH#*", "TH#*"} else set()):
                    found.setdefault(keys, set()).add(function)
    return found


class TestBoundary:
    """The permissions boundary that limits every function, whatever its role allows."""

    def allowed(self, service: str) -> tuple[set[str], set[str]]:
        """Returns the actions and targets of one service."""
        found = plain(RESOURCES["FunctionBoundary"]["Properties"]["PolicyDocument"]["Statement"])
        (statement,) = [it for it in found if it["Action"][0].startswith(f"{service}:")]
        return {*statement["Action"]}, {
            it["Fn::Sub"] if service in {"logs", "sqs"} else target_of(it) for it in listed(statement["Resource"])
        }

    @pytest.mark.parametrize("service", SERVICES.values())
    def test_the_boundary_is_the_union_of_the_functions_policies(self, service: str):
        actions, targets = self.allowed(service)
        together = [granted(function, service) for function in POLICIES]
        assert actions == {action for rights in together for found in rights.values() for action in found}
        used = {target for rights in together for target in rights}
        if service == "sqs":
            assert (targets, used) == ({f"{ACCOUNT.format('sqs')}:*"}, used & resources("AWS::SQS::Queue").keys())
        else:
            assert {"Table/index/*" if "/index/" in target else target for target in used} <= targets

    def test_the_boundary_allows_only_log_groups_named_after_the_stack(self):
        actions, (resource,) = self.allowed("logs")
        assert actions == {"logs:CreateLogStream", "logs:PutLogEvents"}
        place, name = resource.split(":log-group:")
        assert place == ACCOUNT.format("logs")
        for function in FUNCTIONS.values():
            group = RESOURCES[function["Properties"]["LoggingConfig"]["LogGroup"]["Ref"]]
            assert text_of(group["Properties"]["LogGroupName"]).startswith(name.removesuffix("*"))

    def test_the_boundary_names_only_resources_of_the_template(self):
        assert self.allowed("dynamodb")[1] == {"Table", "Table/index/*"}
        assert self.allowed("kms")[1] == {"KmsKeyArn"}


class TestDeploymentCheck:
    """The check of a new version: it covers every function, with requests that exist, and may do nothing else."""

    NAMES: ClassVar = (DEPLOYMENT_CHECK, f"{DEPLOYMENT_CHECK}Role", "DeploymentRole")

    def allowed(self, role: str) -> dict[str, Any]:
        """Returns the target of each action that a role's own policy allows."""
        (policy,) = RESOURCES[role]["Properties"]["Policies"]
        statements = [it for it in policy["PolicyDocument"]["Statement"] if it != KEY_USE]
        return {action: it["Resource"] for it in statements for action in it["Action"]}

    def test_it_exists_if_deployments_are_checked_and_depends_on_no_function(self):
        """The functions' aliases depend on it."""
        others = {"DeploymentCheckInvocations", "DeploymentCheckLogGroup", "ServerlessDeploymentApplication"}
        assert {it for it in RESOURCES if RESOURCES[it].get("Condition") == "IsChecked"} == others | {*self.NAMES}
        text = json.dumps([RESOURCES[name] for name in self.NAMES])
        named = {*re.findall(r'"(?:Ref|Fn::GetAtt)": \[?"(\w+)"', text), *re.findall(r"\$\{(\w+)", text)}
        assert named.isdisjoint(functions())
        variables = RESOURCES[DEPLOYMENT_CHECK]["Properties"]["Environment"]["Variables"]
        assert variables.keys() == {"FRONT_DOOR_SECRET", "RELEASE"}

    def test_it_sends_a_request_to_each_endpoint_function_and_nothing_to_workers(self):
        assert CHECKS.keys() == api_functions().keys()  # a worker gets a batch without messages
        for name, function in api_functions().items():
            method, path, status = CHECKS[name]
            group = Path(function["Properties"]["CodeUri"]).name
            routes = {(re.sub(r"\{\w+\}", "-", it.path), it.method) for it in routes_by_group()[group]}
            assert {(path, method), (path, "ANY")} & routes
            assert status in {200, 401, *([404] if "-" in path.split("/") else [])}

    def test_it_may_invoke_versions_of_every_function_and_report_the_result(self):
        (statement,) = RESOURCES["DeploymentCheckInvocations"]["Properties"]["PolicyDocument"]["Statement"]
        assert statement["Action"] == ["lambda:InvokeFunction", "lambda:ListTags"]
        assert statement["Resource"] == [{"Fn::Sub": f"${{{name}.Arn}}*"} for name in functions()]
        place = ACCOUNT.format("codedeploy")
        group = {"Fn::Sub": f"{place}:deploymentgroup:${{ServerlessDeploymentApplication}}/*"}
        found = self.allowed(f"{DEPLOYMENT_CHECK}Role")
        assert {action: target for action, target in found.items() if action.startswith("codedeploy:")} == {
            "codedeploy:GetApplicationRevision": {
                "Fn::Sub": f"{place}:application:${{ServerlessDeploymentApplication}}"
            },
            "codedeploy:GetDeployment": group,
            "codedeploy:PutLifecycleEventHookExecutionStatus": group,
        }
        logs, traces = ("CreateLogStream", "PutLogEvents"), ("PutTelemetryRecords", "PutTraceSegments")
        others = {*(f"logs:{it}" for it in logs), *(f"xray:{it}" for it in traces)}
        assert {action for action in found if not action.startswith("codedeploy:")} == others
        assert self.allowed("DeploymentRole") == {"lambda:InvokeFunction": {"Fn::GetAtt": [DEPLOYMENT_CHECK, "Arn"]}}
