"""Clients that common generators make from docs/openapi.json compile under strict settings and work, unchanged."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.conftest import ROOT, TOOLS, Api
from tests.support.missing import is_missing

DOCUMENT = ROOT / "docs" / "openapi.json"
PROGRAMS = Path(__file__).parent / "clients"
NODE_TOOLS = ROOT / "node_modules" / ".bin"
STRICT = ("--strict", "--target", "es2022", "--lib", "es2022,dom,dom.iterable")
# What each program prints.
FOUND = {
    "principal": "oauth",
    "regions": 3,
    "website": "example.com",
    "first": True,
    "more": True,
    "updated": "Changed",
    "invalid": [400, ["consent", "trustedOrigins"]],
    "item": "open",
    "stale": [409, "CONFLICT"],
    "plan": "pro",
    "started": True,
    "deleted": 1,
    "missing": [404, "NOT_FOUND"],
    "stranger": [401, "UNAUTHORIZED"],
}

pytestmark = pytest.mark.timeout(2400)


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """Returns what the command prints. Fails with its output if it fails."""
    finished = subprocess.run(
        command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


def program(name: str) -> str:
    """Returns the path of an installed program. If it is missing, fails in CI and skips elsewhere."""
    path = shutil.which(name, path=f"{NODE_TOOLS}{os.pathsep}{os.environ['PATH']}")
    if path is None:
        is_missing(f"{name} is not installed")
    return path


@pytest.fixture(scope="module")
def running() -> Iterator[Api]:
    made = Api()
    yield made
    made.end()


_numbers = count(1)


@pytest.fixture
def story(running: Api) -> dict[str, str]:
    """Returns what a program needs in its environment: the API, a token, a repository, and a name of its own."""
    return {
        "BASE_URL": running.served.base_url,
        "TOKEN": running.served.user_token,
        "REPOSITORY_ID": running.served.ids["repositoryId"][0],
        "NAME": f"Kiosk {next(_numbers)}",
    }


def check(printed: str, story: dict[str, str]) -> None:
    found: dict[str, Any] = json.loads(printed)
    assert found == {**FOUND, "read": story["NAME"]}


def generate(tools: Path, language: str, folder: Path) -> None:
    """Generates a client with openapi-generator."""
    program("java")
    command = (tools / "openapi-generator-cli", "generate", "-i", DOCUMENT, "-g", language, "-o", folder)
    # It ends too soon for Java's optimizing compiler to pay off.
    run(*command, cwd=ROOT, JAVA_TOOL_OPTIONS="-XX:TieredStopAtLevel=1")


def run_typescript(name: str, folder: Path, story: dict[str, str], *others: str) -> str:
    """Compiles the program with the client in the folder, and the other files, and runs the program."""
    shutil.copy(PROGRAMS / f"{name}.ts", folder)
    if not (folder / "node_modules").exists():
        (folder / "node_modules").symlink_to(ROOT / "node_modules")
    tsc = (program("tsc"), *STRICT, "--types", "node", "--module", "node16", "--outDir", "built")
    run(*tsc, f"{name}.ts", *others, cwd=folder)
    return run(program("node"), f"built/{name}.js", cwd=folder, **story)


def test_the_typescript_package_works(tmp_path: Path, story: dict[str, str]):
    source = tmp_path / "clients" / "typescript"
    shutil.copytree(ROOT / "clients" / "typescript", source, ignore=shutil.ignore_patterns("dist", "api.ts"))
    (tmp_path / "docs").mkdir()
    shutil.copy(DOCUMENT, tmp_path / "docs")
    shutil.copy(ROOT / "LICENSE", tmp_path)
    (tmp_path / "node_modules").symlink_to(ROOT / "node_modules")
    run(program("npm"), "pack", "--offline", cwd=source)
    run(program("node"), "--test", "test/", cwd=source)
    (packed,) = source.glob("*.tgz")
    project = tmp_path / "project"
    shutil.unpack_archive(packed, project / "node_modules", filter="data")
    (project / "node_modules" / "package").rename(project / "node_modules" / "openassent")
    (project / "package.json").write_text('{"type": "module"}')
    examples = re.findall(r"```ts\n(.*?)```", (source / "README.md").read_text(), re.DOTALL)
    for number, example in enumerate(examples):
        (project / f"example{number}.ts").write_text(example)
    assert len(examples) == 3
    check(run_typescript("openassent", project, story, *(f"example{it}.ts" for it in range(3))), story)


def test_hey_apis_client_works(tmp_path: Path, story: dict[str, str]):
    client = ("-c", "@hey-api/client-fetch")
    run(program("openapi-ts"), "-i", DOCUMENT, "-o", "generated", *client, cwd=tmp_path)
    check(run_typescript("hey_api", tmp_path, story), story)


def test_openapi_generators_typescript_client_works(tools: Path, tmp_path: Path, story: dict[str, str]):
    generate(tools, "typescript-fetch", tmp_path / "generated")
    check(run_typescript("typescript_fetch", tmp_path, story), story)


def test_openapi_generators_python_client_works(tools: Path, tmp_path: Path, story: dict[str, str]):
    generate(tools, "python", tmp_path)
    printed = run(
        *(tools / "python", "-W", "error", PROGRAMS / "openapi_generator.py"),
        cwd=tmp_path,
        **{**story, "PYTHONPATH": str(tmp_path)},
    )
    check(printed, story)


def test_openapi_python_client_warns_of_nothing_and_its_client_works(
    tools: Path, tmp_path: Path, story: dict[str, str]
):
    run(
        *(tools / "openapi-python-client", "generate", "--path", DOCUMENT, "--output-path", tmp_path / "assent_client"),
        *("--meta", "none", "--fail-on-warning"),
        cwd=tmp_path,
        PATH=f"{tools}{os.pathsep}{os.environ['PATH']}",
    )
    program_ = PROGRAMS / "openapi_python_client.py"
    check(run(sys.executable, program_, cwd=tmp_path, **{**story, "PYTHONPATH": str(tmp_path)}), story)


def test_openapi_generators_go_client_works(tools: Path, tmp_path: Path, story: dict[str, str]):
    package, main = tmp_path / "src" / "assent", tmp_path / "src" / "story"
    generate(tools, "go", package)
    # They need a package for assertions that isn't installed.
    shutil.rmtree(package / "test")
    main.mkdir()
    shutil.copy(PROGRAMS / "main.go", main)
    # The second folder is Debian's, with the package that the client imports. Go's own packages compile once.
    path = f"{tmp_path}{os.pathsep}/usr/share/gocode"
    settings = {"GO111MODULE": "off", "GOPATH": path, "GOFLAGS": "", "GOCACHE": str(TOOLS / "go")}
    run(program("go"), "vet", "assent", "story", cwd=tmp_path, **settings)
    check(run(program("go"), "run", "story", cwd=tmp_path, **settings, **story), story)
