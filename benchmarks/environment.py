"""The environment of this process and the measured ones. Set it before importing the store, which reads it."""

import os
from typing import Any

from local.template import load_template

# Values that only a deployment has.
DEPLOYED = {
    "TABLE_NAME": "benchmark-table",
    "SIGNING_SECRET": "benchmark-signing-secret-of-enough-length-to-be-one",
    "PUBLIC_BASE_URL": "https://api.example.com",
    "DASHBOARD_BASE_URL": "https://dashboard.example.com",
    # So large that no measured request reserves a block of them.
    "REQUESTS_PER_MINUTE_USER": "1000000",
    "ORGANIZATION_RATE_FACTOR": "10000",
}
PEER_TABLE = "benchmark-peer"

# A role's session token is about this long, and it is hashed into every signature.
LAMBDA = {
    "AWS_REGION": "eu-central-1",
    "AWS_DEFAULT_REGION": "eu-central-1",
    "AWS_ACCESS_KEY_ID": "ASIABENCHMARKBENCH00",
    "AWS_SECRET_ACCESS_KEY": "benchmarkbenchmarkbenchmarkbenchmark0000",
    "AWS_SESSION_TOKEN": "b" * 900,
    "AWS_LAMBDA_FUNCTION_NAME": "benchmark",
    "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
    "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "1769",
    "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
    "AWS_EXECUTION_ENV": "AWS_Lambda_python3.13",
    "AWS_EC2_METADATA_DISABLED": "true",
    "POWERTOOLS_SERVICE_NAME": "benchmark",
    "POWERTOOLS_METRICS_NAMESPACE": "benchmark",
}
SYSTEM = {"TZ": ":UTC", "LANG": "en_US.UTF-8", "PATH": "/usr/local/bin:/usr/bin:/bin"}


def apply() -> None:
    os.environ.update({**LAMBDA, **DEPLOYED})


def environments() -> dict[str, dict[str, str]]:
    """Returns the variables of each of the template's API functions, by group."""
    template = load_template()
    shared = template["Globals"]["Function"]["Environment"]["Variables"]
    found = {}
    for resource in template["Resources"].values():
        properties = resource.get("Properties", {})
        if resource["Type"] == "AWS::Serverless::Function" and any(
            event["Type"] == "Api" for event in properties.get("Events", {}).values()
        ):
            variables = {**shared, **properties.get("Environment", {}).get("Variables", {})}
            group = properties["Handler"].partition(".")[0]
            found[group] = {name: _value(template, name, value) for name, value in variables.items()}
    return found


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
