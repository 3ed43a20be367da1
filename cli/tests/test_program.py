import ast
import re
import shlex
import subprocess
import sys

from typer.testing import CliRunner

from cli.tests.support.shell import commands, run
from openassent import __version__
from openassent_cli.main import app
from tests.support.each import each


def test_prints_its_version():
    done = CliRunner().invoke(app, ["--version"])
    assert (done.exit_code, done.stdout) == (0, f"assent {__version__}\n")


def test_help_imports_no_command_and_nothing_that_takes_long():
    code = "import sys; from openassent_cli.main import app\n"
    code += "try: app(['--help'])\nexcept SystemExit: print([*sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {*ast.literal_eval(done.stdout.splitlines()[-1])}
    assert not loaded & {"httpx", "mcp", "openassent.models", "openassent_analysis", "pydantic", "rich"}
    assert not [name for name in loaded if name.startswith("openassent_cli.commands.")]


def test_help_has_upper_case_arguments_no_types_and_no_option_of_every_command():
    for name, _ in commands():
        text = run(f"{name} --help").stdout
        usage = text.splitlines()[0].removeprefix(f"Usage: assent {name}")
        assert usage == usage.upper(), text
        assert not re.search(r"<\w+>|--json  |--base-url B|\[required\].*\[required\]", text), text
        assert max(map(len, text.splitlines())) <= 80, text


def test_usage_has_brackets_around_optional_arguments_alone():
    usages = [
        run(f"{name} --help").stdout.splitlines()[0] for name in ("open", "inbox assign", "scan local", "key roll")
    ]
    assert usages == [
        "Usage: assent open [WHAT] [OPTIONS]",
        "Usage: assent inbox assign ITEM [EMAIL] [OPTIONS]",
        "Usage: assent scan local [PATH] [OPTIONS]",
        "Usage: assent key roll KEY [OPTIONS]",
    ]


def test_examples_are_commands():
    for name, command in commands():
        for line in re.findall(r"^  assent (.*)$", command.epilog or "", re.MULTILINE):
            assert line.startswith(name)
            words = shlex.split(line)[len(name.split()) :]
            command.make_context(name, words).close()


@each(
    ("module", "line", "message", "extra"),
    [
        ("typer", "--version", "Only the Python SDK is installed.", "cli"),
        ("keyring", "whoami", "This command isn't installed.", "cli"),
        ("ast_grep_py", "scan local .", "This command isn't installed.", "scan"),
        ("yaml", "ci --local", "This command isn't installed.", "scan"),
        ("mcp", "mcp", "This command isn't installed.", "mcp"),
        ("playwright", "audit shop.example", "This command isn't installed.", "audit"),
    ],
)
def test_without_its_extra_a_command_says_which_file_to_install(module, line, message, extra):
    code = f"import sys; sys.modules[{module!r}] = None; sys.argv[1:] = {line.split()}\n"
    code += "from openassent_cli.program import run; run()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    wheel = f"'./openassent-{__version__}-py3-none-any.whl[{extra}]'"
    advice = f"Install your wheel with the extra `{extra}`, such as: pipx install --force {wheel}"
    assert (done.returncode, done.stdout) == (2, "")
    assert " ".join(done.stderr.split()) == f"Error: {message} {advice}"
