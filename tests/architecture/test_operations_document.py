"""Every command in docs/operations.md exists with the options shown, and every alarm is described."""

import json
import re
import shlex
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import typer
from botocore import xform_name
from botocore.session import Session
from botocore.validate import ParamValidator

from controlplane.core import tokens
from controlplane.http.owner_limits import limit_of_plan
from local.template import load_template
from ops.cli import app
from tests.support.each import each
from tests.support.template import functions

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "operations.md").read_text()
BLOCKS = re.findall(r"^ *```sh\n(.*?)^ *```$", TEXT, re.MULTILINE | re.DOTALL)
LINES = [line.strip() for block in BLOCKS for line in block.splitlines()]
TEMPLATE = load_template()
RESOURCES, PARAMETERS = TEMPLATE["Resources"], TEMPLATE["Parameters"]

AWS = re.compile(r"\baws ([a-z][a-z0-9-]+) ([a-z-]+)((?:\"[^\"]*\"|'[^']*'|[^;|)])*)")
OPTION = re.compile(r"(?<=\s)--([a-z][a-z0-9-]*)")
QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
GLOBAL_OPTIONS = {"query", "output", "region"}


@cache
def client(service: str):
    return Session().create_client(service, region_name="eu-central-1")


def aws_commands() -> list[tuple[str, str, tuple[str, ...]]]:
    return sorted(
        {
            (service, operation, tuple(sorted(set(OPTION.findall(QUOTED.sub("", rest))))))
            for line in LINES
            for service, operation, rest in AWS.findall(line)
        }
    )


def operation_model(service: str, operation: str) -> Any:
    model = client(service).meta.service_model
    (name,) = [it for it in model.operation_names if xform_name(it, "-") == operation]
    return model.operation_model(name)


def aws_values() -> list[tuple[str, str, dict[str, list[str]]]]:
    """Returns the values of each command's options, by option."""
    found = []
    for line in LINES:
        for service, operation, rest in AWS.findall(line):
            values: dict[str, list[str]] = {}
            name = None
            for word in shlex.split(rest, comments=True):
                if word.startswith("--"):
                    name = word[2:]
                    values[name] = []
                elif name:
                    values[name].append(word)
            found.append((service, operation, {name: it for name, it in values.items() if it}))
    return found


def parsed(texts: list[str], shape: Any) -> Any:
    """Returns an option's value as the AWS CLI reads it: JSON, its shorthand syntax, or a list of words."""
    text = texts[0]
    if text.startswith(("{", "[")):
        return json.loads(text)
    match shape.type_name:
        case "structure":
            pairs = (pair.partition("=") for pair in text.split(","))
            return {name: parsed([value], shape.members[name]) for name, _, value in pairs}
        case "map":
            pairs = (pair.partition("=") for pair in text.split(","))
            return {name: parsed([value], shape.value) for name, _, value in pairs}
        case "list":
            return [parsed([text], shape.member) for text in texts]
        case "integer" | "long":
            return int(text)
        case "boolean":
            return {"true": True, "false": False}[text]
    return text


class TestAws:
    @each(("service", "operation", "options"), aws_commands())
    def test_aws_commands_use_existing_operations_and_options(
        self, service: str, operation: str, options: tuple[str, ...]
    ):
        shape = operation_model(service, operation).input_shape
        members = {xform_name(member, "-"): member for member in shape.members}
        given = set(options) - GLOBAL_OPTIONS
        flags = {f"no-{it}" for it, member in members.items() if shape.members[member].type_name == "boolean"}
        assert given <= members.keys() | flags
        assert {xform_name(member, "-") for member in shape.required_members} <= given

    def test_no_command_waits_with_a_time_limit(self):
        waiting = re.compile(r"\baws [a-z0-9-]+ wait [a-z]")
        texts = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "Makefile"]
        assert not [path.name for path in texts if waiting.search(path.read_text(encoding="utf-8"))]

    def test_the_limit_of_a_waiter_that_the_guide_warns_of_is_the_clis(self):
        """The CLI's waiters are botocore's. A restore takes hours."""
        ((service, seconds),) = re.findall(r"`aws ([a-z]+) wait`, which gives up after (\d+) seconds", TEXT)
        configurations = [client(service).get_waiter(name).config for name in ("table_exists", "table_not_exists")]
        assert {it.delay * it.max_attempts for it in configurations} == {int(seconds)}

    def test_a_deployment_waits_for_the_slowest_style_after_the_longest_check(self):
        """Linear styles shift ten times. CodeDeploy waits an hour for a check that doesn't report."""
        styles = " ".join(PARAMETERS["DeploymentStyle"]["AllowedValues"])
        slowest = 10 * max(map(int, re.findall(r"Linear10PercentEvery(\d+)Minute", styles)))
        assert slowest == 100
        settings = tomllib.loads((ROOT / "samconfig.toml").read_text())["default"]["deploy"]["parameters"]
        assert settings["max_wait_duration"] >= slowest + 60
        (session,) = re.findall(r"--max-session-duration (\d+)", TEXT)
        assert int(session) == settings["max_wait_duration"] * 60

    @each(("service", "operation", "values"), aws_values())
    def test_aws_commands_have_values_that_aws_accepts(
        self, service: str, operation: str, values: dict[str, list[str]]
    ):
        shape = operation_model(service, operation).input_shape
        members = {xform_name(member, "-"): member for member in shape.members}
        given = {
            members[name]: parsed(texts, shape.members[members[name]])
            for name, texts in values.items()
            if name in members and not any("$(" in text or text.startswith(("file://", "$")) for text in texts)
        }
        report = ParamValidator().validate(given, shape)
        # Required members may be left out here, because their value is a shell expression. The test above checks them.
        problems = [kind for kind, *_ in report._errors if kind != "missing required field"]
        assert not problems, report.generate_report()
        for name, value in given.items():
            assert value in (getattr(shape.members[name], "enum", None) or [value])


class TestWebAcl:
    """The web ACL rules that docs/operations.md recommends."""

    RULES, *_ = map(json.loads, re.findall(r"^```json\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL))

    def test_the_web_acls_rules_are_valid(self):
        shape = client("wafv2").meta.service_model.operation_model("CreateWebACL").input_shape.members["Rules"]
        report = ParamValidator().validate(self.RULES, shape)
        assert not report.has_errors(), report.generate_report()

    def test_the_web_acls_rules_allow_well_formed_credentials(self):
        scope = self.RULES[0]["Statement"]["RateBasedStatement"]["ScopeDownStatement"]
        (negated,) = [it["NotStatement"] for it in scope["AndStatement"]["Statements"] if "NotStatement" in it]
        pattern = negated["Statement"]["RegexMatchStatement"]["RegexString"]
        for kind in ("", tokens.ACCESS, tokens.SESSION):
            assert re.search(pattern, f"Bearer {tokens.mint('assent' + kind)}".lower())
        for header in ("Bearer x", "Basic eDp5", f"Bearer {tokens.mint('assent')[:-1]}"):
            assert not re.search(pattern, header.lower())

    def test_the_web_acls_rules_allow_what_an_organizations_keys_may_send(self):
        limit = self.RULES[1]["Statement"]["RateBasedStatement"]["Limit"]
        assert limit == limit_of_plan("pro")
        assert f"{limit_of_plan('enterprise'):,} for Enterprise" in TEXT


# Types of resources that the key encrypts for roles of the account only: by their policies, or by grants.
FOR_ROLES = {
    *("AWS::Backup::BackupVault", "AWS::DynamoDB::Table", "AWS::IAM::ManagedPolicy"),
    *("AWS::SecretsManager::Secret", "AWS::Serverless::Function"),
}


def users_of_the_key() -> set[str]:
    """Returns the services that the template lets write to what the key encrypts."""
    policies = [
        it["Properties"]["PolicyDocument"] for it in RESOURCES.values() if it["Type"] == "AWS::SQS::QueuePolicy"
    ]
    writers = {
        "AWS::Logs::LogGroup": {"logs.eu-central-1.amazonaws.com"},
        "AWS::SNS::Topic": {"cloudwatch.amazonaws.com"},  # for alarms
        "AWS::SQS::Queue": {it["Service"] for policy in policies for it in principals(policy) if "Service" in it},
    }
    encrypted = {it["Type"] for it in RESOURCES.values() if "'KmsKeyArn'}" in str(it.get("Properties"))}
    return set().union(*(writers[kind] for kind in encrypted - FOR_ROLES))


def principals(node: Any) -> list[dict[str, str]]:
    """Returns the principals of all statements, also of conditional ones."""
    if isinstance(node, dict):
        own = [node["Principal"]] if isinstance(node.get("Principal"), dict) else []
        return own + [found for value in node.values() for found in principals(value)]
    return [found for value in node for found in principals(value)] if isinstance(node, list) else []


class TestKeyPolicy:
    """The policy of the operator's own key that docs/operations.md recommends."""

    (STATEMENTS,) = (
        document["Statement"]
        for document in map(json.loads, re.findall(r"^```json\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL))
        if "kms:" in str(document)
    )

    def test_the_key_policy_allows_every_service_that_writes_to_what_the_key_encrypts(self):
        allowed = {it["Principal"]["Service"] for it in self.STATEMENTS if "Service" in it["Principal"]}
        assert allowed == users_of_the_key()
        assert {"events.amazonaws.com", "cloudwatch.amazonaws.com"} < allowed

    def test_the_key_policy_allows_what_encrypting_for_a_queue_topic_or_log_group_takes(self):
        for statement in self.STATEMENTS[1:]:
            actions = [action.removesuffix("*") for action in statement["Action"]]
            assert {"kms:Decrypt", "kms:GenerateDataKey"} <= {*actions}
            assert (statement["Effect"], statement["Resource"]) == ("Allow", "*")

    def test_the_key_policy_lets_the_policies_of_the_accounts_roles_decide(self):
        account = self.STATEMENTS[0]
        assert (account["Principal"], account["Action"]) == ({"AWS": "arn:aws:iam::123456789012:root"}, "kms:*")

    def test_the_key_policy_has_each_statement_explained(self):
        table = TEXT.partition("### A key of your own")[2].partition("### ")[0]
        assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == [it["Sid"] for it in self.STATEMENTS]


class TestStackPolicy:
    def test_the_stack_policy_protects_every_retained_resource_with_data(self):
        allow, deny = json.loads((ROOT / "stack-policy.json").read_text())["Statement"]
        assert (allow["Effect"], allow["Action"], allow["Resource"]) == ("Allow", "Update:*", "*")
        assert (deny["Effect"], deny["Action"]) == ("Deny", ["Update:Replace", "Update:Delete"])
        kept = {name for name, it in RESOURCES.items() if it.get("DeletionPolicy") == "Retain"}
        assert {*deny["Resource"]} == {f"LogicalResourceId/{name}" for name in kept if not name.startswith("Gateway")}


class TestStack:
    def test_the_stack_has_every_resource_that_is_looked_up(self):
        named = set(re.findall(r"\$\(resource ([A-Z]\w+)\)|arn ([A-Z]\w+)", TEXT))
        wanted = {one or other for one, other in named} | set(re.findall(r"for mapping in ([^;]+);", TEXT)[0].split())
        # SAM names the resource of a function's event after the function and the event.
        made = {f"{name}{event}" for name, it in RESOURCES.items() for event in it["Properties"].get("Events", {})}
        assert wanted <= RESOURCES.keys() | made

    def test_the_stack_has_every_output_that_is_read(self):
        assert set(re.findall(r"\boutput ([A-Z]\w+)", "\n".join(LINES))) <= TEMPLATE["Outputs"].keys()

    @each(
        ("name", "value"),
        sorted({pair for line in LINES if line.startswith("deploy ") for pair in re.findall(r"(\w+)=(\S+)", line)}),
    )
    def test_the_stack_accepts_every_parameter_value(self, name: str, value: str):
        parameter = PARAMETERS[name]
        assert re.fullmatch(parameter.get("AllowedPattern", ".*"), value)
        assert value in parameter.get("AllowedValues", [value])

    def test_the_stack_has_no_undocumented_parameter(self):
        table = TEXT.partition("### Parameters")[2].partition("### ")[0]
        assert set(re.findall(r"`([A-Z]\w+)`", re.sub(r" \|[^|]*\|$", "", table, flags=re.MULTILINE))) == set(
            PARAMETERS
        )

    def test_the_stack_has_no_undocumented_alarm(self):
        table = TEXT.partition("### Alarms")[2].partition("### ")[0]
        known = re.findall(r"^\| `([*\w]+)` \|", table, re.MULTILINE)
        alarms = {name for name, it in RESOURCES.items() if it["Type"] == "AWS::CloudWatch::Alarm"}
        explained = {name for name in alarms for it in known if re.fullmatch(it.replace("*", r"\w+"), name)}
        assert alarms == explained
        assert all(any(re.fullmatch(it.replace("*", r"\w+"), name) for name in alarms) for it in known)


def ops_lines() -> list[str]:
    return sorted({found for line in LINES for found in re.findall(r"scripts/assent-ops ([^|;)>]+)", line)})


@cache
def ops_commands() -> Any:
    """Returns the commands of the ops command line, which take a while to build."""
    return typer.main.get_command(app)


class TestOps:
    @each("line", ops_lines())
    def test_the_ops_command_line_accepts_every_command(self, line: str):
        noun, verb, *words = line.split()
        # Raises if an option is unknown, or if an argument is missing or extra.
        ops_commands().commands[noun].commands[verb].make_context(verb, words)

    def test_the_ops_command_line_has_every_named_command(self):
        group = ops_commands()
        for line in re.findall(r"`assent-ops ([a-z-]+ [a-z-]+)", TEXT):
            noun, verb = line.split()
            assert verb in group.commands[noun].commands


class TestRelease:
    """SAM publishes no version if only a parameter's value has changed, so each deployment has a release name."""

    def test_the_release_is_part_of_every_function_and_version(self):
        deployed = [it["Properties"] for it in functions().values()]
        # The environment has the name too: Lambda publishes no new version of an unchanged function.
        assert TEMPLATE["Globals"]["Function"]["Environment"]["Variables"]["RELEASE"] == {"Ref": "Release"}
        assert [it["VersionDescription"] for it in deployed] == [{"Ref": "Release"}] * len(deployed)

    def test_the_release_gets_a_new_name_by_make_and_by_the_document(self):
        assert "--parameter-overrides Release=$$(date" in (ROOT / "Makefile").read_text()
        (shorthand,) = [line for line in LINES if line.startswith("deploy()")]
        assert '"Release=$(date' in shorthand


class TestMake:
    def test_make_has_every_named_target(self):
        targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
        assert set(re.findall(r"\bmake ([a-z0-9-]+)", "\n".join(LINES))) <= targets
        assert set(re.findall(r"`(?:[A-Z]+=\S+ )?make ([a-z0-9-]+)`", TEXT)) <= targets


class TestLinks:
    def test_links_lead_somewhere(self):
        headings = {
            re.sub(r"[^a-z0-9 -]", "", line.lower()).replace(" ", "-")
            for line in re.findall(r"^#+ (.+)$", TEXT, re.MULTILINE)
        }
        assert set(re.findall(r"\]\(#([a-z0-9-]+)\)", TEXT)) <= headings
        for path in re.findall(r"\]\((?!https?:|#)([^)#]+)", TEXT):
            assert (ROOT / "docs" / path).exists(), path
