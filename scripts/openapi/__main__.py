"""Writes docs/openapi.json. `--check` compares instead, for `make lint`."""

import argparse
import json
import os
import sys
from typing import Any

from scripts.openapi.texts import BASE_URL, DOCUMENT, PAGES_URL

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

from scripts.openapi.document import describe


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if a file is out of date")
    options = parser.parse_args()
    text = _lines(describe(), 3) + "\n"
    if not options.check:
        DOCUMENT.write_text(text)
    elif not DOCUMENT.exists() or DOCUMENT.read_text() != text:
        sys.exit(f"{DOCUMENT.name} is out of date: run `make openapi`")


def _lines(value: Any, depth: int) -> str:
    """Returns compact JSON in which each operation and each component has its own line, for readers of changes."""
    if not depth or not isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return "{\n" + ",\n".join(f"{json.dumps(key)}:{_lines(part, depth - 1)}" for key, part in value.items()) + "\n}"


if __name__ == "__main__":
    main()
