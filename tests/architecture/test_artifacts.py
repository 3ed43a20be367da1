"""The artifacts that scripts/build makes from SAM's build folders: small, complete, and precompiled."""

import gzip
import importlib.util
import marshal
import py_compile
import re
import shutil
from pathlib import Path

import botocore
import pytest
from jinja2 import Environment, ModuleLoader

from awsclient import connection
from controlplane.platform.core import dataclass_code
from scripts import artifacts
from tests.support.each import each

ROOT = Path(__file__).parents[2]


def write(path: Path, content: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


@pytest.fixture
def layer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Creates a small version of a layer as SAM builds it."""
    ordinary = artifacts.precompile
    monkeypatch.setattr(artifacts, "precompile", lambda what, to: what == "dataclasses" or ordinary(what, to))
    packages = tmp_path / "build" / "SharedLayer" / "python"
    write(packages / "awsclient" / "__init__.py", '"""Ours."""\n')
    write(packages / "requirements.txt")
    write(packages / "lib" / "__init__.py")
    write(packages / "lib" / "__init__.pyi")
    write(packages / "lib" / "part.py", "VALUE = 7\n")
    write(packages / "lib" / "py.typed")
    write(packages / "lib" / "tests" / "test_lib.py")
    write(packages / "lib" / "swagger-ui.min.css")
    return packages


class TestPrepare:
    def test_preparing_removes_everything_that_no_import_reads(self, layer: Path):
        artifacts.prepare(layer.parents[1])
        files = {str(path.relative_to(layer / "lib")) for path in (layer / "lib").rglob("*") if path.is_file()}
        assert files == {"__init__.py", "__pycache__/__init__.cpython-313.pyc", "part.pyc"}
        assert not (layer / "requirements.txt").exists()

    def test_preparing_compresses_the_documents_that_a_function_serves(self, layer: Path):
        function = layer.parents[1] / "SystemFunction" / "system"
        served = {name: write(function / name, name) for name in ("reference/openapi.json", "reference/a.md")}
        other = write(function / "other.json", "{}")
        for _ in range(2):
            artifacts.prepare(layer.parents[1])
            for name, file in served.items():
                assert not file.exists()
                assert gzip.decompress(file.with_name(f"{file.name}.gz").read_bytes()).decode() == name
            assert other.read_text() == "{}"

    @pytest.mark.parametrize("name", artifacts.DOCUMENTS)
    def test_preparing_compresses_only_existing_documents(self, name: str):
        assert (ROOT / "functions" / name).exists()

    def test_preparing_makes_modules_of_the_pages_templates(self, layer: Path):
        function = layer.parents[1] / "DashboardFunction"
        sources = ROOT / "functions" / artifacts.TEMPLATES
        shutil.copytree(sources, function / artifacts.TEMPLATES)
        artifacts.prepare(layer.parents[1])
        assert not (function / artifacts.TEMPLATES).exists()
        built = Environment(loader=ModuleLoader(function / artifacts.TEMPLATE_CODE))
        names = [path.name for path in sources.iterdir()]
        assert len(names) > 50
        assert [built.get_template(name).name for name in names] == names

    def test_the_build_writes_where_the_code_reads(self):
        assert ROOT / "layers/shared" / artifacts.DATACLASS_CODE == dataclass_code.FILE

    def test_preparing_refuses_a_folder_without_artifacts(self, tmp_path: Path):
        with pytest.raises(artifacts.BuildFailed):
            artifacts.prepare(tmp_path)


class TestBytecode:
    def test_bytecode_names_the_deployed_path_and_not_the_build_path(self, tmp_path: Path):
        source = write(
            tmp_path / "build" / "ProjectsFunction" / "projects" / "app.py", "def f():\n    raise KeyError\n"
        )
        artifacts.prepare(tmp_path / "build")
        compiled = Path(importlib.util.cache_from_source(str(source))).read_bytes()
        assert b"/var/task/projects/app.py" in compiled
        assert str(tmp_path).encode() not in compiled

    def test_bytecode_has_the_lines_but_not_the_columns(self, tmp_path: Path):
        source = write(tmp_path / "app.py", "value = 7\nraise KeyError(value)\n")
        artifacts.compile_modules(tmp_path, Path("/var/task"))
        code = marshal.loads(Path(importlib.util.cache_from_source(str(source))).read_bytes()[16:])
        positions = {*code.co_positions()} - {(None, None, None, None)}
        assert {line for line, *_ in positions} >= {1, 2}
        assert {column for _, _, *columns in positions for column in columns} == {None}

    def test_missing_outdated_and_checked_bytecode_is_reported(self, tmp_path: Path):
        """The e2e tests look for bytecode in the artifacts."""
        source = write(tmp_path / "app.py")
        compiled = Path(importlib.util.cache_from_source(str(source)))

        def compile_for_another_python() -> None:
            artifacts.compile_modules(tmp_path, Path("/var/task"))
            assert artifacts.modules_without_bytecode(tmp_path) == []
            compiled.write_bytes(b"\x00\x00" + compiled.read_bytes()[2:])

        def compile_in(mode: py_compile.PycInvalidationMode) -> None:
            py_compile.compile(str(source), invalidation_mode=mode)

        for change in (
            lambda: None,
            compile_for_another_python,
            lambda: compile_in(py_compile.PycInvalidationMode.TIMESTAMP),
            lambda: compile_in(py_compile.PycInvalidationMode.CHECKED_HASH),
        ):
            change()
            assert artifacts.modules_without_bytecode(tmp_path) == [Path("app.py")]

    def test_invalid_python_code_stops_the_build(self, tmp_path: Path):
        write(tmp_path / "build" / "ProjectsFunction" / "projects" / "app.py", "def\n")
        with pytest.raises(artifacts.BuildFailed, match="SyntaxError"):
            artifacts.prepare(tmp_path / "build")


def test_the_roots_that_are_trusted_are_in_botocores_bundle():
    bundle = Path(botocore.__file__).with_name("cacert.pem").read_text()
    roots = re.findall(r"-----BEGIN.*?END CERTIFICATE-----", connection.ROOTS.read_text(), re.DOTALL)
    assert len(roots) == 5
    assert [root for root in roots if root not in bundle] == []


BUILT = """Parameters:
  Architecture:
    Type: String
    Default: arm64
    AllowedValues:
    - arm64
    - x86_64
    Description: Processor of the functions.
  SnapStart:
    Type: String
    Default: None
"""


def compiled(path: Path, machine: int, glibc: str = "GLIBC_2.17") -> Path:
    """Writes the beginning of a compiled file for that machine."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x7fELF" + b"\x02\x01\x01" + bytes(11) + machine.to_bytes(2, "little") + glibc.encode())
    return path


class TestArchitecture:
    """The build binds the template to the processor that the artifacts were built for."""

    @each("text", ["Parameters: {}\n", re.sub("    - x86_64\n", "", BUILT), BUILT.replace("arm64", "riscv64")])
    def test_an_unexpected_declaration_fails_the_build(self, text: str, tmp_path: Path):
        template = tmp_path / "template.yaml"
        template.write_text(text)
        with pytest.raises(artifacts.BuildFailed, match="Architecture"):
            artifacts.bind_architecture(template, "arm64")
        assert template.read_text() == text


class TestCompiledFiles:
    def test_a_file_for_another_processor_or_a_newer_c_library_fails_the_build(self, tmp_path: Path):
        compiled(tmp_path / "core.so", 62, "GLIBC_2.9 GLIBC_2.35")
        for architecture, problem in (("arm64", "isn't compiled for arm64"), ("x86_64", r"glibc 2\.35")):
            with pytest.raises(artifacts.BuildFailed, match=problem):
                artifacts.check_compiled_files(tmp_path, architecture)
