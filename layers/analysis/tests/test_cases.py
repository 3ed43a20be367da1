"""Small projects that load a tracker without consent, and their twins that don't."""

import math
import time
from itertools import count
from pathlib import Path

import pytest
import yaml

from analysis_testing.in_process import analyze_files
from openassent_analysis import Limits
from tests.support.each import each

CASES = {
    f"{path.stem}: {case['name']}": case
    for path in sorted((Path(__file__).parent / "cases").glob("*.yml"))
    for case in yaml.safe_load(path.read_text())
}


def trackers(files, confidence):
    """Returns the vendors of the findings about trackers with one of the given levels of confidence."""
    found = analyze_files((path, text.encode()) for path, text in files.items()).findings
    return sorted(
        {
            vendor_id
            for finding in found
            if finding.category == "trackers" and finding.confidence in confidence
            for vendor_id in finding.vendor_ids or [finding.rule_id]
        }
    )


# All cases are one test, so its limit is theirs together.
@pytest.mark.timeout(2400)
@each("case", CASES.values(), ids=CASES)
def test_finds_what_loads_without_consent_and_nothing_else(case):
    if ungated := case.get("ungated"):
        expected = {case["confidence"]} if "confidence" in case else {"high", "medium", "low"}
        assert trackers(ungated, expected) == sorted(case["vendors"])
    if gated := case.get("gated"):
        assert trackers(gated, {"high", "medium", "low"}) == []
    assert ungated or gated


def test_a_busy_machine_finds_as_much_as_an_idle_one(monkeypatch):
    """Files wait for a processor: only CPU time counts toward the limit of each."""
    case = CASES["across-files: an exported function that a page calls"]
    files = [[(path, text.encode()) for path, text in case[state].items()] for state in ("ungated", "gated")]
    idle = [analyze_files(some) for some in files]
    seconds = count(step=10.0)
    monkeypatch.setattr(time, "monotonic", lambda: next(seconds))
    busy = [analyze_files(some, Limits(max_seconds=math.inf)) for some in files]
    assert busy == idle
    assert [bool(found.findings) for found in busy] == [True, False]
