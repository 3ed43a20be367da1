import stat
from pathlib import Path

from local.github import setup
from tests.support.threads import run_repeatedly


def test_processes_that_start_at_once_agree_on_one_secret(tmp_path: Path):
    root = tmp_path / "github"
    outcomes = run_repeatedly([lambda: setup.webhook_secret(root)] * 8)
    (secret,) = {outcome.get() for outcome in outcomes}
    (file,) = root.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text() == secret
