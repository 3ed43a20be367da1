"""Writes the parts of the analysis that other functions need: texts about rules, vendors' IDs, and code of fixes."""

import json
from pathlib import Path
from typing import Any

from openassent_analysis.catalogue import catalogue
from openassent_analysis.consent_setup import provider, runtime
from openassent_analysis.fixes import consent_library_version
from openassent_analysis.rules import rules

ROOT = Path(__file__).parents[1]
RULE_TEXTS = ROOT / "layers" / "shared" / "controlplane" / "scans" / "rule_texts.json"
VENDOR_IDS = ROOT / "layers" / "shared" / "controlplane" / "findings" / "vendor_ids.json"
SNIPPETS = ROOT / "functions" / "dashboard" / "projects" / "snippets.json"
# The address of a project's consent instance, which the pages replace.
RUNTIME_URL = "{runtime_url}"
_OFFLINE, _HOSTED = ["mode: 'offline',"], ["mode: 'hosted',", f"backendURL: '{RUNTIME_URL}',"]
_CATEGORIES = "consentCategories: ['necessary', 'measurement', 'marketing'],"


def describe() -> str:
    """Returns the texts, categories, and links of the rules, by ID."""
    return _text(
        {
            rule.id: {**rule.texts(), "category": rule.category, "references": rule.references}
            for rule in sorted(rules(), key=lambda rule: rule.id)
        }
    )


def describe_vendors() -> str:
    """Returns the IDs of the catalog's vendors."""
    return _text(sorted(catalogue().vendors))


def describe_snippets() -> str:
    """Returns the code that installs the consent library, by framework, with and without a consent instance."""
    return _text(
        [
            {"framework": "Next.js", **_snippet("@c15t/nextjs")},
            {"framework": "React", **_snippet("@c15t/react")},
            {"framework": "Any other framework", **_snippet("c15t")},
        ]
    )


def _snippet(package: str) -> dict[str, str]:
    def code(mode: list[str]) -> str:
        options = [*mode, _CATEGORIES]
        return runtime(options) if package == "c15t" else provider(package, options)

    install = f"npm install {package}@^{consent_library_version()}"
    return {"install": install, "hosted": code(_HOSTED), "offline": code(_OFFLINE)}


def _text(document: Any) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    RULE_TEXTS.write_text(describe())
    VENDOR_IDS.write_text(describe_vendors())
    SNIPPETS.write_text(describe_snippets())
