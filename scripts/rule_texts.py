"""Writes the texts about each rule of the analysis, for the functions, which don't have the analysis."""

import json
from pathlib import Path

from openassent_analysis.rules import rules

RULE_TEXTS = Path(__file__).parents[1] / "layers" / "shared" / "controlplane" / "scans" / "rule_texts.json"


def describe() -> str:
    texts = {rule.id: rule.texts() for rule in sorted(rules(), key=lambda rule: rule.id)}
    return json.dumps(texts, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    RULE_TEXTS.write_text(describe())
