"""Every path, page, file, anchor, and command that a message, a page, or a document names exists.

The texts are all documents, templates, and strings of the code. The places are the routes of the apps, the files of the
project and of the reference, the headings of the documents, the targets of `make`, and the commands of `assent-ops`.
"""

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import typer

from ops.cli import app
from scripts.reference.guides import guides
from tests.support.operations import operations

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
TEMPLATES = sorted([*ROOT.glob("functions/dashboard/templates/*.html"), *ROOT.glob("scripts/reference/templates/*")])
MODULES = sorted(
    path for folder in ("functions", "layers", "ops", "local", "scripts") for path in ROOT.glob(f"{folder}/**/*.py")
)
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")

# A request as documents write it, such as `GET /v1/projects?limit=10`.
REQUEST = re.compile(rf"\b({'|'.join(METHODS)}) (/[^\s`'\"|,;)\\<]*)")
# A path in a text. Paths of files and of other services begin differently.
PATH = re.compile(r"(?<![\w.:/}~*…-])(/[a-z.][^\s`'\"|,;)(\\<>]*)")
ADDRESS = re.compile(r"https://(?:api|dashboard)\.assent\.example([^\s`'\"|,;)(\\<>]*)")
COMMAND = re.compile(r"\bassent-ops ([a-z][a-z-]+) ([a-z][a-z-]+)")
MAKE = re.compile(r"`(?:[A-Z]+=\S+ )?make ([a-z][a-z0-9-]*)`")
# A file of the project in backticks. `<group>` and `*` stand for any name, and braces for alternatives.
FILE = re.compile(
    r"`((?:benchmarks|cli|docs|events|functions|layers|local|ops|requirements|scripts|tests)/[^`\s{}…]+)`"
)
TARGETS = dict(re.findall(r"^([a-z0-9-]+):[^=\n]*?(?:## (.*))?$", (ROOT / "Makefile").read_text(), re.MULTILINE))
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s#]*)(?:#([^)\s]*))?\)")
# An href or action of a template, with the expression that builds its path.
PAGE = re.compile(r"(href|action)=\"\{\{ address\(([^{}]*)\) \}\}")
PLACEHOLDER = re.compile(r"\{[^}]*\}|<[^>]*>")
REFERENCE = re.compile(r"\{\{ reference \}\}/([^\"#]+)")


def strings(path: Path) -> Iterator[str]:
    """Yields the strings of a module, with `{}` for each value in an f-string. Docstrings are included."""
    tree = ast.parse(path.read_text())
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield node.value


def texts_of(value: Any) -> Iterator[str]:
    """Yields every text of a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts_of(item)


@cache
def texts() -> list[tuple[str, str]]:
    """Returns every text that a person may read, with its file."""
    # What the changelog says about released versions was true then.
    found = [(path, re.split(r"^## \d", path.read_text(), flags=re.MULTILINE)[0]) for path in DOCUMENTS]
    found += [(path, path.read_text()) for path in TEMPLATES]
    found += [(path, text) for path in MODULES for text in strings(path)]
    document = ROOT / "docs" / "openapi.json"
    found += [(document, text) for text in texts_of(json.loads(document.read_text()))]
    return [(str(path.relative_to(ROOT)), text) for path, text in found]


def exists(path: str, method: str | None = None) -> bool:
    """Returns True if a route has that path. `…` at its end, or no method, also accepts the beginning of one.

    A placeholder such as `{projectId}` or `<slug>` accepts any segment.
    """
    plain = re.split(r"[?#]", path)[0].rstrip(".:")
    if plain.startswith("/docs/") and PLACEHOLDER.search(plain) is None:
        return plain.removeprefix("/docs/") in reference_files()
    is_part = method is None or plain.endswith("…")
    wanted = plain.removesuffix("…").rstrip("/").split("/")
    return any(
        _fits(wanted, operation.path.rstrip("/").split("/"), is_part)
        for operation in operations()
        if method in (None, operation.method)
    )


def _fits(wanted: list[str], route: list[str], is_part: bool) -> bool:
    if len(wanted) > len(route) or (len(wanted) < len(route) and not is_part):
        return False
    pairs = zip(wanted, route, strict=False)
    return all(PLACEHOLDER.search(a) or b.startswith("{") or a == b for a, b in pairs)


@cache
def reference_files() -> set[str]:
    """Returns the names of the Markdown files of the reference, its pages, and the document it shows."""
    described = json.loads((ROOT / "docs" / "openapi.json").read_text())["paths"].values()
    names = {operation["operationId"] for path in described for operation in path.values()}
    written = {"errors", *(guide.name for guide in guides())}
    files = {f"{name}.md" for name in (*names, *written, "introduction", "reference")}
    return files | written | {"redoc.json", "reference", "rules"}


@cache
def first_segments() -> set[str]:
    # GitHub has paths below /login.
    return {operation.path.split("/")[1] for operation in operations()} - {"", "login"}


def headings(path: Path) -> set[str]:
    """Returns the anchors that GitHub gives to the document's headings."""
    lines = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", line.lower()).replace(" ", "-") for line in lines}


def is_ours(path: str) -> bool:
    return re.split(r"[/?#]", path)[1].rstrip(".:") in first_segments()


def test_every_named_request_path_and_address_is_a_route():
    requests = [(file, path, it) for file, text in texts() for it, path in REQUEST.findall(text) if is_ours(path)]
    paths = [(file, path, None) for file, text in texts() for path in PATH.findall(text) if is_ours(path)]
    addresses = [(file, it.rstrip("."), None) for file, text in texts() for it in ADDRESS.findall(text)]
    assert min(len(requests), len(paths)) > 100
    assert any(path.startswith("/organizations/") for _, path, _ in addresses)
    named = [*requests, *paths, *addresses]
    assert [(file, path) for file, path, method in named if path and not exists(path, method)] == []


def test_every_link_and_form_of_a_page_leads_to_a_route():
    missing = []
    for template in TEMPLATES:
        for attribute, expression in PAGE.findall(template.read_text()):
            path = "".join(
                part[1:-1] if part.startswith("'") else "{}" for part in expression.partition("|")[0].split(" ~ ")
            )
            if path.startswith("/") and not exists(path, "GET" if attribute == "href" else "POST"):
                missing.append((template.name, path))
        missing += [
            (template.name, it) for it in REFERENCE.findall(template.read_text()) if it not in reference_files()
        ]
    assert missing == []


def test_every_link_of_a_document_leads_to_a_file_and_a_heading():
    missing = []
    for document in DOCUMENTS:
        for target, anchor in LINK.findall(document.read_text()):
            path = (document.parent / target) if target else document
            if not path.exists() or (anchor and path.suffix == ".md" and anchor not in headings(path)):
                missing.append((document.name, f"{target}#{anchor}"))
    assert missing == []


def test_every_named_ops_command_exists():
    groups: Any = typer.main.get_command(app)
    named = {(noun, verb) for _, text in texts() for noun, verb in COMMAND.findall(text)}
    assert len(named) > 20
    assert {it for it in named if it[0] not in groups.commands or it[1] not in groups.commands[it[0]].commands} == set()


def test_every_named_target_of_make_exists_and_every_target_is_described():
    named = {target for _, text in texts() for target in MAKE.findall(text)}
    assert len(named) > 5
    assert named <= TARGETS.keys()
    guide = (ROOT / "docs" / "development.md").read_text()
    assert [
        name for name, line in TARGETS.items() if not line or (name != "help" and f"`make {name}`" not in guide)
    ] == []


def test_every_file_that_a_document_names_exists():
    named = {(path.name, re.sub(r"<[^>]*>", "*", it)) for path in DOCUMENTS for it in FILE.findall(path.read_text())}
    assert len(named) > 100
    assert {(name, it) for name, it in named if not any(ROOT.glob(it))} == set()


def test_the_newest_release_and_the_npm_package_have_the_version_of_the_project():
    releases = re.findall(r"^## (\S+) \(\d{4}-\d\d-\d\d\)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert releases[:1] in ([], [version])
    assert json.loads((ROOT / "clients" / "typescript" / "package.json").read_text())["version"] == version


def test_every_invariant_names_tests_that_exist():
    rows = re.findall(r"^\| (\d+) \|.*\| ([^|]+) \|$", (ROOT / "docs" / "invariants.md").read_text(), re.MULTILINE)
    assert len(rows) >= 22
    for number, tests in rows:
        for module in tests.split(";"):
            path, *names = re.findall(r"`([^`]+)`", module)
            missing = [name for name in names if f"def {name}(" not in (ROOT / path).read_text()]
            assert missing == [], f"{number}: {path} has no {', '.join(missing)}"
