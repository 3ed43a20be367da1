"""The check of a deployment: it covers every function, with requests that exist, and may do nothing else."""

import json
import re
from typing import Any

from deployment_check import hook
from local.template import load_template
from tests.support.each import each
from tests.support.template import DEPLOYMENT_CHECK, Route, api_functions, functions, gateway_route, routes_by_group

RESOURCES = load_template()["Resources"]
CHECK = RESOURCES[DEPLOYMENT_CHECK]["Properties"]
CHECKS: dict[str, Any] = json.loads(CHECK["Environment"]["Variables"]["CHECKS"])


def allowed(role: str) -> dict[str, Any]:
    """Returns the target of each action that a role's own policy allows."""
    (policy,) = RESOURCES[role]["Properties"]["Policies"]
    statements = policy["PolicyDocument"]["Statement"]
    return {action: it["Resource"] for it in statements for action in it["Action"]}


class TestFunction:
    def test_every_deployment_but_an_unchecked_one_runs_it(self):
        preference = load_template()["Globals"]["Function"]["DeploymentPreference"]
        none = {"Ref": "AWS::NoValue"}
        assert preference["Hooks"] == {"PreTraffic": {"Fn::If": ["IsChecked", {"Ref": DEPLOYMENT_CHECK}, none]}}
        assert preference["Role"] == {"Fn::If": ["IsChecked", {"Fn::GetAtt": ["DeploymentRole", "Arn"]}, none]}
        own = {name for name, it in RESOURCES.items() if it.get("Condition") == "IsChecked"}
        assert own == {
            DEPLOYMENT_CHECK,
            f"{DEPLOYMENT_CHECK}Role",
            "DeploymentCheckInvocations",
            "DeploymentCheckLogGroup",
            "DeploymentRole",
            "ServerlessDeploymentApplication",
        }

    def test_it_has_neither_the_layers_nor_the_settings_that_it_checks(self):
        assert RESOURCES[DEPLOYMENT_CHECK]["IgnoreGlobals"] == "*"
        assert "Layers" not in CHECK
        assert set(CHECK["Environment"]["Variables"]) == {"CHECKS", "FRONT_DOOR_SECRET", "RELEASE"}

    def test_it_is_built_and_logs_like_every_function(self):
        assert CHECK["CodeUri"] == "functions/deployment_check"
        assert CHECK["Handler"] == f"{hook.__name__}.handler"
        assert RESOURCES[DEPLOYMENT_CHECK]["Metadata"]["BuildMethod"] == "python3.13"
        assert CHECK["LoggingConfig"] == {"LogGroup": {"Ref": "DeploymentCheckLogGroup"}}
        name = {"Fn::Sub": "/aws/lambda/${AWS::StackName}-deployment-check"}
        assert RESOURCES["DeploymentCheckLogGroup"]["Properties"]["LogGroupName"] == name

    def test_it_depends_on_no_function_because_their_aliases_depend_on_it(self):
        text = json.dumps(
            [RESOURCES[DEPLOYMENT_CHECK], RESOURCES[f"{DEPLOYMENT_CHECK}Role"], RESOURCES["DeploymentRole"]]
        )
        named = {*re.findall(r'"(?:Ref|Fn::GetAtt)": \[?"(\w+)"', text), *re.findall(r"\$\{(\w+)", text)}
        assert named.isdisjoint(functions())
        assert named >= {"DeploymentCheckLogGroup", "ServerlessDeploymentApplication"}

    def test_its_variables_fit(self):
        # Lambda's limit for all of a function's variables is 4 KB.
        assert len(CHECK["Environment"]["Variables"]["CHECKS"]) < 3_000


class TestChecks:
    def test_they_cover_every_function(self):
        assert CHECKS.keys() == functions().keys()

    @each("name", api_functions())
    def test_a_request_is_one_of_the_functions_own_routes(self, name: str):
        method, path, status = CHECKS[name].split()
        group = functions()[name]["Properties"]["CodeUri"].removeprefix("functions/")
        assert gateway_route(routes_by_group()[group], Route(method, path)).path == path
        assert "{" not in path
        assert status in {"200", "401"}

    @each("name", functions().keys() - api_functions().keys())
    def test_a_worker_gets_no_message(self, name: str):
        assert CHECKS[name] == {"Records": []}


class TestPermissions:
    def test_it_may_invoke_versions_of_every_function_and_nothing_else(self):
        policy = RESOURCES["DeploymentCheckInvocations"]["Properties"]
        assert policy["Roles"] == [{"Ref": f"{DEPLOYMENT_CHECK}Role"}]
        (statement,) = policy["PolicyDocument"]["Statement"]
        assert statement["Action"] == ["lambda:InvokeFunction", "lambda:ListTags"]
        assert statement["Resource"] == [{"Fn::Sub": f"${{{name}.Arn}}*"} for name in functions()]

    def test_it_may_read_and_answer_the_stacks_deployments(self):
        found = {action: target for action, target in allowed(f"{DEPLOYMENT_CHECK}Role").items() if "deploy" in action}
        place = "arn:${AWS::Partition}:codedeploy:${AWS::Region}:${AWS::AccountId}"
        group = {"Fn::Sub": f"{place}:deploymentgroup:${{ServerlessDeploymentApplication}}/*"}
        assert found == {
            "codedeploy:GetApplicationRevision": {
                "Fn::Sub": f"{place}:application:${{ServerlessDeploymentApplication}}"
            },
            "codedeploy:GetDeployment": group,
            "codedeploy:PutLifecycleEventHookExecutionStatus": group,
        }

    def test_it_may_do_nothing_more_than_log_and_trace(self):
        others = {action for action in allowed(f"{DEPLOYMENT_CHECK}Role") if not action.startswith("codedeploy:")}
        traces = {"xray:PutTelemetryRecords", "xray:PutTraceSegments"}
        assert others == {"logs:CreateLogStream", "logs:PutLogEvents"} | traces
        assert "ManagedPolicyArns" not in RESOURCES[f"{DEPLOYMENT_CHECK}Role"]["Properties"]

    def test_codedeploy_may_invoke_it(self):
        assert allowed("DeploymentRole") == {"lambda:InvokeFunction": {"Fn::GetAtt": [DEPLOYMENT_CHECK, "Arn"]}}
