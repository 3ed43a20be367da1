"""The version of the rules changes with everything that decides what a scan reports, and with nothing else."""

from dataclasses import replace

from openassent_analysis.catalogue import catalogue
from openassent_analysis.libraries import libraries
from openassent_analysis.rules import ANALYSIS, other_facts, rules, rules_version, version_of

RULES, VENDORS, LIBRARIES = rules(), [*catalogue().vendors.values()], [*libraries().values()]
FACTS = other_facts()


def test_the_shipped_rules_have_a_version_that_does_not_change():
    assert rules_version() == version_of(RULES, VENDORS, LIBRARIES, FACTS)
    assert len(rules_version()) == 16


def test_a_changed_rule_vendor_library_call_or_analysis_changes_the_version():
    first, *others = RULES
    vendor, *vendors = VENDORS
    versions = {
        rules_version(),
        version_of(others, VENDORS, LIBRARIES, FACTS),
        version_of(
            [replace(first, severity="low" if first.severity != "low" else "high"), *others], VENDORS, LIBRARIES, FACTS
        ),
        version_of([replace(first, where={"new": "condition"}), *others], VENDORS, LIBRARIES, FACTS),
        version_of(RULES, vendors, LIBRARIES, FACTS),
        version_of(RULES, [replace(vendor, domains=("new.example",)), *vendors], LIBRARIES, FACTS),
        version_of(RULES, VENDORS, LIBRARIES[1:], FACTS),
        version_of(RULES, VENDORS, LIBRARIES, {**FACTS, "calls": FACTS["calls"][1:]}),
        version_of(RULES, VENDORS, LIBRARIES, {**FACTS, "settings": FACTS["settings"][1:]}),
        version_of(RULES, VENDORS, LIBRARIES, {**FACTS, "general": FACTS["general"][1:]}),
        version_of(RULES, VENDORS, LIBRARIES, FACTS, ANALYSIS + 1),
    }
    assert len(versions) == 11


def test_samples_do_not_change_the_version():
    without = [replace(rule, samples={}) for rule in RULES]
    assert version_of(without, VENDORS, LIBRARIES, FACTS) == rules_version()
