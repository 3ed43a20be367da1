"""Puts the resources of a nested stack into the template that has it, so that checks see all that is deployed together.

Runs in SAM's environment, on transformed templates with decided conditions.
"""

import json
from collections.abc import Mapping
from typing import Any

from scripts.conditions import resolve


def inlined(template: Mapping[str, Any], name: str, nested: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the template with the resources of the stack in place of the stack."""
    given: dict[str, Any] = template["Resources"][name]["Properties"]["Parameters"]
    decided = resolve(nested, {parameter: _value(it, template) for parameter, it in given.items()})
    own = {it: _with_values(resource, given) for it, resource in decided["Resources"].items()}
    outputs = {f"Outputs.{it}": _with_values(output["Value"], given) for it, output in decided["Outputs"].items()}
    others = {it: resource for it, resource in template["Resources"].items() if it != name}
    used: dict[str, Any] = _with_outputs({**template, "Resources": others}, name, outputs)
    return {**used, "Resources": {**used["Resources"], **own}}


def _value(expression: Any, template: Mapping[str, Any]) -> str:
    """Returns the text of a parameter for the conditions of the nested stack, which only compare it with given ones."""
    match expression:
        case str(text):
            return text
        case {"Ref": name} if name in template["Parameters"]:
            return str(template["Parameters"][name].get("Default", ""))
    return str(expression)


def _with_values(node: Any, given: Mapping[str, Any]) -> Any:
    """Returns the node with what the parameters stand for."""
    match node:
        case {"Ref": name} if name in given:
            return given[name]
        case {"Fn::Sub": [str(text), dict(values)]}:
            return {"Fn::Sub": [text, {**_named(text, given), **_with_values(values, given)}]}
        case {"Fn::Sub": str(text)} if named := _named(text, given):
            return {"Fn::Sub": [text, named]}
        case {"Fn::ToJsonString": content}:  # which cdk-nag doesn't know; nothing checks its references
            return json.dumps(content).replace("${", "$ {")
        case dict():
            return {key: _with_values(value, given) for key, value in node.items()}
        case list():
            return [_with_values(it, given) for it in node]
    return node


def _named(text: str, given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if f"${{{name}}}" in text}


def _with_outputs(node: Any, stack: str, outputs: Mapping[str, Any]) -> Any:
    match node:
        case {"Fn::GetAtt": [name, attribute]} if name == stack:
            return outputs[attribute]
        case {"Fn::GetAtt": str(text)} if text.startswith(f"{stack}.Outputs."):
            return outputs[text.removeprefix(f"{stack}.")]
        case dict():
            return {key: _with_outputs(value, stack, outputs) for key, value in node.items()}
        case list():
            return [_with_outputs(it, stack, outputs) for it in node]
    return node
