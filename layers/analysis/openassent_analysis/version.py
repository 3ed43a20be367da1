"""The version of the rules: scans of the same files with the same version have the same report."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields, replace
from functools import cache
from typing import Any, Final

from openassent_analysis.catalogue import CALLS, Vendor, catalogue
from openassent_analysis.libraries import Library, libraries
from openassent_analysis.reading import LISTS, load_yaml, resource
from openassent_analysis.rules import Rule, rules

# Bump it with every change of the code that can change findings, or their confidence: how files are read, what
# counts as a load, and what counts as a gate. The data files are part of the version by themselves.
ANALYSIS: Final = 8

_OF_VENDOR: Final = tuple(field.name for field in fields(Vendor))


def version_of(
    used: Iterable[Rule],
    vendors: Iterable[Vendor],
    outdated: Iterable[Library],
    facts: Mapping[str, Any],
    analysis: int = ANALYSIS,
) -> str:
    """Returns a digest of the rules, the vendors and libraries that they name, and further facts (see `other_facts`).

    Ignores comments and samples.
    """
    parts: list[Any] = [analysis, facts]
    parts += [asdict(replace(rule, samples={})) for rule in used]
    # There are thousands of vendors, and `asdict` copies each value.
    parts += [[getattr(vendor, name) for name in _OF_VENDOR] for vendor in vendors]
    parts += [asdict(library) for library in outdated]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def other_facts() -> dict[str, Any]:
    """Returns the facts about calls, hosts, and names that no rule, vendor, or library contains."""
    lists = {name: resource(name) for name in LISTS}
    return {**load_yaml(CALLS), "general": sorted(catalogue().general), "lists": lists}


@cache
def rules_version() -> str:
    """Returns the version of the shipped rules, which is computed once."""
    return version_of(rules(), catalogue().vendors.values(), libraries().values(), other_facts())
