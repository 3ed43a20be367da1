"""Checks the IAM policies of transformed templates with parliament. Part of `make template`.

Runs in parliament's environment. Arguments are files of templates without conditions. Prints its findings as JSON: a
list of the file's name, the rule, and the resource.
"""

import json
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

_ACCOUNT = "eu-central-1:123456789012"
# The ARNs of the resources that policies name, by type; of applications, the name that their ARN contains.
_ARNS = {
    "AWS::CodeDeploy::Application": "{}",
    "AWS::DynamoDB::Table": f"arn:aws:dynamodb:{_ACCOUNT}:table/{{}}",
    "AWS::Events::Rule": f"arn:aws:events:{_ACCOUNT}:rule/{{}}",
    "AWS::Lambda::Function": f"arn:aws:lambda:{_ACCOUNT}:function:{{}}",
    "AWS::Logs::LogGroup": f"arn:aws:logs:{_ACCOUNT}:log-group:{{}}:*",
    "AWS::SecretsManager::Secret": f"arn:aws:secretsmanager:{_ACCOUNT}:secret:{{}}",
    "AWS::Serverless::Function": f"arn:aws:lambda:{_ACCOUNT}:function:{{}}",
    "AWS::SQS::Queue": f"arn:aws:sqs:{_ACCOUNT}:{{}}",
}
_PSEUDO_PARAMETERS = {
    "AWS::AccountId": "123456789012",
    "AWS::Partition": "aws",
    "AWS::Region": "eu-central-1",
    "AWS::StackName": "assent",
}

type Template = Mapping[str, Any]


def policies(template: Template) -> Iterator[tuple[str, dict[str, Any]]]:
    """Returns each policy with the name of its resource. References are replaced by made-up ARNs.

    Trust policies are left out: parliament demands a resource in each statement.
    """
    for name, resource in template["Resources"].items():
        properties = resource.get("Properties", {})
        documents = [properties["PolicyDocument"]] if "PolicyDocument" in properties else []
        if resource["Type"] == "AWS::IAM::Role":
            documents += [policy["PolicyDocument"] for policy in properties.get("Policies", [])]
        for document in documents:
            yield name, resolved(document, template)


def resolved(node: Any, template: Template) -> Any:
    """Returns the node with a value in place of each function. Raises KeyError if a resource's ARN isn't known."""
    match node:
        case {"Ref": name} if name in template["Parameters"]:
            return str(template["Parameters"][name].get("Default", ""))
        case {"Ref": name} if name in _PSEUDO_PARAMETERS:
            return _PSEUDO_PARAMETERS[name]
        case {"Ref": name} | {"Fn::GetAtt": [name, "Arn" | "Id"]}:
            return _ARNS[template["Resources"][name]["Type"]].format(name)
        case {"Fn::Sub": [text, values]}:
            return re.sub(r"\$\{([^}]+)\}", lambda it: resolved(values.get(it[1], _reference(it[1])), template), text)
        case {"Fn::Sub": text}:
            return resolved({"Fn::Sub": [text, {}]}, template)
        case dict():
            return {key: resolved(value, template) for key, value in node.items()}
        case list():
            return [resolved(value, template) for value in node]
    return node


def _reference(name: str) -> dict[str, Any]:
    """Returns the reference for a name in the text of `Fn::Sub`."""
    return {"Fn::GetAtt": name.split(".", 1)} if "." in name else {"Ref": name}


def _rule(finding: Any) -> str:
    """Returns the issue with the action that AWS's list restricts, so that an accepted one hides no other."""
    if finding.issue != "RESOURCE_MISMATCH":
        return str(finding.issue)
    return f"{finding.issue}[{', '.join(sorted(it['action'] for it in finding.detail))}]"


def main(paths: list[str]) -> int:
    # parliament imports pkg_resources, which warns that it is deprecated.
    warnings.simplefilter("ignore")
    from parliament import analyze_policy_string  # noqa: PLC0415 (only in its own environment)

    found = []
    for path in map(Path, paths):
        checked = list(policies(json.loads(path.read_text(encoding="utf-8"))))
        if not checked:
            found.append((path.stem, "policies", "The template has no policies."))
        for name, document in checked:
            findings = analyze_policy_string(json.dumps(document), include_community_auditors=True).findings
            found += [(path.stem, _rule(it), f"{name}: {it.detail} {it.location}") for it in findings]
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
