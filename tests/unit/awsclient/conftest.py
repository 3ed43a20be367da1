import os
import time

import pytest

from awsclient import client


@pytest.fixture(autouse=True)
def paused(monkeypatch) -> list[float]:
    """Sets only the variables that Lambda sets. Returns the pauses that were requested: none is made."""
    for name in os.environ:
        if name.startswith("AWS_") or name.lower() in {"https_proxy", "no_proxy", "requests_ca_bundle"}:
            monkeypatch.delenv(name)
    for name, value in {
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_SESSION_TOKEN": "a session",
        "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    seconds: list[float] = []
    monkeypatch.setattr(time, "sleep", seconds.append)
    # One pause in a thousand would be 0, which isn't requested.
    monkeypatch.setattr(client, "_jitter", lambda: 0.5)
    return seconds
