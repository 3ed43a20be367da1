"""Writes docs/openapi.json and the table of operations. `--check` compares instead, for `make lint`."""

import argparse
import json
import os
import sys

from scripts.openapi.texts import BASE_URL, DOCUMENT, OPERATIONS, PAGES_URL

# The settings used in examples. They are read when the first function is imported.
os.environ |= {
    "TABLE_NAME": "assent",
    "PUBLIC_BASE_URL": BASE_URL,
    "DASHBOARD_BASE_URL": PAGES_URL,
    "SERVICE_BRAND": "assent",
    "LIBRARY_BRAND": "openassent",
    "DEVICE_AUTHORIZATION_ENABLED": "true",
    "AWS_DEFAULT_REGION": "eu-central-1",
    "POWERTOOLS_METRICS_NAMESPACE": "assent",
}

from scripts.openapi import operation_table
from scripts.openapi.document import describe


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if a file is out of date")
    options = parser.parse_args()
    document = describe()
    texts = {
        DOCUMENT: json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n",
        OPERATIONS: operation_table.describe(document),
    }
    for path, text in texts.items():
        if not options.check:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            sys.exit(f"{path.name} is out of date: run `make openapi`")


if __name__ == "__main__":
    main()
