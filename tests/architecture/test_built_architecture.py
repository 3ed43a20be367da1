"""The build binds the template to the processor that the artifacts were built for."""

import re
from pathlib import Path

import pytest
import yaml

from scripts import artifacts
from tests.support.each import each

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


class TestTemplate:
    @each("architecture", artifacts.ARCHITECTURES)
    def test_the_built_template_accepts_only_the_processor_of_the_build(self, architecture: str, tmp_path: Path):
        template = tmp_path / "template.yaml"
        template.write_text(BUILT)
        artifacts.bind_architecture(template, architecture)
        parameters = yaml.safe_load(template.read_text())["Parameters"]
        assert parameters["Architecture"]["AllowedValues"] == [architecture]
        assert parameters["Architecture"]["Default"] == architecture
        assert parameters["SnapStart"] == yaml.safe_load(BUILT)["Parameters"]["SnapStart"]

    @each("text", ["Parameters: {}\n", re.sub("    - x86_64\n", "", BUILT), BUILT.replace("arm64", "riscv64")])
    def test_an_unexpected_declaration_fails_the_build(self, text: str, tmp_path: Path):
        template = tmp_path / "template.yaml"
        template.write_text(text)
        with pytest.raises(artifacts.BuildFailed, match="Architecture"):
            artifacts.bind_architecture(template, "arm64")
        assert template.read_text() == text


class TestCompiledFiles:
    def test_files_for_the_processor_are_listed(self, tmp_path: Path):
        (tmp_path / "app.py").write_text("")
        library = compiled(tmp_path / "SharedLayer" / "core.so", 183, "GLIBC_2.34")
        assert artifacts.check_compiled_files(tmp_path, "arm64") == [library]

    def test_a_build_without_compiled_files_fails(self, tmp_path: Path):
        (tmp_path / "app.py").write_text("")
        with pytest.raises(artifacts.BuildFailed, match="no compiled file"):
            artifacts.check_compiled_files(tmp_path, "arm64")

    def test_a_file_for_another_processor_fails_the_build(self, tmp_path: Path):
        compiled(tmp_path / "core.so", 62)
        with pytest.raises(artifacts.BuildFailed, match="isn't compiled for arm64"):
            artifacts.check_compiled_files(tmp_path, "arm64")

    def test_a_file_for_a_newer_c_library_fails_the_build(self, tmp_path: Path):
        compiled(tmp_path / "core.so", 62, "GLIBC_2.9 GLIBC_2.35")
        with pytest.raises(artifacts.BuildFailed, match=r"glibc 2\.35"):
            artifacts.check_compiled_files(tmp_path, "x86_64")
