"""`make mutate` lists the changes that no test notices, in a small project of its own."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from controlplane.core import tokens
from scripts.mutate.changes import changed_lines, find_base
from scripts.mutate.coverage import Record
from scripts.mutate.judges import _Functions
from scripts.mutate.mutants import Unexplained, make_mutants

# On a busy machine, each process takes long to start.
pytestmark = pytest.mark.timeout(2400)

ROOT = Path(__file__).parents[2]
SHOP = '''
LIMIT = 3

def may_buy(age, is_banned):
    """Says "no" to children."""
    if is_banned:
        return False
    return age >= 18

def price(count):
    return count * 2
'''
STRONG = """
from pathlib import Path

import shop

def test_limit():
    assert shop.LIMIT == 3

def test_age():
    assert shop.may_buy(18, False)
    assert not shop.may_buy(17, False)
    assert not shop.may_buy(19, True)

def test_price():
    assert shop.price(3) == 6

def test_code_of_a_template():
    exec(compile("shown = 7", Path(shop.__file__).with_name("page.html"), "exec"))
"""
WEAK = STRONG.replace("(17, False)", "(12, False)").replace("(18, False)", "(30, False)")


class Project:
    """A repository with one module and its tests."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("functions", "tests"):
            (root / folder).mkdir()
        (root / "pyproject.toml").write_text('[tool.pytest]\npythonpath = ["functions"]\n')
        (root / ".gitignore").write_text(".mutants/\n__pycache__/\n.pytest_cache/\n")
        self.write(SHOP, STRONG)
        self.git("init", "--quiet", "--initial-branch=trunk")
        self.commit()

    def write(self, module: str, tests: str) -> None:
        (self.root / "functions" / "shop.py").write_text(module)
        (self.root / "tests" / "test_shop.py").write_text(tests)

    def git(self, *arguments: str) -> None:
        names = ("-c", "user.name=A", "-c", "user.email=a@example.com")
        subprocess.run(["git", *names, *arguments], cwd=self.root, check=True, capture_output=True)

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "A change")

    def record(self) -> None:
        """Runs the tests as `make test` does."""
        done = self._run("pytest", "-q", "-p", "no:cacheprovider", "-p", "scripts.mutate.coverage")
        assert done.returncode == 0, done.stdout + done.stderr

    def mutate(self, *options: str) -> tuple[int, str]:
        done = self._run("scripts.mutate", *options)
        assert done.stderr == ""
        return done.returncode, done.stdout

    def _run(self, module: str, *options: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-W", "ignore", "-m", module, *options]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        environment.pop("PYTEST_XDIST_WORKER", None)
        return subprocess.run(command, cwd=self.root, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_survivors_are_named_and_fail_unless_a_reason_excuses_them(project: Project):
    excused = SHOP.replace("LIMIT = 3", "LIMIT = 3  # mutant: nothing depends on it")
    project.write(excused, WEAK.replace("== 3", "> 2"))
    status, output = project.mutate("--file", "functions/shop.py", "--tests", "tests/test_shop.py")
    assert status == 1
    assert "7 mutants of functions/shop.py; 1 excused, 6 to run." in output
    assert "functions/shop.py:8: age >= 18 -> age > 18" in output
    assert "functions/shop.py:8: 18 -> 19" in output
    assert "4 of 6 mutants were noticed" in output


def test_an_excuse_without_a_reason_fails(project: Project):
    project.write(SHOP.replace("age >= 18", "age >= 18  # mutant:"), STRONG)
    with pytest.raises(Unexplained, match=r"shop\.py:8"):
        make_mutants(project.root, "functions/shop.py")


def test_only_the_changed_lines_have_mutants(project: Project):
    project.write(SHOP.replace("count * 2", "count * 3"), STRONG.replace("== 6", "== 9"))
    project.commit()
    assert changed_lines(project.root, find_base(project.root)) == {"functions/shop.py": {11}}
    project.record()
    status, output = project.mutate()
    assert status == 0
    assert "2 of 2 mutants were noticed" in output


def test_a_change_is_compared_with_where_its_branch_began(project: Project):
    project.git("branch", "main")
    project.write(SHOP.replace("count * 2", "count * 3"), STRONG)
    project.commit()
    project.commit()
    assert changed_lines(project.root, find_base(project.root)) == {"functions/shop.py": {11}}


def test_files_that_are_not_committed_count(project: Project):
    project.commit()
    (project.root / "functions" / "new.py").write_text("A = 1\n")
    assert changed_lines(project.root, find_base(project.root)) == {"functions/new.py": {1}}


def test_no_change_says_so_and_passes(project: Project):
    project.commit()
    status, output = project.mutate()
    assert (status, output.startswith("No mutants: 0 lines changed since")) == (0, True)


def test_without_a_record_it_fails(project: Project):
    status, output = project.mutate("--file", "functions/shop.py")
    assert (status, "Run `make test` once" in output) == (1, True)


def test_a_seed_chooses_other_mutants(project: Project):
    project.write(SHOP, "def test_nothing():\n    pass\n")
    options = ["--file", "functions/shop.py", "--tests", "tests/test_shop.py", "--limit", "1", "--seed"]
    first, second = (project.mutate(*options, seed)[1].splitlines()[1] for seed in ("1", "2"))
    assert first.startswith("survives 1 tests: ")
    assert first != second


def test_only_some_kinds_of_changes_are_tried(project: Project):
    options = ["--file", "functions/shop.py", "--tests", "tests/test_shop.py", "--only", r"\*|>="]
    assert "2 of 2 mutants were noticed" in project.mutate(*options)[1]


def test_a_test_that_fails_without_a_mutant_shows_nothing(project: Project):
    project.record()
    project.write(SHOP, "def test_nothing():\n    assert False\n")
    status, output = project.mutate("--file", "functions/shop.py", "--tests", "tests/test_shop.py")
    assert (status, "has to pass before mutants can be tried" in output) == (1, True)


def test_functions_that_the_product_hides_from_the_collector_are_found():
    gc.freeze()
    found = _Functions.find(ROOT)
    code = tokens.digest.__code__
    assert (code.co_filename, code.co_qualname, code.co_firstlineno) in found.by_place


def test_the_tests_of_a_line_are_the_fastest_of_each_file_first():
    record = Record({"a::1": 0.1, "a::2": 0.2, "b::1": 0.3}, {"m.py": {"f+1": {"a::1", "a::2", "b::1"}}})
    assert record.tests_of("m.py", "f", 1) == ["a::1", "b::1", "a::2"]


class TestMutants:
    def changes(self, root: Path, source: str) -> list[str]:
        (root / "module.py").write_text(source)
        return [mutant.change for mutant in make_mutants(root, "module.py")]

    def test_a_condition_loses_each_of_its_parts(self, tmp_path: Path):
        found = self.changes(tmp_path, 'when = "attribute_exists(pk) AND #version = :version"\n')
        assert found == ["without the condition attribute_exists(pk)", "without the condition #version = :version"]
        for added in ('" AND #state = :read"', 'f" AND #state = :read AND {more}"', 'f"#state = :read AND {more}"'):
            assert self.changes(tmp_path, f"when += {added}\n") == ["without the condition #state = :read"]
        for added in ('" OR #state = :read"', '", #state = :read"'):
            assert self.changes(tmp_path, f"when += {added}\n") == []

    def test_a_transaction_loses_each_of_its_legs(self, tmp_path: Path):
        found = self.changes(tmp_path, 'legs = {"caller": role_check(a), "item": claim(b), "told": told, **more}\n')
        assert found == ["without the leg 'caller'", "without the leg 'item'", "without the leg more"]
        assert self.changes(tmp_path, 'answer = {"item": claim(b), **more}\n') == []
        found = self.changes(tmp_path, 'legs = {"a": Put(b), **({"c": Put(d)} if is_wanted() else {})}\n')
        assert found == ["without the leg 'a'", "if is_wanted() -> if not", "without the leg 'c'"]

    def test_an_update_writes_other_attributes(self, tmp_path: Path):
        assert self.changes(tmp_path, 'change = "SET #a = :a REMOVE #b"\n') == ["#a -> #aOther", "#b -> #bOther"]

    def test_messages_log_lines_and_types_have_none(self, tmp_path: Path):
        source = 'def f(a: int | None = None):\n    "Text."\n    logger.info("x", 3)\n    return "no"\n'
        assert self.changes(tmp_path, source) == []

    def test_zip_may_check_lengths_or_not(self, tmp_path: Path):
        assert self.changes(tmp_path, "zip(a, b, strict=True)\n") == []

    def test_reads_can_be_late(self, tmp_path: Path):
        assert self.changes(tmp_path, "table.query(pk, consistent=True)\n") == ["True -> False"]
