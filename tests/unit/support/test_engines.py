"""The engines that races run on, and the behavior if no engine is available."""

import os
from pathlib import Path

import pytest

from tests.support import engines
from tests.support.engines import ROOT, Engine, find_engine, required_engine, running_engine
from tests.support.listening import listening
from tests.support.missing import is_missing


def place(root: Path, program: str) -> Path:
    path = root / program
    path.parent.mkdir(parents=True)
    path.touch(0o755)
    return path


@pytest.fixture
def linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")


class TestFindEngine:
    def test_dynoxide_is_preferred(self, tmp_path: Path, linux: None) -> None:
        place(tmp_path, ".tools/ministack/bin/ministack")
        dynoxide = place(tmp_path, "node_modules/@dynoxide/linux-x64/dynoxide")
        assert find_engine(tmp_path) == ("dynoxide", dynoxide)

    def test_ministack_is_used_if_dynoxide_is_missing(self, tmp_path: Path, linux: None) -> None:
        place(tmp_path, "node_modules/@dynoxide/darwin-arm64/dynoxide")
        ministack = place(tmp_path, ".tools/ministack/bin/ministack")
        assert find_engine(tmp_path) == ("MiniStack", ministack)

    def test_no_engine_is_found_if_none_is_installed(self, tmp_path: Path) -> None:
        assert find_engine(tmp_path) is None


class TestRequiredEngine:
    @pytest.fixture(autouse=True)
    def no_engine(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(engines, "find_engine", lambda: None)

    def test_ci_fails_without_an_engine(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CI", "true")
        with pytest.raises(pytest.fail.Exception, match="real atomicity"), required_engine():
            pass

    def test_a_local_run_skips_with_the_reason(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("CI", raising=False)
        with pytest.raises(pytest.skip.Exception, match="real atomicity"), required_engine():
            pass


@pytest.mark.races
def test_the_engine_responds_and_starts_empty(engine: Engine) -> None:
    assert engine.name in {"dynoxide", "MiniStack"}
    assert engine.endpoint_url.startswith("http://127.0.0.1:")
    assert "NOT-THERE" not in engine.client.list_tables()["TableNames"]


@pytest.mark.races
def test_ministack_is_reachable_only_from_this_machine() -> None:
    program = ROOT / ".tools/ministack/bin/ministack"
    if not program.exists():
        is_missing("MiniStack is not installed: make test does that")
    before = listening(os.getpid())
    with running_engine("MiniStack", program) as engine:
        (endpoint,) = listening(os.getpid()) - before
    assert f"http://{endpoint[0]}:{endpoint[1]}" == engine.endpoint_url
