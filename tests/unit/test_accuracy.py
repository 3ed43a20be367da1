"""Recall and precision are computed from verdicts, and nothing that wasn't judged counts in them."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.accuracy import InvalidVerdicts, Place, compare, read_verdicts
from openassent_analysis.findings import Finding, Location

ALL = frozenset({"high", "medium", "low"})
HEADER = "repository\tcommit\tpath\tvendor\tverdict\n"
FOLDER = Path(__file__).parents[2] / "benchmarks" / "verdicts"


def finding(path: str, *vendor_ids: str, category: str = "trackers", confidence: str = "high") -> Finding:
    place = Location(path, 1, 1, 1, 2, "")
    title = "A script of cdn.unknown.example is loaded before consent"
    return Finding("rule", title, "d", category, "high", "P1", place, "", (), "", "", 0, "", vendor_ids, confidence)


def verdicts(tmp_path: Path, *rows: str) -> dict[Place, str]:
    file = tmp_path / "verdicts.tsv"
    file.write_text(HEADER + "".join(f"a/b\t0\t{row}\n" for row in rows))
    return read_verdicts(file)["a/b"]


def test_a_load_is_found_missed_or_wrong(tmp_path):
    known = verdicts(tmp_path, "x.js\thotjar\tungated", "y.js\thotjar\tungated", "z.js\thotjar\tgated")
    result = compare(known, "a/b", [finding("x.js", "hotjar"), finding("z.js", "hotjar")], ALL)
    assert (result.recall, result.precision) == ("1 of 2 (50%)", "1 of 2 (50%)")
    assert result.missed == {Place("a/b", "y.js", "hotjar")}
    assert result.wrong == {Place("a/b", "z.js", "hotjar")}


def test_a_file_with_several_findings_about_a_vendor_counts_once(tmp_path):
    known = verdicts(tmp_path, "x.js\thotjar\tungated")
    result = compare(known, "a/b", [finding("x.js", "hotjar"), finding("x.js", "hotjar")], ALL)
    assert (result.recall, result.precision) == ("1 of 1 (100%)", "1 of 1 (100%)")


def test_a_vendor_can_be_named_by_its_host(tmp_path):
    known = verdicts(tmp_path, "x.js\tstatic.hotjar.com\tungated", "y.js\tcdn.unknown.example\tungated")
    result = compare(known, "a/b", [finding("x.js", "hotjar"), finding("y.js")], ALL)
    assert result.recall == "2 of 2 (100%)"


def test_the_same_host_counts_in_each_of_its_files(tmp_path):
    known = verdicts(tmp_path, "x.js\tcdn.unknown.example\tungated", "y.js\tcdn.unknown.example\tungated")
    result = compare(known, "a/b", [finding("x.js"), finding("y.js")], ALL)
    assert (result.recall, result.unjudged) == ("2 of 2 (100%)", set())


@pytest.mark.parametrize("verdict", ["cookieless", "same", "unclear"])
def test_neutral_verdicts_count_in_neither(tmp_path, verdict):
    known = verdicts(tmp_path, f"x.js\thotjar\t{verdict}")
    result = compare(known, "a/b", [finding("x.js", "hotjar")], ALL)
    assert (result.recall, result.precision, result.unjudged) == ("0 of 0", "0 of 0", set())


def test_findings_of_other_kinds_are_judged_by_rule(tmp_path):
    known = verdicts(tmp_path, "x.js\trule:rule\tright", "y.js\trule:rule\twrong")
    found = [finding(path, category="secrets") for path in ("x.js", "y.js", "z.js")]
    result = compare(known, "a/b", found, ALL)
    assert (result.precision, result.unjudged) == ("1 of 2 (50%)", {Place("a/b", "z.js", "rule:rule")})


def test_findings_with_another_confidence_are_left_out(tmp_path):
    known = verdicts(tmp_path, "x.js\thotjar\tungated")
    found = [finding("x.js", "hotjar", confidence="low")]
    assert compare(known, "a/b", found, frozenset({"high"})).recall == "0 of 1 (0%)"
    assert compare(known, "a/b", [replace(found[0], confidence="high")], frozenset({"high"})).recall == "1 of 1 (100%)"


def test_an_unknown_verdict_is_refused(tmp_path):
    with pytest.raises(InvalidVerdicts, match=":2: verdict is one of"):
        verdicts(tmp_path, "x.js\thotjar\tmaybe")


def test_the_committed_verdicts_are_valid():
    for file in FOLDER.glob("*.tsv"):
        found = sum(map(len, read_verdicts(file).values()))
        assert found > 50 or (file.stem == "held-out" and not found)
