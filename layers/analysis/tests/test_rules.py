"""Tests every rule against its own samples: positive samples match, and negative ones don't."""

import re

import pytest

from analysis_testing.in_process import analyze_files
from openassent_analysis.conditions import CONDITIONS
from openassent_analysis.files import LANGUAGES, language_of, reason_to_skip
from openassent_analysis.findings import CATEGORIES
from openassent_analysis.rules import GROUPS, RULES, InvalidRule, read_rules, rules
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

    def test_a_rule_says_what_is_wrong_and_what_to_do(self, rule):
        assert len(rule.title) <= 90
        assert not rule.title.endswith(".")
        assert len(rule.description) > 60
        assert len(rule.remediation) > 30
        assert rule.references
        texts = rule.texts()
        assert not any("{" in text or "  " in text for text in texts.values())
        assert ("{vendor}" in rule.title + rule.description + rule.remediation) == bool(rule.any_vendor)
        assert all(re.match(r"https://[\w.-]+/", reference) for reference in rule.references)


def test_texts_for_all_findings_of_a_rule_name_what_kind_of_vendor_it_is():
    known = {rule.id: rule.texts() for rule in rules()}
    assert known["session-replay-loaded"]["title"] == "A session recorder is loaded before consent"
    assert known["marketing-sdk-started"]["description"].startswith("The package starts here, before")
    assert known["consent-library-outdated"] == {
        "title": "A consent library is outdated",
        "description": "The manifest allows only outdated versions of a consent library.",
        "remediation": next(rule.remediation.strip() for rule in rules() if rule.id == "consent-library-outdated"),
    }


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
