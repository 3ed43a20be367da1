import re
import subprocess
import sys

from typer.testing import CliRunner

from local.checkout import ROOT
from openassent import __version__
from openassent_cli.main import app
from tests.support.each import each


def test_prints_its_version():
    done = CliRunner().invoke(app, ["--version"])
    assert (done.exit_code, done.stdout) == (0, f"assent {__version__}\n")


def test_help_needs_neither_the_analysis_nor_the_mcp_server():
    """They take long to import."""
    code = "import sys, openassent_cli.main; print([it for it in ('openassent_analysis', 'mcp') if it in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@each(
    ("module", "line", "message", "extra"),
    [
        ("typer", "--version", "Only the Python SDK is installed.", "cli"),
        ("keyring", "whoami", "This command isn't installed.", "cli"),
        ("ast_grep_py", "scan local .", "This command isn't installed.", "scan"),
        ("yaml", "ci --local", "This command isn't installed.", "scan"),
        ("mcp", "mcp", "This command isn't installed.", "mcp"),
    ],
)
def test_without_its_extra_a_command_says_which_file_to_install(module: str, line: str, message: str, extra: str):
    code = f"import sys; sys.modules[{module!r}] = None; sys.argv[1:] = {line.split()}\n"
    code += "from openassent_cli.program import run; run()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    wheel = f"'./openassent-{__version__}-py3-none-any.whl[{extra}]'"
    advice = f"Install your wheel with the extra `{extra}`, such as: pipx install --force {wheel}"
    assert (done.returncode, done.stdout) == (2, "")
    assert " ".join(done.stderr.split()) == f"Error: {message} {advice}"


def test_only_the_questions_that_need_a_terminal_ask():
    """A question without a terminal would end the command with no word about the option to give."""
    asking = re.compile(r"\b(?:typer|click)\.(?:prompt|confirm)\(|\bprompt=|\bgetpass\b|\binput\(|\brich\.prompt\b")
    sources = ROOT.joinpath("cli/src").rglob("*.py")
    found = {file.name for file in sources if asking.search(file.read_text())}
    assert found == {"shared.py"}
