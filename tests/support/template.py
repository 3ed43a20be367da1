"""What template.yaml declares, as tests ask for it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from local.template import load_template


@dataclass(frozen=True, order=True)
class Route:
    method: str
    path: str


def resources(kind: str) -> dict[str, dict[str, Any]]:
    """The resources of that type, by logical id."""
    return {name: entry for name, entry in load_template()["Resources"].items() if entry["Type"] == kind}


def api_functions() -> dict[str, dict[str, Any]]:
    """The functions that the API calls, by logical id. The others are workers."""
    return {
        name: function
        for name, function in resources("AWS::Serverless::Function").items()
        if any(event["Type"] == "Api" for event in function["Properties"].get("Events", {}).values())
    }


def routes_by_group() -> dict[str, list[Route]]:
    """The routes each function of the API is given, by the group that its code folder is named after."""
    found = {}
    for function in api_functions().values():
        properties = [event["Properties"] for event in function["Properties"]["Events"].values()]
        group = Path(function["Properties"]["CodeUri"]).name
        found[group] = sorted(Route(entry["Method"], entry["Path"]) for entry in properties)
    return found


class Statement(NamedTuple):
    """What a function may do, and on what: logical ids of the template, or `Table/index/<name>`.

    keys: the partition keys that it is limited to, as patterns; empty without such a condition.
    """

    actions: list[str]
    targets: list[str]
    keys: list[str]


def policies() -> dict[str, list[Statement]]:
    """What each function's own policy allows, by the folder of its code."""
    return {
        Path(function["Properties"]["CodeUri"]).name: [
            Statement(
                listed(entry["Action"]),
                [target_of(target) for target in listed(entry["Resource"])],
                keys_of(entry.get("Condition", {})),
            )
            for policy in function["Properties"]["Policies"]
            for entry in policy["Statement"]
        ]
        for function in resources("AWS::Serverless::Function").values()
    }


def signing_functions() -> set[str]:
    """The functions that are given the signing secret, by the folder of their code."""
    return {
        Path(function["Properties"]["CodeUri"]).name
        for function in resources("AWS::Serverless::Function").values()
        if "SIGNING_SECRET" in function["Properties"]["Environment"]["Variables"]
    }


def keys_of(condition: dict[str, Any]) -> list[str]:
    """The partition keys that a condition of a policy allows. Raises ValueError for a condition of another form."""
    match condition:
        case {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": [*patterns]}} if len(condition) == 1:
            return [str(pattern) for pattern in patterns]
    if condition:
        raise ValueError(condition)
    return []


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def target_of(value: dict[str, Any]) -> str:
    """Raises ValueError for what names no one resource."""
    match value:
        case {"Ref": str(name)} | {"Fn::GetAtt": [str(name), "Arn" | "Id"]}:
            return name
        case {"Fn::Sub": str(text)} if text.startswith("${Table.Arn}/index/") and "*" not in text:
            return text.replace("${Table.Arn}", "Table")
    raise ValueError(value)


def gateway_responses() -> dict[str, dict[str, Any]]:
    """What the gateway answers by itself, by response type."""
    (api,) = resources("AWS::Serverless::Api").values()
    answers: dict[str, dict[str, Any]] = api["Properties"]["GatewayResponses"]
    return answers
