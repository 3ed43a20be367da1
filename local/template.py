"""template.yaml and its nested stacks as data, and the stateful part, which a local run deploys."""

import copy
import hashlib
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from local.checkout import DIRECTORY, ROOT

TEMPLATE = ROOT / "template.yaml"
# The templates of nested stacks, by the logical IDs that they have in template.yaml.
NESTED = {"Observability": ROOT / "observability.yaml", "FrontDoor": ROOT / "front_door.yaml"}

_LOOPS = "AWS::LanguageExtensions"
STATEFUL_TYPES = (
    "AWS::Cognito::UserPool",
    "AWS::Cognito::UserPoolClient",
    "AWS::Cognito::UserPoolDomain",
    "AWS::DynamoDB::Table",
    "AWS::SecretsManager::Secret",
    "AWS::SQS::Queue",
)


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # libyaml's, ten times as fast
    """Loads YAML, and expands CloudFormation's short tags into their long form."""


def _expand(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    value: Any
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    elif isinstance(node, yaml.MappingNode):
        value = loader.construct_mapping(node, deep=True)
    else:
        raise TypeError(f"no YAML node has the type {type(node)}")
    if suffix == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}": value}


_Loader.add_multi_constructor("!", _expand)


def load_template(path: Path = TEMPLATE) -> dict[str, Any]:
    """Returns a template without loops, every tag in its long form. Cached: don't change it."""
    return _parse(path.read_text())


@cache
def _parse(text: str) -> dict[str, Any]:
    template: dict[str, Any] = yaml.load(text, Loader=_Loader)  # nosec B506  # noqa: S506 - a safe loader with tags added
    return _expand_loops(template) if _LOOPS in template.get("Transform", ()) else template


def _expand_loops(template: dict[str, Any]) -> dict[str, Any]:
    """Runs this module in SAM's environment, unless it has expanded the same template before."""
    text = json.dumps(template)
    digest = hashlib.sha256((text + Path(__file__).read_text()).encode()).hexdigest()
    kept = DIRECTORY / "expanded" / f"{digest}.json"
    if not kept.exists():
        command = [str(ROOT / ".tools/sam/bin/python"), "-m", "local.template"]
        done = subprocess.run(command, cwd=ROOT, input=text, capture_output=True, text=True, check=True)
        kept.parent.mkdir(parents=True, exist_ok=True)
        unfinished = kept.with_suffix(f".{os.getpid()}")
        unfinished.write_text(done.stdout)
        unfinished.replace(kept)
    result: dict[str, Any] = json.loads(kept.read_text())
    return result


def stateful_part(template: dict[str, Any]) -> dict[str, Any]:
    """Returns a plain CloudFormation template of the stateful resources, with all parameters and conditions."""
    resources = {name: it for name, it in template["Resources"].items() if it["Type"] in STATEFUL_TYPES}
    kept = {
        name: template[name]
        for name in ("AWSTemplateFormatVersion", "Parameters", "Mappings", "Conditions")
        if name in template
    }
    return kept | {"Resources": resources}


def expanded(template: dict[str, Any]) -> dict[str, Any]:
    """Returns the template without loops (`Fn::ForEach`), as CloudFormation expands them before it reads a template.

    Conditions, references, and other transforms stay. Raises ValueError.
    """
    from cfnlint.template import Template  # noqa: PLC0415 (only in SAM's environment)

    # It changes what it is given.
    reader = Template(None, {**copy.deepcopy(template), "Transform": _LOOPS}, ["us-east-1"])
    if problems := reader.transform():
        raise ValueError(problems[0].message)
    return {**template, **{name: reader.template[name] for name in ("Resources", "Outputs") if name in template}}


if __name__ == "__main__":
    json.dump(expanded(json.load(sys.stdin)), sys.stdout)
