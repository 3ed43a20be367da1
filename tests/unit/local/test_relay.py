"""The relay that forwards a container's connections to a stack that listens only on this machine."""

import socket
import threading

import pytest

from local.relay import Relay


@pytest.fixture
def echo():
    """Yields the address of a server that returns its input in uppercase, once the caller has sent all of it."""
    listener = socket.create_server(("127.0.0.1", 0))

    def answer():
        while True:
            try:
                caller, _ = listener.accept()
            except OSError:
                return
            with caller:
                said = b""
                while block := caller.recv(65_536):
                    said += block
                caller.sendall(said.upper())

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    yield listener.getsockname()
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(5)


def ask(port: int, said: bytes) -> bytes:
    heard = b""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as caller:
        sender = threading.Thread(target=lambda: (caller.sendall(said), caller.shutdown(socket.SHUT_WR)))
        sender.start()
        while block := caller.recv(65_536):
            heard += block
        sender.join()
    return heard


class TestRelay:
    def test_the_relay_forwards_both_directions(self, echo):
        with Relay(("127.0.0.1", 0), echo) as relay:
            assert [ask(relay.port, said) for said in (b"one", b"two")] == [b"ONE", b"TWO"]

    def test_the_relay_forwards_more_than_one_block(self, echo):
        with Relay(("127.0.0.1", 0), echo) as relay:
            assert ask(relay.port, b"a" * 1_000_000) == b"A" * 1_000_000

    def test_hangs_up_if_nothing_listens(self, echo):
        listener = socket.create_server(("127.0.0.1", 0))
        unused = listener.getsockname()
        listener.close()
        with (
            Relay(("127.0.0.1", 0), unused) as relay,
            socket.create_connection(("127.0.0.1", relay.port), timeout=5) as caller,
        ):
            assert caller.recv(1) == b""

    def test_the_relay_releases_its_port(self, echo):
        with Relay(("127.0.0.1", 0), echo) as relay:
            port = relay.port
        with Relay(("127.0.0.1", port), echo) as again:
            assert ask(again.port, b"once more") == b"ONCE MORE"
