"""What a test does if a tool is missing: it fails in CI, where each is installed, and is skipped elsewhere."""

import os
from typing import NoReturn

import pytest


def is_missing(reason: str) -> NoReturn:
    """Fails or skips the test, or all tests of the fixture."""
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
