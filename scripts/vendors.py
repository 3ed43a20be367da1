"""Writes the catalog of third parties from VERSION of the npm package third-party-web, with its license next to it.

The ids of vendors are stored in users' tables. So an entity keeps its id as long as it keeps one of its domains, and
one that the package no longer contains stays in the catalog. `vendors.yaml` isn't read here: it is merged when loaded.
"""

import json
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "layers" / "analysis" / "openassent_analysis" / "resources"
CATALOG = FOLDER / "third-parties.json"
LICENSE = FOLDER / "third-parties.LICENSE.txt"
PACKAGE = "third-party-web"
VERSION = "0.30.0"

# Their categories as ours. All others are known, but no trackers.
CATEGORIES = {
    "ad": "marketing",
    "analytics": "analytics",
    "cdn": "cdn",
    "consent-provider": "consent-management",
    "customer-success": "chat",
    "marketing": "marketing",
    "social": "social",
    "tag-manager": "tag-manager",
    "video": "video",
}
OTHER = "other"
_HOST = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,24}")


def entries(entities: Iterable[Mapping[str, Any]], known: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns the catalog's entries, sorted by id, for the package's entities and the current entries."""
    before = {domain: entry["id"] for entry in known for domain in entry["domains"]}
    by_use = sorted(entities, key=lambda entity: (-entity.get("totalOccurrences", 0), entity["name"]))
    found: dict[str, dict[str, Any]] = {}
    served: set[str] = set()
    for rank, entity in enumerate(by_use, 1):
        hosts = dict.fromkeys(host for written in entity["domains"] if (host := _host(written)))
        domains = [host for host in hosts if host not in served]
        if not domains:
            continue
        kept = (before[domain] for domain in domains if domain in before and before[domain] not in found)
        entry_id = next(kept, None) or _new_id(entity["name"], found.keys() | set(before.values()))
        found[entry_id] = {
            "id": entry_id,
            "name": entity["name"],
            "category": CATEGORIES.get(entity["category"], OTHER),
            "domains": domains,
        }
        if "totalOccurrences" in entity:
            found[entry_id]["rank"] = rank
        served.update(domains)
    for entry in known:
        if entry["id"] not in found and (left := [domain for domain in entry["domains"] if domain not in served]):
            found[entry["id"]] = {key: entry[key] for key in ("id", "name", "category")} | {"domains": left}
    return [found[entry_id] for entry_id in sorted(found)]


def _host(written: str) -> str | None:
    """Returns the host of a domain pattern, or None if it is an address of another kind."""
    host = written.strip().lower().removeprefix("*.")
    return host if _HOST.fullmatch(host) else None


def _new_id(name: str, taken: set[str]) -> str:
    wanted = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return next(new for new in (wanted, *(f"{wanted}-{number}" for number in range(2, 99))) if new not in taken)


def as_text(found: Iterable[Mapping[str, Any]]) -> str:
    """Returns the catalog as JSON with an entity per line."""
    return "[\n" + ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in found) + "\n]\n"


def download() -> tuple[list[dict[str, Any]], str]:
    """Returns the entities and the license of the package."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["npm", "pack", "--silent", f"{PACKAGE}@{VERSION}"], cwd=folder, check=True)  # nosec B607  # noqa: S603, S607
        (archive,) = Path(folder).glob("*.tgz")
        with tarfile.open(archive) as files:
            return json.loads(_text(files, "package/dist/entities.json")), _text(files, "package/LICENSE")


def _text(files: tarfile.TarFile, name: str) -> str:
    content = files.extractfile(name)
    if content is None:
        raise FileNotFoundError(name)
    return content.read().decode()


def main() -> None:
    entities, license_text = download()
    known = json.loads(CATALOG.read_text(encoding="utf-8")) if CATALOG.exists() else []
    CATALOG.write_text(as_text(entries(entities, known)), encoding="utf-8")
    LICENSE.write_text(f"third-parties.json is made from {PACKAGE} {VERSION}:\n\n{license_text}", encoding="utf-8")


if __name__ == "__main__":
    main()
