"""The version of the rules: scans of the same files with the same version have the same report."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, fields, replace
from functools import cache
from typing import Any, Final

from scan_execution.analysis.catalogue import Vendor, catalogue
from scan_execution.analysis.libraries import Library, libraries
from scan_execution.analysis.rules import Rule, rules

_OF_VENDOR: Final = tuple(field.name for field in fields(Vendor))


def version_of(used: Iterable[Rule], vendors: Iterable[Vendor], outdated: Iterable[Library]) -> str:
    """Returns a digest of the rules with the vendors and libraries that they name. Ignores comments and samples."""
    parts: list[Any] = [asdict(replace(rule, samples={})) for rule in used]
    # There are thousands of vendors, and `asdict` copies each value.
    parts += [[getattr(vendor, name) for name in _OF_VENDOR] for vendor in vendors]
    parts += [asdict(library) for library in outdated]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


@cache
def rules_version() -> str:
    """Returns the version of the shipped rules, which is computed once."""
    return version_of(rules(), catalogue().vendors.values(), libraries().values())
