"""Builds the layers and the functions with SAM, then makes the built folders small and quick to import.

On Lambda the code is read-only and an import pays for every byte it parses, so everything that can be done once is done
here. Only the standard library is used, because this runs in the environment of SAM and not in the project's own.
Nothing here decides what the code does: an artifact that skipped this step behaves the same, only slower.
"""

import argparse
import gzip
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# The processors of Lambda. The first is the template's default.
ARCHITECTURES = ("arm64", "x86_64")

DATACLASS_CODE = Path("controlplane/platform/core/dataclass_code.bin")

# Files that a function serves unchanged, and unpacks on request.
DOCUMENTS = ("system/reference",)

# The templates of the pages, and the package that the build makes of them.
TEMPLATES = Path("dashboard/templates")
TEMPLATE_CODE = Path("dashboard_templates")

# Folders of code that only tests import, and stale bytecode.
CLUTTER = frozenset({"tests", "analysis_testing", "__pycache__"})
# Files that no import reads, among them a reference of powertools that nothing serves.
UNREAD = frozenset({"py.typed", "requirements.txt", "README.md", "swagger-ui-bundle.min.js", "swagger-ui.min.css"})

# The layer of audits is for one processor, as its Chromium is.
BROWSER_LAYER, BROWSER_ARCHITECTURE = "AuditLayer", "x86_64"
CHROMIUM = ROOT / "node_modules" / "@sparticuz" / "chromium" / "bin"
CHROMIUM_FILES = ("chromium.br", "al2023.tar.br", "fonts.tar.br")

# Where Lambda unpacks a layer and a function. The paths in a traceback come from here.
LAYER_ROOT = Path("/opt")
FUNCTION_ROOT = Path("/var/task")

# The machine in the header of a compiled file (ELF's e_machine), by processor.
_MACHINES = {"arm64": 183, "x86_64": 62}
# The minor version of the glibc that Lambda's Python 3.13 runs on (Amazon Linux 2023).
_GLIBC = 34
# The parameter as SAM writes it to the built template.
_ARCHITECTURE = re.compile(
    r"(?<=^  Architecture:\n    Type: String\n)    Default: arm64\n    AllowedValues:\n    - arm64\n    - x86_64\n",
    re.MULTILINE,
)


class BuildFailed(Exception):
    """The artifacts are not what the deployment needs; the message says which and why."""


def artifacts_in(build_dir: Path) -> list[Path]:
    """Returns the folders of the layers and the functions. A nested stack's folder has its template only."""
    return sorted(it for it in build_dir.iterdir() if it.is_dir() and not (it / "template.yaml").exists())


def prepare(build_dir: Path) -> None:
    """Prepare every artifact that SAM left in `build_dir`. A second run changes nothing."""
    artifacts = artifacts_in(build_dir)
    if not artifacts:
        raise BuildFailed(f"{build_dir} holds no artifact")
    for artifact in artifacts:
        packages = artifact / "python"
        if packages.is_dir():
            if (packages / "openassent_audit").is_dir():
                add_browser(packages)
            remove_clutter(packages)
            if (packages / "awsclient").is_dir():
                precompile("dataclasses", packages / DATACLASS_CODE)
            compile_modules(packages, LAYER_ROOT / "python")
            remove_sources(packages)
        else:
            remove_clutter(artifact)
            for documents in DOCUMENTS:
                pack(artifact / documents)
            if (artifact / TEMPLATES).is_dir():
                precompile("templates", artifact / TEMPLATE_CODE)
                remove(artifact / TEMPLATES)
            compile_modules(artifact, FUNCTION_ROOT)
            remove_sources(artifact)
        if missing := modules_without_bytecode(artifact):
            raise BuildFailed(f"{artifact.name}: no valid bytecode for {', '.join(map(str, missing))}")


def add_browser(packages: Path) -> None:
    """Add Chromium, as npm distributes it, and the catalog of the analysis, which this layer has without the rest."""
    (packages / "playwright" / "driver" / "node").chmod(0o755)  # SAM unpacks wheels without the permissions of files
    shutil.copytree(
        ROOT / "layers" / "analysis" / "openassent_analysis", packages / "openassent_analysis", dirs_exist_ok=True
    )
    if not CHROMIUM.is_dir():
        print("npm was not found: the built layer has no browser, so audits of websites end as blocked.")
        return
    (packages / "openassent_audit" / "chromium").mkdir(exist_ok=True)
    for name in CHROMIUM_FILES:
        shutil.copy(CHROMIUM / name, packages / "openassent_audit" / "chromium" / name)


def pack(path: Path) -> None:
    """Compress the file, or every file below the folder. Compressed files stay as they are."""
    for file in [path, *path.rglob("*")]:
        if file.is_file() and file.suffix != ".gz":
            file.with_name(f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes(), mtime=0))
            file.unlink()


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def remove_clutter(root: Path) -> None:
    """Remove what no import reads: type stubs, tests, console scripts, requirement lists, readmes, stale bytecode."""
    for path in sorted(root.iterdir()):
        if path.name == "bin" or path.suffix == ".data":
            remove(path)
    for folder in sorted(path for path in root.rglob("*") if path.is_dir() and path.name in CLUTTER):
        remove(folder)
    for file in root.rglob("*"):
        is_stale = file.suffix == ".pyc" and file.with_suffix(".py").exists()
        if is_stale or file.suffix == ".pyi" or file.name in UNREAD:
            file.unlink()


def precompile(what: str, target: Path) -> None:
    """Run scripts.precompile, which imports the functions, in the application's own environment."""
    run([str(ROOT / ".venv" / "bin" / "python"), "-m", "scripts.precompile", what, str(target)])


def compile_modules(root: Path, deployed_root: Path) -> None:
    """Compile every module below `root` to bytecode that stays valid whatever date the archive gives its source.

    Bytecode is normally checked against the date of its source. Deployment changes that date, and nothing can write
    new bytecode next to read-only code, so each cold start would compile everything again.

    The bytecode has the numbers of lines but not the columns, which take a fifth of its size. Raises BuildFailed.
    """
    command = [sys.executable, "-X", "no_debug_ranges", "-m", "compileall", "-q", "-f"]
    paths = ["-s", str(root), "-p", str(deployed_root), str(root)]
    run([*command, "--invalidation-mode", "unchecked-hash", *paths])


def remove_sources(root: Path) -> None:
    """Leave only the bytecode of libraries, which Python imports without a source: a third of the package's size.

    Ours stay, because a traceback shows their lines, and so does each `__init__.py`: anyio reads its own to find out
    what it can import later.
    """
    own = {path.name for folder in ("functions", "layers/*") for path in ROOT.glob(f"{folder}/*")}
    for source in root.rglob("*.py"):
        if source.name != "__init__.py" and source.relative_to(root).parts[0] not in own:
            Path(importlib.util.cache_from_source(str(source))).replace(source.with_suffix(".pyc"))
            source.unlink()
    for folder in list(root.rglob("__pycache__")):
        if not any(folder.iterdir()):
            folder.rmdir()


def modules_without_bytecode(root: Path) -> list[Path]:
    """Returns the modules, relative to `root`, that Python would compile again or couldn't import on Lambda."""
    modules = [*root.rglob("*.py"), *(path for path in root.rglob("*.pyc") if path.parent.name != "__pycache__")]
    return [module.relative_to(root) for module in sorted(modules) if not has_lasting_bytecode(module)]


def has_lasting_bytecode(module: Path) -> bool:
    compiled = module if module.suffix == ".pyc" else Path(importlib.util.cache_from_source(str(module)))
    if not compiled.is_file():
        return False
    header = compiled.read_bytes()[:8]
    unchecked_hash = 0b01  # PEP 552: bit 0 says "hash, not date", bit 1 says "check it"
    return header == importlib.util.MAGIC_NUMBER + unchecked_hash.to_bytes(4, "little")


def bind_architecture(template: Path, architecture: str) -> None:
    """Make the built template accept only the processor that it was built for.

    Without it, a deployment with another value succeeds, and no function can import its packages. CloudFormation checks
    the value, also one that it keeps from an earlier deployment, before it changes anything.
    """
    bound = f"    Default: {architecture}\n    AllowedValues:\n    - {architecture}\n"
    text, count = _ARCHITECTURE.subn(bound, template.read_text(encoding="utf-8"))
    if count != 1:
        raise BuildFailed(f"{template} declares the parameter Architecture differently than expected")
    template.write_text(text, encoding="utf-8")


def check_compiled_files(build_dir: Path, architecture: str) -> list[Path]:
    """Return the compiled files below `build_dir`. Raise BuildFailed without any, or if Lambda can't load one.

    Those of the browser's layer are for its own processor, and not among the result.
    """
    compiled = []
    for path in sorted(path for path in build_dir.rglob("*") if path.is_file() and not path.is_symlink()):
        with path.open("rb") as file:
            header = file.read(20)
        if not header.startswith(b"\x7fELF"):
            continue
        of_browser = path.is_relative_to(build_dir / BROWSER_LAYER)
        wanted = BROWSER_ARCHITECTURE if of_browser else architecture
        if not of_browser:
            compiled.append(path)
        if int.from_bytes(header[18:20], "little") != _MACHINES[wanted]:
            raise BuildFailed(f"{path} isn't compiled for {wanted}")
        newest = max((int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)", path.read_bytes())), default=0)
        if newest > _GLIBC:
            raise BuildFailed(f"{path} requires glibc 2.{newest}, and Lambda has 2.{_GLIBC}")
    if not compiled:
        raise BuildFailed(f"{build_dir} has no compiled file, so nothing shows which processor it is for")
    return compiled


def size_bytes(root: Path) -> int:
    return sum(path.stat().st_size for path in root.rglob("*") if path.is_file())


def zipped_size_bytes(root: Path) -> int:
    archive = root.with_suffix(".measure.zip")
    try:
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as target:
            for path in sorted(root.rglob("*")):
                target.write(path, path.relative_to(root))
        return archive.stat().st_size
    finally:
        archive.unlink(missing_ok=True)


def report(build_dir: Path) -> None:
    """Print what each artifact weighs."""
    for path in artifacts_in(build_dir):
        print(f"{path.name:24} {size_bytes(path) / 2**20:6.2f} MiB unpacked")


def verified_wheels(architecture: str) -> Path:
    """Returns a folder with the wheels of every pin, for this machine and the processor, each checked against its hash.

    SAM fetches wheels for another processor by name and version alone. So it is given these and no index.
    """
    locks = sorted([*ROOT.glob("layers/*/requirements.txt"), *ROOT.glob("functions/*/requirements.txt")])
    digest = hashlib.sha256(b"".join(lock.read_bytes() for lock in locks)).hexdigest()[:16]
    folder = ROOT / ".aws-sam" / "wheels" / f"{architecture}-{digest}"
    complete = folder / "complete"
    if complete.exists():
        return folder
    of_browser = [lock for lock in locks if lock.parent.name == "audit"]
    others = [lock for lock in locks if lock not in of_browser]
    for wanted, pinned in ((BROWSER_ARCHITECTURE, of_browser), (architecture, others)):
        machine = {"arm64": "aarch64"}.get(wanted, wanted)
        target = ["--python-version", "3.13", "--implementation", "cp"]
        for version in ("2014", "_2_17", "_2_28", "_2_34"):  # 2.34 is the glibc of Lambda's Python 3.13
            target += ["--platform", f"manylinux{version}_{machine}"]
        requirements = [argument for lock in pinned for argument in ("--requirement", str(lock))]
        for platform in ([], target):
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
            checked = ["--require-hashes", "--no-deps", "--only-binary=:all:", *requirements]
            run([*pip, *checked, "--dest", str(folder), *platform])
    complete.touch()
    return folder


def run_sam(architecture: str, build_dir: Path) -> None:
    command = [str(Path(sys.executable).with_name("sam")), "build", "--build-dir", str(build_dir)]
    # Next to the folder they belong to, so that builds for two architectures don't overwrite each other's cache.
    command += ["--cache-dir", str(build_dir.parent / "cache")]
    command += ["--parameter-overrides", f"Architecture={architecture}"]
    # SAM runs `pip wheel` for each file that `pip download` says it processes, which changes nothing about a wheel.
    run(command, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(verified_wheels(architecture)), PIP_QUIET="1")


def run(command: list[str], **environment: str) -> None:
    """Raises BuildFailed with what the command printed."""
    result = subprocess.run(  # noqa: S603
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    if result.returncode:
        raise BuildFailed(f"{' '.join(command)} failed:\n{result.stdout}{result.stderr}")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts/build", description="Build the layers and the functions.")
    parser.add_argument("--architecture", choices=ARCHITECTURES, default=ARCHITECTURES[0], help="processor")
    parser.add_argument("--build-dir", type=Path, default=ROOT / ".aws-sam" / "build")
    options = parser.parse_args(arguments)
    build_dir: Path = options.build_dir.resolve()
    try:
        run_sam(options.architecture, build_dir)
        prepare(build_dir)
        bind_architecture(build_dir / "template.yaml", options.architecture)
        check_compiled_files(build_dir, options.architecture)
        report(build_dir)
    except BuildFailed as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
