"""The project as the benchmark sees it: functions and routes from the template, its environment, its table."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from benchmarks.environment import DEPLOYED
from benchmarks.machine import ROOT
from benchmarks.package import Package
from benchmarks.process import Target
from local.template import load_template

_DOCUMENT = ROOT / "docs" / "openapi.json"


@dataclass(frozen=True)
class Function:
    """A Lambda function of the REST API: its group, its environment, and its routes as (method, path)."""

    group: str
    environment: dict[str, str]
    routes: tuple[tuple[str, str], ...]

    def target(self, package: Package, name: str | None = None) -> Target:
        return Target(name or self.group, package.folders(self.group), f"{self.group}.app", self.environment)


def functions() -> dict[str, Function]:
    """Returns the template's API functions by group."""
    template = load_template()
    shared = template["Globals"]["Function"]["Environment"]["Variables"]
    found = {}
    for resource in template["Resources"].values():
        if resource["Type"] != "AWS::Serverless::Function":
            continue
        properties = resource["Properties"]
        events = [event["Properties"] for event in properties.get("Events", {}).values() if event["Type"] == "Api"]
        if not events:
            continue
        group = properties["Handler"].partition(".")[0]
        variables = {**shared, **properties.get("Environment", {}).get("Variables", {})}
        found[group] = Function(
            group,
            {name: _value(template, name, value) for name, value in variables.items()},
            tuple(route for event in events for route in _routes(event["Method"].upper(), event["Path"])),
        )
    return found


def _routes(method: str, path: str) -> list[tuple[str, str]]:
    """Returns the operations of an event: the documented ones of its path, or else the measured ones, or else GET."""
    from benchmarks.routes import EXTERNAL, REQUESTS  # noqa: PLC0415 (it imports the world, which imports this module)

    if method != "ANY":
        return [(method, path)] if method != "HEAD" else []
    documented = json.loads(_DOCUMENT.read_text())["paths"].get(path, {})
    prefix = path.removesuffix("{path+}")
    measured = [it for it in [*REQUESTS, *EXTERNAL] if it[1] == path or (prefix != path and it[1].startswith(prefix))]
    return [(name.upper(), path) for name in documented] or measured or [("GET", path)]


def _value(template: dict[str, Any], name: str, value: Any) -> str:
    """Returns a variable's deployed value: the literal, the parameter's default, or a placeholder for AWS's values.

    Of a condition, returns what applies to a stack without the optional parameters.
    """
    if name in DEPLOYED:
        return DEPLOYED[name]
    if isinstance(value, dict) and "Fn::If" in value:
        return _value(template, name, value["Fn::If"][2])
    if isinstance(value, dict) and "Ref" in value and value["Ref"] in template["Parameters"]:
        return str(template["Parameters"][value["Ref"]].get("Default", ""))
    return "" if isinstance(value, dict) else str(value)


TABLE = DEPLOYED["TABLE_NAME"]


def table_definition(name: str) -> dict[str, Any]:
    """CreateTable's parameters of the template's table."""
    properties = load_template()["Resources"]["Table"]["Properties"]
    taken = ("AttributeDefinitions", "KeySchema", "BillingMode", "GlobalSecondaryIndexes", "LocalSecondaryIndexes")
    return {"TableName": name, **{key: properties[key] for key in taken if key in properties}}
