"""Turns one file's content into a report. Runs inside the sandbox, and does all the parsing of a tenant's bytes.

It reads no files and keeps no state between files.
"""

from __future__ import annotations

import codecs
import json
import time
from collections.abc import Iterator
from itertools import islice

from openassent_analysis import addresses, files, libraries, project_file, site_configuration
from openassent_analysis.calls import calls
from openassent_analysis.catalogue import catalogue, own_vendors
from openassent_analysis.choices import choices_in
from openassent_analysis.comments import ignores_in
from openassent_analysis.engine import analyze_source, locate, source_of, triggers
from openassent_analysis.fingerprints import Fingerprints
from openassent_analysis.gates import providers
from openassent_analysis.gating import Gate, Gating, Unclear
from openassent_analysis.inventory import manifests as inventory
from openassent_analysis.inventory.technologies import technologies
from openassent_analysis.libraries import families
from openassent_analysis.limits import Limits
from openassent_analysis.mechanisms import asks_for_consent, consent_managers, sets_consent_mode
from openassent_analysis.report import ADDRESSES, GIVEN, MAX_LOADS, OWN_VENDORS, USES, Load, Match, Report
from openassent_analysis.selection import read_vendors
from openassent_analysis.setups import setups_of
from openassent_analysis.sites import themes_of, traits_of, traits_of_manifest
from openassent_analysis.sources import Source
from openassent_analysis.surroundings import with_surroundings
from openassent_analysis.unknown import configured_names
from openassent_analysis.unread_settings import SETTING, has_theme
from openassent_analysis.uses import may_use, uses_of

_LONGEST_SETTING = 100
_SETTING_RULE = "site-generator-tracker"


def load() -> None:
    """Loads everything that is loaded on first use, because a closed sandbox can't read files."""
    for read in (catalogue, calls, triggers, families, technologies):
        read()
    for encoding in files.ENCODINGS:
        codecs.lookup(encoding)


def examine(path: str, language: str, content: bytes, limits: Limits) -> Report:
    """Returns the report on a file. Raises Skipped if it isn't handwritten text or costs too much to analyze."""
    if language.startswith(OWN_VENDORS):
        vendors, _, language = language.removeprefix(OWN_VENDORS).partition("\n")
        with own_vendors(read_vendors(vendors)):
            return examine(path, language, content, limits)
    text = files.decode(content)
    report = _examine(path, language, text, limits)
    report.matches = with_surroundings(report.matches, text)
    return report


def _examine(path: str, language: str, text: str, limits: Limits) -> Report:
    deadline = time.thread_time() + limits.max_seconds_per_file
    if language == project_file.LANGUAGE:
        return Report(text.count("\n") + 1, settings=project_file.parsed(text))
    if language == inventory.LANGUAGE:
        return Report(text.count("\n") + 1, parts=inventory.parts_of(path, text))
    if language in {"manifest", "lock file"}:
        return _examine_manifest(path, text, limits, locked=language == "lock file")
    if language.startswith(USES):
        return _examine_uses(path, text, language, limits, deadline)
    if language.startswith(ADDRESSES):
        return _examine_addresses(path, text, language, limits)
    return _examine_source(path, text, language, limits, deadline)


def _examine_source(path: str, text: str, language: str, limits: Limits, deadline: float) -> Report:
    given: dict[str, str] = {}
    if language.startswith(GIVEN):
        _, language, written = language.split(" ", 2)
        given = json.loads(written)
    source = source_of(path, text, language, given)
    source.deadline = deadline
    if language == "configuration":
        report = Report(text.count("\n") + 1, asks_for_consent(source), own_names=sorted(configured_names(text)))
        report.traits = themes_of(path, text)
        _add_settings(report, source, limits)
        _add_markup(report, source, limits)
        report.ignores = ignores_in(source) if report.matches else []
        return report
    lines = files.check_lines(path, text, limits, language)
    files.check_author(path, text, language)
    report = Report(lines, asks_for_consent(source), sets_consent_mode(source))
    if given:
        files.check_depth(text, language, limits)
        addresses.give(source, given)
    else:
        report.addresses = addresses.wanted(source)
    report.matches, report.truncated, loads = analyze_source(source, limits)
    report.loads = sorted(loads | consent_managers(source))[:MAX_LOADS]
    report.choices = choices_in(path, text, language)
    report.traits = traits_of(source, limits)
    report.setups = setups_of(source)
    report.own_names = sorted(configured_names(text) if site_configuration.names_site(path) else source.own_names)
    if site_configuration.configures(path, text):
        _add_settings(report, source, limits)
    report.ignores = ignores_in(source) if report.matches else []
    return report


def _examine_uses(path: str, text: str, asked: str, limits: Limits, deadline: float) -> Report:
    _, language, stems, shared, *own = asked.split(" ")
    wanted, names = (frozenset(filter(None, it.split(","))) for it in (stems, shared))
    if not own and not may_use(path, text, wanted) and not any(name in text for name in names):
        return Report(text.count("\n") + 1)
    lines = files.check_lines(path, text, limits, language)
    source = source_of(path, text, language)
    source.deadline = deadline
    return Report(lines, uses=uses_of(source, wanted, limits, names), providers=providers(source) if own else [])


def _examine_addresses(path: str, text: str, asked: str, limits: Limits) -> Report:
    _, language, names = asked.split(" ")
    lines = files.check_lines(path, text, limits, language)
    return Report(lines, addresses=addresses.given_by(source_of(path, text, language), names.split(","), limits))


def _add_settings(report: Report, source: Source, limits: Limits) -> None:
    """Adds the trackers that the settings of a site's configuration turn on."""
    fingerprints = Fingerprints(source.path)
    themed = has_theme(source.text)
    known = {match.vendor_id for match in report.matches}
    for found in site_configuration.trackers_of(source.path, source.text)[
        : limits.max_findings_per_file - len(report.matches)
    ]:
        if found.vendor.id in known:
            continue
        report.loads.append(Load(found.vendor.id, ""))
        report.matches.append(
            Match(
                _SETTING_RULE,
                {"vendor": found.vendor.name, **({} if themed else {SETTING: found.name[:_LONGEST_SETTING]})},
                found.vendor.id,
                None,
                *locate(source, found.start, found.end, limits),
                # Without the value, so that another measurement id is the same finding.
                *fingerprints.take(_SETTING_RULE, f"{found.vendor.id} {found.name}"),
                Gating(Gate.OPEN, unclear=_doubt(source.path, found)),
            )
        )


def _doubt(path: str, found: site_configuration.Found) -> Unclear:
    """Returns why a setting alone doesn't show whether a tracker waits for consent."""
    if found.may_wait:
        return Unclear.CONDITION
    return Unclear.THEME if found.by_theme and site_configuration.has_theme(path) else Unclear.NOTHING


def _add_markup(report: Report, source: Source, limits: Limits) -> None:
    """Adds the loads of markup in a configuration's values: themes write it into every page."""
    if "<script" not in source.text:
        return
    text = site_configuration.without_comments(source.text)
    if source.path.endswith(".json"):
        text = site_configuration.without_escapes(text)
    page = Source(source.path, text, "html", source.catalogue)
    matches, report.truncated, loads = analyze_source(page, limits)
    known = {match.vendor_id for match in report.matches}
    report.matches += [match for match in matches if match.vendor_id is None or match.vendor_id not in known]
    report.matches = report.matches[: limits.max_findings_per_file]
    report.loads = sorted({*report.loads, *loads})[:MAX_LOADS]


def _examine_manifest(path: str, text: str, limits: Limits, *, locked: bool) -> Report:
    pinned = libraries.read_lock_file(text) if locked else libraries.read_manifest(text)
    report = Report(text.count("\n") + 1, own_names=[] if locked else sorted(configured_names(text)))
    report.traits = [] if locked else traits_of_manifest(text)
    matches = _manifest_matches(report, path, text, pinned, limits)
    report.matches = list(islice(matches, limits.max_findings_per_file))
    report.truncated = next(matches, None) is not None
    return report


def _manifest_matches(
    report: Report, path: str, text: str, found: Iterator[libraries.Pinned], limits: Limits
) -> Iterator[Match]:
    source = source_of(path, text, "manifest")
    fingerprints = Fingerprints(path)
    for pinned in found:
        report.asks_for_consent = True
        if pinned.rule_id is None:
            continue
        library, version = pinned.library, pinned.version[:200]
        yield Match(
            pinned.rule_id,
            {"library": library.name, "version": version, "why": library.why},
            None,
            library.package,
            *locate(source, pinned.start, pinned.end, limits),
            # Includes the version, so that another outdated version is a new finding.
            *fingerprints.take(pinned.rule_id, f"{library.package} {pinned.version}"),
        )
