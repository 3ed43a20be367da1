"""Each command does what it says: for people, for programs, and with --dry-run."""

from typing import Any

import pytest

from cli.tests.support.shell import Ended, commands, is_group
from tests.functional.command_line.cases import CASES, ELSEWHERE, Case
from tests.functional.command_line.conftest import Shell
from tests.support.api import Api
from tests.support.audits import make_scan
from tests.support.world import table_dump

COMMANDS = {name: command for name, command in commands() if not is_group(command)}


def command_of(case: Case) -> str:
    """Returns the name of the case's command: its first word or two."""
    words = case.line.split()
    return words[0] if words[0] in COMMANDS else " ".join(words[:2])


def contents() -> list[dict[str, Any]]:
    """Returns the table without the usage of tokens."""
    return [item for item in table_dump() if item["sk"]["S"] != "TOKEN"]


def checked(ended: Ended) -> str:
    """Returns all output of a command that succeeded."""
    assert ended.code == 0, ended.stderr
    assert "\x1b" not in ended.stdout
    return ended.stdout + ended.stderr


def check_dry_run(case: Case, shell: Shell, line: str, api: Api) -> None:
    before = contents()
    ended = shell.run(f"{line} --dry-run")
    assert "would" in checked(ended).lower()
    assert ended.stdout == ""
    check_json(case, shell, f"{line} --dry-run", api)
    assert contents() == before


def check_json(case: Case, shell: Shell, line: str, api: Api) -> None:
    api.replies.clear()
    ended = shell.run(f"{line} --json")
    assert (ended.code, ended.stderr) == (0, "")
    assert ended.json == case.json(api.replies)


def test_every_command_has_a_case():
    assert {command_of(case) for case in CASES} == COMMANDS.keys() - ELSEWHERE


@pytest.mark.usefixtures("hosted_issue")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_does_what_it_says(case, shell, office, api, *, world):
    names = dict(office.names)
    if "{running}" in case.line:
        names["running"] = make_scan(world.connected_repository(office.company), status="running").scan_id
    line = case.line.format(**names)
    later, effect = (it.format(**names) for it in case.then or ("", ""))
    if case.then:
        assert effect not in checked(shell.run(later))
    changes = any(parameter.name == "dry_run" for parameter in COMMANDS[command_of(case)].params)
    if changes:
        check_dry_run(case, shell, line, api)
    output = checked(shell.run(line))
    for part in case.shown:
        assert part.format(**names) in output
    if case.then:
        assert effect in checked(shell.run(later))
    if not changes:
        check_json(case, shell, line, api)


@pytest.mark.parametrize("line", ["key create CI", "key roll deploy --yes"])
def test_a_secret_is_alone_on_standard_output_and_in_the_json(line, shell, api):
    assert shell.run(line).stdout == f"{api.replies[-1].data['key']}\n"
    ended = shell.run(f"{line} --json")
    assert (ended.json, ended.stderr) == (api.replies[-1].data, "")
