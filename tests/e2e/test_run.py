"""`make run` as developers use it: the stack starts, its curl lines work, it keeps its data, and it stops cleanly."""

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.client import HTTPConnection
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

import pytest

from local.checkout import ROOT, is_listening
from local.environment import create_client
from tests.support.local_stack import LocalStack
from tests.support.missing import is_missing


@pytest.fixture(scope="module", autouse=True)
def _installed() -> None:
    if not (ROOT / ".tools/ministack/.ready").exists():
        is_missing("MiniStack is not installed: make e2e does that")


_PROC = Path("/proc")
_LISTEN = "0A"
REQUEST_LINE = re.compile(r"\d\d:\d\d:\d\d ([A-Z]+) (/\S*) (\d{3}) \d+ ms (\S+)")


def listening(process_id: int) -> set[tuple[IPv4Address | IPv6Address, int]]:
    """Returns the addresses and ports of the TCP sockets that wait for connections. Skips the test without /proc."""
    if not (_PROC / "net/tcp").exists():
        pytest.skip("this system has no /proc/net/tcp")
    sockets = {number for each in _tree(process_id) for number in _sockets(each)}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in (_PROC / "net" / table).read_text().splitlines()[1:]:
            local, state, number = (line.split()[field] for field in (1, 3, 9))
            if state == _LISTEN and f"socket:[{number}]" in sockets:
                address, port = local.split(":")
                found.add((_address(address), int(port, 16)))
    return found


def _address(text: str) -> IPv4Address | IPv6Address:
    """Returns the address. The kernel writes its 32-bit words as numbers of this machine, which is little-endian."""
    octets = b"".join(bytes.fromhex(text[start : start + 8])[::-1] for start in range(0, len(text), 8))
    return IPv4Address(octets) if len(octets) == 4 else IPv6Address(octets)


def _tree(process_id: int) -> Iterator[int]:
    yield process_id
    for children in _PROC.glob(f"{process_id}/task/*/children"):
        for child in children.read_text().split():
            yield from _tree(int(child))


def _sockets(process_id: int) -> Iterator[str]:
    for descriptor in _PROC.glob(f"{process_id}/fd/*"):
        try:
            yield str(descriptor.readlink())
        except FileNotFoundError:
            continue  # closed since


class Run(LocalStack):
    """A stack that is stopped at the end of the block, and the log that it left then."""

    log = ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()

    def stop(self) -> int:
        """Interrupts every process in the foreground group, as Ctrl-C does."""
        os.killpg(self.process.pid, signal.SIGINT)
        assert self.process.stdout is not None
        self.log = self.process.stdout.read()
        self.process.stdout.close()
        return self.process.wait(60)

    def curl_lines(self) -> list[list[str]]:
        """Returns the arguments of the curl lines on the screen, split as a shell would."""
        return [shlex.split(line[line.index("curl ") :]) for line in self.screen.splitlines() if "curl " in line]


def request(arguments: list[str]) -> tuple[int, dict]:
    """Sends the request that curl would send with these arguments."""
    url, headers, body = "", {}, None
    words = iter(arguments[1:])
    for word in words:
        if word == "-H":
            name, value = next(words).split(": ", 1)
            headers[name] = value
        elif word == "-d":
            body = next(words).encode()
        elif word != "-i":
            url = word
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=60) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def wait_until_gone(port: int) -> None:
    deadline = time.monotonic() + 60
    while is_listening(port):
        assert time.monotonic() < deadline, f"something still listens on {port}"


def check_commands(run: Run) -> None:
    """Checks that the commands on the screen work."""
    answers = [request(line) for line in run.curl_lines()]
    statuses = [status for status, _ in answers]
    assert statuses[:-1] == [200, 200, 200, 200, 201, 404, 200, 201, 200, 200]
    # The demo repository's first scan starts with the stack, and may still be running.
    assert statuses[-1] in {202, 409}
    assert answers[0][1] == {"success": True, "data": {"ok": True, "database": {"ok": True}}}
    assert answers[5][1]["error"]["code"] == "NOT_FOUND"


def check_credentials(path: Path) -> None:
    """Checks that only their owner can read them, and that they are those of the demo."""
    assert path.stat().st_mode & 0o077 == 0
    credentials = json.loads(path.read_text())
    assert {it["plan"] for it in credentials["organizations"]} == {"free", "pro"}
    pro = next(it["organizationId"] for it in credentials["organizations"] if it["plan"] == "pro")
    roles = [user["role"] for user in credentials["users"] if user["organizationId"] == pro]
    assert sorted(roles) == ["admin", "member", "owner"]
    assert any(user["organizationId"] != pro for user in credentials["users"])


def ops(directory: Path, *words: str) -> tuple[int, dict]:
    """Runs `assent-ops` on the stack of that folder. Returns its exit code and result."""
    done = subprocess.run(
        [sys.executable, "-m", "ops", *words, "--local", "--json"],
        cwd=ROOT,
        env=os.environ | {"LOCAL_DIRECTORY": str(directory)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, json.loads(done.stdout or "{}")


def sign_cursor(run: Run) -> str:
    """Returns a cursor that the current key signed."""
    cursor = request(with_query(run, "limit=1"))[1]["pagination"]["nextCursor"]
    assert cursor
    return cursor


def check_cursor(run: Run, cursor: str) -> None:
    assert request(with_query(run, f"limit=1&cursor={cursor}"))[0] == 200


def with_query(run: Run, query: str) -> list[str]:
    """Returns the arguments of the screen's curl line that lists projects, with this query."""
    return [word.replace("limit=10", query) for word in run.curl_lines()[3]]


def check_restore(run: Run, directory: Path) -> None:
    """Checks that a restore continues where an earlier one ended."""
    client = create_client("dynamodb", f"http://127.0.0.1:{run.ministack_port}")
    restore = ("table", "restore", "assent-restored")
    code, first = ops(directory, *restore)
    assert code == 0
    client.update_time_to_live(
        TableName=first["table"], TimeToLiveSpecification={"Enabled": False, "AttributeName": "expiresAt"}
    )
    assert ops(directory, *restore) == (0, first)
    expiry = client.describe_time_to_live(TableName=first["table"])["TimeToLiveDescription"]
    assert expiry["TimeToLiveStatus"] == "ENABLED"
    # Any other table is refused.
    assert ops(directory, "table", "restore", first["source"])[0] == 4


def check_addresses(run: Run) -> None:
    """Checks that every process of the stack can be reached from this machine only."""
    found = listening(run.process.pid)
    assert {port for _, port in found} == {run.port, run.ministack_port}
    assert [address for address, _ in found if not address.is_loopback] == []


def check_log(run: Run, earlier: int) -> None:
    """Sends requests, stops the stack, and checks that there is one line with the ID for each of them.

    earlier: the number of requests before.
    """
    sent = [("GET", "/v1/regions", 200), ("GET", "/v1/me", 401), ("PUT", "/v1/me", 405), ("GET", "/v1%2fme", 404)]
    connection = HTTPConnection("127.0.0.1", run.port, timeout=60)
    ids, challenges = [], []
    for method, path, status in sent:
        connection.request(method, f"{path}?organizationId=secret", headers={"Authorization": "Bearer secret"})
        response = connection.getresponse()
        assert response.status == status
        assert json.loads(response.read())["success"] is (status == 200)
        ids.append(response.headers["x-request-id"])
        challenges.append(response.headers["www-authenticate"])
    connection.close()
    assert run.stop() == 0
    # As with the template's front door.
    assert challenges == [None, 'Bearer error="invalid_token"', None, None]
    logged = [found.groups() for found in map(REQUEST_LINE.fullmatch, run.log.splitlines()) if found]
    assert len(logged) == earlier + len(sent)
    assert logged[earlier:] == [
        (method, path, str(status), known) for (method, path, status), known in zip(sent, ids, strict=True)
    ]
    assert "secret" not in run.log
    # The request that waited for the server isn't shown.
    assert not any(REQUEST_LINE.fullmatch(line) for line in run.screen.splitlines())
    assert run.screen.startswith("\nassent is ready")


class TestRun:
    def test_make_run_prints_working_commands_keeps_its_data_and_logs_requests(self, tmp_path):
        # One test, because a stack takes many times as long to start as all of these checks.
        path = tmp_path / "credentials.json"
        with Run(tmp_path) as first:
            check_commands(first)
            check_credentials(path)
            check_addresses(first)
            credentials = json.loads(path.read_text())
            cursor = sign_cursor(first)
            assert ops(tmp_path, "signing-key", "add")[1]["step"] == "added"
            assert ops(tmp_path, "signing-key", "switch")[0] == 1  # No function accepts the added key yet.
            assert first.stop() == 0
            wait_until_gone(first.port)
            wait_until_gone(first.ministack_port)

        with Run(tmp_path) as second:
            assert json.loads(path.read_text()) == credentials | {"baseUrl": f"http://127.0.0.1:{second.port}"}
            status, projects = request(second.curl_lines()[3])
            assert status == 200
            assert "My shop" in [project["projectName"] for project in projects["data"]]
            # It accepts the added key, so the rotation can go on.
            check_cursor(second, cursor)
            assert ops(tmp_path, "signing-key", "switch")[1]["step"] == "switched"
            check_restore(second, tmp_path)
            check_log(second, earlier=2)

        with Run(tmp_path) as third:
            check_cursor(third, cursor)
            assert sign_cursor(third) != cursor
            assert ops(tmp_path, "signing-key", "drop")[0] == 1  # The old key still verifies refresh tokens.

    def test_make_run_stops_its_processes_when_killed(self, tmp_path):
        with Run(tmp_path) as run:
            run.process.kill()
            run.process.wait()
            run.process.stdout.close()
            wait_until_gone(run.port)
            wait_until_gone(run.ministack_port)

    def test_make_run_says_in_one_line_that_the_port_is_in_use(self, tmp_path):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            result = subprocess.run(
                [sys.executable, "-m", "local"],
                cwd=ROOT,
                env=os.environ | {"PORT": str(port), "LOCAL_DIRECTORY": str(tmp_path)},
                capture_output=True,
                text=True,
                check=False,
            )
        assert (result.returncode, result.stdout) == (1, "")
        assert result.stderr == f"Port {port} is in use. Use another one: PORT={port + 1} make run\n"
