"""A DynamoDB stand-in without a socket: it replaces the HTTP connections of the measured process's client.

Everything of botocore, or of our own client, runs except its connections, which cost the same for all peers and most of
a call.
"""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

VARIABLE = "BENCHMARK_SOCKETLESS"


def install(recordings: Path) -> None:
    """Replays the recordings in the file. The path of an address selects the recording."""
    wire = importlib.import_module("wire")  # no package in that process
    replay = wire.Replay()
    for name, calls in json.loads(recordings.read_text()).items():
        replay.add(name, [wire.Call(**call) for call in calls])
    if importlib.util.find_spec("controlplane"):
        _replace_own(replay)
    if importlib.util.find_spec("botocore"):
        _replace_botocores(replay)


def _replace_own(replay: Any) -> None:
    from awsclient.connection import Connections, Response  # noqa: PLC0415 (the measured process's own)

    def exchange(_connections: Any, request: bytes) -> Any:
        head, _, body = request.partition(b"\r\n\r\n")
        path = head.split(b" ", 2)[1].decode()
        operation = re.search(rb"(?i)\r\nx-amz-target: *[^.\r]+\.(\w+)", head)
        assert operation is not None
        status, answer = replay.answer(path, operation[1].decode(), body)
        return Response(status, {"content-length": str(len(answer))}, answer)

    setattr(Connections, "exchange", exchange)  # noqa: B010 (mypy accepts no other way)


def _replace_botocores(replay: Any) -> None:
    from botocore import httpsession  # noqa: PLC0415 (the measured process's own, once it may be imported)
    from botocore.awsrequest import AWSResponse  # noqa: PLC0415
    from botocore.compat import HTTPHeaders  # noqa: PLC0415

    def send(_session: Any, request: Any) -> Any:
        operation = request.headers["X-Amz-Target"].decode().rpartition(".")[2]
        body = request.body if isinstance(request.body, bytes) else request.body.encode()
        status, answer = replay.answer(urlsplit(request.url).path, operation, body)
        headers = HTTPHeaders()
        headers["Content-Type"] = "application/x-amz-json-1.0"
        headers["Content-Length"] = str(len(answer))
        response = AWSResponse(request.url, status, headers, None)
        response._content = answer
        return response

    httpsession.URLLib3Session.send = send
