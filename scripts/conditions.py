"""Decides a template's conditions for given parameters, so that checks see what is deployed and not an `Fn::If`.

Runs in SAM's environment, on a transformed template.
"""

from collections.abc import Mapping
from typing import Any

_NO_VALUE = {"Ref": "AWS::NoValue"}


class Undecided(Exception):
    """A condition uses something other than parameters and mappings."""


def resolve(template: Mapping[str, Any], parameters: Mapping[str, str]) -> dict[str, Any]:
    """Returns the template without conditions: false resources are left out, and `Fn::If` is replaced by its branch.

    parameters: values other than the defaults, which become the defaults, because checkov resolves references to
    parameters with these. Raises Undecided.
    """
    values = {name: str(it.get("Default", "")) for name, it in template["Parameters"].items()} | dict(parameters)
    conditions = _Conditions(template.get("Conditions", {}), template.get("Mappings", {}), values)
    kept = {name: part for name, part in template.items() if name not in {"Conditions", "Resources", "Outputs"}}
    for section in ("Resources", "Outputs"):
        kept[section] = {
            name: _without({key: value for key, value in it.items() if key != "Condition"}, conditions)
            for name, it in template.get(section, {}).items()
            if conditions.holds(it.get("Condition"))
        }
    kept["Parameters"] = {
        name: {**it, "Default": parameters[name]} if name in parameters else it
        for name, it in template["Parameters"].items()
    }
    return kept


class _Conditions:
    def __init__(self, declared: Mapping[str, Any], mappings: Mapping[str, Any], parameters: Mapping[str, str]) -> None:
        self._declared, self._mappings, self._parameters = declared, mappings, parameters

    def holds(self, name: str | None) -> bool:
        return name is None or self._decide(self._declared[name])

    def _decide(self, expression: Any) -> bool:
        match expression:
            case {"Condition": name}:
                return self.holds(name)
            case {"Fn::Equals": [left, right]}:
                return self._value(left) == self._value(right)
            case {"Fn::Not": [inner]}:
                return not self._decide(inner)
            case {"Fn::And": several}:
                return all(self._decide(it) for it in several)
            case {"Fn::Or": several}:
                return any(self._decide(it) for it in several)
        raise Undecided(expression)

    def _value(self, expression: Any) -> str:
        match expression:
            case str(text):
                return text
            case {"Ref": name} if name in self._parameters:
                return self._parameters[name]
            case {"Fn::FindInMap": [mapping, first, second]}:
                return str(self._mappings[mapping][self._value(first)][self._value(second)])
        raise Undecided(expression)


def _without(node: Any, conditions: _Conditions) -> Any:
    match node:
        case {"Fn::If": [name, yes, no]}:
            return _without(yes if conditions.holds(name) else no, conditions)
        case dict():
            decided = {key: _without(value, conditions) for key, value in node.items()}
            return {key: value for key, value in decided.items() if value != _NO_VALUE}
        case list():
            return [value for value in (_without(it, conditions) for it in node) if value != _NO_VALUE]
    return node
