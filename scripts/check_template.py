"""Checks the transformed templates (`make template`) with cfn-lint, checkov, AWS's limits, and the last release.

Transforms the template and its nested stacks as CloudFormation and SAM do, once for each variant of the parameters, and
resolves every condition, because checkov takes any `Fn::If` for a value. Also checks a template with deliberate
mistakes, to prove that each tool reports them. Runs in SAM's environment. Downloads nothing.
"""

import copy
import json
import logging
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse

from local.template import NESTED, TEMPLATE, expanded
from scripts.conditions import resolve
from scripts.limits import Measured, excesses, measure
from scripts.releases import last_release
from scripts.upgrade_gate import problems

ROOT = Path(__file__).resolve().parents[1]
LINTER = ROOT / ".tools/sam/bin/cfn-lint"
SCANNER = ROOT / ".tools/checkov/bin/checkov"
# cfn-lint leaves these out by default: resources that an action can't have, and sizes near CloudFormation's limits.
MORE_RULES = ("I3510", "I1002", "I2010", "I3010", "I6010", "I7010")

CHECKS: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("template_checks.yaml").read_text(encoding="utf-8"))
VARIANTS: dict[str, dict[str, str]] = CHECKS["variants"]
ACCEPTED: dict[str, dict[str, Any]] = CHECKS["accepted"]
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
    return expanded(json.loads(json.dumps(yaml_parse(path.read_text(encoding="utf-8")))))  # without anchors


def transformed(parameters: dict[str, str], folder: Path = ROOT) -> dict[str, Any]:
    """Returns the template that CloudFormation deploys with these parameters. The artifacts' locations are made up."""
    template = copy.deepcopy(_without_loops(folder / TEMPLATE.name))
    for resource in template["Resources"].values():
        for place in {"CodeUri", "ContentUri", "Location"} & resource.get("Properties", {}).keys():
            resource["Properties"][place] = "s3://artifacts/artifact"
    return dict(transform(template, parameters, _NoManagedPolicies(), passthrough_metadata=True))


def nested(template: dict[str, Any], folder: Path = ROOT) -> dict[str, dict[str, Any]]:
    """Returns the nested stacks' templates, with every condition decided, by the name of their stack.

    Their conditions compare only whether a parameter is given, so any text stands for a resource.
    """
    found = {}
    for name, path in NESTED.items():
        if name in template["Resources"]:
            given = template["Resources"][name]["Properties"]["Parameters"]
            values = {it: _text(value, template) for it, value in given.items()}
            found[name] = resolve(_without_loops(folder / path.name), values)
    return found


def _text(value: Any, template: dict[str, Any]) -> str:
    parameter = template["Parameters"].get(value.get("Ref")) if isinstance(value, dict) else None
    return str(value) if parameter is None else str(parameter.get("Default", ""))


def decided(parameters: dict[str, str], folder: Path) -> dict[str, Any]:
    """Returns the template of a folder with the resources of its nested stacks, and every condition decided.

    Ignores parameters that it doesn't have.
    """
    template = transformed(parameters, folder)
    template = resolve(template, {it: parameters[it] for it in parameters.keys() & template["Parameters"]})
    for inner in nested(template, folder).values():
        template["Resources"] |= inner["Resources"]
    return template


def check_upgrade() -> str:
    """Compares the template with the last release's. Returns the two versions. Raises Findings."""
    release = last_release(ROOT)
    if release is None:
        return "not compared, because there is no release before this one, or this clone has no history"
    version, commit = release
    announced = CHECKS["announced"]
    found = problems(commit, lambda folder: [decided(parameters, folder) for parameters in VARIANTS.values()])
    wrong = [f"upgrade from {version}: {problem}" for problem in found if problem not in announced]
    wrong += [f"{problem} is announced and doesn't occur" for problem in announced if problem not in found]
    if wrong:
        raise Findings("\n".join(wrong))
    return f"from {version}, 0 findings, {len(announced)} announced"


def lint(path: Path) -> list[Found]:
    done = _run(LINTER, "--format", "json", "--include-checks", *MORE_RULES, "--", path)
    return [
        (_name(it["Filename"]), it["Rule"]["Id"], f"{it['Message']} (line {it['Location']['Start']['LineNumber']})")
        for it in json.loads(done or "[]")
    ]


def scan(files: list[Path]) -> tuple[list[Found], Counter[str]]:
    """Returns checkov's findings, with skips that have no reason, and the number of checks that each variant passed."""
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
    found = [
        (_name(it["file_path"]), it["check_id"], f"{it['check_name']} ({it['resource']})")
        for it in results["failed_checks"]
    ]
    found += [
        (_name(it["file_path"]), it["check_id"], f"skipped without a reason ({it['resource']})")
        for it in results["skipped_checks"]
        if len(it["check_result"]["suppress_comment"].split()) < 5
    ]
    found += [(_name(path), "parsing", "checkov cannot read it") for path in results["parsing_errors"]]
    return found, Counter(_name(it["file_path"]) for it in results["passed_checks"])


def _name(path: str) -> str:
    """Returns the variant's name in the name of its file."""
    return Path(path).name.partition(".")[0]


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


def to_fix(found: list[Found]) -> list[str]:
    """Returns the findings that aren't accepted, and what else is wrong."""
    wrong = [f"{name}: {rule} {text}" for name, rule, text in found if name != TWIN and not _accepted(name, rule)]
    seen = {(name, rule) for name, rule, _ in found}
    wrong += [f"{TWIN}: nothing found {rule}" for rule in CHECKS["mistakes"] if (TWIN, rule) not in seen]
    wrong += [
        f"{name}: {rule} is accepted and doesn't occur"
        for rule, accepted in ACCEPTED.items()
        for name in accepted["in"]
        if (name, rule) not in seen
    ]
    return wrong


def _accepted(name: str, rule: str) -> bool:
    return rule in ACCEPTED and name in ACCEPTED[rule]["in"]


def main() -> int:
    logging.disable()  # SAM's translator warns of a switch that only AWS has
    os.environ.setdefault("AWS_DEFAULT_REGION", "eu-central-1")
    wrong, sizes, fullest, files = [], Counter[str](), dict[str, Measured](), list[Path]()
    with TemporaryDirectory() as directory:

        def write(name: str, template: dict[str, Any]) -> None:
            files.append(Path(directory) / f"{name}.json")
            files[-1].write_text(json.dumps(template, indent=1), encoding="utf-8")

        write(TWIN, CHECKS["twin"])
        for name, parameters in VARIANTS.items():
            template = resolve(transformed(parameters), parameters)
            measured = measure(template)
            wrong += [f"{name}: {excess}" for excess in excesses(measured)]
            fullest[name] = max(measured, key=lambda it: it.share)
            for stack, part in {"": template, **nested(template)}.items():
                sizes[name] += len(part["Resources"])
                write(f"{name}.{stack}", part)
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


def check(files: list[Path]) -> Counter[str]:
    """Runs both tools. Returns the number of checks that each variant passed. Raises Findings.

    cfn-lint gets the sources, whose conditions it evaluates itself, and the twin.
    """
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        linted = [pool.submit(lint, path) for path in (TEMPLATE, *NESTED.values(), files[0])]
        found, passed = pool.submit(scan, files).result()
    for it in linted:
        found += it.result()
    if wrong := to_fix(found):
        raise Findings("\n".join(wrong))
    return passed


if __name__ == "__main__":
    sys.exit(main())
