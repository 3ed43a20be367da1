"""What others wrote and we deploy: its licences are known and allowed, and the bill of materials names all of it."""

import json
import os
import subprocess
from email.message import Message
from pathlib import Path

import pytest

from scripts import licences, locks

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".tools" / "supply" / "bin" / "python"
PINS = {pin for pins in locks.deployed().values() for pin in pins}


def metadata(**fields: str) -> Message:
    message = Message()
    for name, value in fields.items():
        message[name.replace("_", "-")] = value
    return message


class TestPins:
    def test_of_the_layer_are_those_of_its_lock(self):
        names = {pin.name for pin in locks.deployed()[locks.LAYER]}
        assert {"fastapi", "pydantic-core", "boto3", "aws-lambda-powertools"} <= names

    def test_for_another_system_are_not_deployed(self, tmp_path: Path):
        lock = tmp_path / "requirements.txt"
        hashes = f" \\\n    --hash=sha256:{'1' * 64} \\\n    --hash=sha256:{'0' * 64}\n"
        pins = ("one==1.0", "two==2.0 ; sys_platform == 'win32'", "Three_x==3 ; os_name == 'posix'")
        lock.write_text("".join(f"{pin}{hashes}" for pin in pins))
        both = ("0" * 64, "1" * 64)
        assert locks.read(lock) == [locks.Pin("one", "1.0", both), locks.Pin("three-x", "3", both)]


class TestLicences:
    def test_are_listed_and_allowed(self):
        assert licences.main(["--check"]) == 0

    @pytest.mark.parametrize(
        "said",
        [
            "MIT",
            "MIT OR GPL-3.0-only",
            "Apache-2.0 AND MIT",
            "(MIT OR Apache-2.0)",
            "(MIT OR GPL-3.0-only) AND ISC",
            "GPL-3.0-only OR (ISC AND (MIT OR UNKNOWN))",
        ],
    )
    def test_are_allowed_where_a_choice_is(self, said: str):
        assert licences.is_allowed(said)

    @pytest.mark.parametrize(
        "said",
        [
            "",
            "GPL-3.0-only",
            "MIT AND GPL-3.0-only",
            "UNKNOWN",
            "Dual License",
            "(MIT OR ISC) AND GPL-3.0-only",
            "(MIT AND GPL-3.0-only) OR (UNKNOWN)",
            "MIT (ISC)",
            "(MIT",
        ],
    )
    def test_are_refused_where_no_choice_is_allowed(self, said: str):
        assert not licences.is_allowed(said)

    def test_are_found_where_older_packages_have_them(self):
        assert licences.licence_of("it", metadata(Classifier="License :: OSI Approved :: MIT License")) == "MIT"
        assert licences.licence_of("it", metadata(License="Apache License 2.0")) == "Apache-2.0"

    @pytest.mark.parametrize("fields", [{}, {"License": "ask us"}, {"License_Expression": "AGPL-3.0-only"}])
    def test_that_nobody_agreed_to_are_refused(self, fields: dict[str, str]):
        with pytest.raises(licences.UnknownLicence):
            licences.licence_of("it", metadata(**fields))


@pytest.fixture(scope="module")
def bills(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The bill of materials as two runs write it; a run holds it to CycloneDX's schema."""
    if not PYTHON.exists():
        reason = "no .tools/supply: make sbom installs it"
        if os.environ.get("CI"):
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    import fastapi

    packages = Path(fastapi.__file__).parents[1]
    folder = tmp_path_factory.mktemp("sbom")
    for name in ("one", "two"):
        subprocess.run(
            [PYTHON, "-m", "scripts.sbom", "--packages", packages, "--output", folder / name],
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], "PYTHONHASHSEED": "1" if name == "one" else "2"},
            check=True,
            capture_output=True,
        )
    return [(folder / name).read_text(encoding="utf-8") for name in ("one", "two")]


class TestBillOfMaterials:
    def test_is_the_same_from_the_same_materials(self, bills: list[str]):
        assert bills[0] == bills[1]

    def test_names_every_package_that_is_deployed_with_its_version_and_archives(self, bills: list[str]):
        components = json.loads(bills[0])["components"]
        found = {
            locks.Pin(it["name"], it["version"], tuple(one["content"] for one in it["externalReferences"][0]["hashes"]))
            for it in components
            if "purl" in it
        }
        assert found == PINS

    def test_says_what_each_function_is_made_of(self, bills: list[str]):
        depends = {entry["ref"]: entry["dependsOn"] for entry in json.loads(bills[0])["dependencies"]}
        groups = {path.parent.name for path in (ROOT / "functions").glob("*/app.py")}
        assert {f"assent/{name}" for name in (*groups, "layer")} == set(depends["assent"])
        assert depends["assent/projects"] == ["assent/layer"]
        assert any(ref.startswith("pkg:pypi/ast-grep-py@") for ref in depends["assent/scan_execution"])
        (starlette,) = [ref for ref in depends if ref.startswith("pkg:pypi/starlette@")]
        (fastapi,) = [on for ref, on in depends.items() if ref.startswith("pkg:pypi/fastapi@")]
        assert starlette in fastapi

    def test_names_no_place_of_this_machine_and_no_host(self, bills: list[str]):
        assert [sign for sign in (str(ROOT), str(Path.home()), "://") if sign in bills[0]] == []
