"""The rules as data: one file each, validated when read, and the version of all that decides about findings.

`match` defines, per group of languages, which code is a candidate (an ast-grep rule, or the name of one in
shared.yml); `where` adds conditions (conditions.py). A file that contains none of a rule's `triggers`, or none of its
`requires`, has no candidates for it and isn't parsed for it. These words have no blanks. The tests check the `samples`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from openassent_analysis.catalogue import CALLS, Vendor, shipped_catalogue
from openassent_analysis.findings import CATEGORIES, SEVERITIES
from openassent_analysis.libraries import Library, libraries
from openassent_analysis.reading import LISTS, load_yaml, resource

# Placeholders that only a finding's texts have.
_ANY: Final = {"library": "a consent library", "vendors": "trackers", "host": "another host"}
_DETAIL: Final = re.compile(r": \{why\}| \(\{version\}\)")
# In `the {vendor} package`, the article is the package's.
_ARTICLE_AND_VENDOR: Final = re.compile(r"\b([Tt]he|[Aa]n?) \{vendor\}")
_START_OF_SENTENCE: Final = re.compile(r"(?:^|(?<=\. ))[a-z]")
# The names of `blocks`' places in rules.
_PLACE: Final = "place-of-markup"
RULES: Final = Path(__file__).with_name("resources") / "rules"
# The tree languages of each group of `match`.
GROUPS: Final = {
    "html": frozenset({"html"}),
    "script": frozenset({"javascript", "typescript", "tsx"}),
    "python": frozenset({"python"}),
}
# manifest: package manifests and lock files; project: the whole tree, after all files are read.
ENGINES: Final = ("syntax", "manifest", "project")


class InvalidRule(Exception):
    """A rule file is invalid."""


@dataclass(frozen=True, slots=True)
class Rule:
    id: str
    title: str
    description: str
    category: str
    severity: str
    remediation: str
    references: tuple[str, ...]
    languages: tuple[str, ...]
    # Replaces {vendor} in texts for all findings: `a tag manager`.
    any_vendor: str = ""
    # Replaces {does}: what vendors of the rule's categories do, unless the vendor's own entry says it.
    does: str = ""
    engine: str = "syntax"
    triggers: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    # Candidates by tree language. Equal ones are the same object, and are searched for once per tree.
    match: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # True if calls that start a vendor (vendor-calls.yaml) are candidates, too.
    calls: bool = False
    where: Mapping[str, Any] = field(default_factory=dict)
    # The capture to report as the finding's location, instead of the whole candidate.
    report: str | None = None
    # Code samples, each {path, code}; not needed to run the rule.
    samples: Mapping[str, Any] = field(default_factory=dict)

    @property
    def vendor_categories(self) -> frozenset[str]:
        condition = self.where.get("vendor") or {}
        return frozenset(condition.get("categories", ()))

    @property
    def package_categories(self) -> frozenset[str]:
        condition = self.where.get("package") or {}
        return frozenset(condition.get("categories", ()))

    def severity_of(self, vendor: Vendor | None) -> str:
        """Returns the severity of a finding about a vendor."""
        if vendor is None or not vendor.severity or self.category != "trackers":
            return self.severity
        return max(self.severity, vendor.severity, key=SEVERITIES.index)

    def description_of(self, vendor: Vendor | None, names: Mapping[str, str]) -> str:
        """Returns the description of a finding, whose placeholders have these values."""
        does = (vendor.does if vendor else "") or self.does.strip()
        return self.description.strip().format_map({**names, "does": does})

    def texts(self) -> dict[str, str]:
        """Returns title, description, and remediation for all findings of the rule, without names of vendors."""
        return {name: self._for_all(getattr(self, name)) for name in ("title", "description", "remediation")}

    def _for_all(self, text: str) -> str:
        text = text.strip()
        if "{" not in text:
            return text
        text = _ARTICLE_AND_VENDOR.sub(r"\1", _DETAIL.sub("", text))
        filled = text.format_map({**_ANY, "vendor": self.any_vendor, "does": self.does.strip()})
        return _START_OF_SENTENCE.sub(lambda start: start[0].upper(), filled)


def read_rules(folder: Path) -> Iterator[Rule]:
    shared = {name: _per_group(match) for name, match in load_yaml(folder / "shared.yml").items()}
    for path in sorted(folder.glob("*/*.yml")):
        rule = _rule(path, load_yaml(path), shared)
        if (rule.category, rule.id) != (path.parent.name, path.stem):
            raise InvalidRule(f"{path}: category and id are the names of folder and file")
        yield rule


def _rule(path: Path, written: dict[str, Any], shared: Mapping[str, Any]) -> Rule:
    try:
        rule = Rule(
            **{
                **written,
                "references": tuple(written["references"]),
                "languages": tuple(written["languages"]),
                "triggers": tuple(written.get("triggers", ())),
                "requires": tuple(written.get("requires", ())),
                "match": _per_language(written.get("match", {}), shared),
            }
        )
    except (KeyError, TypeError) as failure:
        raise InvalidRule(f"{path}: {failure}") from failure
    for value, known in ((rule.category, CATEGORIES), (rule.severity, SEVERITIES), (rule.engine, ENGINES)):
        if value not in known:
            raise InvalidRule(f"{path}: {value} isn't one of {', '.join(known)}")
    if (rule.engine == "syntax") != bool(rule.match):
        raise InvalidRule(
            f"{path}: match must name one or more of {', '.join(GROUPS)} if, and only if, the engine is syntax"
        )
    return rule


def _per_language(match: Mapping[str, Any], shared: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for group, candidates in match.items():
        configs = shared[candidates["uses"]] if "uses" in candidates else _per_group(candidates)
        found |= {language: configs[language] for language in GROUPS[group] if configs.get(language)}
    return found


def _per_group(candidates: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the candidates by language. TypeScript's own grammar has no JSX and rejects rules that mention it."""
    config = dict(candidates) if "rule" in candidates else {"rule": candidates}
    if _PLACE in str(config):
        config["utils"] = {_PLACE: resource("queries")["place_of_markup"]}
    plain = _without_jsx(config["rule"])
    configs: dict[str, Any] = {language: config for languages in GROUPS.values() for language in languages}
    return configs | {"typescript": {**config, "rule": plain} if plain else None}


def _without_jsx(rule: Any) -> Any:
    if isinstance(rule, dict):
        if str(rule.get("kind", "")).startswith("jsx_"):
            return None
        kept = {key: _without_jsx(part) for key, part in rule.items()}
        return None if None in kept.values() else kept
    if isinstance(rule, list):
        branches = [branch for branch in map(_without_jsx, rule) if branch is not None]
        return branches or None
    return rule


@cache
def rules() -> tuple[Rule, ...]:
    """Returns the shipped rules, which are read once."""
    return tuple(read_rules(RULES))


# Bump it with every change of the code that can change findings, or their confidence: how files are read, what
# counts as a load, and what counts as a gate. The data files are part of the version by themselves.
ANALYSIS: Final = 10

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
    return {**load_yaml(CALLS), "general": sorted(shipped_catalogue().general), "lists": lists}


@cache
def rules_version() -> str:
    """Returns the version of the shipped rules, which is computed once."""
    return version_of(rules(), shipped_catalogue().vendors.values(), libraries().values(), other_facts())
