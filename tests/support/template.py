"""Access to the declarations of template.yaml for tests."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from local.template import NESTED, TEMPLATE, load_template

# The function that checks new versions of all others.
DEPLOYMENT_CHECK = "DeploymentCheckFunction"
# The statement of every function, which is the only conditional one. It needs a customer's key.
KEY_USE = load_template()["Resources"]["SystemFunction"]["Properties"]["Policies"][0]["Statement"][0]
# How the names of SES's resources begin.
_EMAIL = "arn:${AWS::Partition}:ses:${AWS::Region}:${AWS::AccountId}:"


@dataclass(frozen=True, order=True)
class Route:
    method: str
    path: str


def every_resource() -> dict[str, dict[str, Any]]:
    """Returns the resources of the template and of its nested stacks, whose parameters have the names of resources."""
    paths = (TEMPLATE, *NESTED.values())
    return {name: entry for path in paths for name, entry in load_template(path)["Resources"].items()}


def resources(kind: str) -> dict[str, dict[str, Any]]:
    """Returns the resources of that type, by logical id."""
    return {name: entry for name, entry in every_resource().items() if entry["Type"] == kind}


def functions() -> dict[str, dict[str, Any]]:
    """Returns the functions of the service, by logical id: all but the check of deployments."""
    declared = resources("AWS::Serverless::Function")
    return {name: function for name, function in declared.items() if name != DEPLOYMENT_CHECK}


def layers_of(function: dict[str, Any]) -> list[str]:
    """Returns the logical ids of the function's layers."""
    return [layer["Ref"] for layer in function["Properties"]["Layers"]]


def api_functions() -> dict[str, dict[str, Any]]:
    """Returns the functions of the API, by logical id. All others are workers."""
    return {
        name: function
        for name, function in functions().items()
        if any(event["Type"] == "Api" for event in function["Properties"].get("Events", {}).values())
    }


def routes_by_group() -> dict[str, list[Route]]:
    """Returns the routes of each API function, by group (the name of its code folder)."""
    found = {}
    for function in api_functions().values():
        properties = [event["Properties"] for event in function["Properties"]["Events"].values()]
        group = Path(function["Properties"]["CodeUri"]).name
        found[group] = sorted(Route(entry["Method"], entry["Path"]) for entry in properties)
    return found


def gateway_route(routes: list[Route], wanted: Route) -> Route:
    """Returns the route that the gateway selects for the operation: the one of its path, or the one of a prefix."""
    prefixes = [it for it in routes if it.path.endswith("/{path+}")]
    found = [it for it in routes if it.path == wanted.path] or [
        it for it in prefixes if wanted.path.startswith(it.path.removesuffix("{path+}"))
    ]
    (route,) = (it for it in found if it.method in {wanted.method, "ANY"})
    return route


class Statement(NamedTuple):
    """Allowed actions of a function and their targets: logical ids of the template, or `Table/index/<name>`.

    keys: patterns of the allowed partition keys; empty without such a condition.
    """

    actions: list[str]
    targets: list[str]
    keys: list[str]


def policies() -> dict[str, list[Statement]]:
    """Returns the statements of each function's policy, by code folder."""
    return {
        Path(function["Properties"]["CodeUri"]).name: [
            Statement(
                listed(entry["Action"]),
                [target_of(target) for target in listed(entry["Resource"])],
                keys_of(entry.get("Condition", {})),
            )
            for policy in function["Properties"]["Policies"]
            for entry in policy["Statement"]
            if entry != KEY_USE
        ]
        for function in functions().values()
    }


def signing_functions() -> set[str]:
    """Returns the code folders of the functions that get the signing secret."""
    return {
        Path(function["Properties"]["CodeUri"]).name
        for function in functions().values()
        if "SIGNING_SECRET" in function["Properties"]["Environment"]["Variables"]
    }


def keys_of(condition: dict[str, Any]) -> list[str]:
    """Returns the partition keys that a policy condition allows. Raises ValueError for any other condition."""
    match condition:
        case {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": [*patterns]}} if len(condition) == 1:
            return [str(pattern) for pattern in patterns]
        case {"StringEquals": {"ses:FromAddress": {"Ref": "EmailSender"}}} if len(condition) == 1:
            return []
    if condition:
        raise ValueError(condition)
    return []


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def target_of(value: dict[str, Any]) -> str:
    """Returns the resource that a value refers to. Raises ValueError unless it refers to exactly one."""
    match value:
        case {"Fn::If": ["AdoptsTable", {"Fn::Sub": str(text)}, own]} if text.endswith(":table/${TableName}"):
            return target_of(own)
        case {"Ref": str(name)} | {"Fn::GetAtt": [str(name), "Arn" | "Id"]}:
            return name
        case {"Fn::Sub": str(text)} if text.startswith(_EMAIL) and text.endswith("identity/*"):
            return "EmailIdentity"  # which SES resource verifies the sender isn't known
        case {"Fn::Sub": str(text)} if text == f"{_EMAIL}configuration-set/${{AWS::StackName}}":
            return "EmailConfiguration"
        case {"Fn::Sub": [str(text), {"Arn": arn}]} if text.startswith("${Arn}/index/"):
            return text.replace("${Arn}", target_of(arn))
    raise ValueError(value)


def text_of(value: Any) -> str:
    """Returns a text, or that of `Fn::Sub`, with those of its variables whose values are texts."""
    match value:
        case {"Fn::Sub": [str(text), dict(values)]}:
            for name, given in values.items():
                text = text.replace(f"${{{name}}}", given) if isinstance(given, str) else text
            return text
        case {"Fn::Sub": str(text)}:
            return text
    return str(value)


def gateway_responses() -> dict[str, dict[str, Any]]:
    """Returns the gateway's own responses, by response type."""
    (api,) = resources("AWS::Serverless::Api").values()
    answers: dict[str, dict[str, Any]] = api["Properties"]["GatewayResponses"]
    return answers


def without(node: Any, *conditions: str) -> Any:
    """Returns the node as it is if these conditions are false."""
    match node:
        case {"Fn::If": [name, _, other]} if name in conditions:
            return without(other, *conditions)
        case dict():
            return {key: without(value, *conditions) for key, value in node.items()}
        case list():
            return [without(value, *conditions) for value in node]
    return node
