"""The version of the rules: two scans of the same files with the same version report the same."""

import hashlib
import json
from dataclasses import asdict, replace
from functools import cache
from typing import Any

from scan_execution.analysis.catalogue import catalogue
from scan_execution.analysis.libraries import libraries
from scan_execution.analysis.rules import rules


@cache
def rules_version() -> str:
    """Returns a digest of the rules, the vendors, and the consent libraries, without comments and samples."""
    parts: list[Any] = [asdict(replace(rule, samples={})) for rule in rules()]
    parts += [asdict(vendor) for vendor in catalogue().vendors.values()]
    parts += [asdict(library) for library in libraries().values()]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
