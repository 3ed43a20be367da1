"""Connections of libraries honor the request's deadline at every wait."""

import socket
from http.client import HTTPConnection
from io import BytesIO

import pytest

from controlplane.platform.core import deadline
from dashboard.access.provider import _BoundedConnection, _BoundedStream


class Connection(_BoundedConnection, HTTPConnection):
    pass


def test_a_connection_waits_no_longer_than_what_is_left():
    connection = Connection("127.0.0.1", 1, timeout=3)
    assert connection.timeout == 3
    with deadline.budget(2), deadline.spending():
        assert connection.timeout is not None
        assert connection.timeout <= 2
    assert connection.timeout == 3


def test_each_read_waits_no_longer_than_what_is_left():
    with socket.socket() as sock:
        sock.settimeout(3)
        stream = _BoundedStream(BytesIO(b"ab"), sock)  # type: ignore[arg-type]
        for seconds in (2, 1):
            with deadline.budget(seconds), deadline.spending():
                assert stream.readinto(bytearray(1)) == 1
            assert sock.gettimeout() <= seconds
        assert stream.readinto(bytearray(1)) == 0
        assert sock.gettimeout() == 3


def test_nothing_is_read_after_the_deadline():
    with socket.socket() as sock, deadline.budget(0), pytest.raises(TimeoutError):
        _BoundedStream(BytesIO(b"a"), sock).readinto(bytearray(1))  # type: ignore[arg-type]
