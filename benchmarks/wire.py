"""DynamoDB's side of the connection: a small HTTP server, a recording proxy, and a stand-in that replays recordings.

The proxy asks the engine behind it for the capacity each call consumed and takes that out of the answer again, so a
function is counted without knowing. The stand-in answers a recorded request's calls at once; the path of its address
selects the recording.
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
import urllib.parse
import zlib
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol

CAPACITY = "ReturnConsumedCapacity"


@dataclass
class Call:
    """One recorded DynamoDB call; `started` and `ended` are monotonic seconds."""

    operation: str
    params: dict[str, Any]
    status: int
    answer: dict[str, Any]
    started: float
    ended: float
    read_units: float = 0.0
    write_units: float = 0.0


class Answers(Protocol):
    def answer(self, path: str, operation: str, body: bytes) -> tuple[int, bytes]: ...


class Server(ThreadingHTTPServer):
    """An HTTP server on a free loopback port, one thread per connection, with TLS if there is a certificate."""

    daemon_threads = True

    def __init__(self, answers: Answers, tls: tuple[Path, Path] | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = answers
        scheme, host = ("https", "localhost") if tls else ("http", "127.0.0.1")
        self.url = f"{scheme}://{host}:{self.server_port}"
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.socket = context.wrap_socket(self.socket, server_side=True)

    def __enter__(self) -> Server:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # a response is sent as a whole
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        operation = self.headers["x-amz-target"].rpartition(".")[2]
        status, answer = self.server.answers.answer(self.path, operation, body)
        self.send_response_only(status)
        for name, value in {
            "Server": "Server",
            "Content-Type": "application/x-amz-json-1.0",
            "Connection": "keep-alive",
            "x-amzn-RequestId": "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789ABCDEFGHIJKLMNOP",
            "x-amz-crc32": str(zlib.crc32(answer)),
            "Content-Length": str(len(answer)),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Writes no log."""


class Recorder:
    """Passes every call on to the engine at `url` and remembers it, with the capacity it consumed.

    A message for a queue is taken, and not a call of DynamoDB's. Each answer is held back for a moment, as long as a
    function takes to send several calls at once, so that these overlap however fast the engine is.
    """

    HELD_SECONDS = 0.01

    def __init__(self, url: str) -> None:
        self._address = urllib.parse.urlsplit(url).netloc
        self._local = threading.local()
        self._lock = threading.Lock()
        self._calls: list[Call] = []

    def take(self) -> list[Call]:
        """Returns the calls since the last `take`, in the order they started."""
        with self._lock:
            calls, self._calls = self._calls, []
        return sorted(calls, key=lambda call: call.started)

    def answer(self, path: str, operation: str, body: bytes) -> tuple[int, bytes]:  # noqa: ARG002 (one table)
        started = time.monotonic()
        params = json.loads(body or b"{}")
        if operation == "SendMessage":
            return 200, b'{"MessageId": "0"}'
        status, raw = self._forward(operation, {**params, CAPACITY: "INDEXES"})
        answer = json.loads(raw or b"{}")
        consumed = answer.pop("ConsumedCapacity", None)
        if status != 200:
            read = 0.0
            # A failed conditional write is charged like the write; the engine reports no capacity with an error.
            write = 1.0 if b"ConditionalCheckFailed" in raw else 0.0
        else:
            read, write = _units(operation, consumed)
        time.sleep(max(0.0, started + self.HELD_SECONDS - time.monotonic()))
        call = Call(operation, params, status, answer, started, time.monotonic(), read, write)
        with self._lock:
            self._calls.append(call)
        return status, json.dumps(answer, separators=(",", ":")).encode()

    def _forward(self, operation: str, params: dict[str, Any]) -> tuple[int, bytes]:
        if not hasattr(self._local, "connection"):
            self._local.connection = http.client.HTTPConnection(self._address, timeout=30)
        headers = {
            "X-Amz-Target": f"DynamoDB_20120810.{operation}",
            "Content-Type": "application/x-amz-json-1.0",
            "Authorization": "AWS4-HMAC-SHA256 Credential=bench/20260101/eu-central-1/dynamodb/aws4_request, "
            "SignedHeaders=host;x-amz-date, Signature=0",
            "X-Amz-Date": time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()),
        }
        connection: http.client.HTTPConnection = self._local.connection
        connection.request("POST", "/", json.dumps(params).encode(), headers)
        response = connection.getresponse()
        return response.status, response.read()


WRITES = {"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"}


def _units(operation: str, consumed: Any) -> tuple[float, float]:
    """Returns the (read, write) units of a response's ConsumedCapacity, which is one table's or a list."""
    entries = consumed if isinstance(consumed, list) else [consumed] if consumed else []
    read = write = 0.0
    for entry in entries:
        if "ReadCapacityUnits" in entry or "WriteCapacityUnits" in entry:
            read += entry.get("ReadCapacityUnits", 0.0)
            write += entry.get("WriteCapacityUnits", 0.0)
        elif operation in WRITES:
            write += entry.get("CapacityUnits", 0.0)
        else:
            read += entry.get("CapacityUnits", 0.0)
    return read, write


def sequential(calls: list[Call]) -> int:
    """Returns the number of sequential round trips: calls that overlap in time count once."""
    depth: list[int] = []
    for index, call in enumerate(calls):
        before = [depth[other] for other in range(index) if calls[other].ended <= call.started]
        depth.append(1 + max(before, default=0))
    return max(depth, default=0)


class Replay:
    """Answers recorded requests' calls at once, as `/<recording>` of its address.

    A call is recognised by its operation, and by its keys where the recording holds that operation more than once. What
    differs from run to run (a minute, a generated ID) falls back to the next recorded answer of the operation.
    """

    def __init__(self) -> None:
        self._answers: dict[tuple[str, str], list[tuple[str, int, bytes]]] = {}
        self._next: dict[tuple[str, str], int] = {}

    def add(self, recording: str, calls: list[Call]) -> None:
        for call in calls:
            raw = json.dumps(call.answer, separators=(",", ":")).encode()
            key = (f"/{recording}", call.operation)
            self._answers.setdefault(key, []).append((_keys(call.params), call.status, raw))

    def answer(self, path: str, operation: str, body: bytes) -> tuple[int, bytes]:
        known = self._answers.get((path, operation))
        if not known:
            return 400, b'{"__type":"com.amazonaws.dynamodb.v20120810#ValidationException","message":"not recorded"}'
        if len(known) == 1:
            return known[0][1:]
        keys = _keys(json.loads(body))
        for recorded, status, raw in known:
            if recorded == keys:
                return status, raw
        turn = self._next[path, operation] = self._next.get((path, operation), -1) + 1
        return known[turn % len(known)][1:]


def _keys(params: dict[str, Any]) -> str:
    parts = [params.get("Key"), params.get("KeyConditionExpression"), params.get("RequestItems")]
    if "KeyConditionExpression" in params:
        parts.append(params.get("ExpressionAttributeValues"))
    return json.dumps(parts, sort_keys=True)
