"""The generated modules of the SDK are current."""

from pathlib import Path

from scripts.sdk import formatting, models, sync
from tests.support.missing import is_missing


def outdated(texts: dict[Path, str]) -> list[str]:
    formatted = formatting.formatted(texts)
    return [path.name for path, text in formatted.items() if not path.exists() or path.read_text() != text]


def test_the_synchronous_client_is_made_from_the_asynchronous_one():
    assert outdated(sync.texts()) == []
    assert {it.name for it in sync.SYNC.glob("*.py")} == {it.name for it in sync.ASYNC.glob("*.py")}


def test_nothing_asynchronous_is_left_in_it():
    for path in sync.SYNC.glob("*.py"):
        lines = [it for it in path.read_text().splitlines() if not it.startswith("# Made from")]
        assert [it for it in lines if "async" in it.lower() or "await" in it] == []


def test_the_models_are_made_from_the_document():
    if not models.GENERATOR.exists():
        is_missing("the generator of the models isn't installed: `make sdk` does that")
    assert outdated(models.texts()) == []
