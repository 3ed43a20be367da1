"""The rules of scans: their texts for all findings, which name no vendor, and the addresses of their pages."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from controlplane.platform.core.urls import public_base_url

# Made from the rules of the analysis by scripts/rule_texts.py.
_TEXTS: Final = Path(__file__).with_name("rule_texts.json")


class KnownRule(NamedTuple):
    title: str
    description: str
    remediation: str
    category: str = ""
    references: tuple[str, ...] = ()


def known_rule(rule_id: str) -> KnownRule:
    """Returns the rule. Of one that a later release removed, only the words of its ID are known."""
    words = rule_id.replace("-", " ").capitalize()
    return _rules().get(rule_id) or KnownRule(words, f"{words}.", "Each result says how to fix it.")


def rule_page(rule_id: str | None) -> str | None:
    """Returns the address of the rule's page, or None for a rule without one."""
    return f"{public_base_url()}/docs/rules/{rule_id}" if rule_id in _rules() else None


@cache
def _rules() -> Mapping[str, KnownRule]:
    texts = json.loads(_TEXTS.read_text(encoding="utf-8"))
    return {rule_id: KnownRule(**rule) for rule_id, rule in texts.items()}
