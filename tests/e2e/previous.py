"""The version before this one (N-1), from git's history, and its artifacts.

A build takes 20 seconds of processor time, most of it for packages. If both versions pin the same packages, N-1's
artifacts are this version's with N-1's own code, prepared by N-1's own script.
"""

import io
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

from local.template import load_template
from scripts.artifacts import TEMPLATE_CODE
from tests.e2e.deployment import ARCHITECTURE, BUILD, ROOT, CommandFailed, adapt, pack, run

_FOLDER = BUILD.parents[1] / "previous"
_CODE = ("functions", "layers")
_DEPLOYED = ("template.yaml", "observability.yaml", "front_door.yaml", *_CODE)
_LOCKS = ("layers/*/requirements.txt", "functions/*/requirements.txt")
_SOURCE = {"AWS::Serverless::Function": "CodeUri", "AWS::Serverless::LayerVersion": "ContentUri"}
_PREPARE = "import sys, pathlib; from scripts import artifacts; artifacts.prepare(pathlib.Path(sys.argv[1]))"


class NoPreviousVersion(Exception):
    """The history has no version that differs from this one. The argument says what is missing."""


def has_history(root: Path = ROOT) -> bool:
    """Returns False for a clone of one commit, which has nothing to compare."""
    return _succeeds(root, "rev-parse", "--quiet", "--verify", "HEAD^")


def find_previous(root: Path = ROOT) -> str:
    """Returns the commit of N-1. Raises NoPreviousVersion if the history doesn't reach back to it.

    It is the last release whose deployed files differ from the working tree's. Before the first release, it is the
    last commit of the main line that has another template.yaml and other code, so that both resources and code change.
    """
    for tag in run("git", "tag", "--list", "v*", "--merged", "HEAD", "--sort=-version:refname", folder=root).split():
        if _differs(root, tag, *_DEPLOYED):
            return _commit(root, tag)
    for commit in run("git", "log", "--first-parent", "--format=%H", folder=root).split():
        if _differs(root, commit, "template.yaml") and _differs(root, commit, *_CODE):
            return commit
    raise NoPreviousVersion("no older commit with another template and other code: fetch the whole history, with tags")


def build(commit: str) -> Path:
    """Builds and packs the commit's artifacts, after this version's. Returns the template to deploy."""
    shutil.rmtree(_FOLDER, ignore_errors=True)
    _check_out(commit)
    adapt(_FOLDER / "template.yaml")
    # Where the scripts of the version expect the tools and the application's environment.
    for name in (".tools", ".venv"):
        (_FOLDER / name).symlink_to(ROOT / name)
    resources = load_template(_FOLDER / "template.yaml")["Resources"]
    sources = {
        name: it["Properties"][field]
        for name, it in resources.items()
        if (field := _SOURCE.get(it["Type"])) is not None
    }
    if _locks(_FOLDER) == _locks(ROOT) and all((BUILD / name).is_dir() for name in sources):
        return pack(_exchange_code(sources))
    folder = _FOLDER / "build"
    run(_FOLDER / "scripts" / "build", "--architecture", ARCHITECTURE, "--build-dir", folder)
    return pack(folder / "template.yaml")


def _exchange_code(sources: dict[str, str]) -> Path:
    """Makes the artifacts from this version's. sources: the folder of each, by logical ID."""
    template, artifacts = _FOLDER / "template.yaml", _FOLDER / "artifacts"
    text = template.read_text(encoding="utf-8")
    for name, path in sources.items():
        source, is_layer = _FOLDER / path, path.startswith("layers/")
        # A layer has its packages in `python`. A function is a package with the name of its folder.
        own = [it for it in source.iterdir() if it.is_dir()] if is_layer else [source]
        target = artifacts / name / ("python" if is_layer else "")
        shutil.copytree(BUILD / name, artifacts / name)
        shutil.rmtree(target / TEMPLATE_CODE.name, ignore_errors=True)
        for package in own:
            shutil.rmtree(target / package.name, ignore_errors=True)
            shutil.copytree(package, target / package.name)
        text = re.sub(rf"(?<=Uri: ){re.escape(path)}(?=[\s,}}])", f"{artifacts.name}/{name}", text)
    # Generated documents, which no version of the code depends on.
    reference = Path("SystemFunction", "system", "reference")
    shutil.copytree(BUILD / reference, artifacts / reference)
    environment = {"PYTHONPATH": "functions:layers/shared:layers/analysis:cli/src:."}
    run(ROOT / ".tools" / "sam" / "bin" / "python", "-c", _PREPARE, artifacts, folder=_FOLDER, **environment)
    template.write_text(text, encoding="utf-8")
    return template


def _check_out(commit: str) -> None:
    packed = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(_FOLDER, filter="data")


def _locks(root: Path) -> dict[Path, bytes]:
    return {path.relative_to(root): path.read_bytes() for pattern in _LOCKS for path in root.glob(pattern)}


def _commit(root: Path, revision: str) -> str:
    return run("git", "rev-parse", f"{revision}^{{commit}}", folder=root).strip()


def _differs(root: Path, commit: str, *paths: str) -> bool:
    return not _succeeds(root, "diff", "--quiet", commit, "--", *paths)


def _succeeds(root: Path, *arguments: str) -> bool:
    try:
        run("git", *arguments, folder=root)
    except CommandFailed:
        return False
    return True
