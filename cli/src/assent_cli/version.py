"""The version of this program, as the service sees it."""

import platform
from importlib.metadata import version


def program_version() -> str:
    return version("assent")


def user_agent() -> str:
    """Returns the User-Agent header. It contains nothing about the person or the machine but the platform."""
    return f"assent-cli/{program_version()} python/{platform.python_version()} {platform.system().lower()}"
