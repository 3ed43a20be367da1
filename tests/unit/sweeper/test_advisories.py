"""The list of advisories is complete and readable, and versions are compared as npm does."""

import re
from datetime import date
from typing import get_args

import pytest
import yaml

from controlplane.platform.core.priorities import Priority
from openassent_analysis.catalogue import catalogue
from openassent_analysis.libraries import libraries, parse
from sweeper.advisories import LIST, Advisory, advisories, is_within

RANGE = re.compile(r"\*|(?:(?:>=|<)?\d+\.\d+\.\d+(?: <\d+\.\d+\.\d+)?)(?: \|\| >=\d+\.\d+\.\d+ <\d+\.\d+\.\d+)*")
KINDS = get_args(Advisory.__annotations__["kind"])
REQUIRED = {*Advisory._fields} - {*Advisory._field_defaults}


def test_the_list_has_at_least_25_entries_each_with_an_id_of_its_own():
    ids = [it.id for it in advisories()]
    assert len(ids) >= 25
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("entry", yaml.safe_load(LIST.read_bytes()), ids=lambda it: it["id"])
def test_an_entry_has_all_fields_in_their_format(entry):
    assert REQUIRED <= entry.keys() <= {*Advisory._fields}
    assert re.fullmatch(r"[a-z0-9][a-z0-9-]{0,99}", entry["id"])
    assert RANGE.fullmatch(entry["affected"])
    assert (entry["kind"] in KINDS, entry["priority"] in get_args(Priority)) == (True, True)
    assert isinstance(entry["date"], date)
    assert entry["source"].startswith("https://")
    assert isinstance(entry.get("withdrawn", False), bool)
    assert len(entry["title"]) <= 120
    for name in ("summary", "remediation"):
        assert 10 < len(entry[name]) <= 400
        assert entry[name].endswith(".")


@pytest.mark.parametrize("advisory", advisories(), ids=lambda it: it.id)
def test_the_inventory_finds_the_package_and_the_fixed_version_is_not_affected(advisory):
    assert advisory.package in catalogue().packages
    assert advisory.fixed is None or not is_within(advisory.fixed, advisory.affected)


def test_no_advisory_repeats_what_the_rules_say_of_a_consent_library():
    for it in advisories():
        library = libraries().get(it.package)
        if library is not None and not it.withdrawn:
            assert not library.unmaintained, it.id
            assert library.below is None or (it.fixed and parse(it.fixed) > library.below), it.id


@pytest.mark.parametrize(
    ("version", "affected", "expected"),
    [
        ("1.2.3", "<1.2.4", True),
        ("1.2.4", "<1.2.4", False),
        ("1.10.0", "<1.9.0", False),
        ("1.x", "<1.57.2", False),
        ("1.x", "<2.0.0", True),
        ("8.32.x", "<7.1.0 || >=8.0.0 <8.33.0", True),
        ("7.5.0", "<7.1.0 || >=8.0.0 <8.33.0", False),
        ("1.2.3", "1.2.3", True),
    ],
)
def test_a_version_is_in_a_range(version, affected, expected):
    assert is_within(version, affected) is expected
