"""Template rules that no linter checks: routes match the apps, least privilege, logs, API Gateway's own responses."""

import json
import re
from pathlib import Path
from typing import Any

from controlplane.core.errors import CATALOG
from controlplane.core.settings import Settings
from controlplane.core.urls import error_page
from controlplane.http.guidance import HINTS
from controlplane.http.middleware import TRANSPORT_SECURITY
from controlplane.queues.messages import MAX_RECEIVES
from local.gateway import body_of
from local.template import load_template
from scan_execution import service as scan_execution
from scan_preparation import service as scan_preparation
from scripts.artifacts import ARCHITECTURES
from tests.support.each import each
from tests.support.operations import operations
from tests.support.response_checks import check_problems
from tests.support.template import (
    Route,
    api_functions,
    functions,
    gateway_responses,
    gateway_route,
    keys_of,
    resources,
    routes_by_group,
    target_of,
)

FUNCTIONS = functions()
GATEWAY_RESPONSES = gateway_responses()

# Every response type of a REST API (API Gateway developer guide, "Gateway response types").
RESPONSE_TYPES = {
    "ACCESS_DENIED",
    "API_CONFIGURATION_ERROR",
    "AUTHORIZER_CONFIGURATION_ERROR",
    "AUTHORIZER_FAILURE",
    "BAD_REQUEST_BODY",
    "BAD_REQUEST_PARAMETERS",
    "DEFAULT_4XX",
    "DEFAULT_5XX",
    "EXPIRED_TOKEN",
    "INTEGRATION_FAILURE",
    "INTEGRATION_TIMEOUT",
    "INVALID_API_KEY",
    "INVALID_SIGNATURE",
    "MISSING_AUTHENTICATION_TOKEN",
    "QUOTA_EXCEEDED",
    "REQUEST_TOO_LARGE",
    "RESOURCE_NOT_FOUND",
    "THROTTLED",
    "UNAUTHORIZED",
    "UNSUPPORTED_MEDIA_TYPE",
    "WAF_FILTERED",
}


TABLE = resources("AWS::DynamoDB::Table")["Table"]


def statements(function: dict[str, Any]) -> list[dict[str, Any]]:
    return [statement for policy in function["Properties"]["Policies"] for statement in policy["Statement"]]


class TestRoutes:
    def test_routes_match_those_of_the_apps_in_both_directions(self):
        served: dict[str, set[Route]] = {}
        for operation in operations():
            for method in {operation.method, "HEAD"} if operation.method == "GET" else {operation.method}:
                route = gateway_route(routes_by_group()[operation.group], Route(method, operation.path))
                served.setdefault(operation.group, set()).add(route)
        assert routes_by_group() == {group: sorted(routes) for group, routes in served.items()}

    def test_a_functions_policy_has_room_for_its_routes(self):
        # AWS limits a function's policy to 20 KB. Each route adds a statement of up to 500 bytes.
        assert max(len(routes) for routes in routes_by_group().values()) <= 40

    def test_routes_name_their_path_except_below_the_prefixes_of_pages(self):
        for group, routes in routes_by_group().items():
            for route in routes:
                expected = {"GET", "HEAD"} if route.path in {"/health", "/{page}"} else {"ANY"}
                assert route.method in expected
                path = route.path.removesuffix("/{path+}") if group == "dashboard" else route.path
                assert re.fullmatch(r"/|(/([a-z0-9.-]+|\{[a-z][A-Za-z]+\}))+", path)

    def test_paths_belong_to_one_function_each(self):
        """The function of a path answers every method of it, with 405 if it doesn't have the method."""
        paths = [path for routes in routes_by_group().values() for path in {route.path for route in routes}]
        assert len(paths) == len(set(paths))

    def test_routes_name_the_templates_api(self):
        for function in api_functions().values():
            for event in function["Properties"]["Events"].values():
                assert event["Type"] == "Api"
                assert event["Properties"]["RestApiId"] == {"Ref": "Api"}


@each("name", FUNCTIONS)
class TestEachFunction:
    def test_each_function_is_built_from_its_folder(self, name: str):
        properties, group = FUNCTIONS[name]["Properties"], Path(FUNCTIONS[name]["Properties"]["CodeUri"]).name
        assert properties["CodeUri"] == f"functions/{group}"
        assert properties["Handler"] == f"{group}.app.handler"
        metadata = FUNCTIONS[name]["Metadata"]
        assert metadata["BuildMethod"] == "python3.13"
        assert metadata["BuildProperties"] == {"ParentPackageMode": "auto"}

    def test_each_function_is_named_after_its_group_in_logs_and_metrics(self, name: str):
        properties = FUNCTIONS[name]["Properties"]
        service = properties["Environment"]["Variables"]["POWERTOOLS_SERVICE_NAME"]
        assert service == Path(properties["CodeUri"]).name

    def test_each_function_has_its_own_log_group_with_retention(self, name: str):
        log_group = FUNCTIONS[name]["Properties"]["LoggingConfig"]["LogGroup"]["Ref"]
        users = [f for f in FUNCTIONS.values() if f["Properties"]["LoggingConfig"]["LogGroup"] == {"Ref": log_group}]
        assert len(users) == 1
        properties = resources("AWS::Logs::LogGroup")[log_group]["Properties"]
        assert properties["RetentionInDays"] == {"Ref": "LogRetentionDays"}

    def test_writes_to_a_log_group_named_after_the_stack_and_the_function(self, name: str):
        log_group = FUNCTIONS[name]["Properties"]["LoggingConfig"]["LogGroup"]["Ref"]
        function = Path(FUNCTIONS[name]["Properties"]["CodeUri"]).name.replace("_", "-")
        named = resources("AWS::Logs::LogGroup")[log_group]["Properties"]["LogGroupName"]
        assert named == {"Fn::Sub": f"/aws/lambda/${{AWS::StackName}}-{function}"}

    def test_each_function_has_only_allow_statements(self, name: str):
        for statement in statements(FUNCTIONS[name]):
            assert set(statement) - {"Condition"} == {"Effect", "Action", "Resource"}
            assert statement["Effect"] == "Allow"

    def test_each_function_names_no_action_twice_for_one_resource_and_kind_of_key(self, name: str):
        # What every request counts, the functions that write it otherwise name again.
        counting = statements(FUNCTIONS["SystemFunction"])[0]
        granted = [
            (action, json.dumps(target), keys)
            for statement in statements(FUNCTIONS[name])
            if statement != counting
            for target in _listed(statement["Resource"])
            for action in statement["Action"]
            for keys in keys_of(statement.get("Condition", {})) or [""]
        ]
        assert len(granted) == len(set(granted))

    def test_each_function_queries_existing_indexes(self, name: str):
        defined = {index["IndexName"] for index in TABLE["Properties"]["GlobalSecondaryIndexes"]}
        for statement in statements(FUNCTIONS[name]):
            for target in _listed(statement["Resource"]):
                if "Fn::Sub" in target and statement["Action"] != ["ses:SendEmail"]:
                    assert statement["Action"] == ["dynamodb:Query"]
                    assert target_of(target).removeprefix("Table/index/") in defined

    def test_each_function_is_published_if_only_its_layer_or_variables_changed(self, name: str):
        assert FUNCTIONS[name]["Properties"]["AutoPublishAliasAllProperties"] is True


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


WORKERS = {name: function for name, function in FUNCTIONS.items() if name not in api_functions()}
QUEUES = {name: queue for name, queue in resources("AWS::SQS::Queue").items() if "RedrivePolicy" in queue["Properties"]}


@each("name", QUEUES)
class TestEachQueue:
    def _mapping(self, name: str) -> dict[str, Any]:
        (mapping,) = [
            entry["Properties"]
            for entry in resources("AWS::Lambda::EventSourceMapping").values()
            if entry["Properties"]["EventSourceArn"] == {"Fn::GetAtt": [name, "Arn"]}
        ]
        return mapping

    def test_each_queue_has_a_bounded_worker_that_reports_each_failed_message(self, name: str):
        mapping = self._mapping(name)
        assert mapping["FunctionName"]["Ref"].removesuffix(".Alias") in WORKERS
        assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
        assert mapping["ScalingConfig"]["MaximumConcurrency"]["Ref"] in {"ScanConcurrency", "WorkerConcurrency"}

    def test_each_queue_hides_a_message_six_times_its_workers_timeout(self, name: str):
        worker = WORKERS[self._mapping(name)["FunctionName"]["Ref"].removesuffix(".Alias")]
        assert QUEUES[name]["Properties"]["VisibilityTimeout"] >= 6 * worker["Properties"]["Timeout"]

    def test_each_queue_has_a_dead_letter_queue_with_a_longer_retention(self, name: str):
        properties = QUEUES[name]["Properties"]
        assert properties["RedrivePolicy"]["maxReceiveCount"] == MAX_RECEIVES
        dead = properties["RedrivePolicy"]["deadLetterTargetArn"]["Fn::GetAtt"][0]
        dead_properties = resources("AWS::SQS::Queue")[dead]["Properties"]
        assert dead_properties["MessageRetentionPeriod"] > properties["MessageRetentionPeriod"]

    def test_each_queue_has_alarms_for_dead_letters_and_message_age(self, name: str):
        dead = QUEUES[name]["Properties"]["RedrivePolicy"]["deadLetterTargetArn"]["Fn::GetAtt"][0]
        watched = {
            (alarm["Properties"]["MetricName"], dimension["Value"]["Fn::GetAtt"][0])
            for alarm in resources("AWS::CloudWatch::Alarm").values()
            if alarm["Properties"].get("Namespace") == "AWS/SQS"
            for dimension in alarm["Properties"]["Dimensions"]
        }
        assert ("ApproximateNumberOfMessagesVisible", dead) in watched
        assert ("ApproximateAgeOfOldestMessage", name) in watched


@each("name", resources("AWS::SQS::Queue"))
def test_queues_are_encrypted(name: str):
    properties = resources("AWS::SQS::Queue")[name]["Properties"]
    assert properties["KmsMasterKeyId"] == {"Fn::If": ["HasKmsKey", {"Ref": "KmsKeyArn"}, {"Ref": "AWS::NoValue"}]}
    assert properties["SqsManagedSseEnabled"] == {"Fn::If": ["HasKmsKey", {"Ref": "AWS::NoValue"}, True]}


@each("name", resources("AWS::SQS::Queue"))
def test_each_queue_has_one_policy_which_denies_calls_without_tls(name: str):
    """A second policy would replace the first."""
    (policy,) = [
        policy["Properties"]["PolicyDocument"]["Statement"]
        for policy in resources("AWS::SQS::QueuePolicy").values()
        if {"Ref": name} in policy["Properties"]["Queues"]
    ]
    condition = {"Bool": {"aws:SecureTransport": "false"}}
    deny = {"Effect": "Deny", "Principal": "*", "Action": "sqs:*", "Resource": "*", "Condition": condition}
    assert policy[0] == deny


def test_only_the_intake_has_a_sender_elsewhere_which_may_do_nothing_else():
    statements = resources("AWS::SQS::QueuePolicy")["FindingIntakePolicy"]["Properties"]["PolicyDocument"]["Statement"]
    sender = {
        "Effect": "Allow",
        "Principal": {"AWS": {"Ref": "FindingIntakeSenderArn"}},
        "Action": "sqs:SendMessage",
        "Resource": {"Fn::GetAtt": ["FindingIntakeQueue", "Arn"]},
    }
    assert statements[1:] == [{"Fn::If": ["HasFindingIntakeSender", sender, {"Ref": "AWS::NoValue"}]}]
    assert str(load_template()["Resources"]).count("FindingIntakeSenderArn") == 1


class TestAllFunctions:
    def test_all_functions_are_traced_without_a_library(self):
        assert load_template()["Globals"]["Function"]["Tracing"] == "Active"
        assert not any("Tracing" in function["Properties"] for function in FUNCTIONS.values())

    def test_all_functions_get_the_variables_that_their_settings_read(self):
        variables = load_template()["Globals"]["Function"]["Environment"]["Variables"]
        assert variables.keys() >= {
            "TABLE_NAME",
            "PUBLIC_BASE_URL",
            "DASHBOARD_BASE_URL",
            "SERVICE_BRAND",
            "LIBRARY_BRAND",
            "CONSENT_RUNTIME_BASE_URL",
            "LOG_LEVEL",
            "POWERTOOLS_METRICS_NAMESPACE",
        }

    @each(
        "name",
        [
            "RequestsPerMinuteUser",
            "OrganizationRateFactor",
            "RejectedCredentialsPerMinute",
            "SignInRequestsPerMinute",
        ],
    )
    def test_every_limit_is_a_parameter_with_the_settings_default(self, name: str):
        template = load_template()
        variable = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()
        assert template["Globals"]["Function"]["Environment"]["Variables"][variable] == {"Ref": name}
        assert template["Parameters"][name]["Default"] == Settings.model_fields[variable.lower()].default

    def test_the_concurrency_is_a_parameter(self):
        # Its default is for a new account. Local runs and tests, which don't set it, have more.
        variables = load_template()["Globals"]["Function"]["Environment"]["Variables"]
        assert variables["ACCOUNT_CONCURRENCY"] == {"Ref": "AccountConcurrency"}

    def test_all_functions_time_out_after_a_cold_start_with_all_retries_and_before_the_gateway(self):
        gateway_seconds = 29
        # Lambda's own limit for a cold start, and the budget of a request for calls with their retries.
        longest = 10 + Settings.model_fields["dependency_seconds"].default
        assert longest < load_template()["Globals"]["Function"]["Timeout"] < gateway_seconds
        waiting = (
            Settings.model_fields["scan_wait_seconds"].default + Settings.model_fields["dependency_seconds"].default
        )
        assert waiting + 2 < FUNCTIONS["CodeAuditFunction"]["Properties"]["Timeout"] < gateway_seconds

    def test_functions_have_the_memory_whose_share_of_a_core_was_measured(self):
        """Lambda gives a function a core per 1,769 MB. With less of one, each request takes longer."""
        assert load_template()["Globals"]["Function"]["MemorySize"] == 1024
        sizes = {
            name: it["Properties"]["MemorySize"] for name, it in FUNCTIONS.items() if "MemorySize" in it["Properties"]
        }
        # Two cores for the two processes of the analysis.
        assert sizes == {"ScanExecutionFunction": 2 * 1769}

    def test_a_scans_lease_lasts_as_long_as_its_function_can_run(self):
        for name, lease in (("ScanPreparation", scan_preparation), ("ScanExecution", scan_execution)):
            assert FUNCTIONS[f"{name}Function"]["Properties"]["Timeout"] == lease.LEASE_SECONDS

    def test_there_is_no_log_group_without_a_function(self):
        used = {function["Properties"]["LoggingConfig"]["LogGroup"]["Ref"] for function in FUNCTIONS.values()}
        others = {"GatewayLogGroup", "DeploymentCheckLogGroup"}
        assert used == set(resources("AWS::Logs::LogGroup")) - others


class TestTable:
    def test_the_table_is_retained_and_can_be_restored(self):
        table = resources("AWS::DynamoDB::Table")["Table"]
        assert table["DeletionPolicy"] == table["UpdateReplacePolicy"] == "Retain"
        assert table["Properties"]["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
        assert table["Properties"]["DeletionProtectionEnabled"] == {"Ref": "DeletionProtection"}
        assert load_template()["Parameters"]["DeletionProtection"]["Default"] == "true"

    def test_the_table_is_the_only_one(self):
        assert list(resources("AWS::DynamoDB::Table")) == ["Table"]


class TestParameters:
    @each(
        ("parameter", "variable", "functions"),
        [
            ("OrganizationsPerPerson", "ORGANIZATIONS_PER_PERSON", {"Organizations", "Members", "Dashboard"}),
            ("InvitationsPerOrganization", "INVITATIONS_PER_ORGANIZATION", {"Members", "Dashboard"}),
            ("InvitationsPerAddress", "INVITATIONS_PER_ADDRESS", {"Members", "Dashboard"}),
        ],
    )
    def test_limit_parameters_reach_the_functions_with_the_settings_default(
        self, parameter: str, variable: str, functions: set[str]
    ):
        default = load_template()["Parameters"][parameter]["Default"]
        assert default == Settings.model_fields[variable.lower()].default
        given = {
            name.removesuffix("Function")
            for name, entry in FUNCTIONS.items()
            if entry["Properties"]["Environment"]["Variables"].get(variable) == {"Ref": parameter}
        }
        assert given == functions

    def test_every_parameter_has_a_default(self):
        assert [name for name, entry in load_template()["Parameters"].items() if "Default" not in entry] == []

    def test_the_processor_is_the_one_that_is_built_for(self):
        declared = load_template()["Parameters"]["Architecture"]
        assert declared["Default"] == ARCHITECTURES[0]
        assert declared["AllowedValues"] == [*ARCHITECTURES]

    def test_every_parameter_has_a_description(self):
        assert [name for name, entry in load_template()["Parameters"].items() if "Description" not in entry] == []


class TestGatewayResponses:
    def test_gateway_responses_cover_every_type(self):
        assert set(GATEWAY_RESPONSES) == RESPONSE_TYPES

    @each("name", GATEWAY_RESPONSES)
    def test_gateway_responses_are_the_envelope_with_a_catalog_code_and_its_status(self, name: str):
        answer = GATEWAY_RESPONSES[name]
        media_type, text = body_of(answer)
        assert media_type == "application/json"
        body = json.loads(text)
        assert list(body) == ["success", "error"]
        assert body["success"] is False
        is_invalid = body["error"]["code"] == "INVALID_PAYLOAD"
        assert list(body["error"]) == ["code", "message", "details"]
        details = body["error"]["details"]
        guidance = details[0] if is_invalid else details
        code = body["error"]["code"]
        assert (guidance["docsUrl"], guidance["hint"]) == (error_page(code), HINTS[code])
        if is_invalid:
            check_problems(body["error"])
        allowed = CATALOG[body["error"]["code"]]
        statuses = {allowed, 415} if is_invalid else {allowed}
        assert answer["StatusCode"] in statuses

    @each("name", GATEWAY_RESPONSES)
    def test_gateway_responses_contain_the_request_id(self, name: str):
        assert GATEWAY_RESPONSES[name]["ResponseParameters"]["Headers"]["X-Request-Id"] == "context.requestId"

    @each("name", GATEWAY_RESPONSES)
    def test_gateway_responses_have_the_transport_security_of_the_functions(self, name: str):
        sent = GATEWAY_RESPONSES[name]["ResponseParameters"]["Headers"]["Strict-Transport-Security"]
        assert sent == f"'{TRANSPORT_SECURITY[1].decode()}'"

    @each("name", [n for n, a in GATEWAY_RESPONSES.items() if a["StatusCode"] in {429, 503}])
    def test_gateway_responses_say_when_to_retry(self, name: str):
        assert re.fullmatch(r"'\d+'", GATEWAY_RESPONSES[name]["ResponseParameters"]["Headers"]["Retry-After"])

    @each("name", ["DEFAULT_5XX", "INTEGRATION_FAILURE", "INTEGRATION_TIMEOUT"])
    def test_an_overloaded_or_dead_function_is_503(self, name: str):
        answer = GATEWAY_RESPONSES[name]
        assert answer["StatusCode"] == 503
        assert json.loads(body_of(answer)[1])["error"]["code"] == "SERVICE_UNAVAILABLE"

    @each("name", ["MISSING_AUTHENTICATION_TOKEN", "DEFAULT_4XX"])
    def test_an_unknown_route_is_404_with_and_without_a_token(self, name: str):
        assert GATEWAY_RESPONSES[name]["StatusCode"] == 404
