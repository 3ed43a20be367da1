"""Measures a transformed template against hard limits of IAM, Lambda, and API Gateway: part of `make template`.

cfn-lint knows those of CloudFormation.

Each name and ARN counts as long as it can be: under a stack name of 64 letters, in GovCloud. So a template
below the limits can be deployed under any name and in any region.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

# The share of a limit above which the check fails. The rest is for the next change.
HIGHEST_SHARE = 0.85
_STACK = "s" * 64
_REGION, _ACCOUNT = "us-gov-west-1", "123456789012"
_PARTITION = "aws-us-gov"
_PSEUDO_PARAMETERS = {
    "AWS::AccountId": _ACCOUNT,
    "AWS::Partition": _PARTITION,
    "AWS::Region": _REGION,
    "AWS::StackId": f"arn:{_PARTITION}:cloudformation:{_REGION}:{_ACCOUNT}:stack/{_STACK}/{'i' * 36}",
    "AWS::StackName": _STACK,
    "AWS::URLSuffix": "amazonaws.com",
}
# As long as an ARN, a name, or an address of a resource can be: that of a secret, with a name that CloudFormation
# makes up.
_LONGEST = "r" * 155
# A resolved secret: during a rotation it has two values of 64 characters.
_SECRET = json.dumps({"current": "x" * 64, "previous": "x" * 64})

type Template = Mapping[str, Any]


class Measured(NamedTuple):
    """A size and AWS's limit of it. `what` names the resource."""

    what: str
    size: int
    limit: int

    @property
    def share(self) -> float:
        return self.size / self.limit


def excesses(measured: list[Measured]) -> list[str]:
    """Returns a sentence for each size that leaves too little room."""
    return [
        f"{it.what}: {it.size:,} is {it.share:.0%} of AWS's limit of {it.limit:,}, and more than {HIGHEST_SHARE:.0%}"
        for it in measured
        if it.share > HIGHEST_SHARE
    ]


def measure(template: Template) -> list[Measured]:
    """Returns all sizes of a transformed template with decided conditions."""
    return [*of_roles(template), *of_functions(template), *of_gateway(template)]


def of_roles(template: Template) -> Iterator[Measured]:
    """Yields the policies' sizes, as IAM counts them: without white space, and a role's own ones together."""
    inline: dict[str, int] = {}
    for name, resource in template["Resources"].items():
        properties = resource.get("Properties", {})
        if resource["Type"] == "AWS::IAM::Role":
            sizes = [_size(it["PolicyDocument"], template) for it in properties.get("Policies", [])]
            inline[name] = inline.get(name, 0) + sum(sizes)
        elif resource["Type"] == "AWS::IAM::Policy":
            for role in properties["Roles"]:
                inline[role["Ref"]] = inline.get(role["Ref"], 0) + _size(properties["PolicyDocument"], template)
        elif resource["Type"] == "AWS::IAM::ManagedPolicy":
            yield Measured(f"the policy {name}", _size(properties["PolicyDocument"], template), 6_144)
    for name, size in inline.items():
        yield Measured(f"the inline policies of {name}", size, 10_240)


def of_functions(template: Template) -> Iterator[Measured]:
    """Yields the sizes that Lambda limits: a function's variables, as JSON, and its resource policy."""
    invokers: dict[str, list[dict[str, Any]]] = {}
    for name, resource in template["Resources"].items():
        properties = resource.get("Properties", {})
        if resource["Type"] == "AWS::Lambda::Function":
            variables = properties.get("Environment", {}).get("Variables", {})
            yield Measured(f"the environment of {name}", _size(variables, template), 4_096)
        elif resource["Type"] == "AWS::Lambda::Permission":
            target = properties["FunctionName"]
            invokers.setdefault(target.get("Ref") or target["Fn::GetAtt"][0], []).append(
                {
                    "Sid": f"{_STACK}-{name}-123456789012"[:100],
                    "Effect": "Allow",
                    "Principal": {"Service": properties["Principal"]},
                    "Action": properties["Action"],
                    "Resource": {"Fn::GetAtt": [target.get("Ref") or target["Fn::GetAtt"][0], "Arn"]},
                    "Condition": {"ArnLike": {"AWS:SourceArn": properties["SourceArn"]}},
                }
            )
    for name, statements in invokers.items():
        policy = {"Version": "2012-10-17", "Id": "default", "Statement": statements}
        yield Measured(f"the resource policy of {name}", _size(policy, template), 20_480)


def of_gateway(template: Template) -> Iterator[Measured]:
    """Yields the number of resources of each API: one for each part of a path."""
    for name, resource in template["Resources"].items():
        if resource["Type"] == "AWS::ApiGateway::RestApi":
            parts = [path.strip("/").split("/") for path in resource["Properties"]["Body"]["paths"]]
            found = {tuple(it[:length]) for it in parts for length in range(len(it) + 1)} - {("",)}
            yield Measured(f"the resources of {name}", len(found), 300)


def _size(node: Any, template: Template) -> int:
    # SAM's own ARNs are of the region in which it transforms.
    compact = json.dumps(resolved(node, template), separators=(",", ":"))
    return len(compact.replace("arn:aws:", f"arn:{_PARTITION}:").encode())


def resolved(node: Any, template: Template) -> Any:
    """Returns the node with a value in place of each function."""
    match node:
        case {"Ref": name}:
            if name in template["Parameters"]:
                return str(template["Parameters"][name].get("Default", ""))
            return _PSEUDO_PARAMETERS.get(name, _LONGEST)
        case {"Fn::GetAtt": _}:
            return _LONGEST
        case {"Fn::Sub": [text, values]}:
            plain = re.sub(r"\{\{resolve:secretsmanager:.*\}\}", lambda _: _SECRET, text)
            given = {name: resolved(value, template) for name, value in values.items()}
            return re.sub(r"\$\{([^}]+)\}", lambda it: given.get(it[1]) or resolved({"Ref": it[1]}, template), plain)
        case {"Fn::Sub": text}:
            return resolved({"Fn::Sub": [text, {}]}, template)
        case {"Fn::Join": [separator, parts]}:
            return separator.join(resolved(it, template) for it in parts)
        case dict():
            return {key: resolved(value, template) for key, value in node.items()}
        case list():
            return [resolved(value, template) for value in node]
    return node
