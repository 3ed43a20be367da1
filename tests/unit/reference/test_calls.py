"""Each operation has a command that `assent` accepts, and a Python program that works."""

import json
import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import httpx
import pytest

import openassent
from cli.tests.support.documented_service import DocumentedService
from cli.tests.support.shell import COMMAND, commands, is_group
from scripts.reference import calls
from tests.support.documented import documented_operations, samples
from tests.support.each import each

OPERATIONS = {it.content["operationId"]: it for it in documented_operations()}
# The forms of each operation's request, by its id and their label.
FORMS = {
    name: {form["label"]: form["source"] for form in calls.samples(it.method, it.path, it.content, samples())}
    for name, it in OPERATIONS.items()
}
COMMANDS = {name: forms["Command line"] for name, forms in FORMS.items()}
# Values without an equal in the request: no filter.
OTHER_VALUES = {"all"}


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch):
    for name in [name for name in os.environ if name.startswith("ASSENT_")]:
        monkeypatch.delenv(name)


@contextmanager
def recorded() -> Iterator[list[dict[str, Any]]]:
    """Yields the parameters that commands get in the block, without their defaults. The commands do nothing."""
    found: list[dict[str, Any]] = []

    def record(leaf: Any) -> Callable[..., None]:
        defaults = {it.name: it.default for it in leaf.params}
        return lambda **values: found.append({name: it for name, it in values.items() if it != defaults[name]})

    # Other tests run the same commands.
    with ExitStack() as patches:
        for _, leaf in commands():
            if not is_group(leaf):
                patches.enter_context(patch.object(leaf, "callback", record(leaf)))
        yield found


def parsed(text: str) -> set[str]:
    """Returns the values in the command. Doesn't run it, and fails if the command line refuses it."""
    name, *words = shlex.split(text.replace("\\\n", ""))
    assert name == "assent"
    with recorded() as found:
        COMMAND.main(words, standalone_mode=False)
    (parameters,) = found
    values = [it for value in parameters.values() for it in (value if isinstance(value, list | tuple) else [value])]
    return {it for it in values if isinstance(it, str)}


class TestCommands:
    def test_every_operation_has_one(self):
        assert {name for name, text in COMMANDS.items() if text.startswith("assent ")} == {*OPERATIONS}
        assert {*calls.COMMANDS} < {*OPERATIONS}

    @each("name", COMMANDS)
    def test_has_the_values_of_the_request(self, name):
        values = {value.partition("=")[2] or value for value in parsed(COMMANDS[name]) - OTHER_VALUES}
        sent = FORMS[name]["curl"].replace("\n", "")
        if COMMANDS[name].startswith("assent api "):
            values -= {"GET", "POST", "PUT"}
            values = {json.dumps(json.loads(it))[1:-1] if it.startswith("[") else json.dumps(it)[1:-1] for it in values}
            sent = " ".join(sent.split())
        assert [value for value in values if value not in sent] == []


class TestPrograms:
    @each("name", OPERATIONS)
    def test_each_calls_its_operation(self, name, monkeypatch, capsys):
        service = DocumentedService()
        client = partial(openassent.Assent, transport=httpx.MockTransport(service))
        with monkeypatch.context() as patched:
            patched.setattr(openassent, "Assent", client)
            exec(FORMS[name]["Python"], {})
        assert {*service.called} == {calls.SUCCESSORS.get(name, name)}
        assert capsys.readouterr().out

    def test_only_deprecated_operations_have_those_of_a_successor(self):
        assert {name for name, operation in OPERATIONS.items() if "deprecated" in operation.content} == {
            *calls.SUCCESSORS
        }
