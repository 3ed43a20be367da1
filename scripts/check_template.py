"""Checks the transformed template.yaml with cfn-lint and checkov: `make template`. Nothing is downloaded.

The template is transformed as SAM does it, once with its defaults and once with every parameter that adds something. A
copy with a deliberate mistake is checked too, to prove that each tool looks. Runs in SAM's environment.
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

ROOT = Path(__file__).resolve().parents[1]
TEMPLATE = ROOT / "template.yaml"
LINTER = ROOT / ".tools/sam/bin/cfn-lint"
SCANNER = ROOT / ".tools/checkov/bin/checkov"

VARIANTS: dict[str, dict[str, str]] = {
    "defaults": {},
    "everything": {
        "EmailSender": "no-reply@example.com",
        "DeploymentStyle": "Canary10Percent5Minutes",
        "SnapStart": "PublishedVersions",
        "ReservedConcurrency": "50",
    },
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


def transformed(parameters: dict[str, str]) -> dict[str, Any]:
    """Returns what CloudFormation deploys with these parameters. The artifacts' locations are made up."""
    template = with_includes(yaml_parse(TEMPLATE.read_text(encoding="utf-8")), ROOT)
    for resource in template["Resources"].values():
        for place in {"CodeUri", "ContentUri"} & resource.get("Properties", {}).keys():
            resource["Properties"][place] = "s3://artifacts/artifact"
    return dict(transform(template, parameters, _NoManagedPolicies(), passthrough_metadata=True))


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
    found = [(_file(it), it["check_id"], f"{it['check_name']} ({it['resource']})") for it in results["failed_checks"]]
    found += [
        (_file(it), it["check_id"], f"skipped without a reason ({it['resource']})")
        for it in results["skipped_checks"]
        if len(it["check_result"]["suppress_comment"].split()) < 5
    ]
    found += [(Path(name).stem, "parsing", "checkov cannot read it") for name in results["parsing_errors"]]
    _sort_out(found, _TWIN_CHECK, done.stderr)
    return {name: sum(_file(it) == name for it in results["passed_checks"]) for name in files}


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
            passed = scan(files)
        except Findings as findings:
            print(findings, file=sys.stderr)
            return 1
        for name, size in sizes.items():
            if passed[name] < size:
                print(f"{name}: {passed[name]} checks of {size} resources are too few to trust", file=sys.stderr)
                return 1
            print(f"template.yaml with {name}: {size} resources, {passed[name]} checks passed, 0 findings")
    return 0


if __name__ == "__main__":
    sys.exit(main())
