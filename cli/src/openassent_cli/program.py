"""The entry point of the console script. Imports nothing that only an extra of the distribution installs."""

import atexit
import gc
import sys

from openassent_cli.extras import installation
from openassent_cli.problems import Exit


def run() -> None:
    """Runs the command line, or says how to install it if only the SDK is installed."""
    # Most objects belong to imported modules, which are never garbage. Collecting took a fifth of a small scan's time.
    gc.set_threshold(50_000)
    atexit.register(gc.freeze)
    try:
        from openassent_cli.main import app  # noqa: PLC0415 - needs the extra `cli`
    except ModuleNotFoundError as error:
        advice = installation(error)
        if advice is None:
            raise
        sys.stderr.write(f"Error: Only the Python SDK is installed. {advice}\n")
        sys.exit(Exit.USAGE)
    app()
