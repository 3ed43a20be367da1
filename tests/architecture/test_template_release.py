"""Releases: traffic shifting, rollback, retention, limits, encryption, and scanner exceptions."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from local.template import load_template
from scripts.artifacts import ARCHITECTURES
from tests.support.each import each
from tests.support.template import api_functions, functions, resources

FUNCTIONS = functions()
ALARMS = resources("AWS::CloudWatch::Alarm")
KEY = {"Fn::If": ["HasKmsKey", {"Ref": "KmsKeyArn"}, {"Ref": "AWS::NoValue"}]}
# Lambda makes snapshots only of functions with at most this much storage in /tmp.
SNAPSHOT_STORAGE = 512
# Fields allowed in the access log: nothing about the caller, and no path, which contains IDs.
LOGGED = {
    "$context.requestId",
    "$context.xrayTraceId",
    "$context.httpMethod",
    "$context.resourcePath",
    "$context.status",
    "$context.error.responseType",
    "$context.responseLatency",
    "$context.integrationLatency",
    "$context.responseLength",
}


def globals_() -> dict[str, Any]:
    found: dict[str, Any] = load_template()["Globals"]["Function"]
    return found


def parameter(name: str) -> dict[str, Any]:
    found: dict[str, Any] = load_template()["Parameters"][name]
    return found


def rollback_alarm(function: str) -> str:
    """Returns the alarm that rolls a function back."""
    condition, [alarm], otherwise = FUNCTIONS[function]["Properties"]["DeploymentPreference"]["Alarms"]["Fn::If"]
    assert (condition, otherwise) == ("IsGradual", [{"Ref": "AWS::NoValue"}])
    name: str = alarm["Ref"]
    return name


class TestGradualDeployment:
    def test_a_gradual_deployment_is_a_parameter_with_known_values(self):
        styles = load_template()["Mappings"]["DeploymentStyles"]
        assert list(styles) == parameter("DeploymentStyle")["AllowedValues"]
        assert {name for name, it in styles.items() if it["IsGradual"] == "false"} == {"AllAtOnce", "Unchecked"}
        assert {name for name, it in styles.items() if it["IsChecked"] == "false"} == {"Unchecked"}
        assert parameter("DeploymentStyle")["Default"] == "AllAtOnce"

    def test_a_gradual_deployment_moves_every_functions_alias(self):
        preference = globals_()["DeploymentPreference"]
        assert globals_()["AutoPublishAlias"] == "live"
        assert preference["Type"] == {"Ref": "DeploymentStyle"}
        assert preference["Enabled"] == {"Fn::FindInMap": ["DeploymentStyles", {"Ref": "DeploymentStyle"}, "IsChecked"]}

    @each("name", FUNCTIONS)
    def test_a_gradual_deployment_is_rolled_back_by_the_functions_own_error_alarm(self, name: str):
        properties = ALARMS[rollback_alarm(name)]["Properties"]
        stats = [it["MetricStat"]["Metric"] for it in properties.get("Metrics", []) if "MetricStat" in it]
        watched = {
            (it["MetricName"], dimension["Name"], json.dumps(dimension["Value"]))
            for it in stats or [properties]
            for dimension in it["Dimensions"]
        }
        function, alias = json.dumps({"Ref": name}), json.dumps({"Fn::Sub": f"${{{name}}}:live"})
        assert ("Errors", "FunctionName", function) in watched
        if name == "SweeperFunction":
            return
        assert ("Errors", "Resource", alias) in watched
        if name in api_functions():
            service = FUNCTIONS[name]["Properties"]["Environment"]["Variables"]["POWERTOOLS_SERVICE_NAME"]
            assert ("ServerErrors", "service", json.dumps(service)) in watched

    @each("name", FUNCTIONS)
    def test_the_rollback_alarm_reacts_before_the_fastest_deployment_ends(self, name: str):
        properties = ALARMS[rollback_alarm(name)]["Properties"]
        periods = [it["MetricStat"]["Period"] for it in properties.get("Metrics", []) if "MetricStat" in it]
        seconds = max(periods or [properties["Period"]]) * properties["EvaluationPeriods"]
        quickest = 5 * 60  # Canary10Percent5Minutes
        assert seconds <= quickest

    def test_rollback_alarms_of_the_apis_functions_exist_only_for_gradual_deployments(self):
        for name in FUNCTIONS:
            condition = ALARMS[rollback_alarm(name)].get("Condition")
            assert condition == ("IsGradual" if name in api_functions() else None)


class TestSnapStart:
    def test_snapstart_is_off_by_default(self):
        assert globals_()["SnapStart"] == {"ApplyOn": {"Ref": "SnapStart"}}
        assert parameter("SnapStart")["Default"] == "None"
        assert parameter("SnapStart")["AllowedValues"] == ["None", "PublishedVersions"]

    @each("name", FUNCTIONS)
    def test_snapstart_is_never_requested_where_lambda_refuses_it(self, name: str):
        properties = FUNCTIONS[name]["Properties"]
        storage = properties.get("EphemeralStorage", {"Size": SNAPSHOT_STORAGE})["Size"]
        assert (properties.get("SnapStart") == {"ApplyOn": "None"}) is (storage > SNAPSHOT_STORAGE)

    def test_snapstart_is_offered_by_runtime_and_processor(self):
        assert globals_()["Runtime"] == "python3.13"
        assert {*ARCHITECTURES} == {"arm64", "x86_64"}


class TestGateway:
    API = resources("AWS::Serverless::Api")["Api"]

    def test_the_gateway_limits_all_callers_together(self):
        found = self.API["Properties"]["MethodSettings"]
        assert (found[0]["HttpMethod"], found[0]["ResourcePath"]) == ("*", "/*")
        for settings in found:
            assert settings["ThrottlingRateLimit"] == {
                "Fn::If": ["SetsThrottlingRate", {"Ref": "ThrottlingRate"}, {"Fn::Sub": "${AccountConcurrency}0"}]
            }
            assert settings["ThrottlingBurstLimit"] == {
                "Fn::If": ["SetsThrottlingBurst", {"Ref": "ThrottlingBurst"}, {"Ref": "AccountConcurrency"}]
            }

    def test_the_gateways_limit_follows_from_the_concurrency_unless_set(self):
        template = load_template()
        for name in ("ThrottlingRate", "ThrottlingBurst"):
            assert template["Parameters"][name]["Default"] == "0"
            assert template["Conditions"][f"Sets{name}"] == {"Fn::Not": [{"Fn::Equals": [{"Ref": name}, "0"]}]}

    def test_the_gateway_has_the_parameters_web_acl(self):
        association = resources("AWS::WAFv2::WebACLAssociation")["WebAclAssociation"]
        assert association["Condition"] == "HasWebAcl"
        assert association["Properties"]["WebACLArn"] == {"Ref": "WebAclArn"}
        stage = "arn:${AWS::Partition}:apigateway:${AWS::Region}::/restapis/${Api}/stages/${Api.Stage}"
        assert association["Properties"]["ResourceArn"] == {"Fn::Sub": stage}

    def test_the_gateway_pays_only_for_metrics_that_an_alarm_uses(self):
        paid = {
            (settings["HttpMethod"], settings["ResourcePath"].replace("~1", "/").removeprefix("/"))
            for settings in self.API["Properties"]["MethodSettings"]
            if settings.get("MetricsEnabled")
        }
        watched = set()
        for alarm in resources("AWS::CloudWatch::Alarm").values():
            dimensions = {it["Name"]: it["Value"] for it in alarm["Properties"].get("Dimensions", [])}
            if "Method" in dimensions:
                watched.add((dimensions["Method"], dimensions["Resource"]))
        assert paid == watched == {("GET", "/health")}

    def test_the_gateway_logs_nothing_that_identifies_the_caller(self):
        log = self.API["Properties"]["AccessLogSetting"]
        assert log["DestinationArn"] == {"Fn::GetAtt": ["GatewayLogGroup", "Arn"]}
        assert "\n" not in log["Format"].strip()
        assert set(json.loads(log["Format"]).values()) == LOGGED

    def test_the_gateway_is_traced_and_compresses(self):
        assert self.API["Properties"]["TracingEnabled"] is True
        assert 0 < self.API["Properties"]["MinimumCompressionSize"] < 10_000

    def test_the_gateway_waits_for_the_accounts_logging_role(self):
        assert self.API["DependsOn"] == "GatewayAccount"
        assert "Condition" not in load_template()["Resources"]["GatewayAccount"]

    def test_every_deployment_reaches_the_stage(self):
        # SAM deploys only changed routes, so that a changed setting of the API alone would have no effect.
        assert self.API["Properties"]["AlwaysDeploy"] is True

    def test_the_traced_share_is_a_rule_for_this_stage_only(self):
        entry = resources("AWS::XRay::SamplingRule")["TracingRule"]
        rule = entry["Properties"]["SamplingRule"]
        assert (entry["Condition"], parameter("TracedShare")["Default"]) == ("SetsTracedShare", "")
        assert rule["FixedRate"] == {"Ref": "TracedShare"}
        stage = "arn:${AWS::Partition}:apigateway:${AWS::Region}::/restapis/${Api}/stages/${StageName}"
        assert rule["ResourceARN"] == {"Fn::Sub": stage}
        # X-Ray's limits are 32 characters for the rule's name and 64 for the service's: too few for the stack's name.
        assert rule["RuleName"] == {"Fn::Sub": "gateway-${Api}"}
        for value in ("", "0", "0.005", "1"):
            assert re.fullmatch(parameter("TracedShare")["AllowedPattern"], value)
        for value in ("5", "1.5", ".5", "-1"):
            assert not re.fullmatch(parameter("TracedShare")["AllowedPattern"], value)


class TestSignIn:
    """The stack's own user pool."""

    POOL = resources("AWS::Cognito::UserPool")["UserPool"]["Properties"]

    def test_the_cheapest_tier_is_the_default(self):
        assert self.POOL["UserPoolTier"] == {"Ref": "SignInTier"}
        assert parameter("SignInTier")["Default"] == "LITE"
        # Managed login would need another tier.
        assert resources("AWS::Cognito::UserPoolDomain")["UserPoolDomain"]["Properties"]["ManagedLoginVersion"] == 1

    def test_emails_are_sent_through_ses_if_it_has_the_senders_identity(self):
        condition, sending, otherwise = self.POOL["EmailConfiguration"]["Fn::If"]
        assert (condition, otherwise) == ("SendsSignInEmail", {"Ref": "AWS::NoValue"})
        identity = {"Ref": "SignInEmailIdentityArn"}
        assert sending == {"EmailSendingAccount": "DEVELOPER", "From": {"Ref": "EmailSender"}, "SourceArn": identity}
        (rule,) = load_template()["Rules"]["SignInEmailNeedsItsSender"]["Assertions"]
        assert rule["Assert"] == {"Fn::Not": [{"Fn::Equals": [{"Ref": "EmailSender"}, ""]}]}

    def test_the_pages_have_the_parameters_style(self):
        style = resources("AWS::Cognito::UserPoolUICustomizationAttachment")["UserPoolStyle"]
        assert (style["Condition"], style["DependsOn"]) == ("HasSignInCss", "UserPoolDomain")
        assert style["Properties"] == {
            "UserPoolId": {"Ref": "UserPool"},
            "ClientId": "ALL",
            "CSS": {"Ref": "SignInCss"},
        }
        assert {"Condition": "HasUserPool"} in load_template()["Conditions"]["HasSignInCss"]["Fn::And"]


class TestLogs:
    @each("name", resources("AWS::Logs::LogGroup"))
    def test_logs_expire_and_are_encrypted(self, name: str):
        properties = resources("AWS::Logs::LogGroup")[name]["Properties"]
        assert properties["RetentionInDays"] == {"Ref": "LogRetentionDays"}
        assert properties["KmsKeyId"] == KEY


class TestKey:
    """A customer managed key, if configured, encrypts all data at rest."""

    @each(
        ("kind", "attribute"),
        [
            ("AWS::SQS::Queue", "KmsMasterKeyId"),
            ("AWS::SNS::Topic", "KmsMasterKeyId"),
            ("AWS::SecretsManager::Secret", "KmsKeyId"),
            ("AWS::Logs::LogGroup", "KmsKeyId"),
        ],
    )
    def test_the_key_encrypts_every_resource_of_a_kind(self, kind: str, attribute: str):
        assert resources(kind)
        assert {name for name, it in resources(kind).items() if it["Properties"].get(attribute) != KEY} == set()

    def test_the_key_encrypts_the_table_and_the_variables(self):
        encryption = resources("AWS::DynamoDB::Table")["Table"]["Properties"]["SSESpecification"]
        assert encryption["SSEEnabled"] is True
        assert encryption["KMSMasterKeyId"] == KEY
        assert globals_()["KmsKeyArn"] == KEY


# Resources that are named after the stack, and AWS's limit of that name.
NAMED_AFTER_THE_STACK = {
    "AWS::CloudWatch::Dashboard": 255,
    "AWS::Logs::LogGroup": 512,
    "AWS::Serverless::Api": 1_024,
    "AWS::SES::ConfigurationSet": 64,
}


def names_after_the_stack(node: Any, key: str = "") -> Iterator[str]:
    """Yields each name in a resource's properties that contains the stack's, if that has 64 letters."""
    match node:
        case {"Ref": "AWS::StackName"} if key.endswith("Name"):
            yield "s" * 64
        case {"Fn::Sub": str(text)} if key.endswith("Name") and "${AWS::StackName}" in text:
            yield text.replace("${AWS::StackName}", "s" * 64)
        case dict():
            for name, value in node.items():
                yield from names_after_the_stack(value, name)
        case list():
            for value in node:
                yield from names_after_the_stack(value, key)


class TestNames:
    def test_names_after_the_stack_have_room_for_64_letters(self):
        found = {
            (entry["Type"], name)
            for entry in load_template()["Resources"].values()
            for name in names_after_the_stack(entry.get("Properties", {}))
        }
        assert {kind for kind, _ in found} == NAMED_AFTER_THE_STACK.keys()
        assert [(kind, name) for kind, name in found if len(name) > NAMED_AFTER_THE_STACK[kind]] == []


class TestTable:
    def test_the_table_deletes_expired_items(self):
        properties = resources("AWS::DynamoDB::Table")["Table"]["Properties"]
        assert properties["TimeToLiveSpecification"] == {"AttributeName": "expiresAt", "Enabled": True}


class TestBackups:
    """Copies of the table outside of the account."""

    NAMES = ("BackupVault", "BackupRole", "BackupPlan", "BackupSelection")

    @each("name", NAMES)
    def test_backup_resources_exist_only_if_copies_are_requested(self, name: str):
        assert load_template()["Resources"][name]["Condition"] == "CopiesBackups"
        assert parameter("BackupCopyVaultArn")["Default"] == ""

    def test_a_daily_backup_is_copied_and_both_expire(self):
        (rule,) = resources("AWS::Backup::BackupPlan")["BackupPlan"]["Properties"]["BackupPlan"]["BackupPlanRule"]
        (copied,) = rule["CopyActions"]
        assert copied["DestinationBackupVaultArn"] == {"Ref": "BackupCopyVaultArn"}
        assert rule["Lifecycle"] == copied["Lifecycle"] == {"DeleteAfterDays": {"Ref": "BackupRetentionDays"}}
        assert re.fullmatch(r"cron\(0 \d+ \* \* \? \*\)", rule["ScheduleExpression"])

    def test_the_table_in_use_is_backed_up(self):
        selection = resources("AWS::Backup::BackupSelection")["BackupSelection"]["Properties"]["BackupSelection"]
        (table,) = selection["Resources"]
        assert table["Fn::If"][0] == "AdoptsTable"
        assert table["Fn::If"][2] == {"Fn::GetAtt": ["Table", "Arn"]}

    def test_copies_require_a_key_that_another_account_can_use(self):
        vault = resources("AWS::Backup::BackupVault")["BackupVault"]
        assert vault["Properties"]["EncryptionKeyArn"] == {"Ref": "KmsKeyArn"}
        assert vault["DeletionPolicy"] == vault["UpdateReplacePolicy"] == "Retain"
        (rule,) = load_template()["Rules"]["BackupCopiesNeedAKey"]["Assertions"]
        assert rule["Assert"] == {"Fn::Not": [{"Fn::Equals": [{"Ref": "KmsKeyArn"}, ""]}]}


class TestConcurrency:
    def test_concurrency_can_be_reserved_and_isnt_by_default(self):
        reserved = {"Fn::If": ["ReservesConcurrency", {"Ref": "ReservedConcurrency"}, {"Ref": "AWS::NoValue"}]}
        assert globals_()["ReservedConcurrentExecutions"] == reserved
        assert parameter("ReservedConcurrency")["Default"] == "0"

    @each("name", resources("AWS::Lambda::EventSourceMapping"))
    def test_a_queues_concurrency_is_its_workers_reservation(self, name: str):
        """With less, Lambda would pass a worker more messages than it can process, which would dead-letter them."""
        mapping = resources("AWS::Lambda::EventSourceMapping")[name]["Properties"]
        concurrency = mapping["ScalingConfig"]["MaximumConcurrency"]
        worker = FUNCTIONS[mapping["FunctionName"]["Ref"].removesuffix(".Alias")]["Properties"]
        reserved = {"Fn::If": ["ReservesConcurrency", concurrency, {"Ref": "AWS::NoValue"}]}
        assert worker["ReservedConcurrentExecutions"] == reserved
        declared = parameter(concurrency["Ref"])
        assert (declared["MinValue"], declared["MaxValue"]) == (2, 1_000)  # AWS's

    def test_the_defaults_leave_executions_of_a_new_account_for_the_api(self):
        template = load_template()
        assert template["Conditions"]["HasGithubApp"] == {"Fn::Not": [{"Fn::Equals": [{"Ref": "GithubAppId"}, ""]}]}
        assert parameter("GithubAppId")["Default"] == ""
        assert parameter("AccountConcurrency")["Default"] == parameter("AccountConcurrency")["MinValue"] == 10
        mappings = [it["Properties"] for it in resources("AWS::Lambda::EventSourceMapping").values()]
        optional = [{"Fn::If": [condition, True, False]} for condition in ("HasGithubApp", "SendsEmail")]
        enabled = [it for it in mappings if it.get("Enabled") not in optional]
        sweep = 1
        busy = sweep + sum(parameter(it["ScalingConfig"]["MaximumConcurrency"]["Ref"])["Default"] for it in enabled)
        assert busy <= 10 / 2

    def test_queues_that_work_without_the_github_app_and_a_sender_are_always_read(self):
        mappings = resources("AWS::Lambda::EventSourceMapping")
        sources = {name for name, it in mappings.items() if "Enabled" not in it["Properties"]}
        assert sources == {"FindingIntakeMessages", "NotificationsMessages"}


class TestSkips:
    """Scanner findings to suppress, by resource, each with its reason."""

    def skips(self) -> list[tuple[str, dict[str, str]]]:
        return [
            (name, skip)
            for name, entry in load_template()["Resources"].items()
            for skip in entry.get("Metadata", {}).get("checkov", {}).get("skip", [])
        ]

    def test_skipped_checks_have_a_reason(self):
        assert self.skips()
        for name, skip in self.skips():
            assert len(skip["comment"].split()) > 5, name

    def test_only_these_checks_are_skipped(self):
        assert {skip["id"] for _, skip in self.skips()} == {
            "CKV_AWS_86",
            "CKV_AWS_111",
            "CKV_AWS_115",
            "CKV_AWS_116",
            "CKV_AWS_117",
            "CKV_AWS_120",
        }

    def test_checks_are_skipped_nowhere_else(self):
        assert "cfn-lint" not in str(load_template().get("Metadata"))
        assert not any("cfn-lint" in entry.get("Metadata", {}) for entry in load_template()["Resources"].values())
        checks = (Path(__file__).parents[2] / "scripts/check_template.py").read_text()
        assert "--skip-check" not in checks
        assert "--ignore" not in checks
