"""No function imports an AWS SDK, neither at its start nor while it serves a request: see docs/decisions/0059.

The worker of website audits, which has no shared layer, does.
"""

import json
from pathlib import Path

from tests.support.cold_start import run_as_lambda

ROOT = Path(__file__).parents[2]
FUNCTIONS = {path.parent.name for path in (ROOT / "functions").glob("*/app.py")} - {"website_audits"}
SDK = {"boto3", "botocore", "s3transfer"}
# These call the code host, or the sign-in issuer, through libraries that use urllib3.
WITH_URLLIB3 = {"dashboard", "github_events", "issue_creation", "scan_execution", "scan_preparation"}

# Imports functions as Lambda does, one after the other, and calls the table and the queues through the clients of a
# deployment. Prints which packages are loaded after each function.
PROGRAM = """
import importlib, json, sys

from controlplane.platform.queues import messages
from controlplane.platform.table.table import StoreError, table

for name in sys.argv[1:]:
    importlib.import_module(name + ".app")
    for call in (table.ping, lambda: messages.send("scan-execution", {})):
        try:
            call()
        except (StoreError, messages.Unreachable):
            pass
    print(json.dumps({"function": name, "loaded": sorted({name.partition(".")[0] for name in sys.modules})}))
"""


def test_functions_call_aws_without_an_sdk():
    names = [*sorted(FUNCTIONS - WITH_URLLIB3), *sorted(WITH_URLLIB3)]
    # Nothing listens at the endpoint.
    settings = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "LOG_LEVEL": "CRITICAL"}
    lines = run_as_lambda(PROGRAM, *names, without=("AWS_CLIENT",), **settings)
    reports = {report["function"]: {*report["loaded"]} for report in map(json.loads, lines)}
    assert reports.keys() == FUNCTIONS
    for function, loaded in reports.items():
        assert "controlplane" in loaded
        assert not loaded & SDK, function
        assert function in WITH_URLLIB3 or "urllib3" not in loaded, function
