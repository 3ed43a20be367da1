"""template.yaml as data, for tests that hold it against the code and against its own rules."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

TEMPLATE = Path(__file__).parents[2] / "template.yaml"


class _Loader(yaml.SafeLoader):
    """Reads the short forms of CloudFormation's functions as their long ones: `!Ref X` as {"Ref": "X"}."""


def _long_form(loader: _Loader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    if isinstance(node, yaml.ScalarNode):
        value: Any = loader.construct_scalar(node)
        if suffix == "GetAtt":
            value = value.split(".", 1)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    elif isinstance(node, yaml.MappingNode):
        value = loader.construct_mapping(node, deep=True)
    else:
        raise TypeError(f"{suffix} of a {type(node).__name__}")
    return {suffix if suffix in {"Ref", "Condition"} else f"Fn::{suffix}": value}


_Loader.add_multi_constructor("!", _long_form)


@cache
def load_template(path: Path = TEMPLATE) -> dict[str, Any]:
    content: dict[str, Any] = yaml.load(path.read_text(encoding="utf-8"), _Loader)
    return content


def resources(kind: str, path: Path = TEMPLATE) -> dict[str, dict[str, Any]]:
    """The resources of that type, by logical id."""
    return {name: entry for name, entry in load_template(path)["Resources"].items() if entry["Type"] == kind}


@dataclass(frozen=True, order=True)
class Route:
    method: str
    path: str


def routes_by_group(path: Path = TEMPLATE) -> dict[str, list[Route]]:
    """The routes each function is given, by the group that its code folder is named after."""
    found = {}
    for function in resources("AWS::Serverless::Function", path).values():
        events = function["Properties"].get("Events", {}).values()
        properties = [event["Properties"] for event in events if event["Type"] == "Api"]
        group = Path(function["Properties"]["CodeUri"]).name
        found[group] = sorted(Route(entry["Method"], entry["Path"]) for entry in properties)
    return found


def gateway_responses(path: Path = TEMPLATE) -> dict[str, dict[str, Any]]:
    """What the gateway answers by itself, by response type."""
    (api,) = resources("AWS::Serverless::Api", path).values()
    answers: dict[str, dict[str, Any]] = api["Properties"]["GatewayResponses"]
    return answers
