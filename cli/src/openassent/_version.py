"""The version of the installed package."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("openassent")
except PackageNotFoundError:  # a checkout on the path
    __version__ = "0"
