"""Lists the licence of every package that is deployed, in docs/licences.md, and refuses those not agreed to.

The licences are what the installed packages say of themselves. `--check` writes nothing and compares.
"""

import argparse
import importlib.metadata
import json
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from scripts import locks
from scripts.locks import ROOT

DOCUMENT = ROOT / "docs" / "licences.md"
# What a service may be built on without a duty towards its users, by SPDX identifier.
ALLOWED = {
    "0BSD": "no duty",
    "Apache-2.0": "keep notices",
    "BSD-2-Clause": "keep notices",
    "BSD-3-Clause": "keep notices",
    "BlueOak-1.0.0": "keep notices",
    "CC0-1.0": "no duty",
    "ISC": "keep notices",
    "MIT": "keep notices",
    "MIT-0": "no duty",
    "MPL-2.0": "publish changes to its own files; none is changed here",
    "PSF-2.0": "keep notices",
    "Unlicense": "no duty",
}
# Words of older packages, which came before SPDX identifiers had a field of their own.
_OLDER = {
    "Apache License 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
# What these say of themselves is no identifier, or stands where nobody looks; their licence files were read.
_READ = {"python-dateutil": "Apache-2.0 AND BSD-3-Clause", "node_modules/reserved": "MIT"}
_INTRODUCTION = """\
# Licences

What is deployed, besides this project's own code: every package in the layer, which each function gets, and in the
functions that have packages of their own. Written by `make licences` from what the packages say of themselves;
`make lint` fails where this list is not current, or a licence is none of those allowed.
"""


class UnknownLicence(Exception):
    """A package says of its licence nothing that is understood here."""


def licence_of(name: str, metadata: Mapping[str, Any] | None = None) -> str:
    """The licence of an installed package as an SPDX expression. Raises UnknownLicence."""
    said: Any = importlib.metadata.metadata(name) if metadata is None else metadata
    classifiers = [line.rpartition(" :: ")[2] for line in said.get_all("Classifier") or [] if line.startswith("Lic")]
    for words in (_READ.get(name), said.get("License-Expression"), said.get("License"), *classifiers):
        expression = _OLDER.get(words, words)
        if expression and is_allowed(expression):
            return str(expression)
    raise UnknownLicence(f"{name}: {said.get('License-Expression') or said.get('License')!r}, {classifiers}")


def _parts(expression: str) -> list[str]:
    return [part for part in re.split(r"\s+(?:AND|OR)\s+|[()]", expression) if part]


def is_allowed(expression: str) -> bool:
    """Whether an SPDX expression leaves a choice that is allowed. AND binds closer than OR."""
    while inner := re.search(r"\(([^()]*)\)", expression):
        # A bracket counts as one licence: an allowed one, or one that nobody knows.
        licence = "0BSD" if is_allowed(inner[1]) else "refused"
        expression = f"{expression[: inner.start()]} {licence} {expression[inner.end() :]}"
    choices = [re.split(r"\s+AND\s+", choice.strip()) for choice in re.split(r"\s+OR\s+", expression)]
    return any(all(part in ALLOWED for part in choice) for choice in choices)


def tools() -> dict[str, str]:
    """The licences of everything that npm brings for development, by the package's place in node_modules."""
    packages = json.loads((ROOT / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    return {place: entry.get("license") or _READ.get(place, "") for place, entry in packages.items() if place}


def render() -> str:
    """The document. Raises UnknownLicence."""
    places: dict[tuple[str, str], list[str]] = {}
    for place, pins in locks.deployed().items():
        for pin in pins:
            places.setdefault((pin.name, pin.version), []).append(place)
    rows = [(name, version, licence_of(name), ", ".join(at)) for (name, version), at in sorted(places.items())]
    named = {part for row in rows for part in _parts(row[2])}
    # Of a choice between licences, one may be refused: nothing is taken under it.
    duties = [(licence, ALLOWED[licence]) for licence in sorted(named & ALLOWED.keys())]
    return "\n".join(
        [
            _INTRODUCTION,
            *_table(("Package", "Version", "Licence", "Deployed in"), rows),
            "",
            *_table(("Licence", "What it asks of us"), duties),
            "",
        ]
    )


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    titles = list(head)
    return [f"| {' | '.join(row)} |" for row in (titles, [":--"] * len(titles), *rows)]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts.licences", description="Write docs/licences.md.")
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    options = parser.parse_args(arguments)
    refused = [f"{place}: {licence!r}" for place, licence in tools().items() if not is_allowed(licence)]
    text = ""
    try:
        text = render()
    except UnknownLicence as unknown:
        refused.append(str(unknown))
    if refused:
        print("Licences that scripts/licences.py does not allow:", *refused, sep="\n  ", file=sys.stderr)
        return 1
    if not options.check:
        DOCUMENT.write_text(text, encoding="utf-8")
    elif not DOCUMENT.exists() or DOCUMENT.read_text(encoding="utf-8") != text:
        print("docs/licences.md is not current: make licences writes it anew.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
