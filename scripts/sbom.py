"""Writes the bill of materials of what is deployed, as CycloneDX: the layer, each function, and their packages.

It comes from the hashed pins and from what the installed packages say of themselves, so that it is the same on every
machine. It runs in .tools/supply, whose library knows CycloneDX's schema; the packages are those of .venv.
"""

import argparse
import importlib.metadata
import json
import re
import sys
import tomllib
import uuid
from pathlib import Path
from typing import Any

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts import licences, locks
from scripts.locks import LAYER, ROOT, Pin

OUTPUT = ROOT / "dist" / "sbom.cdx.json"
_VERSION = SchemaVersion.V1_6
_NAMESPACE = uuid.UUID("6c1f1c1e-6d0c-4f0e-9a55-2f0b1c7a9d3e")


def metadata_in(packages: Path) -> dict[str, Any]:
    """The metadata of every distribution in a folder of packages, by name."""
    found = importlib.metadata.distributions(path=[str(packages)])
    return {canonicalize_name(it.metadata["Name"]): it.metadata for it in found}


def bill(metadata: dict[str, Any]) -> dict[str, Any]:
    """The document. Raises KeyError where a deployed package is not among the metadata."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name, version = project["name"], project["version"]
    deployed = locks.deployed()
    functions = sorted(path.parent.name for path in (ROOT / "functions").glob("*/__init__.py"))
    own = {LAYER: deployed[LAYER], **{function: deployed.get(function, []) for function in functions}}
    packages = sorted({pin for pins in own.values() for pin in pins})
    edges = {pin: _needs(metadata[pin.name]) for pin in packages}

    depends = {name: [f"{name}/{place}" for place in own]}
    for place, pins in own.items():
        below = [] if place == LAYER else [f"{name}/{LAYER}"]
        depends[f"{name}/{place}"] = below + [_purl(pin) for pin in pins]
    for pin in packages:
        depends[_purl(pin)] = [_purl(other) for other in packages if other.name in edges[pin]]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": _VERSION.to_version(),
        "version": 1,
        "metadata": {
            "component": {"type": "application", "bom-ref": name, "name": name, "version": version},
            "lifecycles": [{"phase": "build"}],
        },
        "components": [_part(name, place, version) for place in own]
        + [_package(pin, metadata[pin.name]) for pin in packages],
        "dependencies": [{"ref": ref, "dependsOn": sorted(on)} for ref, on in sorted(depends.items())],
    }
    # From the content: the same materials have the same number.
    number = uuid.uuid5(_NAMESPACE, json.dumps(document, sort_keys=True))
    return {**document, "serialNumber": f"urn:uuid:{number}"}


def _part(name: str, place: str, version: str) -> dict[str, Any]:
    kind = "library" if place == LAYER else "application"
    return {"type": kind, "bom-ref": f"{name}/{place}", "group": name, "name": place, "version": version}


def _package(pin: Pin, metadata: Any) -> dict[str, Any]:
    purl = _purl(pin)
    said = licences.licence_of(pin.name, metadata)
    is_expression = re.search(r"\s", said) is not None
    hashes = [{"alg": "SHA-256", "content": content} for content in pin.hashes]
    return {
        "type": "library",
        "bom-ref": purl,
        "name": pin.name,
        "version": pin.version,
        "purl": purl,
        "licenses": [{"expression": said} if is_expression else {"license": {"id": said}}],
        # An installer takes the one of these archives that fits the processor.
        "externalReferences": [{"type": "distribution", "url": purl, "hashes": hashes}],
    }


def _purl(pin: Pin) -> str:
    return f"pkg:pypi/{pin.name}@{pin.version}"


def _needs(metadata: Any) -> set[str]:
    """The names of what a distribution requires on Lambda, without its extras."""
    requirements = [Requirement(line) for line in metadata.get_all("Requires-Dist") or []]
    return {canonicalize_name(it.name) for it in requirements if locks.applies(str(it.marker) if it.marker else None)}


def render(metadata: dict[str, Any]) -> str:
    """The document as text. Raises ValueError where it is not as CycloneDX's schema has it."""
    text = json.dumps(bill(metadata), indent=2, sort_keys=True) + "\n"
    if error := JsonStrictValidator(_VERSION).validate_str(text):
        raise ValueError(str(error))
    return text


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts.sbom", description="Write the bill of materials.")
    parser.add_argument("--packages", type=Path, required=True, help="the folder that the packages are installed in")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args(arguments)
    text = render(metadata_in(options.packages))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(text, encoding="utf-8")
    print(f"{options.output.name}: {len(json.loads(text)['components'])} components", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
