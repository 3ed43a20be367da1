"""Checks the transformed templates with cfn-lint, checkov, parliament, and cdk-nag, measures what AWS limits, and
compares it with the last release's: `make template`. Nothing is downloaded.

The template is transformed as CloudFormation and SAM do it, for each variant of its parameters, with every condition
decided, and with the resources of its nested stacks. checkov takes any `Fn::If` for a value, and the others would check
what is never deployed. A template with deliberate mistakes is checked too, to prove that each tool looks. Runs in SAM's
environment.
"""

import copy
import json
import logging
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse

from local.expansion import expanded
from local.template import NESTED, TEMPLATE
from scripts.accepted_findings import ACCEPTED, ANNOUNCED
from scripts.conditions import resolve
from scripts.limits import Measured, excesses, measure, of_template
from scripts.nested_stacks import inlined
from scripts.releases import last_release
from scripts.upgrade_gate import problems

ROOT = Path(__file__).resolve().parents[1]
LINTER = ROOT / ".tools/sam/bin/cfn-lint"
SCANNER = ROOT / ".tools/checkov/bin/checkov"
POLICY_CHECKER = ROOT / ".tools/parliament/bin/python"
NAG = ROOT / ".tools/nag/node_modules/cdk-nag"

_KEY = "arn:aws:kms:eu-central-1:123456789012:key/0123"
VARIANTS: dict[str, dict[str, str]] = {
    "defaults": {},
    "everything": {
        "AlarmEmail": "ops@example.com",
        "BackupCopyVaultArn": "arn:aws:backup:eu-west-1:210987654321:backup-vault:assent",
        "CustomDomain": "api.example.com",
        "DashboardBaseUrl": "https://app.example.com",
        "DeploymentStyle": "Canary10Percent5Minutes",
        "EmailSender": "no-reply@example.com",
        "FindingIntakeSenderArn": "arn:aws:iam::210987654321:role/consent-runtime",
        "FrontDoorCertificateArn": "arn:aws:acm:us-east-1:123456789012:certificate/0123",
        "FrontDoorOnly": "true",
        "FrontDoorWebAclArn": "arn:aws:wafv2:us-east-1:123456789012:global/webacl/assent/0123",
        "GithubAppId": "123456",
        "KmsKeyArn": _KEY,
        "MultiFactorSignIn": "required",
        "ReservedConcurrency": "50",
        "SelfSignUp": "false",
        "SignInCss": ".banner-customizable {background-color: #ffffff;}",
        "SignInDomainPrefix": "example-sign-in",
        "SignInEmailIdentityArn": "arn:aws:ses:eu-central-1:123456789012:identity/example.com",
        "SnapStart": "PublishedVersions",
        "TableName": "assent-restored",
        "ThrottlingRate": "100",
        "TracedShare": "0.005",
        "WarmWriteUnits": "10000",
        "WebAclArn": "arn:aws:wafv2:eu-central-1:123456789012:regional/webacl/assent/0123",
    },
    "elsewhere": {
        "AlarmTopicArn": "arn:aws:sns:eu-central-1:123456789012:alarms",
        "CertificateArn": "arn:aws:acm:eu-central-1:123456789012:certificate/0123",
        "CustomDomain": "api.example.com",
        "DeletionProtection": "false",
        "GatewayLogRoleArn": "arn:aws:iam::123456789012:role/gateway-logs",
        "SignInClientId": "assent",
        "SignInIssuer": "https://login.example.com",
    },
}
# Each tool must find its mistake here: an unknown property, a queue without encryption or a policy that requires TLS,
# and an unknown action.
WRONG_TWIN = {
    "AWSTemplateFormatVersion": "2010-09-09",
    "Parameters": {},
    "Resources": {
        "Queue": {"Type": "AWS::SQS::Queue", "Properties": {"SqsManagedSseEnabled": False, "Size": 1}},
        "Policy": {
            "Type": "AWS::IAM::ManagedPolicy",
            "Properties": {
                "PolicyDocument": {
                    "Version": "2012-10-17",
                    "Statement": [{"Effect": "Allow", "Action": "sqs:Sing", "Resource": "*"}],
                }
            },
        },
    },
}
TWIN = "twin"

# A tool's finding: the template's name, the rule, and the details.
type Found = tuple[str, str, str]


class Findings(Exception):
    """The findings to fix; the message lists them."""


class _NoManagedPolicies:
    """The template names AWS's policies by their ARN, so SAM has none to look up."""

    def load(self) -> dict[str, str]:
        return {}


@cache
def _without_loops(path: Path) -> dict[str, Any]:
    return expanded(_unshared(path))


def _unshared(path: Path) -> Any:
    """Returns the template's data without anchors, as `sam deploy` sends it."""
    return json.loads(json.dumps(yaml_parse(path.read_text(encoding="utf-8"))))


def transformed(parameters: dict[str, str], folder: Path = ROOT) -> dict[str, Any]:
    """Returns the template that CloudFormation deploys with these parameters. The artifacts' locations are made up."""
    template = copy.deepcopy(_without_loops(folder / TEMPLATE.name))
    for resource in template["Resources"].values():
        for place in {"CodeUri", "ContentUri", "Location"} & resource.get("Properties", {}).keys():
            resource["Properties"][place] = "s3://artifacts/artifact"
    return dict(transform(template, parameters, _NoManagedPolicies(), passthrough_metadata=True))


def decided(parameters: dict[str, str], folder: Path = ROOT) -> dict[str, Any]:
    """Returns the same with nested stacks and every condition decided. Ignores parameters that it doesn't have."""
    template = transformed(parameters, folder)
    return with_nested(
        resolve(template, {it: parameters[it] for it in parameters.keys() & template["Parameters"]}), folder
    )


def with_nested(template: dict[str, Any], folder: Path = ROOT) -> dict[str, Any]:
    """Returns a decided template with the resources of its nested stacks."""
    for name in NESTED.keys() & template["Resources"].keys():
        template = inlined(template, name, _without_loops(folder / NESTED[name].name))
    return template


def as_sent(path: Path) -> str:
    """Returns a template as `sam deploy` sends it: without anchors, but before the transformation."""
    return yaml.dump(_unshared(path), Dumper=yaml.CSafeDumper)


def referring(template: dict[str, Any]) -> dict[str, Any]:
    """Returns the template without the mappings and parameters that only its conditions used."""
    text = json.dumps(template["Resources"]) + json.dumps(template["Outputs"])
    used = {
        name: it for name, it in template["Parameters"].items() if f'"Ref": "{name}"' in text or f"${{{name}}}" in text
    }
    return {key: value for key, value in template.items() if key not in {"Mappings", "Rules"}} | {"Parameters": used}


def check_upgrade() -> str:
    """Compares the template with the last release's. Returns the two versions. Raises Findings."""
    release = last_release(ROOT)
    if release is None:
        return "not compared, because there is no release before this one, or this clone has no history"
    version, commit = release
    found = problems(commit, lambda folder: [decided(parameters, folder) for parameters in VARIANTS.values()])
    wrong = [f"upgrade from {version}: {problem}" for problem in found if problem not in ANNOUNCED]
    wrong += [f"{problem} is announced and doesn't occur" for problem in ANNOUNCED if problem not in found]
    if wrong:
        raise Findings("\n".join(wrong))
    return f"from {version}, 0 findings, {len(ANNOUNCED)} announced"


def lint(path: Path) -> list[Found]:
    done = _run(LINTER, "--format", "json", path)
    return [
        (Path(it["Filename"]).stem, it["Rule"]["Id"], f"{it['Message']} (line {it['Location']['Start']['LineNumber']})")
        for it in json.loads(done or "[]")
    ]


def scan(files: list[Path]) -> tuple[list[Found], dict[str, int]]:
    """Returns checkov's findings, with skips that have no reason, and the number of checks that each file passed."""
    arguments = [argument for path in files for argument in ("--file", path.name)]
    done = _run(
        SCANNER,
        *arguments,
        *("--framework", "cloudformation", "--output", "json", "--skip-download"),
        cwd=files[0].parent,
        CKV_SKIP_PACKAGE_UPDATE_CHECK="true",
        # checkov replaces references until nothing changes. That takes most of its time, because some refer to each
        # other. These end it when half of a round repeats what an earlier one did. The findings are the same.
        RENDER_EDGES_DUPLICATE_ITER_COUNT="0",
        RENDER_EDGES_DUPLICATE_PERCENT="50",
    )
    results = json.loads(done)["results"]
    found = [(_file(it), it["check_id"], f"{it['check_name']} ({it['resource']})") for it in results["failed_checks"]]
    found += [
        (_file(it), it["check_id"], f"skipped without a reason ({it['resource']})")
        for it in results["skipped_checks"]
        if len(it["check_result"]["suppress_comment"].split()) < 5
    ]
    found += [(Path(name).stem, "parsing", "checkov cannot read it") for name in results["parsing_errors"]]
    return found, {path.stem: sum(_file(it) == path.stem for it in results["passed_checks"]) for path in files}


def _file(result: dict[str, Any]) -> str:
    return Path(result["file_path"]).stem


def check_policies(files: list[Path]) -> list[Found]:
    """Returns parliament's findings."""
    return _found(_run(POLICY_CHECKER, "-m", "scripts.check_policies", *files))


def nag(files: list[Path]) -> list[Found]:
    """Returns the findings of cdk-nag's AwsSolutions rules."""
    return _found(_run("node", "scripts/nag.js", *files))


def _found(text: str) -> list[Found]:
    return [(name, rule, details) for name, rule, details in json.loads(text)]


def _run(program: str | Path, *arguments: str | Path, cwd: Path = ROOT, **environment: str) -> str:
    """Runs the program and returns its output, which is JSON. Raises Findings for any other output."""
    done = subprocess.run(  # noqa: S603 (tools of the project on files of the project)
        [program, *arguments], cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    if done.stdout and done.stdout[0] not in "[{":
        raise Findings(done.stdout + done.stderr)
    if done.stderr and not done.stdout:
        raise Findings(done.stderr)
    return done.stdout


def to_fix(found: list[Found], tools: dict[str, str]) -> list[str]:
    """Returns the findings that aren't accepted, and what else is wrong.

    tools: the tools that ran, with what each must have found in the twin.
    """
    wrong = [f"{name}: {rule} {text}" for name, rule, text in found if name != TWIN and not _accepted(name, rule)]
    seen = {(name, rule) for name, rule, _ in found}
    wrong += [f"{TWIN}: {tool} didn't find {rule}" for tool, rule in tools.items() if (TWIN, rule) not in seen]
    wrong += [
        f"{name}: {rule} is accepted and doesn't occur"
        for rule, accepted in ACCEPTED.items()
        for name in accepted.variants.split()
        if (name, rule) not in seen and ("cdk-nag" in tools or not rule.startswith("AwsSolutions"))
    ]
    return wrong


def _accepted(name: str, rule: str) -> bool:
    return rule in ACCEPTED and name in ACCEPTED[rule].variants.split()


def main() -> int:
    logging.disable()  # SAM's translator warns of a switch that only AWS has
    os.environ.setdefault("AWS_DEFAULT_REGION", "eu-central-1")
    source, wrong, sizes, fullest = as_sent(TEMPLATE), [], {}, dict[str, Measured]()
    nested = [it for path in NESTED.values() for it in of_template(as_sent(path), _without_loops(path))]
    with TemporaryDirectory() as directory:
        files = [Path(directory) / f"{name}.json" for name in (*VARIANTS, TWIN)]
        files[-1].write_text(json.dumps(WRONG_TWIN, indent=1), encoding="utf-8")
        for (name, parameters), path in zip(VARIANTS.items(), files, strict=False):
            whole = transformed(parameters)
            template = resolve(whole, parameters)
            template = with_nested(template)
            measured = [*measure(source, whole, template), *nested]
            wrong += [f"{name}: {excess}" for excess in excesses(measured)]
            fullest[name] = max(measured, key=lambda it: it.share)
            sizes[name] = len(template["Resources"])
            path.write_text(json.dumps(referring(template), indent=1), encoding="utf-8")
        if wrong:
            print("\n".join(wrong), file=sys.stderr)
            return 1
        try:
            passed = check(files)
            upgrade = check_upgrade()
        except Findings as findings:
            print(findings, file=sys.stderr)
            return 1
    for name, most in fullest.items():
        if passed[name] < sizes[name]:
            print(f"{name}: {passed[name]} checks of {sizes[name]} resources are too few to trust", file=sys.stderr)
            return 1
        accepted = sum(_accepted(name, rule) for rule in ACCEPTED)
        print(
            f"template.yaml with {name}: {sizes[name]} resources, {passed[name]} checks passed, {accepted} accepted, "
            f"{most.share:.0%} of a limit used at most ({most.what})"
        )
    print(f"Upgrade: {upgrade}")
    return 0


def check(files: list[Path]) -> dict[str, int]:
    """Runs every tool. Returns the number of checks that each file passed. Raises Findings."""
    tools = {"cfn-lint": "E3002", "checkov": "CKV_AWS_27", "parliament": "UNKNOWN_ACTION"}
    # cfn-lint takes most of the time. It also gets the source, whose conditions it evaluates itself.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        linted = [pool.submit(lint, path) for path in (TEMPLATE, *NESTED.values(), *files)]
        scanned = pool.submit(scan, files)
        others = [pool.submit(check_policies, files)]
        if NAG.exists() and shutil.which("node"):
            tools["cdk-nag"] = "AwsSolutions-SQS4"
            others.append(pool.submit(nag, files))
        else:
            print("npm was not found: cdk-nag is left out.")
    found, passed = scanned.result()
    for it in (*linted, *others):
        found += it.result()
    if wrong := to_fix(found, tools):
        raise Findings("\n".join(wrong))
    return passed


if __name__ == "__main__":
    sys.exit(main())
