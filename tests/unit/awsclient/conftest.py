import os
import time

import pytest

from awsclient import client
from awsclient.client import OwnClient
from awsclient.connection import NO_LIMIT, TimeLimit
from tests.support.scripted_server import Step, answer

ITEM = {"Item": {"pk": {"S": "ORG#1"}, "sk": {"S": "PROJECT#é"}}}
KEY = {"TableName": "t", "Key": ITEM["Item"]}
HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n"


def refusal(code: str, status: int = 400, **headers: str) -> Step:
    return answer({"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": "no"}, status, **headers)


def client_of(url: str, service: str = "dynamodb", limit: TimeLimit = NO_LIMIT) -> OwnClient:
    return OwnClient(service, url, limit)


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
