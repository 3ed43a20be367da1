import re
import subprocess
import sys

from typer.testing import CliRunner

from assent import __version__
from assent_cli.main import app
from assent_cli.manual import page
from local.checkout import ROOT


def test_prints_its_version():
    done = CliRunner().invoke(app, ["--version"])
    assert (done.exit_code, done.stdout) == (0, f"assent {__version__}\n")


def test_the_manual_is_current():
    """`make cli` writes it."""
    assert (ROOT / "cli/man/assent.1").read_text() == page()


def test_help_needs_neither_the_analysis_nor_the_mcp_server():
    """They take long to import."""
    code = "import sys, assent_cli.main; print([it for it in ('assent_analysis', 'mcp') if it in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_only_the_questions_that_need_a_terminal_ask():
    """A question without a terminal would end the command with no word about the option to give."""
    asking = re.compile(r"\b(?:typer|click)\.(?:prompt|confirm)\(|\bprompt=|\bgetpass\b|\binput\(|\brich\.prompt\b")
    sources = ROOT.joinpath("cli/src").rglob("*.py")
    found = {file.name for file in sources if asking.search(file.read_text())}
    assert found == {"shared.py"}
