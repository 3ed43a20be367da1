"""Tests the examples on the pages of the rules: the first is reported, and the second isn't."""

from analysis_testing.in_process import analyze_files
from openassent_analysis.rules import rules
from scripts.reference.rules import example_of, texts
from tests.support.each import each


def ids_found(path, code):
    return {finding.rule_id for finding in analyze_files([(path, code.encode())]).findings}


@each("rule", rules(), ids=lambda rule: rule.id)
def test_the_example_shows_the_rule(rule):
    example = example_of(rule)
    assert rule.id in ids_found(example.path, example.wrong)
    assert rule.id not in ids_found(example.path, example.right)


def test_every_rule_has_texts_and_no_other_has():
    assert texts()["rules"].keys() == {rule.id for rule in rules()}
    assert texts()["categories"].keys() == {rule.category for rule in rules()}
