"""Reads a repository's `.assent.yml`: what the scans of the service and of the command line read and report.

    exclude: [legacy/]
    include: [demo/]
    severity:
      analytics-loaded: off
    vendors:
      - {id: acme-metrics, name: Acme Metrics, category: analytics, domains: [metrics.acme.example]}
    accept:
      - {vendor: acme-metrics, reason: "Counts without cookies, see DPO-12"}

The file is YAML of a tenant. So the sandboxed process parses it (`parsed`), and the reading process checks the result
once more (`read_project_file`).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from typing import Any, Final, TypeAlias

import yaml

from openassent_analysis.catalogue import Vendor, shipped_catalogue
from openassent_analysis.findings import SEVERITIES
from openassent_analysis.reading import loader
from openassent_analysis.report import Examine, Report, Request
from openassent_analysis.rules import rules
from openassent_analysis.selection import OFF, PROJECT_FILE, InvalidGlob, Selection, expression_of

# How the sandboxed process is asked to parse the file.
LANGUAGE: Final = "project file"
MAX_BYTES: Final = 64 * 1024
_MAX_SECONDS: Final = 60.0
_MAX_GLOBS: Final = 200
_MAX_VENDORS: Final = 50
_MAX_ACCEPTED: Final = 200
_MAX_NAMES: Final = 20
_MAX_TEXT: Final = 300
_MAX_DEPTH: Final = 4
_ID: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,60}[a-z0-9])?")
_DOMAIN: Final = re.compile(r"(?:[a-z0-9_-]{1,63}\.){1,8}[a-z]{2,24}(?:/[\w./-]{0,100})?")
_PACKAGE: Final = re.compile(r"[@\w][\w./@-]{0,99}")
Keys: TypeAlias = tuple[str | int, ...]
# Events that surround the values.
_AROUND: Final = (yaml.StreamStartEvent, yaml.StreamEndEvent, yaml.DocumentStartEvent, yaml.DocumentEndEvent)
_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})


class InvalidProjectFile(ValueError):
    """The file isn't valid; the argument names line and key, and says why."""


class _Wrong(Exception):
    """A value isn't valid: its keys from the top, and why."""

    def __init__(self, keys: Keys, why: str) -> None:
        super().__init__(why)
        self.keys = keys


def read_project_file(content: bytes, examine: Examine) -> Selection:
    """Returns what the file selects. Raises InvalidProjectFile."""
    if len(content) > MAX_BYTES:
        raise InvalidProjectFile(f"{PROJECT_FILE} has more than {MAX_BYTES // 1024} KB.")
    request = Request(PROJECT_FILE, LANGUAGE, content)
    for _, outcome in examine(iter([request]), time.monotonic() + _MAX_SECONDS):
        if isinstance(outcome, Report):
            return _selection_of(outcome.settings)
        if str(outcome) == "empty":
            return Selection()
    raise InvalidProjectFile(f"{PROJECT_FILE} can't be read.")


def _selection_of(written: str) -> Selection:
    try:
        document = json.loads(written)
        if isinstance(document, str):
            raise InvalidProjectFile(document)
        return _select(document)
    except (ValueError, RecursionError, _Wrong) as failure:
        if isinstance(failure, InvalidProjectFile):
            raise
        raise InvalidProjectFile(f"{PROJECT_FILE} can't be read.") from failure


def parsed(text: str) -> str:
    """Returns the valid file as JSON, or as a string of JSON why it isn't valid. Runs in the sandboxed process."""
    lines: dict[Keys, int] = {}
    try:
        document = _document(text, lines)
        _select(document)
    except _Wrong as wrong:
        keys = wrong.keys
        while keys and keys not in lines:
            keys = keys[:-1]
        key = ".".join(map(str, wrong.keys))
        return json.dumps(f"{PROJECT_FILE}, line {lines.get(keys, 1)}: {f'{key}: ' if key else ''}{wrong}."[:_MAX_TEXT])
    except (yaml.YAMLError, ValueError) as failure:
        mark = getattr(failure, "problem_mark", None)
        return json.dumps(f"{PROJECT_FILE}, line {mark.line + 1 if mark else 1}: it isn't valid YAML.")
    return json.dumps(document, ensure_ascii=False)


def _document(text: str, lines: dict[Keys, int]) -> Any:
    """Returns the values of the text's one document, and notes the lines of all keys."""
    events = (it for it in yaml.parse(text, loader()) if not isinstance(it, _AROUND))
    first = next(events, None)
    document = {} if first is None else _value(first, events, (), lines)
    if (other := next(events, None)) is not None:
        lines[()] = _line_of(other)
        raise _Wrong((), "it has more than one document")
    return {} if document is None else document


def _line_of(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _value(event: Any, events: Iterator[Any], keys: Keys, lines: dict[Keys, int]) -> Any:
    lines.setdefault(keys, _line_of(event))
    if len(keys) > _MAX_DEPTH:
        raise _Wrong(keys, "it is nested too deep")
    if isinstance(event, yaml.ScalarEvent):
        # As text: `off` is a word of YAML 1.1 for false.
        return None if event.implicit[0] and event.value in _NULL else event.value
    if isinstance(event, yaml.SequenceStartEvent):
        entries = takewhile(lambda it: not isinstance(it, yaml.SequenceEndEvent), events)
        return [_value(it, events, (*keys, index), lines) for index, it in enumerate(entries)]
    if not isinstance(event, yaml.MappingStartEvent):
        raise _Wrong(keys, "aliases aren't supported")
    found: dict[str, Any] = {}
    while not isinstance(key := next(events), yaml.MappingEndEvent):
        name = key.value if isinstance(key, yaml.ScalarEvent) else ""
        lines[*keys, name] = _line_of(key)
        if name in found or not isinstance(key, yaml.ScalarEvent):
            raise _Wrong((*keys, name), "the key isn't a name, or is there twice")
        found[name] = _value(next(events), events, (*keys, name), lines)
    return found


def _select(document: Any) -> Selection:
    """Returns the selection of a document. Raises _Wrong."""
    known = _mapping(document, (), {"exclude", "include", "severity", "vendors", "accept"})
    vendors = tuple(_vendors(known.get("vendors")))
    ids = shipped_catalogue().vendors.keys() | {vendor.id for vendor in vendors}
    return Selection(
        exclude=_texts(known.get("exclude"), ("exclude",), _MAX_GLOBS, _check_glob),
        include=_texts(known.get("include"), ("include",), _MAX_GLOBS, _check_glob),
        severities=_severities(known.get("severity")),
        vendors=vendors,
        accepted=dict(_accepted(known.get("accept"), ids)),
    )


def _severities(value: Any) -> dict[str, str]:
    known = {rule.id for rule in rules()}
    found = _mapping({} if value is None else value, ("severity",), known, "there is no such rule")
    for rule_id, severity in found.items():
        if severity not in {OFF, *SEVERITIES}:
            raise _Wrong(("severity", rule_id), f"it must be one of {OFF}, {', '.join(SEVERITIES)}")
    return found


def _vendors(value: Any) -> Iterator[Vendor]:
    categories = {vendor.category for vendor in shipped_catalogue().vendors.values()}
    for index, entry in enumerate(_list(value, ("vendors",), _MAX_VENDORS)):
        at = ("vendors", index)
        given = _mapping(entry, at, {"id", "name", "category", "domains", "packages"})
        vendor_id, name, category = (_text(given.get(key), (*at, key)) for key in ("id", "name", "category"))
        if not _ID.fullmatch(vendor_id):
            raise _Wrong((*at, "id"), "it must have lowercase letters, digits, and hyphens only")
        if category not in categories:
            raise _Wrong((*at, "category"), f"it must be one of {', '.join(sorted(categories))}")
        domains = _texts(given.get("domains"), (*at, "domains"), _MAX_NAMES, _matching(_DOMAIN, "a domain"))
        packages = _texts(given.get("packages"), (*at, "packages"), _MAX_NAMES, _matching(_PACKAGE, "a package's name"))
        if not domains:
            raise _Wrong(at, "it needs at least one of domains")
        yield Vendor(vendor_id, name, category, domains, packages)


def _accepted(value: Any, ids: Iterable[str]) -> Iterator[tuple[str, str]]:
    for index, entry in enumerate(_list(value, ("accept",), _MAX_ACCEPTED)):
        at = ("accept", index)
        given = _mapping(entry, at, {"vendor", "reason"})
        vendor_id, reason = (_text(given.get(key), (*at, key)) for key in ("vendor", "reason"))
        if vendor_id not in ids:
            raise _Wrong((*at, "vendor"), "there is no such vendor")
        yield vendor_id, reason


def _mapping(value: Any, keys: Keys, known: Iterable[str], why: str = "") -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _Wrong(keys, "it must have keys and values")
    for name in value:
        if name not in known:
            raise _Wrong((*keys, name), why or f"there is no such key. Known are {', '.join(sorted(known))}")
    return value


def _list(value: Any, keys: Keys, most: int) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise _Wrong(keys, "it must be a list")
    if len(value) > most:
        raise _Wrong(keys, f"it has more than {most} entries")
    return value


def _texts(value: Any, keys: Keys, most: int, check: Callable[[str], str | None]) -> tuple[str, ...]:
    found = _list(value, keys, most)
    for index, entry in enumerate(found):
        if why := check(_text(entry, (*keys, index))):
            raise _Wrong((*keys, index), why)
    return tuple(found)


def _text(value: Any, keys: Keys) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _Wrong(keys, "it is missing" if value is None else "it must be a text")
    if len(value) > _MAX_TEXT or not value.isprintable():
        raise _Wrong(keys, f"it must be one line of at most {_MAX_TEXT} characters")
    return value


def _check_glob(glob: str) -> str | None:
    try:
        expression_of(glob)
    except InvalidGlob as failure:
        return str(failure)
    return None


def _matching(pattern: re.Pattern[str], named: str) -> Callable[[str], str | None]:
    return lambda text: None if pattern.fullmatch(text) else f"it isn't {named}"
