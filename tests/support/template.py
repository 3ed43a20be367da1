"""What template.yaml declares, as tests ask for it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


def gateway_responses() -> dict[str, dict[str, Any]]:
    """What the gateway answers by itself, by response type."""
    (api,) = resources("AWS::Serverless::Api").values()
    answers: dict[str, dict[str, Any]] = api["Properties"]["GatewayResponses"]
    return answers
