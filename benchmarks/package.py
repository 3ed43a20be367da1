"""The packages that are measured: ours as it is deployed, and the naive peer's as pip installs it.

Ours is the output of `make build` in .aws-sam/build, if it runs on this machine. If it doesn't exist, or is for
another processor, the same preparation is applied to the runtime's libraries of this environment. Either is a copy, so
that the certificate of the stand-in can be trusted without touching what gets deployed.
"""

from __future__ import annotations

import compileall
import platform
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from benchmarks.machine import ROOT
from scripts import artifacts

BUILD = ROOT / ".aws-sam" / "build"
LAYER = "SharedLayer"
LAYER_SOURCE = ROOT / "layers" / "shared"
LAYER_PACKAGES = ("awsclient", "controlplane")
# FastAPI, Mangum, pydantic, and boto3, with what they require.
NAIVE_LIBRARIES = {
    *("annotated-doc", "annotated-types", "anyio", "boto3", "botocore", "fastapi", "idna", "jmespath", "mangum"),
    *("opentelemetry-api", "pydantic", "pydantic-core", "python-dateutil", "s3transfer", "six", "starlette"),
    *("typing-extensions", "typing-inspection", "urllib3"),
}
PEERS = Path(__file__).with_name("peers")


@dataclass(frozen=True)
class Package:
    """The layer's folder, each function's folder by group, and a description of their origin."""

    layer: Path
    functions: dict[str, Path]
    origin: str

    def folders(self, group: str) -> tuple[Path, ...]:
        """Returns the folders in Lambda's search order: the function, then the layer."""
        return self.functions[group], self.layer

    def all_folders(self) -> list[Path]:
        return [*self.functions.values(), self.layer]


def stage_ours(target: Path) -> Package:
    """Copies the deployed package, importable on this machine, in the layout of the build folder."""
    layer = target / LAYER / "python"
    built = BUILD / LAYER / "python"
    if built.is_dir() and _runs_here(built):
        shutil.copytree(built, layer)
        return Package(layer, _copy_functions(BUILD.glob("*/*/app.py"), target), "built by make build")
    reason = "not built" if not built.is_dir() else f"built for another processor than {platform.machine()}"
    _copy_libraries(_pinned(LAYER_SOURCE), layer)
    for package in LAYER_PACKAGES:
        shutil.copytree(LAYER_SOURCE / package, layer / package, ignore=_CLUTTER)
    functions = _copy_functions((ROOT / "functions").glob("*/app.py"), target)
    for group, folder in functions.items():
        # Except for those that this environment lacks.
        _copy_libraries(own_libraries(group) & _installed(), folder)
    artifacts.prepare(target)
    return Package(layer, functions, f"prepared like a build from this environment ({reason})")


def stage_naive(target: Path) -> Path:
    """Installs the naive peer's libraries in one folder, as `pip install --target` does: compiled and complete."""
    _copy_libraries(NAIVE_LIBRARIES, target)
    compileall.compile_dir(target, quiet=2)
    return target


_CLUTTER = shutil.ignore_patterns("__pycache__", "*.pyc")


def _runs_here(layer: Path) -> bool:
    """Returns whether the compiled libraries are for this machine's processor."""
    compiled = [path.name for path in layer.rglob("*.so") if "cpython" in path.name]
    return not any("linux" in name and platform.machine() not in name for name in compiled)


def _copy_functions(apps: Iterable[Path], target: Path) -> dict[str, Path]:
    """Copies the package around each app.py to a folder of its own; answers those folders by group."""
    folders = {}
    for app in sorted(apps):
        group = app.parent.name
        folders[group] = target / group
        shutil.copytree(app.parent, folders[group] / group, ignore=None if BUILD in app.parents else _CLUTTER)
    return folders


def _pinned(folder: Path) -> set[str]:
    """Returns the names that a folder's requirements pin."""
    pins = folder / "requirements.txt"
    text = pins.read_text() if pins.is_file() else ""
    return {_normal(name) for name in re.findall(r"^([A-Za-z0-9._-]+)==", text, re.MULTILINE)}


def own_libraries(group: str) -> set[str]:
    """Returns the names of the packages that a function needs in addition to the layer's."""
    return _pinned(ROOT / "functions" / group) - _pinned(LAYER_SOURCE)


def _installed() -> set[str]:
    """Returns the names of the distributions in this environment."""
    return {_normal(distribution.name) for distribution in metadata.distributions()}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _copy_libraries(names: set[str], target: Path) -> None:
    """Copies installed distributions, file by file as their records list them."""
    for name in sorted(names):
        for file in metadata.files(name) or []:
            if ".." in file.parts or file.suffix == ".pyc":
                continue
            source, copy = Path(str(file.locate())), target / file
            if source.is_file():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, copy)


def trust(package: Package, naive: Path, certificate: Path, folder: Path) -> Path:
    """Adds the stand-in's certificate to ours, Amazon's roots, and to the peers', botocore's bundle.

    Returns the peers' bundle.
    """
    added = certificate.read_bytes()
    peers = folder / "peers.pem"
    peers.write_bytes((naive / "botocore" / "cacert.pem").read_bytes() + added)
    own = package.layer / "awsclient" / "amazon-roots.pem"
    own.write_bytes(own.read_bytes() + added)
    return peers
