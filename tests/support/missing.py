"""Fails the tests whose tool is missing in CI, where each is installed, and skips them elsewhere."""

import os
from typing import NoReturn

import pytest


def is_missing(reason: str) -> NoReturn:
    """Fails or skips the test, or all tests of the fixture."""
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
