"""The environment of this process and the measured ones. Set it before importing the store, which reads it."""

import os

# Values that only a deployment has.
DEPLOYED = {
    "TABLE_NAME": "benchmark-table",
    # High limits: the cost of a request is measured, not its rejection.
    "INVITATIONS_PER_ORGANIZATION": "100000",
    "SIGNING_SECRET": "benchmark-signing-secret-of-enough-length-to-be-one",
    "PUBLIC_BASE_URL": "https://api.example.com",
    "DASHBOARD_BASE_URL": "https://dashboard.example.com",
    "SCAN_PREPARATION_QUEUE_URL": "https://sqs.eu-central-1.amazonaws.com/000000000000/scan-preparation",
    "SCAN_EXECUTION_QUEUE_URL": "https://sqs.eu-central-1.amazonaws.com/000000000000/scan-execution",
    "ISSUE_CREATION_QUEUE_URL": "https://sqs.eu-central-1.amazonaws.com/000000000000/issue-creation",
    # So large that no measured request reserves a block of them.
    "REQUESTS_PER_MINUTE_USER": "1000000",
    "ORGANIZATION_RATE_FACTOR": "10000",
}
# No worker runs: a request that waits for one polls once, and responds that it isn't done.
AT_ONCE = {"SCAN_START_WAIT_SECONDS": "0", "ISSUE_WAIT_SECONDS": "0"}
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
