"""Checks the transformed template.yaml with cfn-lint and checkov: `make template`. Nothing is downloaded.

The template is transformed as SAM does it, for each variant of its parameters. checkov gets what CloudFormation would
deploy then, with every condition decided, because it takes any `Fn::If` for a value. A copy with a deliberate mistake
is checked too, to prove that each tool looks. Runs in SAM's environment.
"""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse

from local.template import with_includes
from scripts.conditions import resolve
from scripts.upgrade_gate import last_release, problems

ROOT = Path(__file__).resolve().parents[1]
TEMPLATE = ROOT / "template.yaml"
LINTER = ROOT / ".tools/sam/bin/cfn-lint"
SCANNER = ROOT / ".tools/checkov/bin/checkov"

_KEY = "arn:aws:kms:eu-central-1:123456789012:key/0123"
VARIANTS: dict[str, dict[str, str]] = {
    "defaults": {},
    "everything": {
        "AlarmEmail": "ops@example.com",
        "CustomDomain": "api.example.com",
        "DashboardBaseUrl": "https://app.example.com",
        "DeploymentStyle": "Canary10Percent5Minutes",
        "EmailSender": "no-reply@example.com",
        "FrontDoorCertificateArn": "arn:aws:acm:us-east-1:123456789012:certificate/0123",
        "FrontDoorOnly": "true",
        "FrontDoorWebAclArn": "arn:aws:wafv2:us-east-1:123456789012:global/webacl/assent/0123",
        "GithubAppId": "123456",
        "KmsKeyArn": _KEY,
        "ReservedConcurrency": "50",
        "SelfSignUp": "false",
        "SignInDomainPrefix": "example-sign-in",
        "SnapStart": "PublishedVersions",
        "TableName": "assent-restored",
        "ThrottlingBurst": "100",
        "ThrottlingRate": "100",
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
_WITHOUT_KEY = frozenset({"defaults", "elsewhere"})
# Findings of checkov that are accepted, with the variants in which they occur and the reason. The template's own skips
# are for single resources.
ACCEPTED: dict[str, tuple[frozenset[str], str]] = {
    "CKV_AWS_26": (
        frozenset({"defaults"}),
        "CloudWatch can't publish to a topic that AWS's managed key encrypts. Alarms contain no data of customers.",
    ),
    "CKV_AWS_27": (_WITHOUT_KEY, "Queues are encrypted with a key of SQS, which this check doesn't recognize."),
    "CKV_AWS_115": (_WITHOUT_KEY, "A new account has no executions to reserve. ReservedConcurrency reserves them."),
    "CKV_AWS_119": (_WITHOUT_KEY, "The table is encrypted with AWS's managed key. KmsKeyArn replaces it."),
    "CKV_AWS_149": (_WITHOUT_KEY, "Secrets are encrypted with AWS's managed key. KmsKeyArn replaces it."),
    "CKV_AWS_158": (_WITHOUT_KEY, "Logs are encrypted with a key of CloudWatch Logs. KmsKeyArn replaces it."),
    "CKV_AWS_173": (_WITHOUT_KEY, "Variables are encrypted with AWS's managed key. KmsKeyArn replaces it."),
}
# It lints with an unknown property and is scanned with nothing encrypted.
WRONG_TWIN = {
    "AWSTemplateFormatVersion": "2010-09-09",
    "Resources": {"Queue": {"Type": "AWS::SQS::Queue", "Properties": {"SqsManagedSseEnabled": False, "Size": 1}}},
}
TWIN = "twin"
_TWIN_RULE, _TWIN_CHECK = "E3002", "CKV_AWS_27"


class Findings(Exception):
    """The findings to fix; the message lists them."""


class _NoManagedPolicies:
    """The template names AWS's policies by their ARN, so SAM has none to look up."""

    def load(self) -> dict[str, str]:
        return {}


def transformed(parameters: dict[str, str], folder: Path = ROOT) -> dict[str, Any]:
    """Returns what CloudFormation deploys with these parameters. The artifacts' locations are made up."""
    template = with_includes(yaml_parse((folder / TEMPLATE.name).read_text(encoding="utf-8")), folder)
    for resource in template["Resources"].values():
        for place in {"CodeUri", "ContentUri"} & resource.get("Properties", {}).keys():
            resource["Properties"][place] = "s3://artifacts/artifact"
    return dict(transform(template, parameters, _NoManagedPolicies(), passthrough_metadata=True))


def decided(parameters: dict[str, str], folder: Path = ROOT) -> dict[str, Any]:
    """Returns the same with every condition decided. Ignores parameters that the template doesn't have."""
    template = transformed(parameters, folder)
    return resolve(template, {name: it for name, it in parameters.items() if name in template["Parameters"]})


def check_upgrade() -> str:
    """Compares the template with the last release's. Returns the release. Raises Findings."""
    release = last_release()
    if release is None:
        return "no earlier release"
    found = problems(release, lambda folder: [decided(parameters, folder) for parameters in VARIANTS.values()])
    if found:
        raise Findings("\n".join(f"upgrade from {release}: {problem}" for problem in found))
    return release


def lint(files: dict[str, Path]) -> None:
    """Raises Findings."""
    done = subprocess.run(  # noqa: S603 (tools of the project on files of the project)
        [LINTER, "--format", "json", TEMPLATE, *files.values()], capture_output=True, text=True, check=False
    )
    found = json.loads(done.stdout or "[]")
    _sort_out(
        [(Path(it["Filename"]).stem, it["Rule"]["Id"], f"{it['Message']} (line {_line(it)})") for it in found],
        _TWIN_RULE,
        done.stderr,
    )


def _line(found: dict[str, Any]) -> int:
    line: int = found["Location"]["Start"]["LineNumber"]
    return line


def scan(files: dict[str, Path]) -> dict[str, int]:
    """How many checks each file passed. Raises Findings, also for a skip without a reason."""
    arguments = [argument for path in files.values() for argument in ("--file", path.name)]
    done = subprocess.run(  # noqa: S603 (tools of the project on files of the project)
        [SCANNER, *arguments, "--framework", "cloudformation", "--output", "json", "--skip-download"],
        cwd=next(iter(files.values())).parent,
        env={**os.environ, "CKV_SKIP_PACKAGE_UPDATE_CHECK": "true"},
        capture_output=True,
        text=True,
        check=False,
    )
    if not done.stdout.startswith("{"):
        raise Findings(done.stdout + done.stderr)
    results = json.loads(done.stdout)["results"]
    failed = results["failed_checks"]
    found = [
        (_file(it), it["check_id"], f"{it['check_name']} ({it['resource']})") for it in failed if not _accepted(it)
    ]
    used = {(it["check_id"], _file(it)) for it in failed if _accepted(it)}
    expected = {(check, variant) for check, (variants, _) in ACCEPTED.items() for variant in variants}
    found += [(variant, check, "is accepted and doesn't occur") for check, variant in sorted(expected - used)]
    found += [
        (_file(it), it["check_id"], f"skipped without a reason ({it['resource']})")
        for it in results["skipped_checks"]
        if len(it["check_result"]["suppress_comment"].split()) < 5
    ]
    found += [(Path(name).stem, "parsing", "checkov cannot read it") for name in results["parsing_errors"]]
    _sort_out(found, _TWIN_CHECK, done.stderr)
    return {name: sum(_file(it) == name for it in results["passed_checks"]) for name in files}


def _accepted(result: dict[str, Any]) -> bool:
    variants, _ = ACCEPTED.get(result["check_id"], (frozenset(), ""))
    return _file(result) in variants


def _file(result: dict[str, Any]) -> str:
    return Path(result["file_path"]).stem


def _sort_out(found: list[tuple[str, str, str]], expected: str, errors: str) -> None:
    """Raises Findings for what was found outside the twin, and where the twin's mistake was not found."""
    real = [f"{name}: {rule} {text}" for name, rule, text in found if name != TWIN]
    if not any(name == TWIN and rule == expected for name, rule, _ in found):
        real.append(f"{TWIN}: {expected} is wrong there and was not found\n{errors}")
    if real:
        raise Findings("\n".join(real))


def main() -> int:
    logging.disable()  # SAM's translator warns of a switch that only AWS has
    os.environ.setdefault("AWS_DEFAULT_REGION", "eu-central-1")
    with TemporaryDirectory() as directory:
        files = {name: Path(directory) / f"{name}.json" for name in (*VARIANTS, TWIN)}
        sizes = {}
        for name, parameters in VARIANTS.items():
            template = transformed(parameters)
            sizes[name] = len(template["Resources"])
            files[name].write_text(json.dumps(template, indent=1), encoding="utf-8")
        files[TWIN].write_text(json.dumps(WRONG_TWIN, indent=1), encoding="utf-8")
        try:
            lint(files)
            for name, parameters in VARIANTS.items():
                template = decided(parameters)
                sizes[name] = len(template["Resources"])
                files[name].write_text(json.dumps(template, indent=1), encoding="utf-8")
            passed = scan(files)
            release = check_upgrade()
        except Findings as findings:
            print(findings, file=sys.stderr)
            return 1
        for name, size in sizes.items():
            if passed[name] < size:
                print(f"{name}: {passed[name]} checks of {size} resources are too few to trust", file=sys.stderr)
                return 1
            accepted = sum(name in variants for variants, _ in ACCEPTED.values())
            print(f"template.yaml with {name}: {size} resources, {passed[name]} checks passed, {accepted} accepted")
        print(f"Upgrade: {release}, 0 findings")
    return 0


if __name__ == "__main__":
    sys.exit(main())
