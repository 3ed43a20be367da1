"""The report on one file, and its serialization on the way out of the sandbox.

The process that wrote a report has parsed hostile input and may be controlled by it. `read_report` therefore checks the
type, range, and length of every value. The texts of findings never come from a report: a match names a rule and fills
its placeholders, so a forged report can at worst store wrong findings for this one scan.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from openassent_analysis.files import Skipped
from openassent_analysis.gating import OPEN, Export, Gate, Gating, Provider, Unclear, Use
from openassent_analysis.places import ELEMENTS, KINDS, MAX_PLACES, MAX_RANGES, MAX_TEXT, Place
from openassent_analysis.surroundings import LONGEST_LINE, MOST_LINES

# Reasons for which the sandboxed process may skip a file.
REASONS: Final = frozenset({
    "not text", "empty", "line too long", "minified", "nested too deep", "too slow", "needed too much memory", "failed",
    "vendored", "build output",
})  # fmt: skip

# For every file: exceeds the highest line number and column that an 8 MB file can have.
_MAX_POSITION: Final = 10_000_000
_MAX_NAMES: Final = 8
_MAX_NAME_LENGTH: Final = 500
# A manifest has at most one finding per library in each of four groups; source files have their own limit.
_MAX_MATCHES: Final = 200


# Known parts of one manifest, and vendors that one file loads.
MAX_PARTS: Final = 200
MAX_LOADS: Final = 50
# Places of one file that run code of others, its exports about consent, and the names in one gating.
MAX_USES: Final = 500
MAX_PROVIDERS: Final = 50
MAX_GATING_NAMES: Final = 20
# Names of hosts that one file says the project is served from.
MAX_OWN_NAMES: Final = 20
# The language of data files, which may have addresses of scripts.
DATA: Final = "json"
# The module of an address whose name shows that it is one, but not which file gives it.
ANYWHERE: Final = "*"
# Languages whose files hand on addresses by name, not by exports.
WITHOUT_EXPORTS: Final = frozenset({"html", "python", "configuration"})
# Addresses that one file takes from others, or gives to them.
MAX_ADDRESSES: Final = 20
# Names under which one file of server code hands on the visitor's choice.
MAX_CHOICES: Final = 50
# The traits of a site that one configuration shows.
MAX_TRAITS: Final = 200
# Comments of one file that ask to ignore a rule, and the longest reason.
MAX_IGNORES: Final = 200
MAX_REASON: Final = 300
# The settings of a project, as JSON.
_MAX_SETTINGS: Final = 256 * 1024
# By list of a report.
_MAX_LENGTHS: Final = (
    _MAX_MATCHES, MAX_PARTS, MAX_LOADS, MAX_USES, MAX_PROVIDERS, MAX_OWN_NAMES, MAX_ADDRESSES, MAX_CHOICES, MAX_TRAITS,
    MAX_TRAITS, MAX_IGNORES,
)  # fmt: skip
_MAX_VERSION: Final = 60
_MAX_HOST: Final = 253


class InvalidReport(Exception):
    """The report is one that only a broken analysis, or one controlled by its input, can write."""


@dataclass(frozen=True, slots=True)
class Match:
    """A place in a file that breaks a rule. Whether it is reported may depend on the rest of the project."""

    rule_id: str
    # Values for the placeholders in the rule's texts.
    names: dict[str, str]
    vendor_id: str | None
    # The consent library, for findings in manifests and lock files.
    package: str | None
    start_line: int
    end_line: int
    start_column: int
    end_column: int
    snippet: str
    fingerprint: str
    content: str
    ordinal: int
    shape: str
    gating: Gating = OPEN
    depends_on_consent_mode: bool = False
    # The place starts a vendor whose code something else loads, possibly in another file.
    started: bool = False
    # What an edit needs. Empty if no edit is safe.
    places: list[Place] = field(default_factory=list)
    # The lines from five before the place to five after it.
    around: list[str] = field(default_factory=list)


class Part(NamedTuple):
    """Something that a package manifest names: a framework, a package manager, or a vendor by its package."""

    kind: str
    id: str
    package: str
    # As written. Empty if the manifest names none.
    version: str


class Load(NamedTuple):
    """A vendor that a file loads: from a host, or from an imported package if the host is empty."""

    vendor_id: str
    host: str


class Address(NamedTuple):
    """The address of a script that a file takes from another: its module, its name there, and the local name.

    In an answer about the other file: no module, the name, and the addresses that it can have, one per line.
    """

    module: str
    name: str
    text: str


class Ignore(NamedTuple):
    """A comment that asks to ignore findings of a rule on a range of lines. The reason is empty if it names none."""

    start_line: int
    end_line: int
    rule_id: str
    reason: str


# Vendors whose tags all start with `gtag`, which each of their scripts defines.
GOOGLE_TAGS: Final = frozenset({"google-analytics", "google-ads", "google-tag-manager"})


def has_loader(vendor_id: str, loaded: AbstractSet[str]) -> bool:
    """Returns whether a start call of the vendor starts one of the loaded vendors."""
    return vendor_id in loaded or (vendor_id in GOOGLE_TAGS and not GOOGLE_TAGS.isdisjoint(loaded))


@dataclass
class Report:
    lines: int = 0
    asks_for_consent: bool = False
    sets_consent_mode: bool = False
    # True if matches were dropped at the limit per file.
    truncated: bool = False
    matches: list[Match] = field(default_factory=list)
    # Only of a manifest.
    parts: list[Part] = field(default_factory=list)
    # Whether or not something asks for consent first.
    loads: list[Load] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)
    providers: list[Provider] = field(default_factory=list)
    own_names: list[str] = field(default_factory=list)
    addresses: list[Address] = field(default_factory=list)
    # Names that server code gives the visitor's choice.
    choices: list[str] = field(default_factory=list)
    # Which files a site serves and runs, in the words of `sites`.
    traits: list[str] = field(default_factory=list)
    # How the file sets a consent library up.
    setups: list[str] = field(default_factory=list)
    ignores: list[Ignore] = field(default_factory=list)
    # Of a project's own file: what `project_file` makes of it.
    settings: str = ""


# A request for a file's uses of others, instead of its matches: the language is `uses <language> <stem>,<stem>
# <name>,<name>`, with the last words of the modules, and the functions that other scripts share with the page. With OWN
# at the end, the file's own exports and providers are wanted, too.
USES: Final = "uses "
OWN: Final = " own"
# A request for addresses that a file exports: `addresses <language> <name>,<name>`. And one for a file's matches, with
# addresses from other files by local name: `given <language> <JSON>`.
ADDRESSES: Final = "addresses "
GIVEN: Final = "given "
# Before the language of each file of a project with vendors of its own: they as JSON, and a line break.
OWN_VENDORS: Final = "vendors "
# Requests for another look at a file.
ANOTHER_LOOK: Final = (USES, ADDRESSES, GIVEN)


class Request(NamedTuple):
    """A file to analyze. Its path is relative, with forward slashes."""

    path: str
    language: str
    content: bytes


# A file's path, and a function that returns its content. It takes the maximum size in bytes, and raises Skipped.
Entry: TypeAlias = tuple[str, Callable[[int], bytes]]
Answer: TypeAlias = tuple[Request, Report | Skipped]
# Analyzes files in order until a deadline (time.monotonic()). It may read a few requests ahead of its answers.
Examine: TypeAlias = Callable[[Iterator[Request], float], Iterator[Answer]]

_MATCH_FIELDS: Final = tuple(Match.__slots__)


def _as_list(gating: object) -> list[object]:
    if isinstance(gating, Gating):
        return [gating.gate, gating.callers, gating.providers, gating.unclear]
    raise TypeError


_write: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_as_list).encode


def write_report(report: Report | Skipped) -> bytes:
    if isinstance(report, Skipped):
        return _write({"skipped": str(report)}).encode()
    flags = [report.asks_for_consent, report.sets_consent_mode, report.truncated]
    matches = [[getattr(match, name) for name in _MATCH_FIELDS] for match in report.matches]
    found = [report.lines, flags, matches, report.parts, report.loads, report.uses, report.providers, report.own_names]
    found += [report.addresses, report.choices, report.traits, report.setups, report.ignores, report.settings]
    return _write(found).encode(errors="replace")


def read_report(content: bytes, max_snippet_length: int) -> Report:
    """Parses a report. Raises Skipped if it says that the file was skipped, and InvalidReport."""
    try:
        found: Any = json.loads(content)
    except (ValueError, RecursionError) as failure:
        raise InvalidReport from failure
    if isinstance(found, dict):
        reason = found.get("skipped")
        if not isinstance(reason, str) or reason not in REASONS:
            raise InvalidReport
        raise Skipped(reason)
    match found:
        case [int(lines), [bool(asks), bool(mode), bool(truncated)], *lists, str(settings)] if _fits(lists):
            _position(lines, 0)
            matches, parts, loads, uses, providers, own_names, addresses, choices, traits, setups, ignores = lists
            return Report(
                lines,
                asks,
                mode,
                truncated,
                [_read_match(it, max_snippet_length) for it in matches],
                [
                    Part(*_texts(it, (_MAX_NAME_LENGTH, _MAX_NAME_LENGTH, _MAX_NAME_LENGTH, _MAX_VERSION)))
                    for it in parts
                ],
                [Load(*_texts(it, (_MAX_NAME_LENGTH, _MAX_HOST))) for it in loads],
                [_read_use(it) for it in uses],
                [_read_provider(it) for it in providers],
                [_text(it, _MAX_HOST) for it in own_names],
                [Address(*_texts(it, (_MAX_NAME_LENGTH,) * 3)) for it in addresses],
                [_text(it, _MAX_NAME_LENGTH) for it in choices],
                [_text(it, _MAX_NAME_LENGTH) for it in traits],
                [_text(it, _MAX_NAME_LENGTH) for it in setups],
                [_read_ignore(it) for it in ignores],
                _text(settings, _MAX_SETTINGS),
            )
    raise InvalidReport


def _fits(lists: list[Any]) -> bool:
    if len(lists) != len(_MAX_LENGTHS):
        return False
    return all(isinstance(it, list) and len(it) <= most for it, most in zip(lists, _MAX_LENGTHS, strict=True))


def _read_ignore(found: Any) -> Ignore:
    match found:
        case [start, end, rule_id, reason]:
            _position(start, 1)
            _position(end, start)
            return Ignore(start, end, _text(rule_id, _MAX_NAME_LENGTH), _text(reason, MAX_REASON))
    raise InvalidReport


def _read_match(found: Any, max_snippet_length: int) -> Match:
    if not isinstance(found, list) or len(found) != len(_MATCH_FIELDS):
        raise InvalidReport
    values: dict[str, Any] = dict(zip(_MATCH_FIELDS, found, strict=True))
    names = values["names"]
    if not isinstance(names, dict) or len(names) > _MAX_NAMES:
        raise InvalidReport
    for name, value in names.items():
        _text(name, _MAX_NAME_LENGTH)
        _text(value, _MAX_NAME_LENGTH)
    _text(values["rule_id"], _MAX_NAME_LENGTH)
    for optional in (values["vendor_id"], values["package"]):
        if optional is not None:
            _text(optional, _MAX_NAME_LENGTH)
    _position(values["start_line"], 1)
    _position(values["end_line"], values["start_line"])
    _position(values["start_column"], 1)
    _position(values["end_column"], 1)
    # One more, for the ellipsis of a truncated snippet.
    _text(values["snippet"], max_snippet_length + 1)
    digests = [values["fingerprint"], values["content"]]
    for digest in [*digests, values["shape"]] if values["shape"] != "" else digests:
        if len(_text(digest, 32)) != 32 or not set(digest) <= set("0123456789abcdef"):
            raise InvalidReport
    _position(values["ordinal"], 0)
    if type(values["depends_on_consent_mode"]) is not bool or type(values["started"]) is not bool:
        raise InvalidReport
    values["gating"] = _read_gating(values["gating"])
    values["places"] = _read_places(values["places"])
    values["around"] = _read_lines(values["around"])
    return Match(**values)


def _read_lines(found: Any) -> list[str]:
    if not isinstance(found, list) or len(found) > MOST_LINES:
        raise InvalidReport
    return [_text(line, LONGEST_LINE) for line in found]


def _read_places(found: Any) -> list[Place]:
    if not isinstance(found, list) or len(found) > MAX_PLACES:
        raise InvalidReport
    return [_read_place(place) for place in found]


def _read_place(found: Any) -> Place:
    match found:
        case [kind, line, text, start, end, dict(parts)] if kind in KINDS and len(parts) <= MAX_RANGES:
            length = len(_text(text, MAX_TEXT))
            _position(line, 1)
            for span in ([start, end], *parts.values()):
                _read_range(span, length)
            for name in parts:
                _text(name, _MAX_NAME_LENGTH)
            if kind in ELEMENTS and not {"tag", "name"} <= parts.keys():
                raise InvalidReport
            return Place(kind, line, text, start, end, {name: (first, last) for name, (first, last) in parts.items()})
    raise InvalidReport


def _read_range(found: Any, length: int) -> None:
    match found:
        case [first, last] if type(first) is int and type(last) is int and 0 <= first <= last <= length:
            return
    raise InvalidReport


def _read_gating(found: Any) -> Gating:
    match found:
        case [str(gate), [*callers], [*providers], str(unclear)] if (
            len(callers) <= MAX_GATING_NAMES and len(providers) <= MAX_GATING_NAMES
        ):
            try:
                return Gating(
                    Gate(gate),
                    tuple(_text(it, _MAX_NAME_LENGTH) for it in callers),
                    tuple(map(_read_export, providers)),
                    Unclear(unclear),
                )
            except ValueError as failure:
                raise InvalidReport from failure
    raise InvalidReport


def _read_export(found: Any) -> Export:
    return Export(*_texts(found, (_MAX_NAME_LENGTH, _MAX_NAME_LENGTH)))


def _read_use(found: Any) -> Use:
    match found:
        case [export, gating]:
            return Use(_read_export(export), _read_gating(gating))
    raise InvalidReport


def _read_provider(found: Any) -> Provider:
    match found:
        case [name, source]:
            return Provider(_text(name, _MAX_NAME_LENGTH), None if source is None else _read_export(source))
    raise InvalidReport


def _texts(found: Any, lengths: tuple[int, ...]) -> list[str]:
    if not isinstance(found, list) or len(found) != len(lengths):
        raise InvalidReport
    return [_text(value, most) for value, most in zip(found, lengths, strict=True)]


def _text(value: Any, most: int) -> str:
    if not isinstance(value, str) or len(value) > most:
        raise InvalidReport
    try:
        value.encode()
    except UnicodeEncodeError as failure:  # a surrogate, which neither the table nor a response can contain
        raise InvalidReport from failure
    return value


def _position(value: Any, least: int) -> None:
    if type(value) is not int or not least <= value <= _MAX_POSITION:
        raise InvalidReport
