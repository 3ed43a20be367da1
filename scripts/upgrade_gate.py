"""Compares the template with a release's, so that an upgrade loses no data. Part of `make template`.

AWS's own resource schemas, which cfn-lint includes, say whether a changed property replaces its resource. Runs in SAM's
environment.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from local.checkout import ROOT
from local.template import NESTED, TEMPLATE
from scripts.releases import git

# Replacing one of these loses data, logs, people, or the key that signs tokens.
STATEFUL_TYPES = (
    "AWS::Backup::BackupVault",
    "AWS::Cognito::UserPool",
    "AWS::DynamoDB::Table",
    "AWS::Logs::LogGroup",
    "AWS::SecretsManager::Secret",
    "AWS::SQS::Queue",
)
_SOURCES = {path.name for path in (TEMPLATE, *NESTED.values())}
# The region whose schemas are used. They hardly differ.
_REGION = "us-east-1"

type Template = Mapping[str, Any]
# Returns the properties of a resource type that can't change without replacing the resource, as names.
type CreateOnly = Callable[[str], set[str]]


def create_only(kind: str) -> set[str]:
    """Returns the type's properties that AWS's schema declares as create-only, always or for some changes."""
    from cfnlint.schema import PROVIDER_SCHEMA_MANAGER  # noqa: PLC0415 (only in SAM's environment)

    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema(_REGION, kind).schema
    pointers = [*schema.get("createOnlyProperties", []), *schema.get("conditionalCreateOnlyProperties", [])]
    return {pointer.split("/")[2] for pointer in pointers}


def compare(before: Template, after: Template, create_only: CreateOnly) -> list[str]:
    """Returns the changes that an upgrade must not make. Both templates are transformed, with decided conditions."""
    found = []
    for name, old in before["Resources"].items():
        if old["Type"] not in STATEFUL_TYPES:
            continue
        new = after["Resources"].get(name)
        if new is None or new["Type"] != old["Type"]:
            found.append(f"{name} is removed. It holds data: keep it, or retain it and say so in the changelog.")
            continue
        one, other = old.get("Properties", {}), new.get("Properties", {})
        found += [
            f"{name}: a change of {field} replaces the resource, without its data."
            for field in sorted(create_only(old["Type"]))
            if one.get(field) != other.get(field)
        ]
        found += [
            f"{name} is no longer retained ({policy})."
            for policy in ("DeletionPolicy", "UpdateReplacePolicy")
            if old.get(policy) == "Retain" != new.get(policy)
        ]
        found += _index_problems(name, one, other)
    new_parameters = after["Parameters"].keys() - before["Parameters"].keys()
    found += [
        f"The new parameter {name} has no default, so a stack can't be upgraded without it."
        for name in sorted(new_parameters)
        if "Default" not in after["Parameters"][name]
    ]
    return found


def _index_problems(name: str, before: Template, after: Template) -> list[str]:
    """Returns the changes of indexes that DynamoDB refuses: an update can create or delete one, and change none."""
    old, new = ({index["IndexName"]: index for index in it.get("GlobalSecondaryIndexes", [])} for it in (before, after))
    found = [
        f"{name}: the index {index} can't be changed. Add one with another name."
        for index in sorted(old.keys() & new.keys())
        if old[index] != new[index]
    ]
    moved = sorted(old.keys() ^ new.keys())
    if len(moved) > 1:
        found.append(f"{name}: an update can add or remove one index only, not {', '.join(moved)}.")
    return found


def problems(commit: str, resolved: Callable[[Path], list[Template]]) -> list[str]:
    """Returns the problems of upgrading a stack from the release that the commit named.

    resolved: returns the template in a folder, once for each variant of its parameters.
    """
    with TemporaryDirectory() as directory:
        listed = git(ROOT, "ls-tree", "--name-only", commit).split()
        for source in _SOURCES.intersection(listed):
            (Path(directory) / source).write_text(git(ROOT, "show", f"{commit}:{source}"))
        pairs = list(zip(resolved(Path(directory)), resolved(ROOT), strict=True))
    return sorted({problem for before, after in pairs for problem in compare(before, after, create_only)})
