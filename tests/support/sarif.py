"""Checks a SARIF log: against the standard's schema, and against what GitHub's code scanning accepts.

https://docs.github.com/en/code-security/reference/code-scanning/sarif-files/sarif-support-for-code-scanning
"""

import gzip
import json
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from jsonschema import Draft4Validator

_SCHEMA = Path(__file__).parents[1] / "data" / "sarif-schema-2.1.0.json"
_LEVELS = {"none", "note", "warning", "error"}


@cache
def _validator() -> Draft4Validator:
    return Draft4Validator(json.loads(_SCHEMA.read_text()), format_checker=Draft4Validator.FORMAT_CHECKER)


def check_sarif(log: dict[str, Any], paths: set[str] | None = None) -> None:
    """Raises AssertionError if the log isn't valid, or if GitHub would reject, cut, or misplace its results.

    paths: the files of the repository. Each result must be in one of them.
    """
    assert [f"{list(error.path)}: {error.message}" for error in _validator().iter_errors(log)] == []
    assert len(gzip.compress(json.dumps(log).encode())) < 10 * 1024**2
    assert len(log["runs"]) <= 20
    for run in log["runs"]:
        _check_run(run, paths)


def _check_run(run: dict[str, Any], paths: set[str] | None) -> None:
    driver, results = run["tool"]["driver"], run["results"]
    assert driver["name"]
    assert urlsplit(driver.get("informationUri", "https:")).scheme == "https"
    assert len(results) <= 5_000  # of at most 25,000, GitHub shows these
    assert len(driver["rules"]) <= 25_000
    assert len({rule["id"] for rule in driver["rules"]}) == len(driver["rules"])
    # The category keeps uploads for other folders of the repository apart.
    assert run["automationDetails"]["id"].endswith("/")
    for rule in driver["rules"]:
        _check_rule(rule)
    for result in results:
        _check_result(result, run, paths)
    fingerprints = [result["partialFingerprints"]["assentFinding/v1"] for result in results]
    assert len(set(fingerprints)) == len(fingerprints)


def _check_rule(rule: dict[str, Any]) -> None:
    assert 0 < len(rule["id"]) <= 255
    assert rule["name"].isidentifier()
    assert "_" not in rule["name"]
    for text in ("shortDescription", "fullDescription"):
        assert 0 < len(rule[text]["text"]) <= 1_024, text
    assert rule["help"]["text"]
    assert rule["help"]["markdown"]
    assert rule["defaultConfiguration"]["level"] in _LEVELS
    assert len(rule["properties"]["tags"]) <= 10  # of at most 20, GitHub shows these
    # Only rules with this tag have a security severity.
    assert "security" in rule["properties"]["tags"]
    assert 0 < float(rule["properties"]["security-severity"]) <= 10
    assert isinstance(rule["properties"]["security-severity"], str)


def _check_result(result: dict[str, Any], run: dict[str, Any], paths: set[str] | None) -> None:
    rule = run["tool"]["driver"]["rules"][result["ruleIndex"]]
    assert rule["id"] == result["ruleId"]
    assert result["message"]["text"]
    # upload-sarif computes this one, and warns of each that differs from its own.
    assert "primaryLocationLineHash" not in result["partialFingerprints"]
    assert result["level"] in _LEVELS
    # GitHub shows the first one.
    (location,) = result["locations"]
    place = location["physicalLocation"]
    _check_place(place["artifactLocation"], run, paths)
    region = place["region"]
    assert 1 <= region["startLine"] <= region["endLine"]
    assert region["startColumn"] >= 1
    assert region["endColumn"] >= 1
    if region["startLine"] == region["endLine"]:
        assert region["startColumn"] <= region["endColumn"]


def _check_place(artifact: dict[str, Any], run: dict[str, Any], paths: set[str] | None) -> None:
    assert artifact["uriBaseId"] == "%SRCROOT%"
    # GitHub resolves paths against the repository's root, which the base therefore doesn't name.
    assert "uri" not in run["originalUriBaseIds"][artifact["uriBaseId"]]
    parts = urlsplit(artifact["uri"])
    assert (parts.scheme, parts.netloc, parts.query, parts.fragment) == ("", "", "", "")
    assert artifact["uri"].isascii()
    path = unquote(parts.path)
    assert not PurePosixPath(path).is_absolute()
    assert ".." not in PurePosixPath(path).parts
    assert paths is None or path in paths
