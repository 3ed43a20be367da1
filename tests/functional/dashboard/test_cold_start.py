"""What the pages load before anybody signs in."""

import subprocess
import sys


def test_the_libraries_of_a_sign_in_wait_for_one():
    script = (
        "import dashboard.app; print(sorted({'authlib', 'cryptography', 'joserfc', 'requests'} & sys.modules.keys()))"
    )
    run = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {sys.path!r}; {script}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == "[]"
