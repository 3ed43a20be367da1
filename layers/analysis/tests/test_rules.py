"""Every rule against its own samples and the examples on its page, and the version, which changes with what decides."""

import re
from dataclasses import replace

import pytest

from analysis_testing.in_process import analyze_files
from openassent_analysis.catalogue import catalogue
from openassent_analysis.conditions import CONDITIONS
from openassent_analysis.files import LANGUAGES, language_of, reason_to_skip
from openassent_analysis.findings import CATEGORIES
from openassent_analysis.libraries import libraries
from openassent_analysis.rules import (
    ANALYSIS,
    GROUPS,
    RULES,
    InvalidRule,
    other_facts,
    read_rules,
    rules,
    rules_version,
    version_of,
)
from scripts.reference.rules import example_of, texts
from tests.support.each import each

NOT_CONDITIONS = {"once_per_vendor"}


def ids_found(sample):
    files = sample if isinstance(sample, list) else [sample]
    # The mark keeps secret scanners from flagging a sample.
    analysis = analyze_files((file["path"], file["code"].replace("¦", "").encode()) for file in files)
    assert not analysis.skipped
    return {finding.rule_id for finding in analysis.findings}


@each("rule", rules(), ids=lambda rule: rule.id)
class TestEveryRule:
    def test_a_rule_matches_its_samples_and_no_clean_ones(self, rule):
        assert rule.samples["match"]
        assert rule.samples["clean"]
        for sample in rule.samples["match"]:
            assert rule.id in ids_found(sample), sample
        for sample in rule.samples["clean"]:
            assert rule.id not in ids_found(sample), sample

    def test_a_rule_names_the_vendor_if_it_is_any_and_its_references(self, rule):
        assert not any("{" in text or "  " in text for text in rule.texts().values())
        assert ("{vendor}" in rule.title + rule.description + rule.remediation) == bool(rule.any_vendor)
        assert rule.references
        assert all(re.match(r"https://[\w.-]+/", reference) for reference in rule.references)


def test_texts_for_all_findings_of_a_rule_name_what_kind_of_vendor_it_is():
    known = {rule.id: rule.texts() for rule in rules()}
    assert known["session-replay-loaded"]["title"] == "A session recorder is loaded before consent"
    assert known["marketing-sdk-started"]["description"].startswith("The package starts here, before")
    assert known["consent-library-outdated"]["title"] == "A consent library is outdated"


def test_every_rule_names_only_known_conditions():
    assert {name for rule in rules() for name in rule.where} <= CONDITIONS.keys() | NOT_CONDITIONS


def test_every_rule_names_the_languages_that_it_matches():
    known = {*LANGUAGES.values(), "html", "vue", "svelte", "jsx"}
    for rule in rules():
        if rule.engine != "syntax":
            continue
        assert set(rule.languages) <= known, rule.id
        for name, group in GROUPS.items():
            if group & rule.match.keys():
                assert set(rule.languages) & {*group, *(["jsx", "vue"] if name == "script" else [])}, (rule.id, name)


def test_no_rule_causes_every_file_to_be_parsed():
    for rule in rules():
        assert rule.engine != "syntax" or rule.triggers or rule.vendor_categories or rule.package_categories, rule.id


def test_every_rules_samples_are_in_files_that_are_read():
    samples = [sample for rule in rules() for kind in ("match", "clean") for sample in rule.samples[kind]]
    for sample in samples:
        for file in sample if isinstance(sample, list) else [sample]:
            assert language_of(file["path"].rpartition("/")[2]), file
            assert reason_to_skip(file["path"]) is None, file


def test_every_rule_has_an_id_of_its_own_and_every_category_a_rule():
    assert len({rule.id for rule in rules()}) == len(rules())
    assert {rule.category for rule in rules()} == set(CATEGORIES)


@each("change", [
    ("severity: high", "severity: huge"),
    ("severity: high", "severity: high\npriority: P1"),
    ("category: trackers", "category: cookies"),
    ("match:", "matches:"),
    ("title:", "titel:"),
])  # fmt: skip
def test_an_invalid_rule_file_is_refused(tmp_path, change):
    (tmp_path / "trackers").mkdir(exist_ok=True)
    (tmp_path / "shared.yml").write_text((RULES / "shared.yml").read_text())
    rule = tmp_path / "trackers" / "analytics-loaded.yml"
    rule.write_text((RULES / "trackers" / rule.name).read_text())
    assert len(list(read_rules(tmp_path))) == 1
    rule.write_text(rule.read_text().replace(*change, 1))
    with pytest.raises(InvalidRule):
        list(read_rules(tmp_path))


def ids_in(path, code):
    return {finding.rule_id for finding in analyze_files([(path, code.encode())]).findings}


@each("rule", rules(), ids=lambda rule: rule.id)
def test_the_example_shows_the_rule(rule):
    example = example_of(rule)
    assert rule.id in ids_in(example.path, example.wrong)
    assert rule.id not in ids_in(example.path, example.right)


def test_every_rule_has_texts_and_no_other_has():
    assert texts()["rules"].keys() == {rule.id for rule in rules()}
    assert texts()["categories"].keys() == {rule.category for rule in rules()}


SHIPPED, VENDORS, LIBRARIES = rules(), [*catalogue().vendors.values()], [*libraries().values()]
FACTS = other_facts()


def test_the_shipped_rules_have_a_version_that_does_not_change():
    assert rules_version() == version_of(SHIPPED, VENDORS, LIBRARIES, FACTS)
    assert len(rules_version()) == 16


def test_a_changed_rule_vendor_library_call_or_analysis_changes_the_version():
    first, *others = SHIPPED
    vendor, *vendors = VENDORS
    versions = {
        rules_version(),
        version_of(others, VENDORS, LIBRARIES, FACTS),
        version_of(
            [replace(first, severity="low" if first.severity != "low" else "high"), *others], VENDORS, LIBRARIES, FACTS
        ),
        version_of([replace(first, where={"new": "condition"}), *others], VENDORS, LIBRARIES, FACTS),
        version_of(SHIPPED, vendors, LIBRARIES, FACTS),
        version_of(SHIPPED, [replace(vendor, domains=("new.example",)), *vendors], LIBRARIES, FACTS),
        version_of(SHIPPED, VENDORS, LIBRARIES[1:], FACTS),
        version_of(SHIPPED, VENDORS, LIBRARIES, {**FACTS, "calls": FACTS["calls"][1:]}),
        version_of(SHIPPED, VENDORS, LIBRARIES, {**FACTS, "settings": FACTS["settings"][1:]}),
        version_of(SHIPPED, VENDORS, LIBRARIES, {**FACTS, "general": FACTS["general"][1:]}),
        version_of(SHIPPED, VENDORS, LIBRARIES, FACTS, ANALYSIS + 1),
    }
    assert len(versions) == 11


def test_samples_do_not_change_the_version():
    without = [replace(rule, samples={}) for rule in SHIPPED]
    assert version_of(without, VENDORS, LIBRARIES, FACTS) == rules_version()
