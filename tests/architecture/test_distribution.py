"""The distribution of the SDK and the command line: what it needs, and how the project says to install it."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

from dashboard.projects.snippets import list_snippets
from openassent_cli.extras import EXTRAS, installation
from scripts.openapi.texts import BASE_URL, PAGES_URL
from tests.support.each import each

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "cli" / "pyproject.toml").read_text())["project"]
# Installers, and programs that install what they run. Debian's packages aren't just anyone's.
_INSTALLER = (
    r"(?:pip3?|uv pip) (?:install|download|wheel)|pipx (?:install|run|inject|upgrade|reinstall)|uvx"
    r"|uv (?:tool (?:install|run|upgrade)|add)|(?:poetry|pdm|rye|hatch) add|easy_install|(?:conda|mamba) install"
    r"|(?:npm|pnpm) (?:i|install|add|exec)|yarn add|npx|(?:brew|cargo|gem|go) install"
)
_COMMAND = re.compile(rf"(?<![\w-])(?P<program>{_INSTALLER})(?![\w-])(?P<arguments>[^`\n#;&|<>]*)")
_ARGUMENT = re.compile(r"""(?:"[^"]*"|'[^']*'|[^\s"'])+""")
# Options with a value that isn't installed.
_VALUED = {"-r", "-c", "--python", "--requirement", "--constraint", "--target"}
# The consent library that the product is built for, from its own organization on npm.
_THEIRS = re.compile(r"(?:c15t|@c15t/\w+)(?:@\S+)?")


def bare_names(text: str) -> Iterator[str]:
    """Yields what a text says to install by a name, which an index resolves to anybody's package."""
    for command in _COMMAND.finditer(text):
        arguments = [it.strip("\"'().,:[]") for it in _ARGUMENT.findall(command["arguments"])]
        runs = re.search(r"\brun$|uvx|npx|exec$", command["program"])
        skipped = False
        for argument in arguments:
            is_option, follows = argument.startswith("-"), skipped
            skipped = argument in _VALUED
            if is_option or follows or not argument:
                continue
            # Tests below have what a program puts in braces.
            is_file = argument.startswith(("$", "{")) or ("/" in argument and not argument.startswith("@"))
            if not is_file and not _THEIRS.fullmatch(argument):
                yield f"{command['program']} {argument}"
            if runs:  # what follows are its own arguments
                break


def repository_texts() -> Iterator[tuple[str, str]]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.splitlines():
        path = ROOT / name
        # A test below has the snippets as people get them, too.
        if path.is_file() and not name.startswith(("tests/", "functions/dashboard/projects/snippets.json")):
            try:
                yield name, path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue


class TestRequirements:
    def test_the_wheel_itself_needs_what_the_sdk_needs(self):
        assert {re.split(r"[>=]", it)[0] for it in PROJECT["dependencies"]} == {"httpx", "pydantic"}

    def test_the_sdk_imports_nothing_else(self):
        modules: set[str] = set()
        for path in (ROOT / "cli" / "src" / "openassent").rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Import):
                    modules |= {it.name for it in node.names}
                elif isinstance(node, ast.ImportFrom):
                    modules.add(node.module or "")
        packages = {it.partition(".")[0] for it in modules} - sys.stdlib_module_names
        assert packages == {"httpx", "openassent", "pydantic"}

    def test_every_package_of_an_extra_has_advice(self):
        installed = packages_distributions()
        known = {name.lower() for module in EXTRAS for name in installed[module]}
        extras = [it for listed in PROJECT["optional-dependencies"].values() for it in listed]
        needed = {re.split(r"[>=]", it)[0] for it in extras if not it.startswith("openassent[")}
        assert known - {"mcp-types"} == needed
        assert set(EXTRAS.values()) == PROJECT["optional-dependencies"].keys()

    def test_its_license_and_addresses_are_those_of_the_project_and_the_api(self):
        (name,), (author,) = PROJECT["license-files"], PROJECT["authors"]
        assert (ROOT / "cli" / name).read_text() == (ROOT / "LICENSE").read_text()
        assert author["name"] in (ROOT / "LICENSE").read_text()
        assert PROJECT["urls"] == {"Documentation": f"{BASE_URL}/docs", "Homepage": PAGES_URL}


class TestAdvice:
    def test_no_text_installs_from_an_index_by_name(self):
        found = [f"{name}: {it}" for name, text in repository_texts() for it in bare_names(text)]
        assert found == []

    def test_no_snippet_installs_a_strangers_package(self):
        commands = [it.install for it in list_snippets(None)]
        assert len(commands) == 3
        assert [it for command in commands for it in bare_names(command)] == []

    @each("module", EXTRAS)
    def test_the_command_line_names_a_file(self, module: str):
        advice = installation(ModuleNotFoundError(name=module))
        assert advice is not None
        assert f"[{EXTRAS[module]}]" in advice
        assert re.search(r"pipx install --force '\./openassent-\S+\.whl\[", advice)
        assert [*bare_names(advice)] == []

    def test_the_command_line_has_none_for_other_modules(self):
        assert installation(ModuleNotFoundError(name="openassent_cli.mian")) is None
