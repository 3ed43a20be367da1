"""`make mutate` lists the changes that no test notices, in a small project of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.each import each
from tools.mutate.mutants import make_mutants

# On a busy machine, each process takes long to start.
pytestmark = pytest.mark.timeout(2400)

ROOT = Path(__file__).parents[2]
SHOP = '''
def may_buy(age, is_banned):
    """Says "no" to children."""
    if is_banned:
        return False
    return age >= 18

def price(count):
    return count * 2
'''
WEAK = """
import shop

def test_age():
    assert shop.may_buy(30, False)
    assert not shop.may_buy(12, False)
    assert not shop.may_buy(19, True)

def test_price():
    assert shop.price(3) == 6

def test_that_fails_shows_nothing():
    assert not shop.may_buy(18, False)
"""


def test_survivors_are_named_and_fail(tmp_path: Path):
    for name, text in (("functions/shop.py", SHOP), ("tests/test_shop.py", WEAK)):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    (tmp_path / "pyproject.toml").write_text('[tool.pytest]\npythonpath = ["functions"]\n')
    options = ("--file", "functions/shop.py", "--tests", "tests/test_shop.py")
    command = [sys.executable, "-W", "ignore", "-m", "tools.mutate", *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "survives 1 tests: functions/shop.py:6: age >= 18 -> age > 18" in done.stdout
    assert "survives 1 tests: functions/shop.py:6: 18 -> 19" in done.stdout
    assert "4 of 6 mutants were noticed" in done.stdout


@each(
    "source, changes",
    [
        (
            'when = "attribute_exists(pk) AND #version = :version"',
            ["without the condition attribute_exists(pk)", "without the condition #version = :version"],
        ),
        ('when = " AND #state = :read"', ["without the condition #state = :read"]),
        ('when = ", #state = :read"', []),
        (
            'legs = {"caller": role_check(a), "item": claim(b), "told": told, **more}',
            ["without the leg 'caller'", "without the leg 'item'", "without the leg more"],
        ),
        ('answer = {"item": claim(b), **more}', []),
        ('change = "SET #a = :a REMOVE #b"', ["#a -> #aOther", "#b -> #bOther"]),
        ("page = table.query(pk, consistent=True)", ["True -> False"]),
        ('logger.info("x", 3)', []),
    ],
)
def test_conditions_legs_and_updates_change_and_log_lines_do_not(tmp_path: Path, source: str, changes: list[str]):
    (tmp_path / "module.py").write_text(f"def act():\n    {source}\n    return None\n")
    assert [mutant.change for mutant in make_mutants(tmp_path, "module.py")] == changes
