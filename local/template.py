"""template.yaml as data, and the stateful part of it, which a local run deploys. Nothing is defined twice."""

from functools import cache
from pathlib import Path
from typing import Any

import yaml

from local.checkout import ROOT

TEMPLATE = ROOT / "template.yaml"

STATEFUL_TYPES = (
    "AWS::Cognito::UserPool",
    "AWS::Cognito::UserPoolClient",
    "AWS::Cognito::UserPoolDomain",
    "AWS::DynamoDB::Table",
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
    """Returns the whole template with the files it includes, every tag in its long form. Cached: don't change it."""
    return _parse(path.read_text(), path.parent)


@cache
def _parse(text: str, folder: Path) -> dict[str, Any]:
    template = yaml.load(text, Loader=_Loader)  # nosec B506  # noqa: S506 - a safe loader with tags added
    return dict(with_includes(template, folder))


def with_includes(node: Any, folder: Path) -> Any:
    """Returns the node with each `AWS::Include` of a local file replaced by the file's content.

    CloudFormation does the same when it transforms the template, with the copies in S3 that `sam deploy` uploads.
    """
    match node:
        case {"Fn::Transform": {"Name": "AWS::Include", "Parameters": {"Location": str(location)}}}:
            return yaml.safe_load((folder / location).read_text())
        case dict():
            return {name: with_includes(value, folder) for name, value in node.items()}
        case list():
            return [with_includes(value, folder) for value in node]
    return node


def stateful_part(template: dict[str, Any]) -> dict[str, Any]:
    """Returns a plain CloudFormation template of the stateful resources, with all parameters and conditions."""
    resources = {name: it for name, it in template["Resources"].items() if it["Type"] in STATEFUL_TYPES}
    kept = {
        name: template[name]
        for name in ("AWSTemplateFormatVersion", "Parameters", "Mappings", "Conditions")
        if name in template
    }
    return kept | {"Resources": resources}
