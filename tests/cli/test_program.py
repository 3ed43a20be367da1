import subprocess
import sys

from typer.testing import CliRunner

from local.checkout import ROOT
from openassent import __version__
from openassent_cli.main import app
from openassent_cli.manual import page


def test_prints_its_version():
    done = CliRunner().invoke(app, ["--version"])
    assert (done.exit_code, done.stdout) == (0, f"assent {__version__}\n")


def test_the_manual_is_current():
    """`make cli` writes it."""
    assert (ROOT / "cli/man/assent.1").read_text() == page()


def test_help_needs_neither_the_analysis_nor_the_mcp_server():
    """They take long to import."""
    code = "import sys, openassent_cli.main; print([it for it in ('openassent_analysis', 'mcp') if it in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
