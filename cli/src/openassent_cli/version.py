"""The version of this program, as the service sees it."""

import platform

from openassent import __version__


def user_agent() -> str:
    """Returns the User-Agent header. It contains nothing about the person or the machine but the platform."""
    return f"assent-cli/{__version__} python/{platform.python_version()} {platform.system().lower()}"
