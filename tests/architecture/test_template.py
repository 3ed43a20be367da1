"""Rules of the template that no linter checks. `template_rules.yaml` has the values that must stay as they are.

The rules here compare resources with each other, or with the code.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from controlplane.platform.core.errors import CATALOG
from controlplane.platform.core.settings import Settings, load
from controlplane.platform.core.urls import error_page
from controlplane.platform.http.app import TRANSPORT_SECURITY
from controlplane.platform.http.envelope import HINTS
from controlplane.platform.queues.messages import MAX_RECEIVES
from local.gateway import body_of
from local.template import NESTED, load_template
from local.template import TEMPLATE as LOCATION
from scan_execution import service as scan_execution
from scan_preparation import service as scan_preparation
from scripts.artifacts import ARCHITECTURES, BROWSER_ARCHITECTURE, BROWSER_LAYER
from tests.support.each import each
from tests.support.operations import operations
from tests.support.response_checks import check_problems
from tests.support.template import (
    Route,
    api_functions,
    every_resource,
    functions,
    gateway_responses,
    gateway_route,
    layers_of,
    resources,
    routes_by_group,
    text_of,
)

ROOT = Path(__file__).parents[2]
TEMPLATE = load_template()
RULES = load_template(Path(__file__).with_name("template_rules.yaml"))
PARAMETERS, RESOURCES = TEMPLATE["Parameters"], every_resource()
FUNCTIONS, GLOBALS = functions(), TEMPLATE["Globals"]["Function"]
WORKERS = FUNCTIONS.keys() - api_functions().keys()
ALARMS = resources("AWS::CloudWatch::Alarm")
LOG_GROUPS = resources("AWS::Logs::LogGroup")
MAPPINGS = {name: it["Properties"] for name, it in resources("AWS::Lambda::EventSourceMapping").items()}
QUEUES = {name: it["Properties"] for name, it in resources("AWS::SQS::Queue").items()}
WORK_QUEUES = [name for name, it in QUEUES.items() if "RedrivePolicy" in it]
NOTHING = {"Ref": "AWS::NoValue"}
# The variables that every function needs.
GOOD = {"TABLE_NAME": "assent-table"}


def properties(name: str) -> dict[str, Any]:
    found: dict[str, Any] = RESOURCES[name]["Properties"]
    return found


def group_of(name: str) -> str:
    """Returns the name of the folder that the function is built from."""
    return Path(properties(name)["CodeUri"]).name


def worker_of(mapping: dict[str, Any]) -> str:
    name: str = mapping["FunctionName"]["Ref"].removesuffix(".Alias")
    return name


def differences(found: Any, rule: Any, at: str) -> Iterator[str]:
    """Yields where the template lacks a value of the rules. Lists must be equal."""
    match rule:
        case dict() if isinstance(found, dict):
            for key, expected in rule.items():
                yield from differences(found.get(key), expected, f"{at}.{key}")
        case list() if isinstance(found, list) and len(found) == len(rule):
            for place, (one, expected) in enumerate(zip(found, rule, strict=True)):
                yield from differences(one, expected, f"{at}[{place}]")
        case _ if found != rule:
            yield f"{at} is {found!r}, not {rule!r}"


class TestValues:
    @each("section", ["Globals", "Parameters", "Conditions", "Rules"])
    def test_a_section_has_the_values_of_the_rules(self, section: str):
        assert [*differences(TEMPLATE[section], RULES[section], section)] == []

    @each("name", RULES["Resources"])
    def test_a_resource_has_the_values_of_the_rules(self, name: str):
        found = resources(name) if "::" in name else {name: RESOURCES[name]}
        assert found
        assert [line for one, it in found.items() for line in differences(it, RULES["Resources"][name], one)] == []

    def test_a_missing_and_a_changed_value_are_found(self):
        assert [*differences({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}], "c": None, "d": 1}, "")] == [
            ".a[1].b is 2, not 3",
            ".d is None, not 1",
        ]

    def test_the_template_is_short_enough_to_be_read(self):
        text = LOCATION.read_text()
        assert len(text.splitlines()) < 1_500
        assert len(text) < 95_000
        assert len(PARAMETERS) <= 45
        together = "".join(path.read_text() for path in (LOCATION, *NESTED.values()))
        assert len(together.splitlines()) < 1_940
        assert len(together) < 123_000  # 121,000, and room for what an endpoint, a worker, and an index add
        assert [line for line in together.splitlines() if len(line) > 120] == []

    def test_there_is_one_table(self):
        assert [*resources("AWS::DynamoDB::Table")] == ["Table"]

    def test_the_stack_policy_protects_every_retained_resource_with_data(self):
        allow, deny = json.loads((ROOT / "stack-policy.json").read_text())["Statement"]
        assert (allow["Effect"], allow["Action"], allow["Resource"]) == ("Allow", "Update:*", "*")
        assert (deny["Effect"], deny["Action"]) == ("Deny", ["Update:Replace", "Update:Delete"])
        kept = {name for name, it in RESOURCES.items() if it.get("DeletionPolicy") == "Retain"}
        assert {*deny["Resource"]} == {f"LogicalResourceId/{name}" for name in kept if not name.startswith("Gateway")}


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
                assert route.method in ({"GET", "HEAD"} if route.path == "/health" else {"ANY"})
                path = route.path.removesuffix("{path+}") if group == "dashboard" else route.path
                assert re.fullmatch(r"/|(/([a-z0-9.-]+|\{[a-z][A-Za-z]+\}))+", path)

    def test_a_path_belongs_to_one_function_which_answers_every_method(self):
        paths = [path for routes in routes_by_group().values() for path in {route.path for route in routes}]
        assert len(paths) == len(set(paths))

    def test_routes_name_the_templates_api(self):
        events = [event for it in api_functions().values() for event in it["Properties"]["Events"].values()]
        assert {(it["Type"], it["Properties"]["RestApiId"]["Ref"]) for it in events} == {("Api", "Api")}


@each("name", FUNCTIONS)
class TestEachFunction:
    def test_a_function_is_built_from_its_folder_and_named_after_it(self, name: str):
        group, metadata, found = group_of(name), FUNCTIONS[name]["Metadata"], properties(name)
        assert (found["CodeUri"], found["Handler"]) == (f"functions/{group}", f"{group}.app.handler")
        assert found["Environment"]["Variables"]["POWERTOOLS_SERVICE_NAME"] == group
        assert (metadata["BuildMethod"], metadata["BuildProperties"]) == ("python3.13", {"ParentPackageMode": "auto"})

    def test_a_function_has_a_log_group_of_its_own_named_after_the_stack_and_itself(self, name: str):
        log_group = properties(name)["LoggingConfig"]["LogGroup"]["Ref"]
        assert [it for it in FUNCTIONS if properties(it)["LoggingConfig"]["LogGroup"]["Ref"] == log_group] == [name]
        expected = f"/aws/lambda/${{AWS::StackName}}-{group_of(name).replace('_', '-')}"
        assert text_of(properties(log_group)["LogGroupName"]) == expected

    def test_a_function_is_published_whatever_changed_and_named_after_the_release(self, name: str):
        assert properties(name)["AutoPublishAliasAllProperties"] is True
        assert properties(name)["VersionDescription"] == {"Ref": "Release"}
        assert "Tracing" not in properties(name)

    def test_a_gradual_deployment_is_rolled_back_by_the_functions_own_errors_in_time(self, name: str):
        condition, [found], otherwise = properties(name)["DeploymentPreference"]["Alarms"]["Fn::If"]
        assert (condition, otherwise) == ("IsGradual", [NOTHING])
        stack, output = found["Fn::GetAtt"]
        alarm = load_template(NESTED[stack])["Outputs"][output.removeprefix("Outputs.")]["Value"]
        is_api = name in api_functions()
        assert ALARMS[alarm["Ref"]].get("Condition") == ("IsGradual" if is_api else None)
        declared = properties(alarm["Ref"])
        metrics = [it["MetricStat"] for it in declared.get("Metrics", []) if "MetricStat" in it]
        watched = {
            (it["MetricName"], dimension["Name"], json.dumps(dimension["Value"]))
            for it in [stat["Metric"] for stat in metrics] or [declared]
            for dimension in it["Dimensions"]
        }
        expected = {("Errors", "FunctionName", json.dumps({"Ref": name}))}
        if name != "SweeperFunction":
            expected |= {
                ("Errors", "Resource", json.dumps({"Fn::Sub": ["${Function}:live", {"Function": {"Ref": name}}]}))
            }
        assert watched >= expected | ({("ServerErrors", "service", json.dumps(group_of(name)))} if is_api else set())
        quickest = 5 * 60  # Canary10Percent5Minutes
        periods = [it["Period"] for it in metrics] or [declared["Period"]]
        assert max(periods) * declared["EvaluationPeriods"] <= quickest

    def test_snapstart_is_never_requested_if_lambda_refuses_it(self, name: str):
        # Lambda makes snapshots only of functions with at most this much storage in /tmp.
        needs_more = properties(name).get("EphemeralStorage", {"Size": 512})["Size"] > 512
        assert (properties(name).get("SnapStart") == {"ApplyOn": "None"}) is needs_more

    def test_only_functions_of_the_api_have_the_secret_of_the_front_door(self, name: str):
        secret = {"Fn::Sub": "{{resolve:secretsmanager:${FrontDoorSecret}:SecretString}}"}
        expected = {"Fn::If": ["HasFrontDoor", secret, ""]} if name in api_functions() else None
        assert properties(name)["Environment"]["Variables"].get("FRONT_DOOR_SECRET") == expected


class TestAllFunctions:
    def test_every_function_gets_the_settings_that_have_no_parameter(self):
        assert GLOBALS["Environment"]["Variables"]["SETTINGS"] == {"Ref": "Settings"}
        assert load({**GOOD, "SETTINGS": PARAMETERS["Settings"]["Default"]}) == load(GOOD)
        assert not any("SETTINGS" in properties(it)["Environment"]["Variables"] for it in FUNCTIONS)

    @each(
        ("value", "is_valid"),
        [("AUDIT_LOG_RETENTION_DAYS=90", True), ("A=1;B=2,3", True), ("A", False), ("a=1", False), ("A=1;", False)],
    )
    def test_settings_are_names_with_values(self, value: str, is_valid: bool):
        assert bool(re.fullmatch(PARAMETERS["Settings"]["AllowedPattern"], value)) is is_valid

    def test_functions_time_out_after_a_cold_start_with_all_retries_and_before_the_gateway(self):
        gateway_seconds, calls = 29, Settings.model_fields["dependency_seconds"].default
        assert 10 + calls < GLOBALS["Timeout"] < gateway_seconds  # Lambda's own limit for a cold start is 10 s
        waiting = Settings.model_fields["scan_wait_seconds"].default + calls
        assert waiting + 2 < properties("CodeAuditFunction")["Timeout"] < gateway_seconds

    def test_a_scans_lease_lasts_as_long_as_its_function_can_run(self):
        assert properties("ScanPreparationFunction")["Timeout"] == scan_preparation.LEASE_SECONDS
        assert properties("ScanExecutionFunction")["Timeout"] == scan_execution.LEASE_SECONDS

    def test_only_scans_and_audits_have_more_memory(self):
        found = [name for name in FUNCTIONS if "MemorySize" in properties(name)]
        assert found == ["ScanExecutionFunction", "WebsiteAuditsFunction"]

    def test_the_browser_has_the_processor_that_it_is_built_for(self):
        found = {
            name: it["Properties"]["Architectures"]
            for name, it in FUNCTIONS.items()
            if "Architectures" in it["Properties"]
        }
        layer = RESOURCES[BROWSER_LAYER]
        built = [layer["Metadata"]["BuildArchitecture"], *layer["Properties"]["CompatibleArchitectures"]]
        assert found == {"WebsiteAuditsFunction": [BROWSER_ARCHITECTURE]}
        assert layers_of(FUNCTIONS["WebsiteAuditsFunction"]) == [BROWSER_LAYER]
        assert built == [BROWSER_ARCHITECTURE] * 2

    def test_every_log_group_has_a_function(self):
        used = {properties(it)["LoggingConfig"]["LogGroup"]["Ref"] for it in FUNCTIONS}
        assert used == LOG_GROUPS.keys() - {"GatewayLogGroup", "DeploymentCheckLogGroup"}

    def test_the_defaults_leave_executions_of_a_new_account_for_the_api(self):
        optional = [{"Fn::If": [condition, True, False]} for condition in ("HasGithubApp", "SendsEmail")]
        enabled = {name: it for name, it in MAPPINGS.items() if it.get("Enabled") not in optional}
        # There are as many reports as audits, and each takes a second of the minutes that its audit took.
        assert enabled.pop("AuditReportsMessages")
        assert enabled.keys() == {"FindingIntakeMessages", "NotificationsMessages", "WebsiteAuditsMessages"}
        workers = [PARAMETERS[it["ScalingConfig"]["MaximumConcurrency"]["Ref"]]["Default"] for it in enabled.values()]
        # With the sweep. SQS lets no queue have fewer than two, and audits are rare.
        assert 1 + sum(workers) <= PARAMETERS["AccountConcurrency"]["Default"] - 3

    def test_each_deployment_style_except_unchecked_is_checked(self):
        """SAM reads a map while it transforms the template, when conditions have no value yet."""
        styles = TEMPLATE["Mappings"]["DeploymentStyles"]
        assert [*styles] == PARAMETERS["DeploymentStyle"]["AllowedValues"]
        assert {name for name, it in styles.items() if it["IsChecked"] == "false"} == {"Unchecked"}


@each("name", WORK_QUEUES)
class TestEachQueue:
    def test_a_queue_has_one_worker_which_is_bounded_and_has_the_time_of_six_timeouts(self, name: str):
        (mapping,) = [it for it in MAPPINGS.values() if it["EventSourceArn"]["Fn::GetAtt"][0] == name]
        worker, concurrency = worker_of(mapping), mapping["ScalingConfig"]["MaximumConcurrency"]
        assert worker in WORKERS
        assert concurrency["Ref"] in {"ScanConcurrency", "WorkerConcurrency"}
        reserved = {"Fn::If": ["ReservesConcurrency", concurrency, NOTHING]}
        assert properties(worker)["ReservedConcurrentExecutions"] == reserved
        assert QUEUES[name]["VisibilityTimeout"] >= 6 * properties(worker)["Timeout"]

    def test_a_queue_has_dead_letters_that_are_kept_longer_and_alarms(self, name: str):
        redrive = QUEUES[name]["RedrivePolicy"]
        dead = redrive["deadLetterTargetArn"]["Fn::GetAtt"][0]
        assert redrive["maxReceiveCount"] == MAX_RECEIVES
        assert QUEUES[dead]["MessageRetentionPeriod"] > QUEUES[name]["MessageRetentionPeriod"]
        watched = {
            (it["Properties"]["MetricName"], dimension["Value"]["Ref"])
            for it in ALARMS.values()
            if it["Properties"].get("Namespace") == "AWS/SQS"
            for dimension in it["Properties"]["Dimensions"]
        }
        assert ("ApproximateNumberOfMessagesVisible", dead) in watched
        assert ("ApproximateAgeOfOldestMessage", name) in watched


@each("name", QUEUES)
def test_a_queue_has_one_policy_which_denies_calls_without_tls(name: str):
    """A second policy would replace the first."""
    policies = [it["Properties"] for it in resources("AWS::SQS::QueuePolicy").values()]
    (statements,) = [it["PolicyDocument"]["Statement"] for it in policies if {"Ref": name} in it["Queues"]]
    rule = RULES["Resources"]["FindingIntakePolicy"]["Properties"]["PolicyDocument"]["Statement"]
    assert statements[0] == rule[0]
    assert str(RESOURCES).count("FindingIntakeSenderArn") == 1


class TestParameters:
    def test_every_parameter_has_a_default_and_a_description(self):
        assert [name for name, it in PARAMETERS.items() if not {"Default", "Description"} <= it.keys()] == []

    def test_the_processor_is_the_one_that_is_built_for(self):
        declared = PARAMETERS["Architecture"]
        assert [declared["Default"], declared["AllowedValues"]] == [ARCHITECTURES[0], [*ARCHITECTURES]]

    @each(
        ("value", "is_valid"),
        [(it, True) for it in ("", "0", "0.005", "1")] + [(it, False) for it in ("5", ".5", "-1")],
    )
    def test_a_share_is_a_number_up_to_one(self, value: str, is_valid: bool):
        assert bool(re.fullmatch(PARAMETERS["TracedShare"]["AllowedPattern"], value)) is is_valid

    def test_names_after_the_stack_have_room_for_64_letters(self):
        longest = {"LogGroup": 512, "Api": 1_024, "ConfigurationSet": 64}
        found = [
            (it["Type"].split("::")[-1], name)
            for it in RESOURCES.values()
            for name in names_after_the_stack(it.get("Properties", {}))
        ]
        assert {kind for kind, _ in found} == longest.keys()
        assert [(kind, name) for kind, name in found if len(name) > longest[kind]] == []


def names_after_the_stack(node: Any, key: str = "") -> Iterator[str]:
    """Yields each name in a resource's properties that contains the stack's, if that has 64 letters."""
    match node:
        case {"Ref": "AWS::StackName"} if key.endswith("Name"):
            yield "s" * 64
        case {"Fn::Sub": _} if key.endswith("Name") and "${AWS::StackName}" in text_of(node):
            yield text_of(node).replace("${AWS::StackName}", "s" * 64)
        case dict():
            for name, value in node.items():
                yield from names_after_the_stack(value, name)
        case list():
            for value in node:
                yield from names_after_the_stack(value, key)


class TestGateway:
    def test_the_gateway_limits_all_callers_together(self):
        settings = properties("Api")["MethodSettings"]
        assert (settings[0]["HttpMethod"], settings[0]["ResourcePath"]) == ("*", "/*")
        rate = {"Fn::If": ["SetsThrottlingRate", {"Ref": "ThrottlingRate"}, {"Fn::Sub": "${AccountConcurrency}0"}]}
        # A browser asks for a page and what it loads at once: more than the executions of a new account.
        derived = {"Fn::If": ["IsNewAccount", 50, {"Ref": "AccountConcurrency"}]}
        burst = {"Fn::If": ["SetsThrottlingRate", {"Ref": "ThrottlingRate"}, derived]}
        assert all((it["ThrottlingRateLimit"], it["ThrottlingBurstLimit"]) == (rate, burst) for it in settings)

    def test_the_gateway_pays_only_for_metrics_that_an_alarm_uses(self):
        settings = [it for it in properties("Api")["MethodSettings"] if it.get("MetricsEnabled")]
        paid = {(it["HttpMethod"], it["ResourcePath"].replace("~1", "/").removeprefix("/")) for it in settings}
        dimensions = [
            {it["Name"]: it["Value"] for it in alarm["Properties"].get("Dimensions", [])} for alarm in ALARMS.values()
        ]
        assert paid == {(it["Method"], it["Resource"]) for it in dimensions if "Method" in it} == {("GET", "/health")}

    def test_the_gateway_logs_nothing_that_identifies_the_caller(self):
        text = properties("Api")["AccessLogSetting"]["Format"]
        assert "\n" not in text.strip()
        names = "requestId xrayTraceId httpMethod resourcePath status error.responseType responseLatency"
        logged = {f"$context.{it}" for it in f"{names} integrationLatency responseLength".split()}
        assert {*json.loads(text).values()} == logged

    def test_gateway_responses_cover_every_type(self):
        """As the developer guide lists them ("Gateway response types")."""
        assert gateway_responses().keys() == {
            *("ACCESS_DENIED", "API_CONFIGURATION_ERROR", "AUTHORIZER_CONFIGURATION_ERROR", "AUTHORIZER_FAILURE"),
            *("BAD_REQUEST_BODY", "BAD_REQUEST_PARAMETERS", "DEFAULT_4XX", "DEFAULT_5XX", "EXPIRED_TOKEN"),
            *("INTEGRATION_FAILURE", "INTEGRATION_TIMEOUT", "INVALID_API_KEY", "INVALID_SIGNATURE"),
            *("MISSING_AUTHENTICATION_TOKEN", "QUOTA_EXCEEDED", "REQUEST_TOO_LARGE", "RESOURCE_NOT_FOUND"),
            *("THROTTLED", "UNAUTHORIZED", "UNSUPPORTED_MEDIA_TYPE", "WAF_FILTERED"),
        }

    @each("name", gateway_responses())
    def test_a_gateway_response_is_the_envelope_with_the_functions_headers(self, name: str):
        answer = gateway_responses()[name]
        media_type, text = body_of(answer)
        body, headers = json.loads(text), answer["ResponseParameters"]["Headers"]
        assert (media_type, [*body], body["success"]) == ("application/json", ["success", "error"], False)
        assert [*body["error"]] == ["code", "message", "details"]
        code, _, details = body["error"].values()
        is_invalid = isinstance(details, list)
        assert is_invalid is (code == "INVALID_PAYLOAD")
        if is_invalid:
            check_problems(body["error"])
        guidance = details[0] if is_invalid else details
        assert (guidance["docsUrl"], guidance["hint"]) == (error_page(code), HINTS[code])
        assert answer["StatusCode"] in {CATALOG[code], 415 if is_invalid else CATALOG[code]}
        assert headers["X-Request-Id"] == "context.requestId"
        assert headers["Strict-Transport-Security"] == f"'{TRANSPORT_SECURITY[1].decode()}'"
        assert answer["StatusCode"] not in {429, 503} or re.fullmatch(r"'\d+'", headers["Retry-After"])

    def test_an_overloaded_function_is_503_and_an_unknown_route_404_with_and_without_a_token(self):
        expected = dict.fromkeys(("DEFAULT_5XX", "INTEGRATION_FAILURE", "INTEGRATION_TIMEOUT"), 503)
        expected |= dict.fromkeys(("MISSING_AUTHENTICATION_TOKEN", "DEFAULT_4XX"), 404)
        assert {name: gateway_responses()[name]["StatusCode"] for name in expected} == expected
