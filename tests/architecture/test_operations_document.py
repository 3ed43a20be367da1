"""The commands, parameters, and policies in the operators' documents work, and every alarm is described there."""

import json
import re
from pathlib import Path
from typing import Any

import typer

from controlplane.access.authentication import limit_of_plan
from controlplane.platform.core import tokens
from local.template import load_template
from ops.cli import app
from ops.program import read_options
from tests.support.each import each
from tests.support.template import every_resource

ROOT = Path(__file__).resolve().parents[2]
TEXT = "\n".join(path.read_text() for path in sorted(ROOT.glob("docs/operations/*.md")))
BLOCKS = re.findall(r"^ *```sh\n(.*?)^ *```$", TEXT, re.MULTILINE | re.DOTALL)
LINES = [line.strip() for block in BLOCKS for line in block.splitlines()]
POLICIES = [json.loads(it) for it in re.findall(r"^```json\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)]
TEMPLATE = load_template()
RESOURCES, PARAMETERS = every_resource(), TEMPLATE["Parameters"]
MAPPING = "AWS::Lambda::EventSourceMapping"


def table_below(heading: str) -> str:
    return TEXT.partition(f"{heading}\n")[2].partition("\n#")[0]


class TestCommands:
    @each("line", sorted({found for line in LINES for found in re.findall(r"scripts/assent-ops ([^|;)>]+)", line)}))
    def test_assent_ops_accepts_every_command(self, line: str):
        groups: Any = typer.main.get_command(app)
        _, _, (noun, verb, *words) = read_options(line.split())
        # Raises if an option is unknown, or if an argument is missing or extra.
        groups.commands[noun].commands[verb].make_context(verb, words)

    def test_the_stack_has_every_resource_and_output_that_is_looked_up(self):
        named = set(re.findall(r"\$\(resource ([A-Z]\w+)\)|arn ([A-Z]\w+)", TEXT))
        wanted = {one or other for one, other in named}
        # SAM names the resource of a function's event after the function and the event.
        made = {
            f"{name}{event}" for name, it in RESOURCES.items() for event in it.get("Properties", {}).get("Events", {})
        }
        assert wanted <= RESOURCES.keys() | made
        assert set(re.findall(r"\boutput ([A-Z]\w+)", "\n".join(LINES))) <= TEMPLATE["Outputs"].keys()

    def test_every_worker_can_be_stopped(self):
        (mappings,) = re.findall(r"for mapping in ([^;]+);", TEXT)
        assert {*mappings.split()} == {name for name, it in RESOURCES.items() if it["Type"] == MAPPING}

    def test_the_stack_accepts_every_parameter_value(self):
        given = {it for line in LINES if line.startswith("deploy ") for it in re.findall(r"(\w+)=(\S+)", line)}
        assert len(given) > 10
        for name, text in given:
            value = text.strip('"')
            assert re.fullmatch(PARAMETERS[name].get("AllowedPattern", ".*"), value), name
            assert value in PARAMETERS[name].get("AllowedValues", [value])


class TestTables:
    def test_every_parameter_is_documented(self):
        names = re.sub(r" \|[^|]*\|$", "", table_below("# Parameters"), flags=re.MULTILINE)
        assert set(re.findall(r"`([A-Z]\w+)`", names)) == set(PARAMETERS)

    def test_every_alarm_is_documented(self):
        known = [
            it.replace("*", r"\w+") for it in re.findall(r"^\| `([*\w]+)` \|", table_below("# Alarms"), re.MULTILINE)
        ]
        alarms = {name for name, it in RESOURCES.items() if it["Type"] == "AWS::CloudWatch::Alarm"}
        assert alarms == {name for name in alarms for it in known if re.fullmatch(it, name)}
        assert all(any(re.fullmatch(it, name) for name in alarms) for it in known)


class TestPolicies:
    def test_the_web_acl_admits_well_formed_credentials_and_what_an_organizations_keys_may_send(self):
        (rules,) = [it for it in POLICIES if "RateBasedStatement" in str(it)]
        pattern, path = re.findall(r"'RegexString': '(.*?)'", str(rules))
        assert path == "/v1/consent-instances/"
        pattern = pattern.replace("\\\\", "\\")
        for kind in ("", tokens.ACCESS, tokens.SESSION):
            assert re.search(pattern, f"Bearer {tokens.mint('assent' + kind)}".lower())
        for header in ("Bearer x", "Basic eDp5", f"Bearer {tokens.mint('assent')[:-1]}"):
            assert not re.search(pattern, header.lower())
        assert rules[1]["Statement"]["RateBasedStatement"]["Limit"] == limit_of_plan("pro")

    def test_the_key_policy_allows_every_service_that_writes_to_encrypted_queues_topics_and_logs(self):
        (account, *others) = next(it["Statement"] for it in POLICIES if "kms:" in str(it))
        assert (account["Principal"], account["Action"]) == ({"AWS": "arn:aws:iam::123456789012:root"}, "kms:*")
        senders = set(
            re.findall(r"'Service': '(.*?)'", str([it for it in RESOURCES.values() if "QueuePolicy" in it["Type"]]))
        )
        allowed = {it["Principal"]["Service"] for it in others if "Service" in it["Principal"]}
        assert allowed == senders | {"cloudwatch.amazonaws.com", "logs.eu-central-1.amazonaws.com"}
        for statement in others:
            assert {"kms:Decrypt", "kms:GenerateDataKey"} <= {
                action.removesuffix("*") for action in statement["Action"]
            }
